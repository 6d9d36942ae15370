use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_wire::perf::ALPN;
use rustls::{ClientConfig, ServerConfig};
use socket2::{Domain, Socket, Type};

use super::FramedEndpoint;
use super::outbox::QUEUE_LIMIT_BYTES;
use super::session::{Fault, FramedTls, Incoming};
use crate::perf::configurations;
use crate::transport::multiplexer::{Destination, LinkEvent, Multiplexer, Sending, Statistics};

struct Pair {
    client: FramedTls,
    server: FramedTls,
}

fn configs(suites: u8) -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let (client, server) = configurations(suites).expect("keys are made");
    assert_eq!(client.alpn_protocols, [ALPN.to_vec()]);
    (client, server)
}

/// Moves what one end has sent to the other, so many bytes at a time, and what came of it.
fn carry(
    from: &mut FramedTls,
    to: &mut FramedTls,
    piece_bytes: usize,
) -> Result<Vec<Incoming>, Fault> {
    let mut incoming = Vec::new();
    while from.has_unsent() {
        let vacant = to.vacant();
        let piece = from.outbox().unsent();
        let moved = piece.len().min(piece_bytes).min(vacant.len());
        vacant[..moved].copy_from_slice(&piece[..moved]);
        from.outbox().record_sent(moved);
        to.record_filled(moved);
        while let Some(one) = to.poll_incoming()? {
            incoming.push(one);
        }
    }
    Ok(incoming)
}

fn pair(suites: u8, piece_bytes: usize) -> Pair {
    let (client, server) = configs(suites);
    let mut client = FramedTls::client(&client).expect("a client begins");
    let mut server = FramedTls::server(&server).expect("a server begins");
    let mut established = 0;
    for _ in 0..4 {
        let to_server = carry(&mut client, &mut server, piece_bytes).expect("the server agrees");
        let to_client = carry(&mut server, &mut client, piece_bytes).expect("the client agrees");
        let all = to_server.iter().chain(&to_client);
        established += all.filter(|one| **one == Incoming::Established).count();
    }
    assert_eq!(established, 2, "each end says once that the connection stands");
    Pair { client, server }
}

#[test]
fn every_cipher_suite_carries_data_both_ways() {
    for suites in [1, 2, 4, 0] {
        let Pair { mut client, mut server } = pair(suites, usize::MAX);
        let stream = client.open_stream().expect("streams may begin");
        assert_eq!(stream, 1, "no stream is 0, which the original answers as 1");
        let bytes = vec![7; 100_000];
        let sending = Sending { bytes: &bytes, opens: true, finishes: true };
        assert_eq!(client.send(stream, sending), Ok(Some(100_000)));
        let incoming = carry(&mut client, &mut server, 1000).expect("the server understands");
        let (mut total, mut ends) = (0, 0);
        for one in incoming {
            let Incoming::Data { stream: 1, bytes, finished, .. } = one else {
                panic!("unexpected: {one:?}")
            };
            total += bytes;
            ends += u32::from(finished);
        }
        assert_eq!((total, ends), (100_000, 1));
        assert_eq!(client.outbox().poll_left(), Some((1, 100_000)));
        let empty = Sending { bytes: &[], opens: true, finishes: true };
        assert_eq!(server.send(1, empty), Ok(Some(0)));
        assert_eq!(server.abort(9), Ok(()));
        let incoming = carry(&mut server, &mut client, 3).expect("the client understands");
        let [Incoming::Data { bytes: 0, finished: true, .. }, Incoming::Abort { stream: 9 }] =
            incoming[..]
        else {
            panic!("unexpected: {incoming:?}")
        };
    }
}

#[test]
fn a_handshake_cut_at_every_byte_is_the_same() {
    for piece_bytes in [1, 2, 3, 5, 19, 20, 21, 500, 1095] {
        pair(0, piece_bytes);
    }
}

#[test]
fn streams_have_numbers_of_their_own() {
    let Pair { mut client, .. } = pair(0, usize::MAX);
    let numbers: Vec<_> = (0..5).map(|_| client.open_stream()).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3), Some(4), Some(5)]);
}

