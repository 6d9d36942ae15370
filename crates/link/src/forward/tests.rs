//! The forwarder between real sockets on loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use linerate_measure::link::report::Waiting;
use linerate_system::socket::RealTime;

use super::*;

const LOOPBACK: &str = "127.0.0.1:0";

/// Runs a forwarder to `target` while `test` uses its address; the report.
fn while_forwarding(text: &str, target: SocketAddr, test: impl FnOnce(SocketAddr)) -> Report {
    let link = Link::parse(text, |_| Err(String::new())).unwrap();
    let listen = LOOPBACK.parse().unwrap();
    let forwarder =
        Forwarder::bind(ForwarderOptions { listen, target, udp: true, tcp: true }).unwrap();
    let address = forwarder.address();
    let cancel = Cancel::default();
    let pace = Pace { waiting: Waiting::Sleeping, cpu: None, time_ns: None };
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| forwarder.run(&link, &pace, &cancel));
        test(address);
        cancel.request();
        running.join().unwrap().unwrap()
    });
    assert_eq!(report.accuracy.real_time, RealTime::take_thread().is_ok(), "where it may");
    report
}

#[test]
fn datagrams_are_delayed_both_ways() {
    let target = UdpSocket::bind(LOOPBACK).unwrap();
    let report = while_forwarding("both.delay = '30ms'", target.local_addr().unwrap(), |address| {
        let clients = [(); 3].map(|()| UdpSocket::bind(LOOPBACK).unwrap());
        for (number, client) in (0_u8..).zip(&clients) {
            client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            client.connect(address).unwrap();
            let begun = Instant::now();
            client.send(&[number; 100]).unwrap();
            let mut bytes = [0; 200];
            let (length, from) = target.recv_from(&mut bytes).unwrap();
            target.send_to(&bytes[..length], from).unwrap();
            assert_eq!(client.recv(&mut bytes).unwrap(), 100);
            assert_eq!(bytes[..100], [number; 100]);
            assert!(begun.elapsed() >= Duration::from_millis(60), "{:?}", begun.elapsed());
        }
    });
    assert_eq!(report.to_right.counters.delivered, 3);
    assert_eq!(report.to_left.counters.delivered_bytes, 300);
    assert_eq!(report.accuracy.delay_error_ns.unwrap().count, 6);
}

#[test]
fn a_stream_arrives_whole_at_its_rate_and_ends_when_it_ends() {
    const BYTES: usize = 1_000_000;
    let target = TcpListener::bind(LOOPBACK).unwrap();
    let text = "[both]\nrate = '16Mbit/s'\nqueue = '64kB'\ndelay = '10ms'\nloss = '50%'";
    let report = while_forwarding(text, target.local_addr().unwrap(), |address| {
        let sent: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
        let begun = Instant::now();
        let sender = {
            let sent = sent.clone();
            std::thread::spawn(move || {
                let mut client = TcpStream::connect(address).unwrap();
                client.write_all(&sent).unwrap();
                client.shutdown(std::net::Shutdown::Write).unwrap();
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).unwrap();
                answer
            })
        };
        let (mut served, _) = target.accept().unwrap();
        let mut got = Vec::new();
        served.read_to_end(&mut got).unwrap();
        // 1 MB at 2 MB/s.
        assert!(begun.elapsed() >= Duration::from_millis(490), "{:?}", begun.elapsed());
        assert!(got == sent);
        served.write_all(b"done").unwrap();
        drop(served);
        assert_eq!(sender.join().unwrap(), b"done");
    });
    assert_eq!(report.to_right.counters.delivered_bytes, BYTES as u64);
    assert_eq!(report.to_right.counters.lost_at_random, 0);
    assert!(report.not_emulated.iter().any(|what| what.starts_with("loss for TCP")));
}

#[test]
fn a_target_that_refuses_ends_the_connection() {
    let target = TcpListener::bind(LOOPBACK).unwrap().local_addr().unwrap();
    while_forwarding("both.delay = '1ms'", target, |address| {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut bytes = [0; 1];
        // The end or a reset, and no waiting.
        let ended = client.read(&mut bytes);
        assert!(
            matches!(&ended, Ok(0))
                || ended.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionReset)
        );
    });
}
