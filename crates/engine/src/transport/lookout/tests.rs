use std::cell::Cell;
use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use socket2::{Domain, Type};

use super::*;

fn bulk() -> Patience {
    Patience::new(BULK_LOOK_NS, BULK_MOST_PASSES)
}

/// How often it asks in one wait in which nothing comes, a microsecond a time.
fn asks_in_vain(patience: &mut Patience, now_ns: &mut u64, elsewhere: bool) -> u32 {
    let mut asks = 0;
    if patience.passes() {
        return asks;
    }
    while patience.asks_again(*now_ns, || elsewhere) {
        asks += 1;
        *now_ns += 1_000;
    }
    asks
}

#[test]
fn looks_in_vain_become_rare_and_one_that_finds_something_makes_them_common_again() {
    let (mut patience, mut now_ns) = (bulk(), 1);
    let mut waits_between = Vec::new();
    let mut waits = 0;
    while waits_between.len() < 10 {
        match asks_in_vain(&mut patience, &mut now_ns, true) {
            0 => waits += 1,
            asks => {
                assert_eq!(asks, 20);
                waits_between.push(waits);
                waits = 0;
            }
        }
    }
    assert_eq!(waits_between, [0, 1, 3, 7, 15, 31, 63, 127, 255, 255]);

    while patience.passes() {}
    assert!(patience.asks_again(now_ns, || true));
    patience.found();
    assert_eq!(asks_in_vain(&mut patience, &mut now_ns, true), 20);
    assert_eq!(asks_in_vain(&mut patience, &mut now_ns, true), 0);
    assert_eq!(asks_in_vain(&mut patience, &mut now_ns, true), 20);
}

#[test]
fn on_the_senders_processor_it_never_asks() {
    let (mut patience, mut now_ns) = (bulk(), 1);
    for _ in 0..1_000 {
        assert_eq!(asks_in_vain(&mut patience, &mut now_ns, false), 0);
    }
}

/// Both ends of a TCP connection over loopback, in a thread that stays on its processor.
fn on_one_processor(test: impl FnOnce(Socket, std::net::TcpStream) + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            crate::shard::pin(u32::try_from(sched_getcpu()).unwrap()).unwrap();
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let far = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            test(listener.accept().unwrap().0.into(), far);
        });
    });
}

#[test]
fn a_sender_on_the_same_processor_is_let_go_on_and_ever_more_seldom_in_vain() {
    on_one_processor(|near, mut far| {
        let mut lookout = BulkLookout::of_stream(&near).unwrap();
        let mut buffer = vec![0; BULK_BYTES];
        far.write_all(&buffer).unwrap();
        assert!(lookout.receive_after_yield(&near, &mut buffer).is_none());
        assert_eq!(lookout.receive(&near, &mut buffer).unwrap(), BULK_BYTES);
        let passes = |lookout: &BulkLookout| lookout.yielding.as_ref().unwrap().passes;
        for waits in [1, 3, 7] {
            assert!(lookout.receive_after_yield(&near, &mut buffer).is_none());
            assert_eq!(passes(&lookout), waits);
            for _ in 0..waits {
                assert!(lookout.receive_after_yield(&near, &mut buffer).is_none());
            }
        }
        far.write_all(&buffer).unwrap();
        let came = lookout.receive_after_yield(&near, &mut buffer);
        assert_eq!(came, Some(Ok(BULK_BYTES)));
    });
}

#[test]
fn without_a_look_one_asks_again_just_once_after_what_is_done_in_between() {
    let (asked, done) = (Cell::new(0), Cell::new(0));
    let ask = |patience: &mut Patience, comes_at: i32| {
        let between = || done.set(done.get() + 1);
        patience.ask(
            || true,
            between,
            || {
                asked.set(asked.get() + 1);
                if asked.get() == comes_at { Ok(()) } else { Err(Errno::AGAIN) }
            },
        )
    };
    let mut patience = Patience::new(0, BULK_MOST_PASSES);
    assert_eq!(ask(&mut patience, 2), Some(Ok(())));
    assert_eq!((asked.take(), done.take()), (2, 1));
    assert_eq!(ask(&mut patience, 0), None);
    assert_eq!((asked.take(), done.take()), (2, 1));
    assert_eq!(ask(&mut patience, 1), None);
    assert_eq!((asked.take(), done.take()), (0, 0));
}

#[test]
fn whoever_receives_no_stream_never_yields() {
    on_one_processor(|near, mut far| {
        let mut lookout = BulkLookout::of(&near).unwrap();
        let mut buffer = vec![0; BULK_BYTES];
        far.write_all(&buffer).unwrap();
        lookout.receive(&near, &mut buffer).unwrap();
        far.write_all(&buffer).unwrap();
        assert!(lookout.receive_after_yield(&near, &mut buffer).is_none());
    });
}

#[test]
fn after_little_it_never_looks() {
    let (near, far) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
    let mut lookout = BulkLookout::of(&near).unwrap();
    let mut buffer = vec![0; BULK_BYTES];
    assert!(lookout.receive_awake(&near, &mut buffer).is_none());
    for (length, looks) in [(BULK_BYTES, true), (BULK_BYTES - 1, false)] {
        (&far).write_all(&vec![7; length]).unwrap();
        assert_eq!(lookout.receive(&near, &mut buffer).unwrap(), length);
        assert_eq!(lookout.in_bulk, looks);
    }
}

#[test]
fn it_receives_what_comes_and_ends_where_the_socket_does() {
    let (near, far) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
    let mut lookout = BulkLookout::of(&near).unwrap();
    let sender = std::thread::spawn(move || {
        for length in [1, BULK_BYTES, 3] {
            (&far).write_all(&vec![7; length]).unwrap();
            // Longer than a look: it sleeps.
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut buffer = vec![0; 2 * BULK_BYTES];
    let lengths: Vec<_> = (0..4).map(|_| lookout.receive(&near, &mut buffer).unwrap()).collect();
    assert_eq!(lengths, [1, BULK_BYTES, 3, 0]);
    sender.join().unwrap();

    let (near, _far) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
    let blocked = near.try_clone().unwrap();
    let receiver = std::thread::spawn(move || {
        let mut lookout = BulkLookout::of(&blocked).unwrap();
        lookout.receive(&blocked, &mut [0; 8]).unwrap()
    });
    std::thread::sleep(Duration::from_millis(20));
    near.shutdown(Shutdown::Both).unwrap();
    assert_eq!(receiver.join().unwrap(), 0);
}

#[test]
fn a_socket_that_does_not_block_has_none() {
    let socket = Socket::from(std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    assert!(BulkLookout::of(&socket).is_some());
    socket.set_nonblocking(true).unwrap();
    assert!(BulkLookout::of(&socket).is_none());
}
