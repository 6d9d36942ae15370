//! Datagrams of the omitted time are left out, also where the other end is a release before 3.14, which doesn't say how
//! many they are.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use linerate::personality::iperf3::sum::{Datagrams, streams};
use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{ServePlan, run};
use linerate_wire::iperf3::{Parameters, Protocol};

use super::cli::{document, for_all, pairs};
use super::hostile_peers::{agree, message, read, read_message};
use super::load::{Running, plan};
use super::programs::{LIMIT, Process, Program, serve};

const BLOCK_BYTES: u32 = 1000;

/// A server of an older release, in a test of one stream to it. It says that so many more were sent than have come.
/// Returns how many came after the omitted second.
fn serve_as_of_old(listener: &TcpListener, datagrams: &UdpSocket, lost: u64) -> u64 {
    let mut control = agree(listener);
    let (_, client) = datagrams.recv_from(&mut [0; 16]).unwrap();
    datagrams.send_to(b"6789", client).unwrap();
    control.write_all(&[1, 2]).unwrap();
    let (began, mut all, mut counted) = (Instant::now(), 0, 0);
    datagrams.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    control.set_nonblocking(true).unwrap();
    let mut word = [0];
    while control.read(&mut word).is_err() {
        assert!(began.elapsed() < LIMIT, "the client doesn't end its test");
        if datagrams.recv(&mut [0; 2000]).is_ok() {
            all += 1;
            counted += u64::from(began.elapsed() > Duration::from_secs(1));
        }
    }
    assert_eq!(word, [4]);
    control.set_nonblocking(false).unwrap();
    control.write_all(&[13]).unwrap();
    read_message(&mut control);
    let stream = format!(
        "{{\"id\":1,\"bytes\":{},\"retransmits\":18446744073709551615,\"jitter\":0.000001,\"errors\":{lost},\
         \"packets\":{},\"start_time\":0,\"end_time\":1.0}}",
        counted * u64::from(BLOCK_BYTES),
        all + lost
    );
    let cpu = "\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":0";
    let results = format!("{{{cpu},\"sender_has_retransmits\":0,\"streams\":[{stream}]}}");
    control.write_all(&message(&results)).unwrap();
    control.write_all(&[14]).unwrap();
    assert_eq!(read(&mut control, 1), [16]);
    counted
}

/// What a client makes of what such a server says, and how many datagrams that has counted.
fn told_by_an_old_server(lost: u64) -> (Datagrams, u64) {
    let (listener, datagrams, port) = tcp_and_udp();
    let server = std::thread::spawn(move || serve_as_of_old(&listener, &datagrams, lost));
    let parameters = Parameters {
        protocol: Protocol::Udp,
        omit_s: 1,
        time_s: 1,
        block_bytes: BLOCK_BYTES,
        bandwidth_bps: 800_000,
        ..Parameters::default()
    };
    let report = run(&plan("127.0.0.1", port, parameters), &mut (), &Cancel::default()).unwrap();
    (streams(&report).next().unwrap().remote().unwrap().datagrams.unwrap(), server.join().unwrap())
}

#[test]
fn a_server_that_does_not_say_what_it_omits_is_told_right() {
    for_all(vec![0, 3], |lost| {
        let (told, counted) = told_by_an_old_server(lost);
        assert!((50..=150).contains(&counted), "{counted}");
        if lost == 0 {
            assert_eq!((told.packets, told.lost), (counted, Some(0)));
            assert_eq!(told.lost_percent(), Some(0.0));
        } else {
            // When they were lost it doesn't say.
            assert!(told.packets.abs_diff(counted) <= 60, "{told:?} {counted}");
            assert_eq!((told.lost, told.lost_percent()), (None, None));
        }
    });
}

#[test]
fn packets_are_those_of_the_bytes_with_an_installed_original() {
    let words = ["-u -b 5M -l 1000 -O 1 -t 1", "-u -b 5M -l 1000 -O 1 -t 1 -R"];
    let cells = pairs().into_iter().flat_map(|pair| words.map(|words| (pair, words))).collect();
    for_all(cells, |((server, client), words)| {
        let (mut served, port) = serve(server, "-J");
        let line = format!("-c 127.0.0.1 -p {port} {words} -J");
        let mut tested = Process::start(&mut client.command(&line));
        let documents = [(client, tested.text()), (server, served.text())];
        assert_eq!((tested.wait(), served.wait()), (0, 0), "{words}");
        for (_, text) in documents.iter().filter(|(program, _)| *program != Program::Original) {
            let end = &document(text)["end"];
            for name in ["sum_sent", "sum_received"] {
                let figure = |field: &str| end[name][field].as_f64();
                // Lost packets have brought no bytes; where their number isn't known, there are some.
                let lost = figure("lost_packets");
                let bytes =
                    (figure("packets").unwrap() - lost.unwrap_or(0.0)) * f64::from(BLOCK_BYTES);
                let ratio = bytes / figure("bytes").unwrap();
                let most = if lost.is_some() { 1.1 } else { 1.2 };
                assert!((0.9..=most).contains(&ratio), "{words} {name}: {text}");
                assert!(figure("lost_percent").unwrap_or(0.0) < 10.0, "{words} {name}: {text}");
            }
        }
    });
}

#[test]
fn bytes_are_those_of_the_senders_count_between_ours() {
    let server = Running::start(ServePlan::default());
    let cells = [(false, false), (true, false), (false, true)];
    for_all(cells.to_vec(), |(reverse, bidirectional)| {
        let asked = Parameters {
            omit_s: 1,
            time_s: 1,
            parallel: 2,
            reverse,
            bidirectional,
            ..Parameters::default()
        };
        let report =
            run(&plan("127.0.0.1", server.port, asked), &mut (), &Cancel::default()).unwrap();
        for stream in streams(&report) {
            let (sent, received) = (stream.sender().unwrap(), stream.receiver().unwrap());
            // A client that receives ends the test with some on its way.
            let is_exact = stream.sends();
            assert!(received.bytes <= sent.bytes, "{reverse} {bidirectional} {stream:?}");
            assert!(!is_exact || received.bytes == sent.bytes, "{bidirectional} {stream:?}");
        }
    });
}
use crate::both::tcp_and_udp;
