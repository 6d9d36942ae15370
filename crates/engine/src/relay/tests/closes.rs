//! How connections end, and what a client hears of a target that can't be reached.

use super::*;

fn refused(reason: &str) -> impl Fn(&PeerClose) -> bool {
    let reason = reason.to_owned();
    move |close| {
        let text = String::from_utf8_lossy(&close.reason).into_owned();
        (close.frame, close.code) == (Some(0), 2) && text.contains(&reason)
    }
}

#[test]
fn closes_cross_with_kind_code_and_reason() {
    for is_transport in [false, true] {
        for by_client in [false, true] {
            let mut world = World::new(|_| {});
            let (near, far) = world.established();
            let code = if is_transport { 0 } else { 0x1234 };
            let closing = if by_client { &near } else { &far };
            closing.borrow_mut().close_as(is_transport, code, b"runtime_reached");
            let close = world.until(|world| {
                let peer = if by_client { &world.server } else { &world.client };
                peer.close()
            });
            let frame = is_transport.then_some(0);
            let reason = Bytes::from_static(b"runtime_reached");
            assert_eq!(close, Some(PeerClose { frame, code, reason }), "{by_client}");
            // The proxy forgets the pair.
            world.until(|world| (world.proxy.totals().open == 0).then_some(()));
        }
    }
}

#[test]
fn what_came_before_a_close_is_handed_over_first() {
    let mut world = World::new(|_| {});
    let (near, far) = world.established();
    let id = far.borrow_mut().open_stream(Dir::Uni).unwrap();
    send_all(&mut world, &far, id, &[7; 100_000]);
    // The proxy has it all as soon as the server is told so.
    world.until(|world| world.server.link(|event| *event == Event::Delivered(id)));
    far.borrow_mut().close_as(false, 5, b"");
    let taken = world.accepted(&near, Dir::Uni);
    let (bytes, _) = world.read(&near, taken);
    assert_eq!(bytes.len(), 100_000);
    let close = world.until(|world| world.client.close()).unwrap();
    assert_eq!((close.frame, close.code), (None, 5));
}

#[test]
fn a_client_of_a_target_that_is_down_is_told_so_and_others_go_on() {
    let (socket, address) = silent();
    drop(socket);
    let mut world = World::new(|plan| plan.target = address);
    world.connect();
    let close = world.until(|world| world.client.close()).unwrap();
    assert!(refused("refuses connections")(&close), "{close:?}");
    let event = world.proxy.next_event(LIMIT).unwrap();
    assert!(matches!(event, ProxyEvent::TargetFailed(..)), "{event:?}");
    world.client.events.clear();
    world.connect();
    world.until(|world| world.client.close());
    assert_eq!(world.proxy.totals().failed, 2);
}

#[test]
fn a_client_of_a_target_that_never_answers_is_told_so() {
    let (_socket, address) = silent();
    let mut world = World::new(|plan| {
        plan.target = address;
        plan.connect_timeout = Duration::from_millis(200);
    });
    world.connect();
    let close = world.until(|world| world.client.close()).unwrap();
    assert!(refused("has not answered for 200ms")(&close), "{close:?}");
}

#[test]
fn a_target_that_falls_silent_amid_a_transfer_is_told_and_closes_its_client() {
    let brief = Settings { idle: Duration::from_secs(1), ..settings() };
    let mut world = World::with(&brief, |_| {});
    let (near, _far) = world.established();
    let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    // The server gets no more turns.
    let end = Instant::now() + LIMIT;
    let close = loop {
        assert!(Instant::now() < end, "nothing came of it");
        let _full = near.borrow_mut().send(id, &[7; 1_000]);
        world.client.turn();
        if let Some(close) = world.client.close() {
            break close.unwrap();
        }
        thread::sleep(Duration::from_millis(5));
    };
    let reason = String::from_utf8_lossy(&close.reason).into_owned();
    assert_eq!((close.frame, close.code, &*reason), (Some(0), 1, "the target stopped answering"));
    let event = world.proxy.next_event(LIMIT).unwrap();
    let ProxyEvent::TargetFailed(_, why) = event else { panic!("{event:?}") };
    assert!(
        why.starts_with("the target 127.0.0.1:") && why.ends_with(" stopped answering"),
        "{why}"
    );
    // It stood before.
    assert_eq!(world.proxy.totals().failed, 0);
}

#[test]
fn a_target_that_is_lost_during_the_handshake_is_counted_once() {
    let (socket, address) = silent();
    drop(socket);
    let mut world = World::new(|plan| plan.target = address);
    world.connect();
    // A client that takes its time, while what is sent to the target is refused again and again.
    world.client.turn();
    let event = world.proxy.next_event(LIMIT).unwrap();
    assert!(matches!(event, ProxyEvent::TargetFailed(..)), "{event:?}");
    assert!(world.proxy.next_event(Duration::from_millis(1_500)).is_none());
    assert_eq!(world.proxy.totals().failed, 1);
    let close = world.until(|world| world.client.close()).unwrap();
    assert!(refused("refuses connections")(&close), "{close:?}");
}

#[test]
fn clients_that_the_socket_itself_has_no_room_for_are_counted() {
    let mut world = World::new(|plan| plan.limits.connections = 0);
    world.connect();
    let close = world.until(|world| world.client.close()).unwrap();
    assert_eq!((close.frame, close.code), (Some(0), 2));
    world.until(|world| (world.proxy.totals().refused == 1).then_some(()));
}

