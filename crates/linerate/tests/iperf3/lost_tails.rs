//! Streams of datagrams of which nothing arrives, or nothing from some moment on: both ends' counts tell how many were lost.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate::personality::iperf3::sum::{Stream, streams};
use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{Report, ServePlan, run};
use linerate_wire::iperf3::{Parameters, Protocol};

use super::cuts::Relay;
use super::load::{Running, plan};
use super::programs::{Program, has_original, serve};

const BLOCK_BYTES: u32 = 1000;
/// What one stream may carry until its path goes dark.
const PASSED: u64 = 60;

/// Passes datagrams on between clients of a port and a server; of each stream so many blocks pass each way.
fn relay_datagrams(port: &UdpSocket, server: u16, passed: u64, is_over: &AtomicBool) {
    port.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let mut paths: BTreeMap<SocketAddr, (UdpSocket, [u64; 2])> = BTreeMap::new();
    let mut bytes = [0; 2048];
    let passes = |length: usize, count: &mut u64| {
        *count += u64::from(length >= BLOCK_BYTES as usize);
        length < BLOCK_BYTES as usize || *count <= passed
    };
    while !is_over.load(Ordering::SeqCst) {
        if let Ok((length, client)) = port.recv_from(&mut bytes) {
            let (socket, counts) = paths.entry(client).or_insert_with(|| {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                socket.connect(("127.0.0.1", server)).unwrap();
                socket.set_nonblocking(true).unwrap();
                (socket, [0; 2])
            });
            if passes(length, &mut counts[0]) {
                let _ended = socket.send(&bytes[..length]);
            }
        }
        for (client, (socket, counts)) in &mut paths {
            while let Ok(length) = socket.recv(&mut bytes) {
                if passes(length, &mut counts[1]) {
                    let _ended = port.send_to(&bytes[..length], client);
                }
            }
        }
    }
}

/// A test whose streams carry so many blocks each.
fn test(server: u16, parameters: Parameters, passed: u64) -> Report {
    let (listener, port, number) = tcp_and_udp();
    let parameters = Parameters {
        protocol: Protocol::Udp,
        block_bytes: BLOCK_BYTES,
        bandwidth_bps: 1_000_000,
        time_s: 2,
        ..parameters
    };
    let plan = plan("127.0.0.1", number, parameters);
    let relay = Relay::new(None);
    std::thread::scope(|scope| {
        scope.spawn(|| relay.run(&listener, server, scope));
        scope.spawn(|| relay_datagrams(&port, server, passed, &relay.is_over));
        let report = run(&plan, &mut (), &Cancel::default());
        relay.is_over.store(true, Ordering::SeqCst);
        report.unwrap()
    })
}

/// Whether loss and all that was sent fit what passed. Where the server sends, what it may have sent after the client's
/// end doesn't count.
fn assert_told(stream: &Stream<'_>, passed: u64, words: &str) {
    let sent = stream.sender().unwrap().datagrams.unwrap().packets;
    let received = stream.receiver().unwrap().datagrams.unwrap();
    let lost = received.lost.unwrap().unsigned_abs();
    assert!(sent > 2 * PASSED, "{words}: a test of two seconds sends 250: {stream:?}");
    assert_eq!(received.packets - lost, passed, "{words}: {stream:?}");
    assert!(received.packets <= sent, "{words}: {stream:?}");
    if stream.sends() {
        assert_eq!(received.packets, sent, "{words}: {stream:?}");
    }
    // Half of a test's datagrams is far more than what a busy machine's server sends after its client's end.
    assert!(lost * 2 > sent - passed, "{words}: {stream:?}");
    assert!(received.lost_percent().unwrap() > 20.0, "{words}: {stream:?}");
}

fn tests() -> Vec<(&'static str, Parameters)> {
    let plain = Parameters::default();
    vec![
        ("", plain.clone()),
        ("-R", Parameters { reverse: true, ..plain.clone() }),
        ("-P 2", Parameters { parallel: 2, ..plain.clone() }),
        ("--bidir", Parameters { bidirectional: true, ..plain }),
    ]
}

#[test]
fn datagrams_behind_the_last_that_arrived_are_lost() {
    std::thread::scope(|scope| {
        for (words, parameters) in tests() {
            scope.spawn(move || {
                let server = Running::start(ServePlan::default());
                for passed in [0, PASSED] {
                    // A receiver that gets nothing is no reason to end: its time is longer than the test.
                    let report = test(server.port, parameters.clone(), passed);
                    for stream in streams(&report) {
                        assert_told(&stream, passed, words);
                    }
                }
            });
        }
    });
}

#[test]
fn an_originals_counts_tell_the_same() {
    if !has_original() {
        return;
    }
    std::thread::scope(|scope| {
        for (words, parameters) in tests() {
            scope.spawn(move || {
                let began = Instant::now();
                let (mut server, port) = serve(Program::Original, "");
                for stream in streams(&test(port, parameters, PASSED)) {
                    assert_told(&stream, PASSED, words);
                }
                assert_eq!(server.wait(), 0, "{words} {:?}", began.elapsed());
            });
        }
    });
}
use crate::both::tcp_and_udp;
