//! A test whose connections are cut at a byte of its conversation: both ends hear of it, say so, and the
//! server goes on.

use crate::skipped::skip;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use linerate::personality::iperf3::sum::streams;
use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{Event, Report, ServePlan, run};
use linerate_wire::iperf3::{Code, Parameters, Protocol};

use super::load::{Keeper, Running, plan};

/// Longer than a test takes whose connections were cut, on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

/// What a relay does to the control connection, and has seen of it. Other connections go with it.
pub(crate) struct Relay {
    /// In the direction to the server (0) or from it (1), so many bytes pass.
    cut: Option<(usize, usize)>,
    passed: [AtomicUsize; 2],
    pub(crate) is_over: AtomicBool,
    sockets: Mutex<Vec<TcpStream>>,
}

impl Relay {
    pub(crate) fn new(cut: Option<(usize, usize)>) -> Self {
        let passed = [AtomicUsize::new(0), AtomicUsize::new(0)];
        Self { cut, passed, is_over: AtomicBool::new(false), sockets: Mutex::default() }
    }

    /// Passes on what comes, until it is over.
    pub(crate) fn run<'scope>(
        &'scope self,
        listener: &'scope TcpListener,
        server: u16,
        scope: &'scope Scope<'scope, '_>,
    ) {
        listener.set_nonblocking(true).unwrap();
        let mut is_control = true;
        while !self.is_over.load(Ordering::SeqCst) {
            let Ok((client, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            client.set_nonblocking(false).unwrap();
            let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            for socket in [&client, &server] {
                socket.set_nodelay(true).unwrap();
                self.lock().push(socket.try_clone().unwrap());
            }
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let watched = is_control;
            scope.spawn(move || self.pass(client, server, watched.then_some(0)));
            scope.spawn(move || self.pass(back.0, back.1, watched.then_some(1)));
            is_control = false;
        }
        self.end();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends everything.
    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        for socket in self.lock().iter() {
            let _gone = socket.shutdown(Shutdown::Both);
        }
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream, way: Option<usize>) {
        let most = self.cut.filter(|cut| way == Some(cut.0)).map_or(usize::MAX, |cut| cut.1);
        let mut bytes = vec![0; 64 << 10];
        let mut passed = 0;
        while passed < most {
            let room = bytes.len().min(most - passed);
            let Ok(length) = from.read(&mut bytes[..room]) else { break };
            if length == 0 || to.write_all(&bytes[..length]).is_err() {
                break;
            }
            passed += length;
            if let Some(way) = way {
                self.passed[way].store(passed, Ordering::SeqCst);
            }
        }
        if passed >= most {
            self.end();
        }
        let _gone = to.shutdown(Shutdown::Write);
    }
}

/// What came of a test through a relay.
struct Outcome {
    result: Result<Report, Code>,
    events: Vec<Event>,
    /// Bytes of the control connection to the server and from it.
    passed: [usize; 2],
}

fn test_through(server: u16, cut: Option<(usize, usize)>, parameters: Parameters) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = plan("127.0.0.1", listener.local_addr().unwrap().port(), parameters);
    let relay = Relay::new(cut);
    let (tell, told) = std::sync::mpsc::channel();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| relay.run(&listener, server, scope));
        let result = run(&plan, &mut Keeper(tell), &Cancel::default());
        relay.is_over.store(true, Ordering::SeqCst);
        result
    });
    let passed = [0, 1].map(|way| relay.passed[way].load(Ordering::SeqCst));
    Outcome {
        result: result.map_err(|failure| failure.code),
        events: told.iter().collect(),
        passed,
    }
}

fn short(reverse: bool) -> Parameters {
    Parameters { time_s: 0, num_bytes: 1 << 20, reverse, ..Parameters::default() }
}

/// Where to cut a conversation of so many bytes: at every byte of its ends, where the states change,
/// and at some within its documents.
fn places(length: usize) -> impl Iterator<Item = usize> {
    (0..length).filter(move |at| *at < 6 || length - at < 3 || at % 53 == 37)
}

#[test]
fn a_connection_that_is_cut_anywhere_ends_the_test_at_both_ends() {
    let server = Running::start(ServePlan::default());
    for reverse in [false, true] {
        let whole = test_through(server.port, None, short(reverse));
        assert!(whole.result.is_ok(), "{:?}", whole.result);
        assert!(server.ended.recv_timeout(LIMIT).unwrap().is_none());
        for way in 0..2 {
            for at in places(whole.passed[way]) {
                let start = Instant::now();
                let cut = test_through(server.port, Some((way, at)), short(reverse));
                let place =
                    format!("reverse {reverse}, way {way}, byte {at} of {:?}", whole.passed);
                assert!(start.elapsed() < LIMIT, "{place}: {:?}", start.elapsed());
                // Where the whole result has come, the last words may be missing.
                let last_words = 2;
                let may_have_all = way == 0 || at + last_words >= whole.passed[way];
                let failed_as = cut.result.err();
                assert!(failed_as.is_some() || may_have_all, "{place}");
                // With less than a cookie, there is no test at the server; with nothing from it, perhaps.
                if way == 0 && at < 37 {
                    continue;
                }
                if way == 1 && at == 0 {
                    let _perhaps = server.ended.recv_timeout(Duration::from_secs(1));
                    continue;
                }
                let served = server.ended.recv_timeout(LIMIT);
                assert!(served.is_ok(), "{place}: the server still serves it, {failed_as:?}");
            }
        }
    }
    let after = run(&plan("127.0.0.1", server.port, short(false)), &mut (), &Cancel::default());
    assert!(after.is_ok(), "{after:?}");
}

/// What the ends warn of.
fn warnings(events: &[Event]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| match event {
        Event::Warning(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn streams_go_over_mptcp_where_both_ends_speak_it() {
    let server = Running::start(ServePlan::default());
    let enabled = std::fs::read_to_string("/proc/sys/net/mptcp/enabled").unwrap_or_default();
    if enabled.trim() != "1" {
        skip("this kernel has no MPTCP");
        let asked = Parameters { mptcp: true, ..short(false) };
        let refused = run(&plan("127.0.0.1", server.port, asked), &mut (), &Cancel::default());
        assert_eq!(refused.unwrap_err().code, Code::STREAM_CONNECT);
        return;
    }
    for (reverse, parallel) in [(false, 1), (false, 3), (true, 1), (true, 3)] {
        let asked = Parameters { mptcp: true, parallel, ..short(reverse) };
        let (tell, told) = std::sync::mpsc::channel();
        let plan = plan("127.0.0.1", server.port, asked.clone());
        let report = run(&plan, &mut Keeper(tell), &Cancel::default()).unwrap();
        let received: u64 = streams(&report).map(|stream| stream.receiver().unwrap().bytes).sum();
        assert!(received >= 1 << 20 && (reverse || received == 1 << 20), "{report:?}");
        assert!(warnings(&told.iter().collect::<Vec<_>>()).is_empty());
        // Where something between them speaks TCP alone, both go on and say so.
        let through = test_through(server.port, None, asked);
        assert!(through.result.is_ok(), "{:?}", through.result);
        let said = warnings(&through.events);
        let wanted = format!("{parallel} of {parallel} streams are plain TCP");
        assert!(said.len() == 1 && said[0].starts_with(&wanted), "{said:?}");
    }
    // Datagrams have one path.
    let datagrams = Parameters {
        protocol: Protocol::Udp,
        mptcp: true,
        block_bytes: 1000,
        bandwidth_bps: 100_000_000,
        ..short(false)
    };
    run(&plan("127.0.0.1", server.port, datagrams), &mut (), &Cancel::default()).unwrap();
}
