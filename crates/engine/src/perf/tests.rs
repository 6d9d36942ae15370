//! A server of the dialect and a bare client of either transport: what a client may do to a stream.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use linerate_wire::perf::UNLIMITED;
use linerate_wire::perf::exchange::Shape;

use super::quic::test_client;
use super::{
    Addresses, Carriage, ClientEvent, ClientPlan, Placement, QuicOptions, Server, ServerPlan,
    Tells, run_client, trust,
};
use crate::event::Cancel;
use crate::socket::HandedSockets;
use crate::transport::framed::FramedEndpoint;
use crate::transport::multiplexer::{Destination, Link, LinkEvent, Multiplexer, Sending};

mod broken_threads;
mod cut_uploads;
mod late_streams;
mod latencies;
mod names;
mod samples;

/// The longest that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

fn server_plan() -> ServerPlan {
    ServerPlan {
        handed: HandedSockets::default(),
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        threads: 2,
        placement: Placement::default(),
        quic: QuicOptions::default(),
        suites: 0,
        delay: None,
        tells_connections: false,
        observe: None,
        stop_address: None,
    }
}

fn server() -> Server {
    Server::start(&server_plan()).expect("a server starts")
}

/// A client with one connection that stands.
struct Client {
    endpoint: Box<dyn Multiplexer>,
    link: Link,
}

/// How a stream ended, as its client saw it.
#[derive(Debug, PartialEq)]
enum End {
    /// So many bytes, and the end.
    Finished(usize),
    /// With this code, where there are codes.
    GivenUp(Option<u64>),
}

impl Client {
    fn connect(server: &Server, tcp: bool) -> Self {
        let config = trust::client_config(None).expect("keys are made");
        let mut endpoint: Box<dyn Multiplexer> = if tcp {
            Box::new(FramedEndpoint::client(config, Duration::ZERO).expect("a poll set"))
        } else {
            Box::new(test_client(config, server.address(), false).expect("a socket"))
        };
        let remote = server.address();
        let to = Destination { remote, local: None, server_name: String::new() };
        let link = endpoint.connect(&to).expect("a connection begins");
        let mut client = Self { endpoint, link };
        client.until(|event| matches!(event, LinkEvent::Established).then_some(()));
        client
    }

    fn until<T>(&mut self, mut found: impl FnMut(&LinkEvent) -> Option<T>) -> T {
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            self.endpoint.wait(Duration::from_millis(20)).expect("the endpoint goes on");
            while let Some((_, event)) = self.endpoint.poll_event() {
                if let Some(what) = found(&event) {
                    return what;
                }
            }
        }
        panic!("nothing within {LIMIT:?}");
    }

    fn send(&mut self, stream: u64, bytes: &[u8], finishes: bool) {
        let sending = Sending { bytes, opens: true, finishes };
        assert_eq!(self.endpoint.send(self.link, stream, sending), Some(bytes.len()));
    }

    fn ask(&mut self, bytes: &[u8]) -> u64 {
        let stream = self.endpoint.open_stream(self.link).expect("there is room for a stream");
        self.send(stream, bytes, true);
        stream
    }

    fn end_of(&mut self, stream: u64) -> End {
        let mut total = 0;
        self.until(|event| match event {
            LinkEvent::Received { stream: from, bytes, finished, .. } if *from == stream => {
                total += bytes;
                finished.then_some(End::Finished(total))
            }
            LinkEvent::Reset { stream: from, code } if *from == stream => Some(End::GivenUp(*code)),
            _ => None,
        })
    }
}

#[test]
fn a_request_is_answered_as_its_header_says() {
    let server = server();
    for tcp in [false, true] {
        let mut client = Client::connect(&server, tcp);
        for wanted in [0_u64, 1, 65_535, 65_536, 65_537, 1_000_000] {
            let mut request = wanted.to_be_bytes().to_vec();
            request.resize(500, 7);
            let stream = client.ask(&request);
            assert_eq!(client.end_of(stream), End::Finished(wanted as usize), "TCP: {tcp}");
        }
    }
}

#[test]
fn a_request_shorter_than_its_header_is_given_up() {
    let server = server();
    for tcp in [false, true] {
        let mut client = Client::connect(&server, tcp);
        let given_up = End::GivenUp((!tcp).then_some(0));
        for length in 0..8 {
            let stream = client.ask(&[0; 8][..length]);
            assert_eq!(client.end_of(stream), given_up, "{length} bytes, TCP: {tcp}");
        }
        let stream = client.ask(&10_u64.to_be_bytes());
        assert_eq!(client.end_of(stream), End::Finished(10), "others go on");
    }
}

