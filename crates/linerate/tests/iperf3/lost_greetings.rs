//! Streams of datagrams whose greetings, or the answers to them, the network loses.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate::personality::iperf3::sum::streams;
use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{Report, ServePlan, run};
use linerate_wire::iperf3::datagram::{
    ANSWER, Header, Word, answer_again, greeting_again, is_answer,
};
use linerate_wire::iperf3::{Parameters, Protocol};

use super::cuts::Relay;
use super::hostile_peers::{agree, control_connection, message, read};
use super::load::{Running, plan};
use super::programs::{Program, has_original, serve};

/// How much each stream may take to begin: what was lost is said again after half a second, one and two, or answered
/// unasked after two, and a busy machine is late with all of it.
const MOST_OF_STREAM: Duration = Duration::from_secs(7);
const BLOCK_BYTES: u32 = 1000;

/// What is lost of a stream's beginning.
#[derive(Clone, Copy, PartialEq)]
enum Loss {
    /// Nothing, but the greeting comes again as if it were.
    Nothing,
    FirstGreeting,
    FirstAnswer,
    EveryAnswer,
}

/// A stream on its way through the relay.
struct Path {
    server: UdpSocket,
    loss: Loss,
    greetings: usize,
    answers: usize,
}

impl Path {
    /// Whether a datagram of the client's passes.
    fn passes_up(&mut self, datagram: &[u8]) -> bool {
        let greets = Word::of(datagram).is_some();
        self.greetings += usize::from(greets);
        !greets || self.greetings > 1 || self.loss != Loss::FirstGreeting
    }

    /// Whether a datagram of the server's passes.
    fn passes_down(&mut self, datagram: &[u8]) -> bool {
        let answers = is_answer(datagram);
        self.answers += usize::from(answers);
        !answers
            || match self.loss {
                Loss::Nothing | Loss::FirstGreeting => true,
                Loss::FirstAnswer => self.answers > 1,
                Loss::EveryAnswer => false,
            }
    }
}

/// Passes datagrams on between clients of a port and a server, with these losses, stream by stream.
fn relay_datagrams(port: &UdpSocket, server: u16, losses: &[Loss], is_over: &AtomicBool) {
    port.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let mut paths: BTreeMap<SocketAddr, Path> = BTreeMap::new();
    let mut bytes = [0; 2048];
    while !is_over.load(Ordering::SeqCst) {
        match port.recv_from(&mut bytes) {
            Ok((length, client)) => {
                let index = paths.len();
                let path = paths.entry(client).or_insert_with(|| {
                    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                    socket.connect(("127.0.0.1", server)).unwrap();
                    socket.set_nonblocking(true).unwrap();
                    Path { server: socket, loss: losses[index], greetings: 0, answers: 0 }
                });
                if path.passes_up(&bytes[..length]) {
                    let _ended = path.server.send(&bytes[..length]);
                    if path.loss == Loss::Nothing && Word::of(&bytes[..length]).is_some() {
                        let _ended = path.server.send(&greeting_again(0, 1000));
                    }
                }
            }
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
            }
        }
        for (client, path) in &mut paths {
            while let Ok(length) = path.server.recv(&mut bytes) {
                if path.passes_down(&bytes[..length]) {
                    let _ended = port.send_to(&bytes[..length], client);
                }
            }
        }
    }
}

fn test_through_losses(server: u16, reverse: bool, losses: &[Loss]) -> Report {
    let (listener, port, number) = tcp_and_udp();
    let parameters = Parameters {
        protocol: Protocol::Udp,
        parallel: u32::try_from(losses.len()).unwrap(),
        block_bytes: BLOCK_BYTES,
        bandwidth_bps: 1_000_000,
        time_s: 1,
        reverse,
        ..Parameters::default()
    };
    let plan = plan("127.0.0.1", number, parameters);
    let relay = Relay::new(None);
    std::thread::scope(|scope| {
        scope.spawn(|| relay.run(&listener, server, scope));
        scope.spawn(|| relay_datagrams(&port, server, losses, &relay.is_over));
        let report = run(&plan, &mut (), &Cancel::default());
        relay.is_over.store(true, Ordering::SeqCst);
        report.unwrap()
    })
}

