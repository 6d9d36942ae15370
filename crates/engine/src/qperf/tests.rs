//! A server against clients that no original is, and a client against such servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, TryRecvError, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use linerate_wire::qperf::Close;

use super::server::Worker;
use super::*;
use crate::control::{Trusts, client_tls, make_identity, server_tls};
use crate::event::Cancel;
use crate::transport::quic::{
    ClientSide, Dir, Endpoint, Event, Extras, Link, ServerSide, Settings, SharedConnection,
    StreamId, StreamRead,
};

const LIMIT: Duration = Duration::from_secs(30);

fn quic() -> QuicPlan {
    let (window_packets, bytes) = (10, 1 << 20);
    let ack_delay = Some(Duration::from_millis(25));
    let (receive_bytes, socket_bytes) = (bytes, bytes);
    QuicPlan { window_packets, receive_bytes, socket_bytes, ack_delay, ..QuicPlan::default() }
}

fn server_plan() -> ServerPlan {
    ServerPlan {
        address: "127.0.0.1:0".parse().unwrap(),
        identity: make_identity().unwrap(),
        quic: quic(),
        interval_ns: 1_000_000_000,
        session_cache: None,
    }
}

fn server() -> Server {
    Server::start(&server_plan()).unwrap()
}

fn client(remote: SocketAddr, runtime: Option<Duration>) -> ClientPlan {
    ClientPlan {
        remote,
        server_name: String::new(),
        quic: quic(),
        runtime,
        interval_ns: 1_000_000_000,
        logs: None,
        session: None,
    }
}

/// An honest client gets its first byte.
fn is_served(server: &Server) -> bool {
    let plan = client(server.address(), None);
    let report = run_client(&plan, &mut |_| (), &Cancel::default()).unwrap();
    report.first_byte_ns.is_some()
}

/// How a server answers on a stream that has a request.
type Answer = fn(&SharedConnection, StreamId);

/// The address of a server that answers like this. It runs until the sender is dropped.
fn serve_oddly(answer: Answer) -> (SocketAddr, Sender<()>) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let (stop, stopped) = channel::<()>();
    thread::spawn(move || {
        let tls = Arc::new(server_tls(&make_identity().unwrap(), &[], Vec::new()).unwrap());
        let settings = Settings::default();
        let side = ServerSide::new(tls, &settings, Extras::default()).unwrap();
        let mut endpoint = Endpoint::over(Arc::new(socket), &settings, Some(&side)).unwrap();
        while stopped.try_recv() == Err(TryRecvError::Empty) {
            endpoint.send_out().unwrap();
            endpoint.wait(Duration::from_millis(20), None).unwrap();
            endpoint.take_in().unwrap();
            while let Some((link, event)) = endpoint.poll_event() {
                let connection = endpoint.connection(link).cloned();
                if let (Event::StreamsOpened(Dir::Bi), Some(connection)) = (event, connection) {
                    let id = connection.borrow_mut().accept_stream(Dir::Bi).unwrap();
                    answer(&connection, id);
                }
            }
        }
    });
    (address, stop)
}

struct Odd {
    endpoint: Endpoint,
    connection: SharedConnection,
    link: Link,
}