#[test]
fn an_answer_without_end_goes_on_until_it_is_stopped() {
    let server = server();
    for tcp in [false, true] {
        let mut client = Client::connect(&server, tcp);
        let stream = client.ask(&UNLIMITED.to_be_bytes());
        let mut total = 0;
        client.until(|event| match event {
            LinkEvent::Received { bytes, finished, .. } => {
                assert!(!finished);
                total += bytes;
                (total > 3_000_000).then_some(())
            }
            _ => None,
        });
        let link = client.link;
        client.endpoint.stop(link, stream, 0);
        let next = client.ask(&77_u64.to_be_bytes());
        assert_eq!(client.end_of(next), End::Finished(77), "TCP: {tcp}");
    }
}

#[test]
fn a_request_that_is_reset_after_its_header_harms_nobody() {
    let server = server();
    for tcp in [false, true] {
        let mut client = Client::connect(&server, tcp);
        let stream = client.endpoint.open_stream(client.link).expect("there is room");
        client.send(stream, &1000_u64.to_be_bytes(), false);
        let link = client.link;
        client.endpoint.abort(link, stream, 0);
        let next = client.ask(&5_u64.to_be_bytes());
        assert_eq!(client.end_of(next), End::Finished(5), "TCP: {tcp}");
    }
}

#[test]
fn one_way_streams_are_answered_on_streams_of_the_server() {
    let server = server();
    let mut client = Client::connect(&server, false);
    let open =
        |client: &mut Client| client.endpoint.open_one_way(client.link).expect("there is room");
    let silent = open(&mut client);
    client.send(silent, &0_u64.to_be_bytes(), true);
    let asking = open(&mut client);
    client.send(asking, &100_000_u64.to_be_bytes(), true);
    let mut total = 0;
    let stream = client.until(|event| match event {
        LinkEvent::Received { stream, one_way: true, bytes, finished, .. } => {
            total += bytes;
            finished.then_some(*stream)
        }
        _ => None,
    });
    assert_eq!(total, 100_000);
    assert_ne!(stream, asking);
}

#[test]
fn answers_wait_for_the_streams_that_the_client_allows() {
    const REQUESTS: usize = 40;
    const ANSWER_BYTES: u64 = 1 << 20;
    let server = server();
    let mut client = Client::connect(&server, false);
    let (mut asked, mut answered) = (0, 0);
    let end = Instant::now() + LIMIT;
    while answered < REQUESTS {
        assert!(Instant::now() < end, "{answered} answers to {asked} requests");
        while asked < REQUESTS
            && let Some(stream) = client.endpoint.open_one_way(client.link)
        {
            client.send(stream, &ANSWER_BYTES.to_be_bytes(), true);
            asked += 1;
        }
        client.endpoint.wait(Duration::from_millis(20)).expect("the endpoint goes on");
        while let Some((_, event)) = client.endpoint.poll_event() {
            answered += usize::from(matches!(event, LinkEvent::Received { finished: true, .. }));
        }
    }
    assert_eq!((asked, answered), (REQUESTS, REQUESTS));
}

#[test]
fn a_one_way_stream_is_given_up_on_the_way_that_it_has() {
    let server = server();
    let mut client = Client::connect(&server, false);
    let open =
        |client: &mut Client| client.endpoint.open_one_way(client.link).expect("there is room");
    // One that is shorter than its header, and one that is reset behind it.
    let short = open(&mut client);
    client.send(short, &[0; 3], true);
    let reset = open(&mut client);
    client.send(reset, &7_u64.to_be_bytes(), false);
    let link = client.link;
    client.endpoint.abort(link, reset, 0);
    // The answer to a third is stopped.
    let asking = open(&mut client);
    client.send(asking, &UNLIMITED.to_be_bytes(), true);
    let answer = client.until(|event| match event {
        LinkEvent::Received { stream, one_way: true, .. } => Some(*stream),
        _ => None,
    });
    client.endpoint.stop(link, answer, 0);
    let next = client.ask(&5_u64.to_be_bytes());
    assert_eq!(client.end_of(next), End::Finished(5));
}

#[test]
fn more_streams_are_allowed_as_they_are_used() {
    let server = server();
    let mut client = Client::connect(&server, false);
    let mut done = 0;
    let mut asked = 0;
    let mut most = 0;
    while done < 300 {
        while asked < 300
            && let Some(stream) = client.endpoint.open_stream(client.link)
        {
            client.send(stream, &20_u64.to_be_bytes(), true);
            asked += 1;
        }
        most = most.max(asked - done);
        done += client.until(|event| match event {
            LinkEvent::Received { finished: true, .. } => Some(1),
            _ => None,
        });
    }
    assert!(most > 16, "only {most} at a time");
}