/// A test whose streams begin so brings everything, and no datagram counts as lost.
fn assert_costs_time_alone(server: u16, reverse: bool, losses: &[Loss]) -> Report {
    let start = Instant::now();
    let report = test_through_losses(server, reverse, losses);
    // A second of traffic; a greeting is given up after thirty.
    let most = Duration::from_secs(1) + MOST_OF_STREAM * u32::try_from(losses.len()).unwrap();
    assert!(start.elapsed() < most, "{:?}", start.elapsed());
    assert_eq!(streams(&report).count(), losses.len());
    for stream in streams(&report) {
        let (sent, received) = (stream.sender().unwrap(), stream.receiver().unwrap());
        let figures = received.datagrams.unwrap();
        let numbered_bytes = figures.packets * u64::from(BLOCK_BYTES);
        // An original may count a greeting that was said again.
        let in_order = numbered_bytes..=numbered_bytes + u64::from(BLOCK_BYTES);
        assert!(numbered_bytes > 0 && in_order.contains(&received.bytes), "{reverse} {received:?}");
        assert!(numbered_bytes <= sent.bytes, "{reverse} {sent:?} {received:?}");
        assert_eq!(figures.lost, Some(0), "{reverse} {figures:?}");
    }
    report
}

#[test]
fn lost_greetings_and_answers_cost_time_alone() {
    let server = Running::start(ServePlan::default());
    let losses = [Loss::Nothing, Loss::FirstGreeting, Loss::FirstAnswer, Loss::EveryAnswer];
    for reverse in [false, true] {
        for stream in streams(&assert_costs_time_alone(server.port, reverse, &losses)) {
            let figures = stream.receiver().unwrap().datagrams.unwrap();
            assert_eq!(figures.out_of_order, 0, "{reverse} {figures:?}");
            assert!(figures.jitter_ns < 1e9, "{reverse} {figures:?}");
        }
    }
}

#[test]
fn an_original_hears_greetings_that_are_said_again() {
    if !has_original() {
        return;
    }
    let losses = [Loss::FirstGreeting, Loss::Nothing];
    for reverse in [false, true] {
        let (mut server, port) = serve(Program::Original, "");
        assert_costs_time_alone(port, reverse, &losses);
        assert_eq!(server.wait(), 0);
    }
}

#[test]
fn a_client_that_never_asks_again_is_answered_again() {
    let server = Running::start(ServePlan::default());
    let (mut control, _) = control_connection(server.port, b'r');
    assert_eq!(read(&mut control, 1), [9]);
    control.write_all(&message("{\"udp\":true,\"time\":5,\"len\":100,\"parallel\":2}")).unwrap();
    assert_eq!(read(&mut control, 1), [10]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", server.port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.send(b"9876").unwrap();
    // Said again it is what an original can take for data.
    let again = answer_again(ANSWER, 100);
    for expected in [ANSWER.as_slice(), &again, &again] {
        let mut answer = [0; 200];
        let length = socket.recv(&mut answer).unwrap();
        assert_eq!(answer[..length], *expected);
    }
    // Its greetings have made one stream.
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    other.send_to(b"9876", ("127.0.0.1", server.port)).unwrap();
    assert_eq!(read(&mut control, 2), [1, 2]);
}

#[test]
fn data_of_another_test_is_no_answer_to_the_last_greeting() {
    let (listener, port, number) = tcp_and_udp();
    port.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let parameters =
        Parameters { protocol: Protocol::Udp, reverse: true, time_s: 1, ..Parameters::default() };
    let plan = plan("127.0.0.1", number, parameters);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| run(&plan, &mut (), &Cancel::default()));
        let control = agree(&listener);
        let mut greeting = [0; 32];
        for is_again in [false, true] {
            let (length, client) = port.recv_from(&mut greeting).unwrap();
            assert_eq!(Word::of(&greeting[..length]).unwrap().is_again, is_again);
            for number in 1000..2000 {
                let mut late = [0; 1000];
                Header { sent_ns: 0, number }.encode(false, &mut late);
                port.send_to(&late, client).unwrap();
            }
        }
        drop(control);
        client.join().unwrap().unwrap_err();
    });
}
use crate::both::tcp_and_udp;
