//! Clients and servers that wait for each other: between set-up and data (`-s`), for what is on its way, and for
//! results.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_engine::error::Error;
use linerate_engine::event::{Cancel, Sink};
use linerate_engine::netperf::{
    ControlPlan, Outcome, Pacing, TestEnd, TestKind, TestPlan, TestTransport, run,
};
use linerate_wire::netperf::message::Form;
use linerate_wire::netperf::omni;
use linerate_wire::netperf::test::{Length, Part, Request, Results, Setup, Transport};

use crate::server_process::{Ended, Netserver, value};
use crate::service::{PATIENCE, Raw, Service};

fn figure(ended: &Ended, name: &str) -> f64 {
    value(&ended.stdout, name).parse().unwrap()
}

#[test]
fn a_test_that_is_begun_late_has_its_whole_length() {
    let server = Netserver::start("");
    let figures = "ELAPSED_TIME,LOCAL_BYTES_SENT,LOCAL_BYTES_RECVD,REMOTE_BYTES_RECVD";
    std::thread::scope(|scope| {
        for test in [
            "TCP_STREAM -l 3 -s 4 -- -m 1000",
            "TCP_MAERTS -l 3 -s 4 --",
            "TCP_RR -l 3 -s 4 --",
            "TCP_CRR -l 3 -s 4 --",
            "TCP_CC -l 3 -s 4 --",
            "UDP_STREAM -l 3 -s 4 -- -m 1000",
            "UDP_RR -l 3 -s 4 --",
        ] {
            let server = &server;
            scope.spawn(move || {
                // Slow, so that none of them keeps the others from a processor.
                let words = format!("-P 0 -b 10 -w 10m -t {test} -k {figures}");
                let ended = server.netperf(&words);
                let told = format!("{test}: {}{}", ended.stdout, ended.stderr);
                assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{told}");
                let length: f64 = test.split_whitespace().nth(2).unwrap().parse().unwrap();
                let elapsed_s = figure(&ended, "ELAPSED_TIME");
                // The wait, which is longer, is no part of it.
                assert!((length * 0.9..length + 4.0).contains(&elapsed_s), "{told}");
                let bytes = ["LOCAL_BYTES_SENT", "LOCAL_BYTES_RECVD"].map(|n| figure(&ended, n));
                if !test.starts_with("TCP_CC") {
                    assert!(bytes[0] + bytes[1] > 0.0, "{told}");
                }
                if !test.starts_with("TCP_MAERTS") && !test.starts_with("TCP_CC") {
                    // All that was sent, but for what a busy machine drops.
                    let share = if test.starts_with("UDP_STREAM") { 0.5 } else { 0.9 };
                    let received = figure(&ended, "REMOTE_BYTES_RECVD");
                    assert!(received >= share * bytes[0] && received > 0.0, "{told}");
                }
            });
        }
    });
}

