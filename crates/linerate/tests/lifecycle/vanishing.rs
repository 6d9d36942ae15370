//! A client that vanishes, in whatever way and state, frees its slot and leaves nothing behind.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use rustix::process::Signal;

use crate::conversation::{Conversation, connect, connect_data, stream, tls_session, workload};
use crate::ends::Server;
use crate::resources::{Held, assert_idle};

/// So long at most may a client that is gone without a word keep its slot.
const LEASE: Duration = Duration::from_secs(5);
/// The kernel tells at once that a client is gone; the rest is the machine being busy.
const AT_ONCE: Duration = Duration::from_secs(2);

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As a process that is killed.
    Closed,
    /// As one that is killed with unread bytes.
    Reset,
    /// It only stops sending.
    HalfClosed,
    /// As one whose cable is cut: nothing comes any more.
    Silent,
}

/// The connections of a client made by hand.
type Connections = Vec<Box<dyn AsSocket>>;

trait AsSocket {
    fn socket(&self) -> &TcpStream;
}

impl AsSocket for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl AsSocket for Conversation {
    fn socket(&self) -> &TcpStream {
        Conversation::socket(self)
    }
}

/// Leads a client at this port to a state.
type Reach = fn(u16) -> Connections;

/// The states of the protocol before a load runs.
const STATES: [(&str, Reach); 9] = [
    ("connected", |port| vec![Box::new(connect(port))]),
    ("half a TLS greeting", |port| {
        let mut socket = connect(port);
        socket.write_all(&half_a_greeting(&[b"linerate"])).unwrap();
        vec![Box::new(socket)]
    }),
    ("half an opening", |port| {
        let mut socket = connect(port);
        socket.write_all(b"LRD1\0\0\0\0half").unwrap();
        vec![Box::new(socket)]
    }),
    ("TLS agreed", |port| vec![Box::new(Conversation::connect(port))]),
    ("greeted", |port| {
        let mut conversation = Conversation::connect(port);
        conversation.greet();
        vec![Box::new(conversation)]
    }),
    ("admitted", |port| vec![Box::new(admitted(port, "tcp", 1).0)]),
    ("flows half open", |port| {
        let (conversation, token) = admitted(port, "tcp", 4);
        let mut begun = connect(port);
        begun.write_all(b"LRD1\0\0\0\x02").unwrap();
        let flows = [connect_data(port, 0, token), connect_data(port, 1, token), begun];
        let mut all: Connections = vec![Box::new(conversation)];
        all.extend(flows.map(|flow| Box::new(flow) as Box<dyn AsSocket>));
        all
    }),
    ("half a TLS greeting of a flow", |port| {
        let (conversation, token) = admitted(port, "tls", 2);
        let mut flow = connect_data(port, 1, token);
        flow.write_all(&half_a_greeting(&[])).unwrap();
        vec![Box::new(conversation), Box::new(connect_data(port, 0, token)), Box::new(flow)]
    }),
    ("ready", |port| {
        let (mut conversation, token) = admitted(port, "tcp", 1);
        let flow = connect_data(port, 0, token);
        assert_eq!(conversation.hear()["kind"], "ready");
        vec![Box::new(conversation), Box::new(flow)]
    }),
];

fn admitted(port: u16, transport: &str, flows: u32) -> (Conversation, [u8; 16]) {
    let mut conversation = Conversation::connect(port);
    conversation.greet();
    let token = conversation.ask(&workload(&stream("up"), transport, flows));
    (conversation, token)
}

fn half_a_greeting(protocols: &[&[u8]]) -> Vec<u8> {
    let mut greeting = Vec::new();
    tls_session(protocols).write_tls(&mut greeting).unwrap();
    greeting.truncate(greeting.len() / 2);
    greeting
}

/// Leaves; what is given back must be kept for as long as the client is to be gone.
fn leave(connections: Connections, way: Way) -> Connections {
    match way {
        Way::Silent => return connections,
        Way::Closed => {}
        Way::Reset => {
            for connection in &connections {
                set_socket_linger(connection.socket(), Some(Duration::ZERO)).unwrap();
            }
        }
        Way::HalfClosed => {
            for connection in &connections {
                connection.socket().shutdown(Shutdown::Write).unwrap();
            }
            return connections;
        }
    }
    Vec::new()
}

