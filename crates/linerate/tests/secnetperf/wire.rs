//! What a client's first packets show to an observer: names, ports, marks.

use crate::skipped::skip;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, RecvFlags, SocketType, ipproto, recv, socket};
use rustls::Side;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::Version;

use super::fixture::{Server, command, run};

const SEAL_BYTES: usize = 16;

/// Reads a number of variable length (RFC 9000, section 16).
fn take_number(rest: &mut &[u8]) -> usize {
    let bytes = 1 << (rest[0] >> 6);
    let (number, after) = rest.split_at(bytes);
    *rest = after;
    number
        .iter()
        .skip(1)
        .fold(usize::from(number[0] & 0x3f), |sum, byte| sum << 8 | usize::from(*byte))
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> &'a [u8] {
    let (taken, after) = rest.split_at(bytes);
    *rest = after;
    taken
}

/// What the first packet of a datagram says of the handshake, by its place (RFC 9000, section 17.2.2).
fn open_first(datagram: &[u8]) -> Vec<(usize, Vec<u8>)> {
    assert_eq!(datagram[0] & 0xf0, 0xc0, "a first packet");
    let mut rest = &datagram[5..];
    let id_bytes = take(&mut rest, 1)[0].into();
    let destination = take(&mut rest, id_bytes);
    let id_bytes = take(&mut rest, 1)[0].into();
    take(&mut rest, id_bytes);
    let token_bytes = take_number(&mut rest);
    take(&mut rest, token_bytes);
    let length = take_number(&mut rest);
    let number_at = datagram.len() - rest.len();
    let mut packet = datagram[..number_at + length].to_vec();
    let suite = TLS13_AES_128_GCM_SHA256.tls13().unwrap().quic_suite().unwrap();
    let keys = suite.keys(destination, Side::Server, Version::V1).remote;
    let (first, hidden) = packet.split_at_mut(number_at);
    let (number, sample) = hidden.split_at_mut(4);
    let sample = &sample[..keys.header.sample_len()];
    keys.header.decrypt_in_place(sample, &mut first[0], number).unwrap();
    let header_bytes = number_at + usize::from(first[0] & 3) + 1;
    let (header, payload) = packet.split_at_mut(header_bytes);
    let number = header[number_at..].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let opened_bytes = payload.len() - SEAL_BYTES;
    keys.packet.decrypt_in_place(number, header, payload).unwrap();
    let (mut rest, mut pieces) = (&payload[..opened_bytes], Vec::new());
    while !rest.is_empty() {
        match take_number(&mut rest) {
            0 | 1 => {}
            6 => {
                let (at, bytes) = (take_number(&mut rest), take_number(&mut rest));
                pieces.push((at, take(&mut rest, bytes).to_vec()));
            }
            // A close; nothing comes behind it.
            0x1c | 0x1d => break,
            kind => panic!("a frame of kind {kind}"),
        }
    }
    pieces
}

/// The name that a TLS client asks for (RFC 8446, section 4.1.2; RFC 6066, section 3); `None`: for none.
fn server_name(hello: &[u8]) -> Option<String> {
    let mut rest = &hello[4 + 2 + 32..];
    let session_bytes = take(&mut rest, 1)[0].into();
    take(&mut rest, session_bytes);
    let two = |rest: &mut &[u8]| usize::from(u16::from_be_bytes(take(rest, 2).try_into().unwrap()));
    let suites_bytes = two(&mut rest);
    take(&mut rest, suites_bytes);
    let compression_bytes = take(&mut rest, 1)[0].into();
    take(&mut rest, compression_bytes);
    two(&mut rest);
    while !rest.is_empty() {
        let (kind, bytes) = (two(&mut rest), two(&mut rest));
        let extension = take(&mut rest, bytes);
        if kind == 0 {
            return Some(String::from_utf8(extension[5..].to_vec()).unwrap());
        }
    }
    None
}

/// The longest that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// All that comes to this socket while a client runs.
fn heard(listener: &UdpSocket, words: &str) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut client = command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    listener.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let (mut all, mut bytes, mut ended) = (Vec::new(), [0; 65_536], false);
    let began = Instant::now();
    while !ended {
        ended = client.try_wait().unwrap().is_some();
        if began.elapsed() > LIMIT {
            client.kill().unwrap();
            panic!("it doesn't end: {words}");
        }
        while let Ok((length, from)) = listener.recv_from(&mut bytes) {
            all.push((from, bytes[..length].to_vec()));
        }
    }
    client.wait().unwrap();
    all
}

/// The names that clients' connections ask for over QUIC, in their order.
fn names_asked_for(target: &str, words: &str) -> Vec<Option<String>> {
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let words = format!("-target:{target} -ip:4 -port:{port} -maxruntime:700 {words}");
    let mut hellos: BTreeMap<SocketAddr, BTreeMap<usize, Vec<u8>>> = BTreeMap::new();
    for (from, datagram) in heard(&listener, &words) {
        hellos.entry(from).or_default().extend(open_first(&datagram));
    }
    let whole =
        hellos.into_values().map(|pieces| pieces.into_values().collect::<Vec<_>>().concat());
    let mut names: Vec<_> = whole.map(|hello| server_name(&hello)).collect();
    names.sort();
    names
}