/// As of one behind a queue of seconds.
#[test]
fn arrivals_count_until_four_seconds_after_the_end_of_a_test() {
    let service = Service::start(None);
    let mut raw = Raw::connect(&service);
    let request =
        Request { length: Length::Seconds(1), ..Request::new(Part::Receive, Transport::Tcp) };
    let setup = omni::decode_setup(&raw.ask(&request)).unwrap();
    let mut data = TcpStream::connect(("127.0.0.1", setup.data_port)).unwrap();
    data.set_read_timeout(Some(PATIENCE)).unwrap();
    let (began, mut sent, mut sent_in_4_s) = (Instant::now(), 0, 0);
    while data.write_all(&[1; 100]).is_ok() {
        assert!(began.elapsed() < PATIENCE, "it is not cut");
        sent += 100;
        if began.elapsed() < Duration::from_secs(4) {
            sent_in_4_s = sent;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let results = omni::decode_results(&raw.next(), false);
    assert!((sent_in_4_s..=sent).contains(&results.bytes_received), "{results:?} of {sent}");
    assert!(results.elapsed_s.is_some_and(|elapsed_s| elapsed_s >= 4.0), "{results:?}");
}

#[test]
fn a_server_whose_clients_data_never_comes_says_so_four_seconds_after_the_length() {
    let service = Service::start(None);
    let mut asked = Vec::new();
    for (part, transport) in [
        (Part::Receive, Transport::Tcp),
        (Part::Send, Transport::Tcp),
        (Part::Answer, Transport::Tcp),
        (Part::AnswerOnce, Transport::Tcp),
        (Part::Accept, Transport::Tcp),
        (Part::Receive, Transport::Udp),
        (Part::Answer, Transport::Udp),
    ] {
        let began = Instant::now();
        let mut raw = Raw::connect(&service);
        let plain = Request::new(part, transport);
        let request =
            Request { length: Length::Seconds(1), request_bytes: 1, response_bytes: 1, ..plain };
        omni::decode_setup(&raw.ask(&request)).unwrap();
        asked.push((raw, began, part, transport));
    }
    for (mut raw, began, part, transport) in asked {
        let results = omni::decode_results(&raw.next(), false);
        let waited = began.elapsed();
        assert_eq!(results.bytes_received, 0, "{part:?} {transport:?}");
        let (least, most) = (Duration::from_secs(5), Duration::from_secs(20));
        assert!((least..most).contains(&waited), "{part:?} {transport:?}: {waited:?}");
    }
}

/// What a server does once it has answered.
#[derive(Clone, Copy)]
enum Then {
    /// It sends its results and closes.
    Ends,
    /// It closes.
    Closes,
    /// It says nothing more until the client has left, which is asked to stop when data has come.
    WaitsFromData,
    /// The same, when results are awaited.
    WaitsFromEnd,
    /// It is gone at once when it has sent data, and the client been asked to stop.
    DiesFromData,
    /// It sends its results when it has been told the end so many times.
    HearsAt(u32),
}

/// Where a test's data goes.
enum Data {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

impl Data {
    fn bind(transport: TestTransport) -> (Self, u16) {
        let local = "127.0.0.1:0";
        match transport {
            TestTransport::Tcp => {
                let listener = TcpListener::bind(local).unwrap();
                let port = listener.local_addr().unwrap().port();
                (Self::Tcp(listener), port)
            }
            TestTransport::Udp => {
                let socket = UdpSocket::bind(local).unwrap();
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                let port = socket.local_addr().unwrap().port();
                (Self::Udp(socket), port)
            }
        }
    }

    /// Until one with data has come.
    fn await_datagram(&self) {
        let Self::Udp(socket) = self else { panic!("data over UDP") };
        while socket.recv(&mut [0]).unwrap() == 0 {}
    }

    /// Until the end was told so many times; over TCP it is told once.
    fn await_ends(&self, mut ends: u32) {
        match self {
            Self::Tcp(listener) => {
                let mut stream = listener.accept().unwrap().0;
                std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
            }
            Self::Udp(socket) => {
                while ends > 0 {
                    ends -= u32::from(socket.recv(&mut [0]).unwrap() == 0);
                }
            }
        }
    }
}

/// A server of one test, whose client can be asked to stop.
fn serve(then: Then, transport: TestTransport, client: Cancel) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut control, _) = listener.accept().unwrap();
        control.set_read_timeout(Some(PATIENCE)).unwrap();
        control.read_exact(&mut vec![0; Form::Long.message_bytes()]).unwrap();
        let (data, data_port) = Data::bind(transport);
        let setup = Setup { data_port, ..Setup::default() };
        control.write_all(&omni::encode_setup(Form::Long, &setup).into_bytes()).unwrap();
        match then {
            Then::HearsAt(ends) => data.await_ends(ends),
            Then::WaitsFromData => data.await_datagram(),
            // More often than the load itself says it: results are awaited.
            Then::WaitsFromEnd => data.await_ends(5),
            Then::DiesFromData => {
                let Data::Tcp(listener) = &data else { panic!("data over TCP") };
                let mut stream = listener.accept().unwrap().0;
                stream.write_all(&[1; 1000]).unwrap();
                client.request();
                drop(control);
                // Its data goes on a while, as that of a process that is being ended.
                drop(stream.read(&mut [0]));
                return;
            }
            Then::Ends | Then::Closes => {}
        }
        match then {
            Then::Ends | Then::HearsAt(_) => {
                let results = omni::encode_results(Form::Long, &Results::default());
                control.write_all(&results.into_bytes()).unwrap();
            }
            Then::Closes | Then::DiesFromData => {}
            Then::WaitsFromData | Then::WaitsFromEnd => {
                client.request();
                drop(control.read(&mut [0]));
            }
        }
    });
    (port, thread)
}

