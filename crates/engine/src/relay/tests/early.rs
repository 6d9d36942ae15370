//! What a target is sent before its handshake is done.

use rustls::server::ServerSessionMemoryCache;

use super::*;

/// Another application protocol.
const OTHER: &str = "other";

fn offer(name: &str) -> Vec<Vec<u8>> {
    vec![name.as_bytes().to_vec()]
}

/// A server that gives tickets and takes early data; its tickets are its own.
fn server(socket: &Arc<Socket>) -> Peer {
    server_with(socket, &settings())
}

fn server_with(socket: &Arc<Socket>, settings: &Settings) -> Peer {
    let alpn = [ALPN, OTHER].map(|name| name.as_bytes().to_vec()).to_vec();
    let mut tls = server_tls(&make_identity().unwrap(), &[], alpn).unwrap();
    tls.session_storage = ServerSessionMemoryCache::new(32);
    tls.send_tls13_tickets = 2;
    tls.max_early_data_size = u32::MAX;
    let extras = Extras { transport_close: true, ..Extras::default() };
    let side = ServerSide::new(Arc::new(tls), settings, extras).unwrap();
    Peer::new(Endpoint::over(Arc::clone(socket), settings, Some(&side)).unwrap())
}

/// Has a client ask over a new connection, before the target knows of it; whether the request came early.
fn ask(world: &mut World) -> bool {
    world.client.events.clear();
    world.server.events.clear();
    let link = world.connect();
    let near = SharedConnection::clone(world.client.endpoint.connection(link).unwrap());
    // The server gets no turn until the client's request is in the proxy.
    let end = Instant::now() + LIMIT;
    while world.client.link(|event| *event == Event::Established).is_none() {
        assert!(Instant::now() < end, "no handshake");
        world.client.turn();
    }
    let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    near.borrow_mut().send(id, b"question").unwrap();
    near.borrow_mut().finish(id).unwrap();
    for _ in 0..200 {
        world.client.turn();
        thread::sleep(Duration::from_millis(1));
    }
    let far = world.until(|world| world.server.link(|event| *event == Event::Accepted));
    let far = SharedConnection::clone(world.server.endpoint.connection(far).unwrap());
    let taken = world.accepted(&far, Dir::Bi);
    assert_eq!(world.read(&far, taken).0, b"question");
    let at = |wanted: &Event| world.server.events.iter().position(|(_, event)| event == wanted);
    let is_early = match at(&Event::Established) {
        None => true,
        Some(established) => at(&Event::StreamsOpened(Dir::Bi)).unwrap() < established,
    };
    send_all(world, &far, taken, b"answer");
    assert_eq!(world.read(&near, id).0, b"answer");
    near.borrow_mut().close(0, b"");
    world.until(|world| (world.proxy.totals().open == 0).then_some(()));
    is_early
}

#[test]
fn a_target_that_was_connected_to_before_gets_the_request_early() {
    let (socket, address) = socket();
    let mut world = World::new(|plan| {
        plan.target = address;
        sides(plan).early_data = true;
    });
    world.server = server(&socket);
    assert!(!ask(&mut world), "nobody has a ticket yet");
    assert!(ask(&mut world));
}

#[test]
fn a_request_that_the_target_refuses_early_is_sent_again() {
    let (socket, address) = socket();
    let mut world = World::new(|plan| {
        plan.target = address;
        sides(plan).early_data = true;
    });
    world.server = server(&socket);
    assert!(!ask(&mut world));
    // One that knows none of the tickets.
    world.server = server(&socket);
    assert!(!ask(&mut world));
    assert!(ask(&mut world), "it has given new ones");
}

#[test]
fn nothing_is_sent_early_unless_it_is_asked_for() {
    let (socket, address) = socket();
    let mut world = World::new(|plan| plan.target = address);
    world.server = server(&socket);
    assert!(!ask(&mut world));
    assert!(!ask(&mut world));
}

#[test]
fn tickets_are_of_the_protocol_that_was_agreed_on() {
    let (socket, address) = socket();
    let mut world = World::new(|plan| {
        plan.target = address;
        sides(plan).early_data = true;
        sides(plan).alpn = None;
    });
    world.server = server(&socket);
    let offering = [ALPN, OTHER].map(|name| world.client_side.offering(offer(name), None));
    for is_early in [false, true] {
        for client_side in &offering {
            world.client_side = client_side.clone();
            assert_eq!(ask(&mut world), is_early);
        }
    }
}

/// A thread of a proxy, between a client and a server. It takes a turn only when it is told to.
struct Stepped {
    worker: quic::Worker,
    address: SocketAddr,
    client_side: ClientSide,
    client: Peer,
    server: Peer,
    socket: Arc<Socket>,
    settings: Settings,
    /// Keeps the channel of events open.
    _events: Receiver<ProxyEvent>,
}