#[test]
fn the_target_chooses_among_the_protocols_that_a_client_offers() {
    let offering = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
    for offered in [&[ALPN][..], &["other", ALPN]] {
        let mut world = World::new(|plan| sides(plan).alpn = None);
        world.client_side = world.client_side.offering(offering(offered), None);
        let (near, far) = world.established();
        for connection in [near, far] {
            assert_eq!(
                connection.borrow().protocol(),
                Some(ALPN.as_bytes().to_vec()),
                "{offered:?}"
            );
        }
    }
    for offered in [&["other"][..], &["other", "another"]] {
        let mut world = World::new(|plan| sides(plan).alpn = None);
        world.client_side = world.client_side.offering(offering(offered), None);
        world.connect();
        let close = world.until(|world| world.client.close()).unwrap();
        assert_eq!((close.frame, close.code), (Some(0), 2), "{offered:?}");
    }
}

#[test]
fn a_thread_that_fails_is_told_though_nobody_reads_and_lost_events_are_counted() {
    let mut plan = plan(SocketAddr::from(([127, 0, 0, 1], 9)));
    plan.carries = Carries::Tcp;
    let mut proxy = Proxy::start(&plan).unwrap();
    assert_eq!(proxy.fault(), None);
    let shared = Shared {
        counts: Arc::default(),
        stop: Arc::default(),
        admission: Arc::new(Admission::new(1, 1)),
        stock: Stock::new(0),
        tickets: TargetTickets::default(),
        events: sync_channel(1).0,
    };
    let client = plan.target;
    let work = move |shared: Shared| {
        for _ in 0..3 {
            shared.tell(ProxyEvent::Refused(client, Limit::Clients(1)));
        }
        Err(Error::Host("no more memory".to_owned()))
    };
    proxy.spawn(&shared, work).unwrap();
    let end = Instant::now() + LIMIT;
    let fault = loop {
        assert!(Instant::now() < end, "nothing came of it");
        if let Some(fault) = proxy.fault() {
            break fault;
        }
        thread::sleep(Duration::from_millis(1));
    };
    assert!(fault.contains("no more memory"), "{fault}");
    assert_eq!(proxy.totals().untold, 3);
}

#[test]
fn a_client_that_is_to_wait_connects_only_when_the_target_does() {
    let mut world = World::new(|plan| sides(plan).waits_for_target = true);
    let (near, far) = world.established();
    let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    send_all(&mut world, &near, id, b"early");
    let taken = world.accepted(&far, Dir::Bi);
    assert_eq!(world.read(&far, taken).0, b"early");

    let (socket, address) = silent();
    drop(socket);
    let mut world = World::new(|plan| {
        plan.target = address;
        sides(plan).waits_for_target = true;
    });
    world.connect();
    let close = world.until(|world| world.client.close()).unwrap();
    assert_eq!((close.frame, close.code), (Some(0), 2));
    assert!(world.client.link(|event| *event == Event::Established).is_none());
}

#[test]
fn clients_above_a_limit_are_refused_until_others_go() {
    let mut world = World::new(|plan| plan.limits.connections_per_origin = 1);
    let (near, _far) = world.established();
    world.connect();
    let close = world.until(|world| world.client.close()).unwrap();
    assert_eq!((close.frame, close.code), (Some(0), 2));
    assert_eq!(world.proxy.totals().refused, 1);
    near.borrow_mut().close(0, b"");
    world.until(|world| (world.proxy.totals().open == 0).then_some(()));
    world.client.events.clear();
    world.server.events.clear();
    world.established();
}

#[test]
fn a_proxy_that_ends_closes_both_connections() {
    let mut world = World::new(|_| {});
    world.established();
    world.proxy.stop.store(true, Ordering::Relaxed);
    let closes = world.until(|world| Some([world.client.close()?, world.server.close()?]));
    for close in closes {
        let close = close.unwrap();
        assert_eq!((close.frame, close.code, &*close.reason), (Some(0), 0, &b"the proxy ends"[..]));
    }
}

#[test]
fn a_target_may_take_longer_than_a_handshake_otherwise_may() {
    let (_socket, address) = silent();
    let mut world = World::new(|plan| {
        plan.target = address;
        plan.connect_timeout = Duration::from_millis(10_500);
        sides(plan).waits_for_target = true;
    });
    world.connect();
    let close = world.until(|world| world.client.close()).unwrap();
    assert_eq!((close.frame, close.code), (Some(0), 2));
    let event = world.proxy.next_event(LIMIT).unwrap();
    let ProxyEvent::TargetFailed(_, why) = event else { panic!("{event:?}") };
    assert!(why.ends_with("has not answered for 10.5s"), "{why}");
    assert_eq!(world.proxy.totals().failed, 1);
}

#[test]
fn the_last_thread_that_fails_is_told() {
    let mut plan = plan(SocketAddr::from(([127, 0, 0, 1], 9)));
    plan.carries = Carries::Tcp;
    let mut proxy = Proxy::start(&plan).unwrap();
    // The only sender of events is the thread that fails.
    let (events, told) = sync_channel(1);
    proxy.events = told;
    let shared = Shared {
        counts: Arc::default(),
        stop: Arc::default(),
        admission: Arc::new(Admission::new(1, 1)),
        stock: Stock::new(0),
        tickets: TargetTickets::default(),
        events,
    };
    proxy.spawn(&shared, |_shared| Err(Error::Host("no more memory".to_owned()))).unwrap();
    drop(shared);
    assert!(proxy.next_event(LIMIT).is_none());
    let fault = proxy.fault().unwrap();
    assert!(fault.contains("no more memory"), "{fault}");
}
