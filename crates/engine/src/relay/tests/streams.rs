//! What crosses of streams and datagrams.

use super::*;

#[test]
fn streams_of_all_four_kinds_keep_their_ids_and_their_bytes() {
    let mut world = World::new(|_| {});
    let (near, far) = world.established();
    let bytes: Vec<u8> = (0..700_000_u32).map(|n| (n / 7) as u8).collect();
    for (from, to) in [(&near, &far), (&far, &near)] {
        for dir in [Dir::Bi, Dir::Uni] {
            for _ in 0..3 {
                let id = world.until(|_| from.borrow_mut().open_stream(dir));
                // More than the windows hold: the reader must come along.
                let mut sent = 0;
                let mut came = Vec::<u8>::new();
                let mut taken = None;
                world.until(|_| {
                    if sent < bytes.len() {
                        sent += from.borrow_mut().send(id, &bytes[sent..]).unwrap_or(0);
                        if sent == bytes.len() {
                            from.borrow_mut().finish(id).unwrap();
                        }
                    }
                    taken = taken.or_else(|| to.borrow_mut().accept_stream(dir));
                    let id = taken?;
                    let read = to.borrow_mut().read(id, usize::MAX, &mut |one| came.extend(one));
                    matches!(read, StreamRead::Finished(_)).then_some(())
                });
                assert_eq!(taken, Some(id));
                assert!(came == bytes, "{} bytes came", came.len());
            }
        }
    }
    let totals = world.proxy.totals();
    assert_eq!((totals.streams, totals.connections), (12, 1));
    assert_eq!((totals.client.bytes, totals.target.bytes), (4_200_000, 4_200_000));
}

#[test]
fn an_answer_comes_back_on_the_stream_of_its_request() {
    let mut world = World::new(|_| {});
    let (near, far) = world.established();
    let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    send_all(&mut world, &near, id, b"question");
    let taken = world.accepted(&far, Dir::Bi);
    assert_eq!(world.read(&far, taken).0, b"question");
    send_all(&mut world, &far, taken, b"answer");
    assert_eq!(world.read(&near, id).0, b"answer");
}

#[test]
fn resets_and_stops_cross_with_their_codes() {
    let mut world = World::new(|_| {});
    let (near, far) = world.established();
    for (from, to) in [(&near, &far), (&far, &near)] {
        for code in [0, 9, (1 << 62) - 1] {
            let id = world.until(|_| from.borrow_mut().open_stream(Dir::Uni));
            from.borrow_mut().send(id, b"half").unwrap();
            let taken = world.accepted(to, Dir::Uni);
            from.borrow_mut().reset(id, code);
            assert_eq!(world.read(to, taken).1, StreamRead::Reset(code));

            let id = world.until(|_| from.borrow_mut().open_stream(Dir::Uni));
            from.borrow_mut().send(id, b"half").unwrap();
            let taken = world.accepted(to, Dir::Uni);
            to.borrow_mut().stop_sending(taken, code);
            let stopped = Event::Stopped(id, code);
            world.until(|world| {
                let events = world.client.events.iter().chain(&world.server.events);
                events.map(|(_, event)| event).any(|event| *event == stopped).then_some(())
            });
        }
    }
}

#[test]
fn datagrams_cross_both_ways() {
    let mut world = World::new(|_| {});
    let (near, far) = world.established();
    for (from, to) in [(&near, &far), (&far, &near)] {
        for size in [0, 1, 1_000] {
            // The proxy may not know yet that the other connection takes datagrams.
            let datagram = Bytes::from(vec![7; size]);
            let came = world.until(|_| {
                let _lost_at_worst = from.borrow_mut().send_datagram(datagram.clone());
                to.borrow_mut().poll_datagram()
            });
            assert_eq!(came, datagram);
            let mut quiet = 0;
            world.until(|_| {
                let is_there = to.borrow_mut().poll_datagram().is_some();
                quiet = if is_there { 0 } else { quiet + 1 };
                (quiet > 50).then_some(())
            });
        }
    }
    assert!(world.proxy.totals().client.datagrams >= 3);
}

#[test]
fn what_a_server_does_not_read_a_client_may_not_send() {
    let mut world = World::new(|_| {});
    let (near, far) = world.established();
    let paused = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    let block = vec![7; 4 << 20];
    let (mut sent, mut still) = (0, 0);
    world.until(|_| {
        let more = near.borrow_mut().send(paused, &block[sent..]).unwrap_or(0);
        sent += more;
        still = if more > 0 { 0 } else { still + 1 };
        (still > 500).then_some(())
    });
    // The windows of the server, the buffer, and the window of the proxy.
    assert!(sent <= (256 << 10) * 2 + (64 << 10), "{sent} bytes were sent");
    assert!(world.proxy.totals().client.held_bytes <= 64 << 10);
    // All of it comes when it is read.
    let taken = world.accepted(&far, Dir::Bi);
    let mut came = 0;
    world.until(|_| {
        sent += near.borrow_mut().send(paused, &block[sent..]).unwrap_or(0);
        far.borrow_mut().read(taken, usize::MAX, &mut |piece| came += piece.len());
        (came == block.len()).then_some(())
    });
}

#[test]
fn streams_are_opened_as_the_server_allows_and_others_wait() {
    let few = Settings { streams: 2, ..settings() };
    let mut world = World::with(&few, |_| {});
    let (near, far) = world.established();
    let ids: Vec<StreamId> =
        (0..10).map(|_| world.until(|_| near.borrow_mut().open_stream(Dir::Bi))).collect();
    for id in &ids {
        near.borrow_mut().send(*id, b"ask").unwrap();
        near.borrow_mut().finish(*id).unwrap();
    }
    for id in ids {
        let taken = world.accepted(&far, Dir::Bi);
        assert_eq!(taken, id);
        assert_eq!(world.read(&far, taken).0, b"ask");
        far.borrow_mut().finish(taken).unwrap();
        assert_eq!(world.read(&near, id).1, StreamRead::Finished(0));
    }
}
