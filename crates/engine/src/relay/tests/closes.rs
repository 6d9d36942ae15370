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
    let event = world.proxy.events().recv_timeout(LIMIT).unwrap();
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
