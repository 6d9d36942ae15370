//! A server against clients that no original is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::control::{Trusts, client_tls, make_identity};
use crate::event::Cancel;
use crate::transport::quic::{
    ClientSide, Dir, Endpoint, Event, Extras, Link, Settings, SharedConnection, StreamRead,
};

const LIMIT: Duration = Duration::from_secs(30);

fn quic() -> QuicPlan {
    let (window_packets, bytes) = (10, 1 << 20);
    let ack_delay = Some(Duration::from_millis(25));
    let (receive_bytes, socket_bytes) = (bytes, bytes);
    QuicPlan { window_packets, receive_bytes, socket_bytes, ack_delay, ..QuicPlan::default() }
}

fn server() -> Server {
    let plan = ServerPlan {
        address: "127.0.0.1:0".parse().unwrap(),
        identity: make_identity().unwrap(),
        quic: quic(),
        interval_ns: 1_000_000_000,
        session_cache: None,
    };
    Server::start(&plan).unwrap()
}

/// An honest client gets its first byte.
fn is_served(server: &Server) -> bool {
    let plan = ClientPlan {
        remote: server.address(),
        server_name: String::new(),
        quic: quic(),
        runtime: None,
        interval_ns: 1_000_000_000,
        logs: None,
        session: None,
    };
    let report = run_client(&plan, &mut |_| (), &Cancel::default()).unwrap();
    report.first_byte_ns.is_some()
}

struct Odd {
    endpoint: Endpoint,
    connection: SharedConnection,
    link: Link,
}

impl Odd {
    /// A connection that stands, of a client that offers this application protocol.
    fn connect(server: &Server, protocol: &[u8]) -> Self {
        let protocols = Some(protocol.to_vec()).filter(|name| !name.is_empty());
        let tls = client_tls(|_| Ok(Trusts::Unread), &[], protocols.into_iter().collect()).unwrap();
        let settings = Settings::default();
        let client = ClientSide::new(Arc::new(tls), &settings, Extras::default()).unwrap();
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None);
        let mut endpoint = Endpoint::over(Arc::new(socket.unwrap()), &settings, None).unwrap();
        let link = endpoint.connect(0, server.address(), "linerate", &client).unwrap();
        let connection = endpoint.connection(link).unwrap().clone();
        let mut odd = Self { endpoint, connection, link };
        odd.until(|_, event| event == &Event::Established);
        odd
    }

    /// Gives the endpoint turns until an event is the one that is waited for.
    fn until(&mut self, mut done: impl FnMut(&SharedConnection, &Event) -> bool) {
        let end = Instant::now() + LIMIT;
        loop {
            assert!(Instant::now() < end, "nothing came of it");
            self.endpoint.send_out().unwrap();
            self.endpoint.wait(Duration::from_millis(20), None).unwrap();
            self.endpoint.take_in().unwrap();
            while let Some((link, event)) = self.endpoint.poll_event() {
                if link == self.link && done(&self.connection, &event) {
                    return;
                }
            }
        }
    }
}

#[test]
fn a_client_that_offers_an_application_protocol_is_served() {
    let server = server();
    for protocol in [&b"h3"[..], b"", b"perf"] {
        let mut odd = Odd::connect(&server, protocol);
        let id = odd.connection.borrow_mut().open_stream(Dir::Bi).unwrap();
        odd.connection.borrow_mut().send(id, b"anything").unwrap();
        odd.connection.borrow_mut().finish(id).unwrap();
        let mut bytes = Vec::new();
        odd.until(|connection, event| {
            if *event == Event::Readable(id) {
                let mut look = |piece: &[u8]| bytes.extend_from_slice(piece);
                connection.borrow_mut().read(id, 10_000, &mut look);
            }
            bytes.len() >= 10_000
        });
        assert!(bytes.iter().all(|byte| *byte == b'X'));
    }
}

#[test]
fn streams_that_are_opened_and_stopped_without_end_keep_nobody_out() {
    let server = server();
    let mut odd = Odd::connect(&server, b"");
    let (mut opened, mut read) = (0_u64, 0_u64);
    while opened < 500 {
        let before = opened;
        loop {
            let mut connection = odd.connection.borrow_mut();
            let Some(id) = connection.open_stream(Dir::Bi) else { break };
            opened += 1;
            if connection.send(id, b"more").and_then(|_| connection.finish(id)).is_err() {
                break;
            }
        }
        assert!(opened - before <= 100, "{opened} after {before}");
        odd.until(|connection, event| match event {
            Event::Readable(id) => {
                let mut connection = connection.borrow_mut();
                if let StreamRead::Bytes(bytes) = connection.read(*id, 1 << 20, &mut |_| ()) {
                    read += bytes as u64;
                }
                connection.stop_sending(*id, 7);
                false
            }
            Event::StreamsAvailable(Dir::Bi) => true,
            _ => false,
        });
    }
    assert!(read > 0 && is_served(&server));
}

#[test]
fn a_request_without_an_end_and_a_stream_without_a_way_back_get_no_answer() {
    let server = server();
    let mut odd = Odd::connect(&server, b"");
    let endless = odd.connection.borrow_mut().open_stream(Dir::Bi).unwrap();
    let one_way = odd.connection.borrow_mut().open_stream(Dir::Uni).unwrap();
    odd.connection.borrow_mut().send(one_way, b"qperf start sending").unwrap();
    let (mut sent, mut stopped) = (0, false);
    odd.until(|connection, event| {
        assert_ne!(*event, Event::Readable(endless), "nothing was asked for");
        stopped |= *event == Event::Stopped(one_way, 0);
        while let Ok(bytes) = connection.borrow_mut().send(endless, &[0; 4_000]) {
            sent += bytes;
        }
        stopped && sent > 200_000
    });
    assert!(is_served(&server));
}