/// A test that begins when the slot must be free does run.
#[track_caller]
fn assert_next_test_runs(server: &Server, gone: Instant, patience: Duration, how: &str) {
    loop {
        let late = gone.elapsed() > patience;
        let ended = server.measure("rr --count 3");
        if ended.exit_code == Some(0) {
            return;
        }
        ended.document(5);
        assert!(!late, "{how}: the slot was taken after {patience:?}: {:?}", server.records());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_client_that_vanishes_before_its_load_leaves_nothing() {
    std::thread::scope(|scope| {
        for (state, reach) in STATES {
            scope.spawn(move || {
                let server = Server::start("--max-tests 1");
                let idle = Held::by_idle(&server);
                for way in [Way::Closed, Way::Reset, Way::HalfClosed, Way::Silent] {
                    let how = format!("{state}, {way:?}");
                    let connections = reach(server.port);
                    let (gone, left) = (Instant::now(), leave(connections, way));
                    let patience = if way == Way::Silent { LEASE } else { AT_ONCE };
                    assert_next_test_runs(&server, gone, patience, &how);
                    assert_idle(&server, idle, LEASE.saturating_sub(gone.elapsed()) + AT_ONCE);
                    drop(left);
                }
            });
        }
    });
}

#[test]
fn a_queued_client_that_vanishes_does_not_delay_others() {
    let server = Server::start("--max-tests 1");
    let idle = Held::by_idle(&server);
    let running = server.start_client("stream --time 30s --rate 10M");
    server.await_record("test_started");
    let mut waiting = Conversation::connect(server.port);
    waiting.greet();
    let plan = workload(&stream("up"), "tcp", 1).to_string();
    waiting.say(&serde_json::json!({ "kind": "request", "plan": plan, "exclusive": true }));
    let answer = waiting.hear();
    assert_eq!(answer["place"], 1, "{answer}");
    drop(waiting);
    running.signal(Signal::KILL);
    assert_next_test_runs(&server, Instant::now(), AT_ONCE, "gone from the queue");
    assert_idle(&server, idle, LEASE);
}

/// Loads that run when their client vanishes: each way, each transport, few flows and many.
const LOADS: [&str; 9] = [
    "stream --up --rate 100M",
    "stream --down --rate 100M",
    "stream --both --rate 50M --flows 3 --threads 2",
    "stream --down --tls --rate 100M",
    "stream --up --tls --flows 3 --threads 1 --rate 50M",
    "stream --down --udp --rate 20M",
    "stream --both --udp --rate 20M",
    "rr",
    "rr --udp --flows 3",
];

#[test]
fn a_client_killed_under_load_leaves_nothing() {
    std::thread::scope(|scope| {
        for load in LOADS {
            scope.spawn(move || {
                let server = Server::start("--max-tests 1");
                let idle = Held::by_idle(&server);
                let client = server.start_client(&format!("{load} --time 30s"));
                server.await_record("test_started");
                std::thread::sleep(Duration::from_millis(400));
                client.signal(Signal::KILL);
                assert_next_test_runs(&server, Instant::now(), AT_ONCE, load);
                assert_idle(&server, idle, LEASE);
            });
        }
    });
}

#[test]
fn a_stopped_client_loses_its_slot_and_says_so_when_it_goes_on() {
    std::thread::scope(|scope| {
        for load in LOADS {
            scope.spawn(move || {
                let server = Server::start("--max-tests 1");
                let idle = Held::by_idle(&server);
                let client = server.start_client(&format!("{load} --time 30s --interval 100ms"));
                server.await_record("test_started");
                std::thread::sleep(Duration::from_millis(800));
                client.signal(Signal::STOP);
                let stopped = Instant::now();
                assert_next_test_runs(&server, stopped, LEASE, load);
                assert_idle(&server, idle, AT_ONCE);
                client.signal(Signal::CONT);
                let document = client.finish_within(LEASE).document(1);
                assert_eq!(document.outcome(), "failed", "{load}");
                assert!(
                    document.message().contains("sent nothing for 4 s"),
                    "{}",
                    document.message()
                );
                assert!(!document.samples("client").is_empty(), "{load}");
                document.report("client");
            });
        }
    });
}