fn test_against(then: Then, plan: &TestPlan, cancel: &Cancel) -> Result<Outcome, Error> {
    let (port, server) = serve(then, plan.transport, cancel.clone());
    let control = ControlPlan { host: "127.0.0.1".to_owned(), port, ..ControlPlan::default() };
    let outcome = run(&control, plan, &Sink::none(), cancel);
    server.join().unwrap();
    outcome
}

fn datagrams(wait_s: u32) -> TestPlan {
    let end = TestEnd::Seconds(1);
    TestPlan { end, wait_s, ..TestPlan::new(TestKind::Send, TestTransport::Udp) }
}

#[test]
fn a_server_that_has_ended_its_part_is_not_waited_for() {
    for (then, wanted) in [(Then::Ends, "wait for less than 1000 s"), (Then::Closes, "closed")] {
        let began = Instant::now();
        let error = test_against(then, &datagrams(1000), &Cancel::default()).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(began.elapsed() < PATIENCE / 2, "{error}");
    }
}

/// What this thread has used of the processors, of /proc/thread-self/stat (proc(5)).
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

#[test]
fn a_server_that_left_its_results_costs_no_processor_while_data_goes() {
    let plan = slow(TestTransport::Udp, TestEnd::Seconds(2));
    let before = processor_time();
    // Its port is closed by then, which ends no test.
    test_against(Then::Ends, &plan, &Cancel::default()).unwrap();
    let taken = processor_time() - before;
    assert!(taken < Duration::from_millis(500), "{taken:?}");
}

/// A send of 100 bytes every 10 ms.
fn slow(transport: TestTransport, end: TestEnd) -> TestPlan {
    let mut plan = TestPlan { end, ..TestPlan::new(TestKind::Send, transport) };
    plan.local.send_bytes = Some(100);
    plan.local.pacing = Some(Pacing { burst: 1, interval_us: 10_000 });
    plan
}

#[test]
fn interrupt_while_results_are_awaited_ends_the_test() {
    let plan = slow(TestTransport::Tcp, TestEnd::Seconds(1));
    let error = test_against(Then::WaitsFromEnd, &plan, &Cancel::default());
    let Err(Error::Unfinished(sentence)) = error else { panic!("{error:?}") };
    assert!(sentence.contains("before the netserver at 127.0.0.1 had sent"), "{sentence}");
}

#[test]
fn udp_sender_keeps_counts_when_the_end_marker_is_lost() {
    let both = [
        (Then::WaitsFromEnd, TestEnd::Seconds(1), false),
        (Then::WaitsFromData, TestEnd::Interrupt, true),
    ];
    let keeps = |then, end, interrupted| {
        let plan = slow(TestTransport::Udp, end);
        let outcome = test_against(then, &plan, &Cancel::default()).unwrap();
        assert_eq!((outcome.interrupted, outcome.server_told), (interrupted, false), "{end:?}");
        assert!(outcome.local().bytes_sent() > 0, "{outcome:?}");
        let note = "the client did not wait for the server: the server's figures are missing";
        let notes = &outcome.client.notes;
        assert!(notes.iter().any(|told| told == note), "{notes:?}");
    };
    std::thread::scope(|scope| {
        for (then, end, interrupted) in both {
            scope.spawn(move || keeps(then, end, interrupted));
        }
    });
}

#[test]
fn a_server_that_missed_the_end_of_datagrams_is_told_again() {
    // More often than the load itself says it.
    let plan = slow(TestTransport::Udp, TestEnd::Seconds(1));
    let outcome = test_against(Then::HearsAt(6), &plan, &Cancel::default()).unwrap();
    assert!(outcome.server_told && !outcome.interrupted, "{outcome:?}");
}

#[test]
fn interrupted_receiver_keeps_counts_when_the_server_dies_before_the_load() {
    let plan = TestPlan::new(TestKind::Receive, TestTransport::Tcp);
    let outcome = test_against(Then::DiesFromData, &plan, &Cancel::default()).unwrap();
    assert!(outcome.interrupted && !outcome.server_told, "{outcome:?}");
}