impl Stepped {
    /// One whose server allows what these settings say, and has given tickets.
    fn new(settings: &Settings) -> Self {
        let (socket, target) = socket();
        let mut plan = plan(target);
        sides(&mut plan).early_data = true;
        let (own, address) = self::socket();
        let own = Arc::try_unwrap(own).unwrap();
        own.set_nonblocking(true).unwrap();
        let (events, told) = sync_channel(EVENTS_WAITING_MAX);
        let shared = Shared {
            counts: Arc::default(),
            stop: Arc::default(),
            admission: Arc::new(Admission::new(100, 100)),
            stock: Stock::new(0),
            tickets: TargetTickets::default(),
            events,
        };
        let both = (sides(&mut plan).clone(), Sessions::default());
        let worker = quic::Worker::new(plan, both, 0, own, shared).unwrap();
        let tls = Arc::new(client_tls(|_| Ok(Trusts::Unread), &[], offer(ALPN)).unwrap());
        let extras = Extras { transport_close: true, ..Extras::default() };
        let mut stepped = Self {
            worker,
            address,
            client_side: ClientSide::new(tls, &self::settings(), extras).unwrap(),
            client: Peer::new(Endpoint::over(self::socket().0, &self::settings(), None).unwrap()),
            server: server_with(&socket, settings),
            socket,
            settings: settings.clone(),
            _events: told,
        };
        let (near, _link) = stepped.connect();
        stepped.until(|world| world.server.link(|event| *event == Event::Established));
        // The tickets come.
        for _ in 0..5 {
            stepped.turns();
        }
        near.borrow_mut().close(0, b"");
        stepped.until(|world| world.server.close());
        stepped
    }

    /// Begins a connection whose handshake with the proxy is done, and of which the server has heard nothing.
    fn connect(&mut self) -> (SharedConnection, Link) {
        let link =
            self.client.endpoint.connect(0, self.address, "localhost", &self.client_side).unwrap();
        let near = SharedConnection::clone(self.client.endpoint.connection(link).unwrap());
        let end = Instant::now() + LIMIT;
        while near.borrow().establish().is_err() {
            assert!(Instant::now() < end, "no handshake");
            self.client.turn();
            self.worker.turn().unwrap();
        }
        (near, link)
    }

    /// The next server at the same address knows no ticket.
    fn replace_server(&mut self) {
        self.server = server_with(&self.socket, &self.settings);
    }

    fn turns(&mut self) {
        self.client.turn();
        self.worker.turn().unwrap();
        self.server.turn();
    }

    fn until<T>(&mut self, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            let events = (&self.client.events, &self.server.events);
            assert!(Instant::now() < end, "nothing came of it: {events:?}");
            self.turns();
        }
    }

    /// What the server reads of so many streams of its newest connection, whole.
    fn received(&mut self, streams: usize) -> Vec<Vec<u8>> {
        let link = self.until(|world| world.server.link(|event| *event == Event::Accepted));
        let far = SharedConnection::clone(self.server.endpoint.connection(link).unwrap());
        let mut received = Vec::new();
        for _ in 0..streams {
            let id = self.until(|_| far.borrow_mut().accept_stream(Dir::Bi));
            let mut bytes = Vec::new();
            let read = self.until(|_| {
                let read = far.borrow_mut().read(id, usize::MAX, &mut |piece| bytes.extend(piece));
                (!matches!(read, StreamRead::Blocked | StreamRead::Bytes(_))).then_some(read)
            });
            assert!(matches!(read, StreamRead::Finished(_)), "{read:?}");
            received.push(bytes);
        }
        received
    }

    /// The proxy passes on what the client has sent, as far as the target takes it early.
    fn pass_on(&mut self) {
        for _ in 0..4 {
            self.client.turn();
            self.worker.turn().unwrap();
        }
    }
}

#[test]
fn what_comes_in_the_turn_of_a_refusal_is_sent_after_what_was_refused() {
    const PACKETS: u8 = 8;
    let mut world = Stepped::new(&settings());
    world.replace_server();
    let (near, _link) = world.connect();
    let first = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    near.borrow_mut().send(first, &[0; 500]).unwrap();
    world.pass_on();
    // Acknowledgements of the client are read.
    for _ in 0..PACKETS {
        world.worker.turn().unwrap();
    }
    // The proxy reads a packet of each side in a turn, the client's first: one of these comes with the refusal.
    for number in 1..=PACKETS {
        near.borrow_mut().send(first, &[number; 500]).unwrap();
        let next = near.borrow_mut().open_stream(Dir::Bi).unwrap();
        near.borrow_mut().send(next, &[number; 100]).unwrap();
        near.borrow_mut().finish(next).unwrap();
        world.client.turn();
        thread::sleep(Duration::from_millis(1));
    }
    for _ in 0..20 {
        world.server.turn();
        thread::sleep(Duration::from_millis(1));
    }
    for _ in 0..PACKETS {
        world.worker.turn().unwrap();
    }
    near.borrow_mut().finish(first).unwrap();
    let received = world.received(usize::from(PACKETS) + 1);
    assert_eq!(received[0].len(), 500 * (usize::from(PACKETS) + 1));
    assert!(received[0].is_sorted());
    for (number, bytes) in (1..).zip(&received[1..]) {
        assert_eq!(bytes, &[number; 100]);
    }
    assert_eq!(world.client.close(), None);
}

#[test]
fn a_stream_that_could_send_nothing_early_goes_on_after_a_refusal() {
    let window = 16 << 10;
    let narrow = Settings { connection_window_bytes: window, ..settings() };
    let mut world = Stepped::new(&narrow);
    world.replace_server();
    let (near, _link) = world.connect();
    let first = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    let filling = vec![1; window as usize];
    let mut sent = 0;
    while sent < filling.len() {
        sent += near.borrow_mut().send(first, &filling[sent..]).unwrap_or(0);
        world.pass_on();
    }
    near.borrow_mut().finish(first).unwrap();
    world.pass_on();
    let second = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    near.borrow_mut().send(second, b"question").unwrap();
    near.borrow_mut().finish(second).unwrap();
    world.pass_on();
    let received = world.received(2);
    assert_eq!(received[0], filling);
    assert_eq!(received[1], b"question");
}
