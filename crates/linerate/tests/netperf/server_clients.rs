//! Clients that come together, that stop early, that know a secret or don't, and that die.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use linerate_engine::error::Error;
use linerate_engine::event::{Cancel, Sink};
use linerate_engine::netperf::{Client, ControlPlan, TestEnd, TestKind, remote_errno};
use linerate_wire::netperf::omni;
use linerate_wire::netperf::test::{Length, Part, Request, Transport};

use crate::service::{PATIENCE, Raw, Service, tcp};

#[test]
fn many_clients_are_served_at_once() {
    let service = Service::start(None);
    let plan = tcp(TestKind::RequestResponse, TestEnd::Units(100));
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..100).map(|_| scope.spawn(|| service.run(false, &plan).unwrap())).collect();
        for client in clients {
            let outcome = client.join().unwrap();
            assert_eq!(
                (outcome.local().transactions(), outcome.remote().transactions()),
                (100, 100)
            );
        }
    });
}

#[test]
fn a_test_that_never_ends_holds_up_nobody() {
    let service = Service::start(None);
    let mut raw = Raw::connect(&service);
    let endless = Request { length: Length::Open, ..Request::new(Part::Send, Transport::Tcp) };
    let setup = omni::decode_setup(&raw.ask(&endless)).unwrap();
    let _unread = TcpStream::connect(("127.0.0.1", setup.data_port)).unwrap();
    let outcome = service.run(false, &tcp(TestKind::Send, TestEnd::Units(1000))).unwrap();
    assert!(outcome.remote().bytes_received() >= 1000);
}

#[test]
fn a_test_that_is_interrupted_tells_what_was_done() {
    let service = Service::start(None);
    for kind in [TestKind::Send, TestKind::Receive, TestKind::RequestResponse] {
        for end in [TestEnd::Seconds(1000), TestEnd::Interrupt] {
            let cancel = Cancel::default();
            let mut client = Client::connect(&service.control(false), &cancel).unwrap();
            let asker = cancel.clone();
            let thread = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs(1));
                asker.request();
            });
            let outcome = client.run(&tcp(kind, end), &Sink::none(), &cancel);
            thread.join().unwrap();
            let outcome = outcome.unwrap();
            assert!(outcome.interrupted, "{kind:?} {end:?}");
            let moved = outcome.local().bytes_sent() + outcome.local().bytes_received();
            assert!(moved > 0, "{kind:?} {end:?}");
            assert!(outcome.client.elapsed_ns < PATIENCE.as_nanos() as u64, "{kind:?} {end:?}");
        }
    }
}

#[test]
fn connections_that_are_interrupted_are_counted_without_the_servers_word() {
    let service = Service::start(None);
    let cancel = Cancel::default();
    let mut client = Client::connect(&service.control(false), &cancel).unwrap();
    let asker = cancel.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        asker.request();
    });
    let plan = tcp(TestKind::ConnectRequestResponse, TestEnd::Seconds(1000));
    let outcome = client.run(&plan, &Sink::none(), &cancel).unwrap();
    thread.join().unwrap();
    assert!(outcome.interrupted && outcome.local().transactions() > 0);
    assert!(
        outcome.client.notes.iter().any(|note| note.contains("missing")),
        "{:?}",
        outcome.client.notes
    );
}

#[test]
fn only_who_knows_the_passphrase_is_served() {
    let service = Service::start(Some("sesame"));
    let plan = tcp(TestKind::RequestResponse, TestEnd::Units(5));
    let run = |passphrase: Option<&str>| {
        let passphrase = passphrase.map(str::to_owned);
        let control = ControlPlan { passphrase, ..service.control(false) };
        let cancel = Cancel::default();
        Client::connect(&control, &cancel)?.run(&plan, &Sink::none(), &cancel)
    };
    assert_eq!(run(Some("sesame")).unwrap().remote().transactions(), 5);
    for wrong in [None, Some("sesam"), Some("sesame2"), Some("")] {
        assert!(matches!(run(wrong), Err(Error::Peer(_))), "{wrong:?}");
    }
}

#[test]
fn threads_and_sockets_end_with_their_client() {
    let service = Service::start(None);
    for (part, sends) in [(Part::Receive, true), (Part::Send, false), (Part::Answer, false)] {
        let mut raw = Raw::connect(&service);
        let request =
            Request { length: Length::Seconds(1000), ..Request::new(part, Transport::Tcp) };
        let setup = omni::decode_setup(&raw.ask(&request)).unwrap();
        let mut data = TcpStream::connect(("127.0.0.1", setup.data_port)).unwrap();
        data.set_read_timeout(Some(PATIENCE)).unwrap();
        if sends {
            data.write_all(&[1; 1000]).unwrap();
        }
        let died = Instant::now();
        drop(raw);
        let mut bytes = vec![0; 1 << 16];
        while matches!(data.read(&mut bytes), Ok(length) if length > 0) {}
        assert!(died.elapsed() < PATIENCE / 2, "{part:?}");
    }
}

#[test]
fn threads_and_sockets_of_udp_end_with_their_client() {
    let service = Service::start(None);
    for part in [Part::Receive, Part::Send, Part::Answer] {
        let data = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut raw = Raw::connect(&service);
        let request = Request {
            length: Length::Seconds(1000),
            client_port: data.local_addr().unwrap().port(),
            ..Request::new(part, Transport::Udp)
        };
        let setup = omni::decode_setup(&raw.ask(&request)).unwrap();
        data.connect(("127.0.0.1", setup.data_port)).unwrap();
        data.set_read_timeout(Some(PATIENCE)).unwrap();
        data.send(&[1]).unwrap();
        if part != Part::Receive {
            data.recv(&mut [0; 1 << 16]).unwrap();
        }
        let died = Instant::now();
        drop(raw);
        // Nobody has the port any more.
        while !data.send(&[1]).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            assert!(died.elapsed() < PATIENCE / 2, "{part:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_port_that_is_taken_is_refused_by_its_number() {
    let service = Service::start(None);
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let mut plan = tcp(TestKind::Send, TestEnd::Units(1000));
    plan.remote.port = taken.local_addr().unwrap().port();
    let error = service.run(false, &plan).unwrap_err();
    assert_eq!(remote_errno(&error), Some(98), "{error}");
    drop(taken);
    assert!(service.run(false, &plan).is_ok(), "and given when it is free");
}
