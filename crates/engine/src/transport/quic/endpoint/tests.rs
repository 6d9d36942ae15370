//! Endpoints with several sockets that connections share.

use std::net::{Shutdown, UdpSocket};

use socket2::{Domain, Type};

use super::super::first_flight::tests::{crypto, packet};
use super::super::tests::{sides, socket};
use super::*;

/// The longest that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
/// A silent connection ends after this time.
const IDLE: Duration = Duration::from_millis(100);

fn brief() -> Settings {
    Settings { idle: IDLE, ..Settings::default() }
}

/// A socket that is connected to this address.
fn connected(to: SocketAddr) -> Arc<Socket> {
    let (socket, _) = socket();
    socket.connect(&to.into()).unwrap();
    socket
}

fn has_closed(endpoint: &mut Endpoint, link: Link) -> bool {
    std::iter::from_fn(|| endpoint.poll_event())
        .any(|(of, event)| of == link && matches!(event, Event::Closed(_)))
}

#[test]
fn sockets_that_are_known_to_have_packets_are_not_asked_for_again() {
    const SOCKETS: usize = 100;
    const EACH: usize = 3;
    let mut endpoint = Endpoint::new(&Settings::default(), None).unwrap().keeping_foreign();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..SOCKETS {
        let (socket, address) = socket();
        endpoint.add(socket).unwrap();
        for _ in 0..EACH {
            sender.send_to(&[0; 100], address).unwrap();
        }
    }
    let (end, mut came) = (Instant::now() + LIMIT, 0);
    while came < SOCKETS * EACH {
        assert!(Instant::now() < end, "only {came} came");
        endpoint.wait(Duration::from_millis(20), None).unwrap();
        let unread = endpoint.waiting.unread.len();
        assert!(unread <= SOCKETS, "{unread} entries for {SOCKETS} sockets");
        endpoint.take_in().unwrap();
        came += std::iter::from_fn(|| endpoint.poll_foreign()).count();
    }
}

#[test]
fn a_second_socket_comes_after_the_first_has_received_in_bulk() {
    let (first, address) = socket();
    let mut endpoint = Endpoint::over(first, &Settings::default(), None).unwrap().looking();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(&[0; 40_000], address).unwrap();
    let end = Instant::now() + LIMIT;
    while !endpoint.is_in_bulk() {
        assert!(Instant::now() < end, "nothing came");
        endpoint.wait(Duration::from_millis(20), None).unwrap();
        endpoint.take_in().unwrap();
    }
    endpoint.add(socket().0).unwrap();
    assert!(!endpoint.wait(Duration::from_millis(20), None).unwrap());
    assert!(endpoint.waiting.unread.is_empty());
}

#[test]
fn timers_run_though_a_shared_socket_cannot_receive() {
    let (client, _) = sides(&brief());
    let (silent, address) = socket();
    let mut endpoint = Endpoint::over(socket().0, &brief(), None).unwrap();
    // A TCP socket without a peer is always ready, and fails.
    endpoint.add(Arc::new(Socket::new(Domain::IPV4, Type::STREAM, None).unwrap())).unwrap();
    let link = endpoint.connect(0, address, "linerate", &client).unwrap();
    let end = Instant::now() + LIMIT;
    while !has_closed(&mut endpoint, link) {
        assert!(Instant::now() < end, "the connection never ends");
        endpoint.send_out().unwrap();
        endpoint.wait(Duration::from_millis(20), None).unwrap();
        endpoint.take_in().expect_err("one of the sockets fails");
    }
    drop(silent);
}

#[test]
fn connections_over_a_shared_socket_that_cannot_send_end_and_others_go_on() {
    let (client, server) = sides(&brief());
    let (far, address) = socket();
    let mut far = Endpoint::over(far, &Settings::default(), Some(&server)).unwrap();
    let broken = connected(address);
    let mut near = Endpoint::over(Arc::clone(&broken), &brief(), None).unwrap();
    let number = near.add(connected(address)).unwrap();
    broken.shutdown(Shutdown::Write).unwrap();
    let unheard = near.connect(0, address, "linerate", &client).unwrap();
    let heard = near.connect(number, address, "linerate", &client).unwrap();
    let (mut established, mut ended) = (false, false);
    let end = Instant::now() + LIMIT;
    while !(established && ended) {
        assert!(Instant::now() < end, "established: {established}, ended: {ended}");
        let _fails = near.send_out();
        near.take_in().unwrap();
        while let Some((link, event)) = near.poll_event() {
            established |= link == heard && event == Event::Established;
            ended |= link == unheard && matches!(event, Event::Closed(_));
        }
        far.turn().unwrap();
        while far.poll_event().is_some() {}
    }
}