#[test]
fn the_datagram_that_asks_to_stop_is_heard() {
    use std::net::UdpSocket;
    let probe = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let stop_address = probe.local_addr().expect("an address");
    drop(probe);
    let plan = ServerPlan { stop_address: Some(stop_address), ..server_plan() };
    let mut server = Server::start(&plan).expect("a server starts");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    sender.send_to(&[0; 16], stop_address).expect("a datagram leaves");
    sender.send_to(&super::server::STOP_REQUEST, stop_address).expect("a datagram leaves");
    let event = server.next_event(LIMIT).expect("it is heard");
    assert!(matches!(event, super::ServerEvent::StopAsked), "{event:?}");
}

/// A client of one thread with three connections.
fn three_connections(remote: SocketAddr, own_ports: bool) -> ClientPlan {
    let (local, server_name) = (Vec::new(), String::new());
    ClientPlan {
        addresses: Addresses { remote, local, server_name, numbered_names: false },
        carriage: Carriage::Quic(QuicOptions::default()),
        placement: Placement::default(),
        threads: 1,
        copies: false,
        own_ports,
        connections: 3,
        streams: 2,
        shape: Shape { upload: 100_000, download: 70_000, timed: false, block_bytes: 65_536 },
        repeats_connections: false,
        repeats_streams: false,
        runs_for: None,
        gives_up_unreached: false,
        latency_limit: 0,
        tells: Tells::default(),
        logs: None,
        key_log: None,
    }
}

#[test]
fn connections_have_ports_of_their_own_if_asked() {
    for (own_ports, count) in [(true, 3), (false, 1)] {
        let listener = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        listener.set_read_timeout(Some(LIMIT)).expect("a time-out");
        let remote = listener.local_addr().expect("an address");
        let cancel = Cancel::default();
        let plan = three_connections(remote, own_ports);
        let mut ports = BTreeSet::new();
        std::thread::scope(|scope| {
            let client = scope.spawn(|| run_client(&plan, &mut |_| {}, &cancel));
            // The first packets of the three, which come before any is repeated.
            for _ in 0..3 {
                let (_, from) = listener.recv_from(&mut [0; 2000]).expect("a packet");
                ports.insert(from.port());
            }
            cancel.request();
            client.join().expect("it ends").expect("it goes on");
        });
        assert_eq!(ports.len(), count, "own ports: {own_ports}");
    }
}

#[test]
fn connections_with_ports_of_their_own_carry_the_same() {
    let server = server();
    for own_ports in [true, false] {
        let plan = three_connections(server.address(), own_ports);
        let report = run_client(&plan, &mut |_| {}, &Cancel::default()).expect("it goes on");
        let totals = report.totals();
        assert_eq!((totals.connections, totals.streams), (Some(3), Some(6)), "{own_ports}");
        let bytes = (totals.uploaded_bytes, totals.downloaded_bytes);
        assert_eq!(bytes, (Some(600_000), Some(420_000)), "{own_ports}");
    }
}

#[test]
fn the_end_of_a_connection_with_a_port_of_its_own_waits_for_no_answer() {
    let server = server();
    let config = trust::client_config(None).expect("keys are made");
    let (front, back) = (relay_end(), relay_end());
    back.connect(server.address()).expect("a way to the server");
    let remote = front.local_addr().expect("an address");
    let mut took = Vec::new();
    while took.len() < 5 {
        let config = std::sync::Arc::clone(&config);
        let mut endpoint = test_client(config, remote, true).expect("an endpoint");
        let to = Destination { remote, local: None, server_name: String::new() };
        let link = endpoint.connect(&to).expect("a connection begins");
        let (mut established, mut bytes, end) = (false, [0; 65_536], Instant::now() + LIMIT);
        let mut client = None;
        while !established && Instant::now() < end {
            endpoint.wait(Duration::from_millis(1)).expect("the endpoint goes on");
            while let Ok((length, from)) = front.recv_from(&mut bytes) {
                client = Some(from);
                back.send(&bytes[..length]).expect("the server is there");
            }
            while let (Some(client), Ok(length)) = (client, back.recv(&mut bytes)) {
                front.send_to(&bytes[..length], client).expect("the client is there");
            }
            while let Some((_, event)) = endpoint.poll_event() {
                established |= matches!(event, LinkEvent::Established);
            }
        }
        assert!(established);
        // From now on nothing passes.
        endpoint.close(link);
        let began = Instant::now();
        endpoint.wait(LIMIT).expect("the endpoint goes on");
        took.push(began.elapsed());
        let events: Vec<_> = std::iter::from_fn(|| endpoint.poll_event()).collect();
        assert!(matches!(events[..], [(_, LinkEvent::Ended { .. })]), "{events:?}");
    }
    // Whatever else the machine does can only make it more.
    took.sort();
    assert!(took[0] < Duration::from_millis(5), "{took:?}");
}

fn relay_end() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    socket.set_nonblocking(true).expect("a socket that doesn't block");
    socket
}
