//! A client whose connections each have a socket, and a server over loopback, in one thread.

use std::cell::{Cell, RefCell};
use std::net::{Shutdown, SocketAddr};
use std::sync::Weak;

use socket2::{Domain, Socket, Type};

use super::super::settings::{ServerSide, Settings};
use super::super::tests::{sides, socket};
use super::super::{ClientSide, Endpoint};
use super::*;
use crate::socket::is_short_of_descriptors;

/// The longest that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A client's end, and what it may open.
struct Scene {
    near: MultiplexedEndpoint<'static>,
    to: Destination,
    sockets: Rc<RefCell<Vec<Weak<Socket>>>>,
    most: Rc<Cell<usize>>,
    /// What connections have told, but for what they received.
    told: Vec<(Link, LinkEvent)>,
    received: Vec<(Link, usize)>,
}

impl Scene {
    fn new(client: ClientSide, remote: SocketAddr) -> Self {
        let sockets: Rc<RefCell<Vec<Weak<Socket>>>> = Rc::default();
        let most = Rc::new(Cell::new(usize::MAX));
        let (opened, may) = (Rc::clone(&sockets), Rc::clone(&most));
        let opening = move || {
            let mut opened = opened.borrow_mut();
            opened.retain(|socket| socket.strong_count() > 0);
            if opened.len() >= may.get() {
                return Err(io::Error::from_raw_os_error(libc::EMFILE));
            }
            let socket = Arc::new(Socket::new(Domain::IPV4, Type::DGRAM, None)?);
            socket.connect(&remote.into())?;
            opened.push(Arc::downgrade(&socket));
            Ok(socket)
        };
        let endpoint = Endpoint::new(&Settings::default(), None).unwrap();
        let near = MultiplexedEndpoint::new(endpoint, Some(Rc::new(client)), 0);
        let near = near.apart(Box::new(opening), false);
        let to = Destination { remote, local: None, server_name: "linerate".to_owned() };
        Self { near, to, sockets, most, told: Vec::new(), received: Vec::new() }
    }

    fn connect(&mut self) -> Link {
        self.near.connect(&self.to).unwrap()
    }

    fn live_sockets(&self) -> usize {
        self.sockets.borrow().iter().filter(|socket| socket.strong_count() > 0).count()
    }

    fn turn(&mut self, at_most: Duration) {
        self.near.wait(at_most).unwrap();
        while let Some((link, event)) = self.near.poll_event() {
            match event {
                LinkEvent::Received { bytes, .. } => self.received.push((link, bytes)),
                event => self.told.push((link, event)),
            }
        }
    }

    /// How many connections stand.
    fn established(&self) -> usize {
        self.told.iter().filter(|(_, event)| matches!(event, LinkEvent::Established)).count()
    }

    /// Which have ended, and how.
    fn endings(&self) -> Vec<(Link, Option<&'static str>)> {
        let ended = |(link, event): &(Link, LinkEvent)| match event {
            LinkEvent::Ended { ending } => Some((*link, ending.failure)),
            _ => None,
        };
        self.told.iter().filter_map(ended).collect()
    }
}

/// A server that sends back so many bytes as a request has.
struct Echo {
    far: MultiplexedEndpoint<'static>,
    /// With what streams were reset and stopped.
    codes: Vec<u64>,
}

impl Echo {
    fn new(server: &ServerSide) -> (Self, SocketAddr) {
        let (socket, address) = socket();
        let endpoint = Endpoint::over(socket, &Settings::default(), Some(server)).unwrap();
        let far = MultiplexedEndpoint::new(endpoint, None, 16);
        (Self { far, codes: Vec::new() }, address)
    }

    fn turn(&mut self) {
        self.far.wait(Duration::ZERO).unwrap();
        while let Some((link, event)) = self.far.poll_event() {
            match event {
                LinkEvent::Received { stream, bytes, finished, .. } => {
                    let bytes = vec![0; bytes];
                    let sending = Sending { bytes: &bytes, opens: false, finishes: finished };
                    assert_eq!(self.far.send(link, stream, sending), Some(bytes.len()));
                }
                LinkEvent::Reset { code, .. } => self.codes.extend(code),
                LinkEvent::Stopped { code, .. } => self.codes.push(code),
                _ => {}
            }
        }
    }
}

/// Gives both ends turns until it is `done`.
fn run(scene: &mut Scene, echo: &mut Echo, mut done: impl FnMut(&mut Scene) -> bool) {
    let end = Instant::now() + LIMIT;
    while !done(scene) {
        assert!(Instant::now() < end, "nothing came of it: {:?}", scene.told);
        scene.turn(Duration::ZERO);
        echo.turn();
    }
}

fn pair() -> (Scene, Echo) {
    // Connections that wait for others to be made don't end of that.
    let (client, server) = sides(&Settings { idle: 2 * LIMIT, ..Settings::default() });
    let (echo, address) = Echo::new(&server);
    (Scene::new(client, address), echo)
}

fn request(scene: &mut Scene, link: Link, bytes: &[u8]) {
    let stream = scene.near.open_stream(link).expect("there is room for a stream");
    let sending = Sending { bytes, opens: true, finishes: true };
    assert_eq!(scene.near.send(link, stream, sending), Some(bytes.len()));
}

