//! What a target is sent before its handshake is done.

use rustls::server::ServerSessionMemoryCache;

use super::*;

/// A server that gives tickets and takes early data; its tickets are its own.
fn server(socket: &Arc<Socket>) -> Peer {
    let alpn = vec![ALPN.as_bytes().to_vec()];
    let mut tls = server_tls(&make_identity().unwrap(), &[], alpn).unwrap();
    tls.session_storage = ServerSessionMemoryCache::new(32);
    tls.send_tls13_tickets = 2;
    tls.max_early_data_size = u32::MAX;
    let extras = Extras { transport_close: true, ..Extras::default() };
    let side = ServerSide::new(Arc::new(tls), &settings(), extras).unwrap();
    Peer::new(Endpoint::over(Arc::clone(socket), &settings(), Some(&side)).unwrap())
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