#[test]
fn a_name_has_the_number_of_its_thread_behind_it() {
    let name = |text: &str| Some(text.to_owned());
    for (target, words, names) in [
        ("localhost", "", vec![name("localhost00")]),
        ("localhost", "-inctarget:0", vec![name("localhost")]),
        ("localhost", "-conns:2 -threads:2", vec![name("localhost00"), name("localhost01")]),
        ("127.0.0.1", "", vec![None]),
    ] {
        assert_eq!(names_asked_for(target, words), names, "{target} {words}");
    }
}

#[test]
fn over_tcp_everybody_asks_for_the_same_name() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for target in ["localhost", "127.0.0.1"] {
        let (sender, receiver) = channel();
        let accepting = listener.try_clone().unwrap();
        let heard = thread::spawn(move || {
            let (mut socket, _) = accepting.accept().unwrap();
            let mut header = [0; 4];
            socket.read_exact(&mut header).unwrap();
            // A key of none, the handshake, its length, and the place of a seal behind it.
            assert_eq!(header[..2], [0, 0]);
            let mut hello = vec![0; u16::from_le_bytes([header[2], header[3]]).into()];
            socket.read_exact(&mut hello).unwrap();
            sender.send(server_name(&hello)).unwrap();
        });
        run(&format!("-target:{target} -ip:4 -port:{port} -tcp:1"));
        assert_eq!(receiver.recv_timeout(LIMIT).unwrap().as_deref(), Some("localhost"), "{target}");
        heard.join().unwrap();
    }
}

#[test]
fn connections_have_ports_of_their_own_unless_they_are_to_share_their_threads() {
    let cases = [
        ("-threads:1", 4),
        ("-threads:2", 4),
        ("-share:1 -threads:2", 2),
        ("-share:1 -exec:scavenger", 1),
        ("-share:0 -threads:1", 4),
        ("-share:0 -exec:scavenger", 4),
        ("-share:0 -exec:maxtput -threads:2", 4),
        // A scenario sets a profile, and neither says anything of ports.
        ("-scenario:hps -threads:1", 4),
        ("-scenario:rps-multi -share:1 -threads:1", 1),
        // A client with a local address shares the port.
        ("-bind:127.0.0.1 -threads:1", 1),
        ("-share:0 -bind:127.0.0.1 -threads:1", 1),
    ];
    thread::scope(|scope| {
        for (words, ports) in cases {
            scope.spawn(move || {
                let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
                let port = listener.local_addr().unwrap().port();
                let target = format!("-target:127.0.0.1 -port:{port}");
                // A scavenger may wait long for a processor.
                let words = format!("{target} -conns:4 -maxruntime:4000 {words}");
                let from: BTreeSet<_> =
                    heard(&listener, &words).into_iter().map(|(from, _)| from).collect();
                assert_eq!(from.len(), ports, "{words}: {from:?}");
            });
        }
    });
}

/// The marks (the second byte of an IPv4 header) of UDP datagrams that come to this address while something is done,
/// with the ports that they come from.
fn marks_to(address: &str, act: impl FnOnce()) -> std::io::Result<BTreeSet<(u16, u8)>> {
    let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::UDP))?;
    let home = SocketAddr::new(address.parse().unwrap(), 0);
    rustix::net::bind(&raw, &home)?;
    act();
    let (mut marks, mut packet) = (BTreeSet::new(), [0; 65_536]);
    while let Ok((bytes, _)) = recv(&raw, &mut packet, RecvFlags::DONTWAIT) {
        let header_bytes = usize::from(packet[0] & 0xf) * 4;
        let port = packet[..bytes][header_bytes..header_bytes + 2].try_into().unwrap();
        marks.insert((u16::from_be_bytes(port), packet[1]));
    }
    Ok(marks)
}

#[test]
fn packets_carry_their_code_point_at_either_end() {
    if let Err(why) = marks_to("127.77.1.1", || {}) {
        return skip(&format!("a raw socket needs root: {why}"));
    }
    // Addresses that no other test has. Nobody answers at the first.
    for (words, mark) in
        [("", 0), ("-dscp:46", 46 << 2), ("-dscp:8 -ecn:1", 8 << 2 | 2), ("-dscp:64", 0)]
    {
        let words = format!("-target:127.77.1.2 -maxruntime:300 {words}");
        let marks = marks_to("127.77.1.2", || drop(run(&words))).unwrap();
        let marks: BTreeSet<u8> = marks.into_iter().map(|(_, mark)| mark).collect();
        assert_eq!(marks, [mark].into(), "{words}");
    }
    for (flags, mark) in [("", 0), ("-dscp:10", 10 << 2), ("-dscp:63 -ecn:1", 63 << 2 | 2)] {
        let server = Server::start(flags);
        let words = server.words("-bind:127.77.1.3 -up:20kb -down:20kb");
        let marks = marks_to("127.77.1.3", || assert_eq!(run(&words).exit_code, 0)).unwrap();
        assert_eq!(marks, [(server.port, mark)].into(), "{flags}");
    }
}