#[test]
fn each_socket_holds_as_many_connections_as_are_allowed() {
    let settings = Settings { connections: 1, ..Settings::default() };
    let (client, server) = sides(&settings);
    let mut far = Endpoint::new(&settings, Some(&server)).unwrap();
    let addresses = [(); 2].map(|()| {
        let (socket, address) = socket();
        far.add(socket).unwrap();
        address
    });
    let mut near = Endpoint::over(socket().0, &settings, None).unwrap();
    let mut established = 0;
    let mut run = |near: &mut Endpoint,
                   far: &mut Endpoint,
                   done: &dyn Fn(&Endpoint, u32) -> bool| {
        let end = Instant::now() + LIMIT;
        while !done(far, established) {
            assert!(Instant::now() < end, "{established} connections stand");
            near.turn().unwrap();
            far.turn().unwrap();
            while near.poll_event().is_some() {}
            let events = std::iter::from_fn(|| far.poll_event());
            established += events.filter(|(_, event)| *event == Event::Established).count() as u32;
        }
    };
    for address in addresses {
        near.connect(0, address, "linerate", &client).unwrap();
    }
    run(&mut near, &mut far, &|_, established| established == 2);
    assert_eq!(far.refused, 0);
    near.connect(0, addresses[1], "linerate", &client).unwrap();
    run(&mut near, &mut far, &|far, _| far.refused == 1);
    assert_eq!(far.open_connections(), 2);
}

/// Runs both until the server's user is asked about a client; its link.
fn asked(near: &mut Endpoint, far: &mut Endpoint) -> Link {
    let end = Instant::now() + LIMIT;
    loop {
        assert!(Instant::now() < end, "nobody comes");
        near.turn().unwrap();
        far.turn().unwrap();
        while let Some((link, event)) = far.poll_event() {
            if matches!(event, Event::Incoming(..)) {
                return link;
            }
        }
    }
}

#[test]
fn a_decision_about_an_earlier_client_of_the_slot_decides_nothing() {
    let (client, server) = sides(&brief());
    let (far, address) = socket();
    let mut far = Endpoint::over(far, &Settings::default(), Some(&server)).unwrap().asking();
    let mut near = Endpoint::over(socket().0, &brief(), None).unwrap();
    near.connect(0, address, "linerate", &client).unwrap();
    let earlier = asked(&mut near, &mut far);
    far.refuse_incoming(earlier);
    near.connect(0, address, "linerate", &client).unwrap();
    let later = asked(&mut near, &mut far);
    assert_eq!((later.index, later.generation), (earlier.index, earlier.generation + 1));
    assert!(!far.accept_incoming(earlier));
    far.refuse_incoming(earlier);
    assert!(far.accept_incoming(later));
}

/// What becomes of a client that sends datagrams of first packets with these frames: whether it is told, whether it is
/// answered, and whether the endpoint still keeps it.
fn fate(datagrams: &[Vec<u8>]) -> (bool, bool, bool) {
    let (_, server) = sides(&Settings::default());
    let (far, address) = socket();
    let mut far = Endpoint::over(far, &Settings::default(), Some(&server)).unwrap().asking();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_nonblocking(true).unwrap();
    let mut is_told = false;
    for datagram in datagrams {
        client.send_to(datagram, address).unwrap();
        far.wait(LIMIT, None).unwrap();
        far.turn().unwrap();
        is_told |= std::iter::from_fn(|| far.poll_event())
            .any(|(_, event)| matches!(event, Event::Incoming(..)));
    }
    (is_told, client.recv(&mut [0; 2_000]).is_ok(), far.open_connections() > 0)
}

#[test]
fn a_client_that_cannot_be_accepted_is_turned_away_and_not_told() {
    const ID: &[u8; 8] = b"a client";
    /// What a first packet of a datagram that may be answered has at least.
    const FRAMES_BYTES: usize = 1_200;
    let datagram = |number, frames: &[u8]| {
        let mut frames = frames.to_vec();
        frames.resize(FRAMES_BYTES, 0);
        packet(ID, number, &frames)
    };
    let begun = datagram(0, &crypto(0, &[1, 0, 1]));
    assert_eq!(fate(std::slice::from_ref(&begun)), (false, false, true));
    let too_long = datagram(0, &crypto(0, &[1, 0, 0x40, 0]));
    assert_eq!(fate(&[too_long]), (false, true, false));
    let unknown = datagram(1, &[0x1e]);
    assert_eq!(fate(&[begun.clone(), unknown]), (false, true, false));
    let close = datagram(1, &[0x1c, 0, 0, 0]);
    assert_eq!(fate(&[begun.clone(), close]), (false, false, false));
    let mut forged = begun;
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(fate(&[forged]), (false, false, false));
}
