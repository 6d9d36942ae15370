//! A server that stops sending by its own count: a client that has a part of what it asked for sees that it is the end.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use linerate::personality::iperf3::sum::{Sum, streams};
use linerate_engine::event::Cancel;
use linerate_engine::iperf3::run;
use linerate_wire::iperf3::datagram::Header;
use linerate_wire::iperf3::{Parameters, Protocol};

use super::cli::{document, for_all};
use super::hostile_peers::{agree, message, read, read_message};
use super::load::plan;
use super::programs::{Process, Program, has_original, serve};

/// What a server sends on the only stream.
enum Sends {
    Bytes(fn(&mut TcpStream)),
    Datagrams(fn(&UdpSocket)),
}

/// A server in a test that it sends in.
fn send(listener: &TcpListener, datagrams: &UdpSocket, sends: &Sends) {
    let mut control = agree(listener);
    let mut stream = match sends {
        Sends::Bytes(_) => Some(listener.accept().unwrap().0),
        Sends::Datagrams(_) => {
            let (_, client) = datagrams.recv_from(&mut [0; 16]).unwrap();
            datagrams.connect(client).unwrap();
            datagrams.send(b"6789").unwrap();
            None
        }
    };
    control.write_all(&[1, 2]).unwrap();
    match (sends, &mut stream) {
        (Sends::Bytes(send), Some(stream)) => send(stream),
        (Sends::Datagrams(send), _) => send(datagrams),
        _ => {}
    }
    assert_eq!(read(&mut control, 1), [4]);
    control.write_all(&[13]).unwrap();
    read_message(&mut control);
    let none = "\"cpu_util_total\":0,\"cpu_util_user\":0,\"cpu_util_system\":0";
    let counts = "\"retransmits\":0,\"jitter\":0,\"errors\":0,\"packets\":0";
    let streams = format!("[{{\"id\":1,\"bytes\":0,{counts}}}]");
    let results = format!("{{{none},\"sender_has_retransmits\":0,\"streams\":{streams}}}");
    control.write_all(&message(&results)).unwrap();
    control.write_all(&[14]).unwrap();
    let _gone = control.read(&mut [0]);
}

/// What a client gets of such a server, and how long that takes.
fn received(parameters: Parameters, sends: Sends) -> (Sum, Duration) {
    let (listener, datagrams, port) = tcp_and_udp();
    let server = std::thread::spawn(move || send(&listener, &datagrams, &sends));
    let (parameters, began) =
        (Parameters { reverse: true, time_s: 0, ..parameters }, Instant::now());
    let report = run(&plan("127.0.0.1", port, parameters), &mut (), &Cancel::default()).unwrap();
    let elapsed = began.elapsed();
    server.join().unwrap();
    (streams(&report).next().unwrap().local(), elapsed)
}

/// Datagrams with these numbers.
fn say(socket: &UdpSocket, numbers: impl Iterator<Item = u64>) {
    let mut datagram = [0; 1000];
    for number in numbers {
        Header { sent_ns: 0, number }.encode(false, &mut datagram);
        socket.send(&datagram).unwrap();
    }
}

const UDP: fn() -> Parameters =
    || Parameters { protocol: Protocol::Udp, block_bytes: 1000, ..Parameters::default() };

#[test]
fn a_sender_that_counted_some_of_it_in_the_omitted_time_ends_the_test_with_its_silence() {
    let asked = Parameters { num_bytes: 1 << 20, omit_s: 1, ..Parameters::default() };
    let (stream, elapsed) = received(
        asked,
        Sends::Bytes(|stream| {
            stream.write_all(&[0; 768 << 10]).unwrap();
            std::thread::sleep(Duration::from_millis(1300));
            stream.write_all(&[0; 512 << 10]).unwrap();
        }),
    );
    assert_eq!(stream.bytes, 512 << 10);
    assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    // The silence is no part of it.
    assert!((0.1..0.9).contains(&stream.seconds), "{stream:?}");
}

#[test]
fn datagrams_that_were_lost_are_not_waited_for() {
    let asked = || Parameters { num_bytes: 100_000, ..UDP() };
    let few = received(asked(), Sends::Datagrams(|socket| say(socket, (1..=100).step_by(2))));
    assert_eq!(few.0.bytes, 50_000);
    assert!(few.1 < Duration::from_secs(8), "{:?}", few.1);
    // The path may be cut off where the numbers haven't come as far yet.
    let cut_off = received(
        asked(),
        Sends::Datagrams(|socket| {
            say(socket, 1..=20);
            std::thread::sleep(Duration::from_secs(3));
            say(socket, 21..=100);
        }),
    );
    assert_eq!(cut_off.0.bytes, 100_000);
}

#[test]
fn a_paced_sender_is_awaited() {
    // One every 1.6 seconds.
    let asked = Parameters { num_bytes: 3000, bandwidth_bps: 5000, ..UDP() };
    let (stream, _) = received(
        asked,
        Sends::Datagrams(|socket| {
            for number in 1..=3 {
                say(socket, number..=number);
                std::thread::sleep(Duration::from_millis(1600));
            }
        }),
    );
    assert_eq!(stream.bytes, 3000);
}

#[test]
fn an_installed_original_ends_the_test_where_it_stops() {
    if !has_original() {
        return;
    }
    for_all(vec!["-k 200 -O 1 -R", "-u -b 0 -n 100M -R"], |words| {
        let (mut server, port) = serve(Program::Original, "");
        let line = format!("-c 127.0.0.1 -p {port} {words} -J");
        let mut client = Process::start(&mut Program::Ours.command(&line));
        let text = client.text();
        assert_eq!((client.wait(), server.wait()), (0, 0), "{words}: {text}");
        let received = &document(&text)["end"]["sum_received"];
        assert!(received["seconds"].as_f64().unwrap() < 10.0, "{words}: {received}");
    });
}
use crate::both::tcp_and_udp;
