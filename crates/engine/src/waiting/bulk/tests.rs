use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use socket2::{Domain, Type};

use rustix::thread::sched_getcpu;

use super::super::counts;
use super::*;

/// Both ends of a TCP connection over loopback, in a thread that stays on its processor.
fn on_one_processor(test: impl FnOnce(Socket, std::net::TcpStream) + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            linerate_system::affinity::pin(u32::try_from(sched_getcpu()).unwrap()).unwrap();
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let far = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            test(listener.accept().unwrap().0.into(), far);
        });
    });
}

#[test]
fn a_sender_on_the_same_processor_gets_it_once_before_each_sleep() {
    on_one_processor(|near, mut far| {
        let mut wait = BulkWait::of_stream(&near).unwrap();
        let mut buffer = vec![0; BULK_BYTES];
        far.write_all(&buffer).unwrap();
        assert_eq!(wait.receive(&near, &mut buffer).unwrap(), BULK_BYTES);
        let before = counts();
        assert!(wait.receive_awake(&near, &mut buffer).is_none());
        let since = counts().since(&before);
        assert_eq!((since.yields, since.looks), (1, 0));
        // After a yield in vain the next wait sleeps at once.
        far.write_all(&buffer).unwrap();
        assert!(wait.receive_awake(&near, &mut buffer).is_none());
        assert_eq!(wait.receive_awake(&near, &mut buffer), Some(Ok(BULK_BYTES)));
    });
}

#[test]
fn a_receiver_of_datagrams_never_yields() {
    on_one_processor(|near, mut far| {
        let mut wait = BulkWait::of_datagrams(&near).unwrap();
        let mut buffer = vec![0; BULK_BYTES];
        far.write_all(&buffer).unwrap();
        wait.receive(&near, &mut buffer).unwrap();
        let before = counts();
        assert!(wait.receive_awake(&near, &mut buffer).is_none());
        assert_eq!(counts().since(&before).yields, 0);
    });
}

#[test]
fn after_little_it_never_polls() {
    let (near, far) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
    let mut wait = BulkWait::of_stream(&near).unwrap();
    let mut buffer = vec![0; BULK_BYTES];
    assert!(wait.receive_awake(&near, &mut buffer).is_none());
    for (length, polls) in [(BULK_BYTES, true), (BULK_BYTES - 1, false)] {
        (&far).write_all(&vec![7; length]).unwrap();
        assert_eq!(wait.receive(&near, &mut buffer).unwrap(), length);
        assert_eq!(wait.in_bulk, polls);
    }
}

#[test]
fn it_receives_what_comes_and_ends_where_the_socket_does() {
    let (near, far) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
    let mut wait = BulkWait::of_stream(&near).unwrap();
    let sender = std::thread::spawn(move || {
        for length in [1, BULK_BYTES, 3] {
            (&far).write_all(&vec![7; length]).unwrap();
            // Longer than a poll: it sleeps.
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut buffer = vec![0; 2 * BULK_BYTES];
    let lengths: Vec<_> = (0..4).map(|_| wait.receive(&near, &mut buffer).unwrap()).collect();
    assert_eq!(lengths, [1, BULK_BYTES, 3, 0]);
    sender.join().unwrap();

    let (near, _far) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
    let blocked = near.try_clone().unwrap();
    let receiver = std::thread::spawn(move || {
        let mut wait = BulkWait::of_stream(&blocked).unwrap();
        wait.receive(&blocked, &mut [0; 8]).unwrap()
    });
    std::thread::sleep(Duration::from_millis(20));
    near.shutdown(Shutdown::Both).unwrap();
    assert_eq!(receiver.join().unwrap(), 0);
}

#[test]
fn a_socket_that_does_not_block_has_none() {
    let socket = Socket::from(std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    assert!(BulkWait::of_stream(&socket).is_some());
    socket.set_nonblocking(true).unwrap();
    assert!(BulkWait::of_stream(&socket).is_none());
}