impl Odd {
    /// A connection that stands, of a client that offers this application protocol.
    fn connect(server: SocketAddr, protocol: &[u8]) -> Self {
        let protocols = Some(protocol.to_vec()).filter(|name| !name.is_empty());
        let tls = client_tls(|_| Ok(Trusts::Unread), &[], protocols.into_iter().collect()).unwrap();
        let settings = Settings::default();
        let client = ClientSide::new(Arc::new(tls), &settings, Extras::default()).unwrap();
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None);
        let mut endpoint = Endpoint::over(Arc::new(socket.unwrap()), &settings, None).unwrap();
        let link = endpoint.connect(0, server, "linerate", &client).unwrap();
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
        let mut odd = Odd::connect(server.address(), protocol);
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
    let mut odd = Odd::connect(server.address(), b"");
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
    let mut odd = Odd::connect(server.address(), b"");
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

#[test]
fn a_stream_that_the_server_ends_before_the_run_time_is_a_loss() {
    let finish: Answer = |connection, id| {
        let mut connection = connection.borrow_mut();
        connection.send(id, &[b'X'; 1_000]).unwrap();
        connection.finish(id).unwrap();
    };
    let reset: Answer = |connection, id| connection.borrow_mut().reset(id, 7);
    let long = Some(Duration::from_secs(25));
    for (answer, runtime, bytes, why) in [
        (finish, long, 1_000, Some("the server ended its stream")),
        (reset, long, 0, Some("the server reset its stream with code 7")),
        (finish, None, 1_000, None),
    ] {
        let (address, _stop) = serve_oddly(answer);
        let (begun, mut resets) = (Instant::now(), 0);
        let mut tell =
            |event: ClientEvent| resets += usize::from(event == ClientEvent::Reset { code: 7 });
        let report = run_client(&client(address, runtime), &mut tell, &Cancel::default()).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20), "it waited for more");
        assert_eq!(report.lost, why.map(|why| Lost::Stream(why.to_owned())));
        assert_eq!(report.total.bytes, bytes);
        assert_eq!(resets, usize::from(bytes == 0));
        // Without a first byte nothing was measured.
        assert_eq!(report.own.cpu.is_some(), bytes > 0);
    }
}

#[test]
fn events_that_must_be_told_wait_for_room_and_others_are_counted() {
    let (sender, receiver) = sync_channel(2);
    let mut teller = Teller::new(sender);
    assert!(teller.tell(1) && teller.tell(2) && !teller.tell(3));
    teller.tell_in_any_case(4);
    teller.tell_dropped(|count| 100 + count);
    assert_eq!(receiver.recv(), Ok(1));
    assert!(!teller.tell(5), "an older one takes the room");
    assert_eq!((receiver.recv(), receiver.recv()), (Ok(2), Ok(4)));
    teller.tell_dropped(|count| 100 + count);
    teller.tell_dropped(|count| 100 + count);
    assert!(teller.tell(6) && !teller.tell(7));
    teller.tell_in_any_case(8);
    assert_eq!((receiver.recv(), receiver.recv()), (Ok(102), Ok(6)));
    assert!(receiver.try_recv().is_err());
    assert_eq!(teller.into_rest(|count| 100 + count), [8, 101]);
}

#[test]
fn a_server_that_can_t_go_on_tells_the_end_of_its_connections_also_to_a_slow_reader() {
    for room in [1, 1_000] {
        let plan = server_plan();
        let (socket, stop) = (plan.socket().unwrap(), Arc::new(AtomicBool::new(false)));
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let (sender, events) = sync_channel(room);
        let stops = Arc::clone(&stop);
        let server = thread::spawn(move || {
            let (side, files) = plan.side().unwrap();
            let endpoint = plan.endpoint(socket, &side).unwrap();
            let mut worker = Worker::new(endpoint, plan.interval_ns, files, Teller::new(sender));
            worker.serve(&stops).unwrap();
            worker.finish(Err(std::io::Error::other("no more")))
        });
        let mut odd = Odd::connect(address, b"");
        let id = odd.connection.borrow_mut().open_stream(Dir::Bi).unwrap();
        odd.connection.borrow_mut().send(id, b"anything").unwrap();
        odd.connection.borrow_mut().finish(id).unwrap();
        odd.until(|_, event| *event == Event::Readable(id));
        stop.store(true, Ordering::Relaxed);
        let rest = server.join().unwrap();
        let told: Vec<ServerEvent> = events.try_iter().chain(rest).collect();
        let why = "the server can't go on: no more".to_owned();
        let [ServerEvent::Accepted { number: 0, .. }, .., last] = &told[..] else {
            panic!("{told:?}")
        };
        let ended = told.iter().find_map(|event| match event {
            ServerEvent::Closed { number: 0, close, .. } => Some(close.clone()),
            _ => None,
        });
        assert_eq!(ended, Some(Close::Other(why)), "{told:?}");
        assert!(told.contains(&ServerEvent::Broken("no more".to_owned())), "{told:?}");
        assert_eq!(matches!(last, ServerEvent::Dropped(_)), room == 1, "{told:?}");
    }
}