#[test]
fn many_connections_carry_at_a_time() {
    const CONNECTIONS: usize = 200;
    let (mut scene, mut echo) = pair();
    let mut links = Vec::new();
    // More handshakes at once would run out of their time on a busy machine.
    while links.len() < CONNECTIONS {
        links.extend((0..20).map(|_| scene.connect()));
        run(&mut scene, &mut echo, |scene| scene.established() == links.len());
    }
    for (number, link) in links.iter().enumerate() {
        request(&mut scene, *link, &vec![7; 100 * (number + 1)]);
    }
    let total: usize = (1..=CONNECTIONS).map(|number| 100 * number).sum();
    run(&mut scene, &mut echo, |scene| {
        scene.received.iter().map(|(_, bytes)| bytes).sum::<usize>() == total
    });
    for (number, link) in links.iter().enumerate() {
        let of_it = scene.received.iter().filter(|(from, _)| from == link);
        assert_eq!(of_it.map(|(_, bytes)| bytes).sum::<usize>(), 100 * (number + 1));
    }
    assert_eq!(scene.endings(), []);
    assert_eq!(scene.near.endpoint.sockets(), CONNECTIONS);
}

#[test]
fn error_of_one_socket_ends_only_its_connection() {
    let (mut scene, mut echo) = pair();
    let links: Vec<_> = (0..3).map(|_| scene.connect()).collect();
    run(&mut scene, &mut echo, |scene| scene.established() == 3);
    let broken = scene.sockets.borrow()[1].upgrade().unwrap();
    broken.shutdown(Shutdown::Write).unwrap();
    drop(broken);
    for link in &links {
        request(&mut scene, *link, &[7; 1000]);
    }
    run(&mut scene, &mut echo, |scene| {
        let heard: usize = scene.received.iter().map(|(_, bytes)| bytes).sum();
        heard == 2000 && scene.near.endpoint.sockets() == 2
    });
    assert_eq!(scene.endings(), [(links[1], Some("reset"))]);
    assert!(scene.received.iter().all(|(link, _)| *link != links[1]));
    assert_eq!(scene.live_sockets(), 2);
    // What is asked of it does nothing, and its place is another's.
    scene.near.close(links[1]);
    let next = scene.connect();
    assert_eq!((next.index, next.generation), (links[1].index, links[1].generation + 1));
    run(&mut scene, &mut echo, |scene| scene.established() == 4);
}

#[test]
fn sockets_close_when_both_ends_have_closed() {
    let (mut scene, mut echo) = pair();
    let mut early = 0;
    for number in 1..=50 {
        let link = scene.connect();
        run(&mut scene, &mut echo, |scene| scene.established() == number);
        // A server for which the connection stands says that it has heard of its end.
        request(&mut scene, link, &[7; 10]);
        run(&mut scene, &mut echo, |scene| scene.received.len() == number);
        scene.near.close(link);
        // The next socket is opened when the last one's connection is over.
        run(&mut scene, &mut echo, |scene| scene.near.endpoint.sockets() == 0);
        // One that time closes leaves no entry behind.
        early += u32::from(scene.near.endpoint.is_to_close(link));
    }
    assert!(early > 0, "none was closed for its server's answer");
    assert_eq!(scene.endings().len(), 50);
    assert!(scene.endings().iter().all(|(_, failure)| failure.is_none()));
    assert_eq!((scene.live_sockets(), scene.near.slots.len()), (0, 1));
}

#[test]
fn the_sockets_of_a_silent_server_close_when_nothing_comes() {
    let (client, _) = sides(&Settings::default());
    let (silent, address) = socket();
    let mut scene = Scene::new(client, address);
    let links: Vec<_> = (0..20).map(|_| scene.connect()).collect();
    scene.turn(Duration::ZERO);
    for link in links {
        scene.near.close(link);
    }
    scene.near.flush();
    assert_eq!((scene.near.endpoint.sockets(), scene.live_sockets()), (0, 0));
    drop(silent);
}

#[test]
fn ended_connections_free_descriptors_when_they_run_out() {
    let (mut scene, mut echo) = pair();
    scene.most.set(2);
    let first = scene.connect();
    let second = scene.connect();
    let refused = scene.near.connect(&scene.to).expect_err("there is no third");
    assert!(is_short_of_descriptors(&refused));
    run(&mut scene, &mut echo, |scene| scene.established() == 2);
    scene.near.close(first);
    // Its last words leave; the server is not asked for its own.
    scene.turn(Duration::ZERO);
    let third = scene.connect();
    assert_eq!((third.index, scene.near.endpoint.sockets()), (first.index, 2));
    run(&mut scene, &mut echo, |scene| scene.established() == 3);
    request(&mut scene, second, &[7; 10]);
    request(&mut scene, third, &[7; 10]);
    run(&mut scene, &mut echo, |scene| scene.received.len() == 2);
    assert_eq!(scene.endings(), [(first, None)]);
}

#[test]
fn the_codes_of_streams_that_are_given_up_arrive() {
    let (mut scene, mut echo) = pair();
    let link = scene.connect();
    run(&mut scene, &mut echo, |scene| scene.established() == 1);
    let end = Instant::now() + LIMIT;
    for (number, code) in [(1, 77), (2, (1 << 62) - 1)] {
        let stream = scene.near.open_stream(link).expect("there is room for a stream");
        let sending = Sending { bytes: &[7; 10], opens: true, finishes: false };
        assert_eq!(scene.near.send(link, stream, sending), Some(10));
        run(&mut scene, &mut echo, |scene| scene.received.len() == number);
        scene.near.abort(link, stream, code);
        echo.codes.clear();
        while echo.codes.len() < 2 {
            assert!(Instant::now() < end, "only {:?} came", echo.codes);
            scene.turn(Duration::ZERO);
            echo.turn();
        }
        assert_eq!(echo.codes, [code; 2], "that of the reset and of the stop");
    }
}