#[test]
fn send_queue_is_bounded() {
    let Pair { mut client, .. } = pair(0, usize::MAX);
    let block = vec![0; 64 << 10];
    let sending = Sending { bytes: &block, opens: false, finishes: false };
    let mut taken = 0;
    while client.send(1, sending) == Ok(Some(block.len())) {
        taken += 1;
        assert!(taken < 100, "a sender is told to wait");
    }
    // The last block may go beyond the limit, and every frame has a header, a word and a seal.
    let most = (QUEUE_LIMIT_BYTES + block.len()) * 101 / 100;
    assert!(client.outbox().unsent().len() <= most);
    client.outbox().record_sent(100 << 10);
    assert_eq!(client.send(1, sending), Ok(Some(block.len())), "room that comes is used");
}

#[test]
fn a_byte_that_was_changed_ends_the_connection() {
    let Pair { mut client, mut server } = pair(0, usize::MAX);
    let sending = Sending { bytes: &[1; 40], opens: true, finishes: true };
    assert_eq!(client.send(1, sending), Ok(Some(40)));
    let mut sealed = client.outbox().unsent().to_vec();
    sealed[20] ^= 1;
    server.vacant()[..sealed.len()].copy_from_slice(&sealed);
    server.record_filled(sealed.len());
    assert_eq!(server.poll_incoming(), Err("seal"));
}

#[test]
fn nothing_but_the_handshake_may_come_before_its_end() {
    // A stream's frame that is plain, one that claims keys that aren't there, and an unknown kind.
    for (frame, fault) in [
        ([0, 1, 12, 0], "key level"),
        ([2, 0, 12, 0], "key level"),
        ([3, 1, 12, 0], "key level"),
        ([0, 7, 12, 0], "frame"),
        ([1, 0, 12, 0], "frame"),
        ([0, 0, 12, 0], "tls"),
    ] {
        let (_, config) = configs(0);
        let mut server = FramedTls::server(&config).expect("a server begins");
        let mut bytes = frame.to_vec();
        bytes.resize(32, 0xff);
        server.vacant()[..32].copy_from_slice(&bytes);
        server.record_filled(32);
        assert_eq!(server.poll_incoming(), Err(fault), "{frame:?}");
    }
}

#[test]
fn retries_do_not_lengthen_the_wait() {
    let (config, _) = configs(0);
    let mut endpoint = FramedEndpoint::client(config, Duration::from_secs(60)).unwrap();
    let began = Instant::now();
    endpoint.wait(Duration::from_millis(20)).unwrap();
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(20) && waited < Duration::from_secs(20), "{waited:?}");
}

/// How often a client had to begin its connection to a listener that takes so many at first.
fn syn_retransmissions(taken_at_first: usize) -> Option<u64> {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let remote = listener.local_addr().unwrap().as_socket().unwrap();
    // A queue of none has room for one.
    let waiting: Vec<_> = (taken_at_first..2)
        .map(|_| TcpStream::connect_timeout(&remote, Duration::from_millis(50)))
        .collect();
    let (config, _) = configs(0);
    let mut endpoint = FramedEndpoint::client(config, Duration::ZERO).unwrap();
    endpoint.connect(&Destination { remote, local: None, server_name: String::new() }).unwrap();
    let (begun, mut accepted) = (Instant::now(), 0);
    listener.set_nonblocking(true).unwrap();
    while begun.elapsed() < Duration::from_secs(20) {
        endpoint.wait(Duration::from_millis(20)).unwrap();
        // Its first try has been dropped by now.
        if begun.elapsed() > Duration::from_millis(300) || waiting.is_empty() {
            accepted += usize::from(listener.accept().is_ok());
        }
        while let Some((_, event)) = endpoint.poll_event() {
            if let LinkEvent::Ended { ending } = event {
                assert!(accepted > 0);
                let Statistics::Tcp(_, counts) = ending.statistics else { panic!("{ending:?}") };
                return counts.syn_retransmissions;
            }
        }
    }
    panic!("the connection doesn't end");
}

#[test]
fn a_connection_knows_how_often_it_had_to_begin() {
    assert_eq!(syn_retransmissions(2), Some(0));
    assert!(syn_retransmissions(0) >= Some(1));
}
