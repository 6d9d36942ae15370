//! Clients that mean harm.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use linerate_engine::netperf::{TestEnd, TestKind};
use linerate_wire::netperf::omni::{self, refusal};
use linerate_wire::netperf::test::{Length, Part, Request, Transport};

use crate::server_process::Netserver;
use crate::service::{PATIENCE, Raw, Service, tcp};

/// Shows that honest clients are served still.
fn assert_serves(service: &Service) {
    let outcome = service.run(false, &tcp(TestKind::RequestResponse, TestEnd::Units(3))).unwrap();
    assert_eq!(outcome.remote().transactions(), 3);
}

#[test]
fn datagrams_go_only_to_the_clients_address() {
    let service = Service::start(None);
    let victim = UdpSocket::bind("127.0.0.2:0").unwrap();
    victim.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let address = victim.local_addr().unwrap();
    let request = Request {
        client_address: Some(address.ip()),
        client_port: address.port(),
        length: Length::Seconds(1),
        ..Request::new(Part::Send, Transport::Udp)
    };
    let mut raw = Raw::connect(&service);
    assert_eq!(raw.ask(&request).second(), refusal::EACCES);

    // A first datagram with a forged source address gets no answer either.
    let request = Request {
        response_bytes: 60_000,
        length: Length::Seconds(1),
        ..Request::new(Part::Answer, Transport::Udp)
    };
    let setup = omni::decode_setup(&Raw::connect(&service).ask(&request)).unwrap();
    victim.send_to(&[1], ("127.0.0.1", setup.data_port)).unwrap();
    assert!(victim.recv(&mut [0; 10]).is_err(), "an unknown address was answered");
    assert_serves(&service);
}

#[test]
fn garbage_ends_one_connection_and_nothing_else() {
    let service = Service::start(None);
    for garbage in [&[0xff; 656][..], &[0; 656], b"GET / HTTP/1.0\r\n\r\n", &[0x61; 100_000]] {
        let mut raw = Raw::connect(&service);
        // The server may close before it has read everything.
        let _closed_early = raw.0.write_all(garbage);
        assert_serves(&service);
    }
}

#[test]
fn sizes_beyond_all_memory_take_none() {
    let service = Service::start(None);
    let most = i32::MAX as u32;
    for part in [Part::Send, Part::Receive, Part::Answer, Part::AnswerOnce] {
        let request = Request {
            send_bytes: Some(most),
            receive_bytes: Some(most),
            request_bytes: most,
            response_bytes: most,
            length: Length::Seconds(1000),
            ..Request::new(part, Transport::Tcp)
        };
        let mut raws: Vec<_> = (0..8).map(|_| Raw::connect(&service)).collect();
        for raw in &mut raws {
            let setup = omni::decode_setup(&raw.ask(&request)).unwrap();
            let mut data = TcpStream::connect(("127.0.0.1", setup.data_port)).unwrap();
            data.write_all(&[1; 10]).unwrap();
        }
        assert_serves(&service);
    }
    let resident = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = resident.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 2 << 20, "{line}");
}

/// Threads of the netserver.
fn threads(server: &Netserver) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap().count()
}

/// Waits until the netserver has so many.
fn await_threads(server: &Netserver, enough: impl Fn(usize) -> bool) {
    let began = Instant::now();
    while !enough(threads(server)) {
        assert!(began.elapsed() < PATIENCE, "{} threads", threads(server));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_loop_of_connections_ends_with_its_client_whatever_it_waits_for() {
    let server = Netserver::start("");
    // Its first, and that for signals.
    let idle = |count| count == 2;
    await_threads(&server, idle);
    for is_silent in [true, false] {
        let mut raw = Raw::new(TcpStream::connect(("127.0.0.1", server.port)).unwrap());
        let setup = raw.ask(&Request::new(Part::AnswerOnce, Transport::Tcp));
        let setup = omni::decode_setup(&setup).unwrap();
        let mut data = TcpStream::connect(("127.0.0.1", setup.data_port)).unwrap();
        await_threads(&server, |count| count > 3);
        if !is_silent {
            // It waits for the next connection.
            data.write_all(&[1]).unwrap();
            data.read_exact(&mut [0]).unwrap();
        }
        drop(raw);
        await_threads(&server, idle);
    }
}

#[test]
fn a_silent_connection_fails_alone() {
    let server = Netserver::start("");
    let mut raw = Raw::new(TcpStream::connect(("127.0.0.1", server.port)).unwrap());
    let setup = raw.ask(&Request::new(Part::AnswerOnce, Transport::Tcp));
    let setup = omni::decode_setup(&setup).unwrap();
    let data = || TcpStream::connect(("127.0.0.1", setup.data_port)).unwrap();
    let (_silent, mut next) = (data(), data());
    next.set_read_timeout(Some(PATIENCE)).unwrap();
    next.write_all(&[1]).unwrap();
    next.read_exact(&mut [0]).unwrap();
}

#[test]
fn a_server_that_was_closed_on_in_the_middle_waits_for_nobody() {
    let service = Service::start(None);
    for request in [
        Request::new(Part::AnswerOnce, Transport::Tcp),
        Request::new(Part::Answer, Transport::Udp),
        Request { length: Length::Open, ..Request::new(Part::Receive, Transport::Udp) },
    ] {
        let mut raw = Raw::connect(&service);
        let setup = omni::decode_setup(&raw.ask(&request)).unwrap();
        // Connects and falls silent.
        let _silent = TcpStream::connect(("127.0.0.1", setup.data_port));
        raw.0.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(raw.is_closed_by_server());
    }
    assert_serves(&service);
}
