//! The engine's client against its server: every kind of test, and what both ends counted.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use linerate::personality::iperf3::sum::{Stream, streams};
use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{
    Event, Failure, Observer, Report, ServePlan, Server, ServerEvent, TestPlan, run,
};
use linerate_measure::dialect::EndExtension;
use linerate_wire::iperf3::results::ServerOutput;
use linerate_wire::iperf3::{Parameters, Protocol};
use rustix::io::Errno;

use crate::quiet::free_port;

/// A server that runs while the test does.
pub(crate) struct Running {
    pub(crate) port: u16,
    cancel: Cancel,
    thread: Option<std::thread::JoinHandle<Result<(), Failure>>>,
    /// What ended tests came to.
    pub(crate) ended: std::sync::mpsc::Receiver<Option<Failure>>,
}

impl Running {
    pub(crate) fn start(plan: ServePlan) -> Self {
        // Not one that the kernel picks for TCP: over UDP another test may have it.
        let server = loop {
            match Server::bind(&ServePlan { port: free_port(), ..plan.clone() }) {
                Ok(server) => break server,
                // A program that another test starts has a copy of the socket that found the port free, until it
                // has begun.
                Err(failure) if failure.system_error == Some(Errno::ADDRINUSE.raw_os_error()) => {}
                Err(failure) => panic!("{failure:?}"),
            }
        };
        let port = server.local_address().port();
        let (cancel, asked) = (Cancel::default(), Cancel::default());
        let (tell, ended) = channel();
        let cancelled = cancel.clone();
        drop(asked);
        let thread = std::thread::spawn(move || {
            let mut tell = |event: ServerEvent| {
                if let ServerEvent::TestEnded { failure, .. } = event {
                    let _nobody_asks = tell.send(failure);
                }
            };
            server.serve(&|_| Box::new(Printer), &mut tell, &cancelled)
        });
        Self { port, cancel, thread: Some(thread), ended }
    }

    /// Waits for a server that ends by itself.
    pub(crate) fn join(mut self) -> Result<(), Failure> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.request();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

struct Printer;

impl Observer for Printer {
    fn handle(&mut self, _event: &Event) {}

    fn server_output(&mut self) -> Option<ServerOutput> {
        Some(ServerOutput::Text("all that was printed\n".to_owned()))
    }
}

/// Keeps events.
pub(crate) struct Keeper(pub(crate) Sender<Event>);

impl Observer for Keeper {
    fn handle(&mut self, event: &Event) {
        self.0.send(event.clone()).unwrap();
    }
}

/// A client of a server here.
pub(crate) fn plan(host: &str, port: u16, parameters: Parameters) -> TestPlan {
    TestPlan { port, parameters, ..TestPlan::new(host) }
}

/// Makes a test; its report and its events.
fn test(plan: &TestPlan) -> (Report, Vec<Event>) {
    let (tell, told) = channel();
    let report = run(plan, &mut Keeper(tell), &Cancel::default()).unwrap();
    (report, told.try_iter().collect())
}

fn bytes(amount: u64) -> Parameters {
    Parameters { time_s: 0, num_bytes: amount, ..Parameters::default() }
}

fn udp(parameters: Parameters) -> Parameters {
    let bandwidth_bps = 40_000_000;
    Parameters { protocol: Protocol::Udp, block_bytes: 1400, bandwidth_bps, ..parameters }
}

/// What the receiving ends got of what the sending ends sent.
fn moved(report: &Report) -> (u64, u64) {
    let sent = streams(report).map(|stream| stream.sender().unwrap().bytes).sum();
    let received = streams(report).map(|stream| stream.receiver().unwrap().bytes).sum();
    (sent, received)
}

#[test]
fn server_receives_every_byte_sent() {
    let server = Running::start(ServePlan::default());
    let asked = 24 << 20;
    let common = Parameters { block_bytes: 64 << 10, ..bytes(asked) };
    for parameters in [
        common.clone(),
        Parameters { parallel: 3, ..common.clone() },
        Parameters { zero_copy: true, ..common.clone() },
        Parameters { skip_rx_copy: true, repeating_payload: true, ..common.clone() },
        Parameters { num_bytes: 0, block_count: asked / (64 << 10), ..common.clone() },
        Parameters { no_delay: true, window_bytes: Some(64 << 10), tos: 32, ..common.clone() },
    ] {
        let (report, _) = test(&plan("127.0.0.1", server.port, parameters.clone()));
        assert_eq!(moved(&report), (asked, asked), "{parameters:?}");
        let first = streams(&report).next().unwrap();
        assert!(first.local().seconds > 0.0 && first.remote().unwrap().seconds > 0.0);
    }
}

#[test]
fn an_amount_ends_a_reverse_test_when_it_has_come() {
    let server = Running::start(ServePlan::default());
    let asked = 16 << 20;
    for parallel in [1, 4] {
        let parameters = Parameters { reverse: true, parallel, ..bytes(asked) };
        let (report, _) = test(&plan("127.0.0.1", server.port, parameters));
        let (sent, received) = moved(&report);
        assert!(received >= asked && sent >= received, "{sent} {received}");
        assert!(streams(&report).all(|stream| !stream.sends()));
    }
}

#[test]
fn an_amount_both_ways_ends_when_one_direction_has_carried_it() {
    let server = Running::start(ServePlan::default());
    let asked = 48 << 20;
    let common = Parameters { bidirectional: true, block_bytes: 64 << 10, ..bytes(asked) };
    for parameters in [
        common.clone(),
        Parameters { parallel: 2, ..common.clone() },
        Parameters { num_bytes: 0, block_count: asked / (64 << 10), ..common.clone() },
    ] {
        let (report, _) = test(&plan("127.0.0.1", server.port, parameters.clone()));
        let of = |sends: bool| {
            let streams = streams(&report).filter(move |stream| stream.sends() == sends);
            streams.map(|stream| stream.local().bytes).sum::<u64>()
        };
        let (sent, received) = (of(true), of(false));
        assert!(sent == asked || received >= asked, "{sent} {received} {parameters:?}");
        assert!(sent <= asked, "{sent} {parameters:?}");
    }
}

#[test]
fn more_streams_than_the_originals_are_carried() {
    let server = Running::start(ServePlan::default());
    for base in [bytes(200 << 20), Parameters { reverse: true, ..bytes(200 << 20) }] {
        let parameters = Parameters { parallel: 200, block_bytes: 16 << 10, ..base };
        let (report, _) = test(&plan("127.0.0.1", server.port, parameters));
        assert_eq!(streams(&report).count(), 200);
        let (sent, received) = moved(&report);
        assert!(received >= 200 << 20 && sent >= received, "{sent} {received}");
    }
    let datagrams = udp(Parameters { parallel: 200, time_s: 1, ..Parameters::default() });
    let parameters = Parameters { bandwidth_bps: 500_000, ..datagrams };
    for reverse in [false, true] {
        let parameters = Parameters { reverse, ..parameters.clone() };
        let (report, _) = test(&plan("127.0.0.1", server.port, parameters));
        let carried = |stream: Stream<'_>| stream.receiver().unwrap().bytes > 10_000;
        assert!(streams(&report).all(carried), "{reverse}");
    }
}

#[test]
fn both_directions_carry_and_stand_in_their_order() {
    let server = Running::start(ServePlan::default());
    for base in [Parameters::default(), udp(Parameters::default())] {
        let parameters = Parameters {
            bidirectional: true,
            parallel: 2,
            time_s: 1,
            bandwidth_bps: 8_000_000,
            ..base
        };
        let (report, events) = test(&plan("::1", server.port, parameters));
        let flows: Vec<u32> = report.own.flows.iter().map(|flow| flow.flow).collect();
        assert_eq!(flows, [0, 1, 2, 3]);
        let sends: Vec<bool> = streams(&report).map(|stream| stream.sends()).collect();
        assert_eq!(sends, [true, true, false, false]);
        for stream in streams(&report) {
            assert!(stream.receiver().unwrap().bytes > 100_000, "{stream:?}");
        }
        assert!(matches!(events[0], Event::Connected(_)) && matches!(events[1], Event::Started(_)));
        assert!(matches!(events.last(), Some(Event::Ended(_))));
    }
}

#[test]
fn every_datagram_is_counted() {
    let server = Running::start(ServePlan::default());
    for (wide_counters, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
        let parameters = udp(Parameters { wide_counters, reverse, ..bytes(1_400_000) });
        let (report, _) = test(&plan("127.0.0.1", server.port, parameters));
        let stream = streams(&report).next().unwrap();
        let (sent, received) = (stream.sender().unwrap(), stream.receiver().unwrap());
        let (theirs, ours) = (sent.datagrams.unwrap(), received.datagrams.unwrap());
        let arrived = received.bytes / 1400;
        assert_eq!(arrived + u64::try_from(ours.lost.unwrap()).unwrap(), ours.packets, "{ours:?}");
        assert_eq!(ours.out_of_order, 0);
        assert!(theirs.packets >= ours.packets && ours.packets >= 990, "{theirs:?} {ours:?}");
        if !reverse {
            assert_eq!((theirs.packets, sent.bytes), (1000, 1_400_000));
        }
    }
}

#[test]
fn the_omitted_time_is_left_out_at_both_ends() {
    let server = Running::start(ServePlan::default());
    for base in [Parameters::default(), udp(Parameters::default())] {
        let rate = 16_000_000;
        let parameters = Parameters { omit_s: 1, time_s: 1, bandwidth_bps: rate, ..base };
        let mut plan = plan("127.0.0.1", server.port, parameters);
        plan.interval = Some(Duration::from_millis(500));
        let (report, events) = test(&plan);
        let stream = streams(&report).next().unwrap();
        for end in [stream.local(), stream.remote().unwrap()] {
            let per_s = end.bytes as f64 / end.seconds;
            assert!((1e6..3.2e6).contains(&per_s), "{end:?}");
            assert!(end.seconds < 1.9, "{end:?}");
        }
        let omitted: Vec<bool> = events
            .iter()
            .filter_map(|event| match event {
                Event::Sample(sample) => Some(sample.warm_up),
                _ => None,
            })
            .collect();
        assert!(omitted.first() == Some(&true) && omitted.last() == Some(&false), "{omitted:?}");
        assert!(omitted.is_sorted_by(|a, b| a >= b), "{omitted:?}");
    }
}

#[test]
fn a_file_arrives_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let content: Vec<u8> = (0..3_000_001_u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&from, &content).unwrap();
    let server = Running::start(ServePlan { file: Some(to.clone()), ..ServePlan::default() });
    let mut plan = plan("127.0.0.1", server.port, Parameters::default());
    plan.file = Some(from);
    let (report, _) = test(&plan);
    assert_eq!(moved(&report), (3_000_001, 3_000_001));
    assert!(std::fs::read(&to).unwrap() == content, "the file is another one");
}

#[test]
fn a_servers_output_and_its_figures_come_along() {
    let server = Running::start(ServePlan::default());
    let parameters = Parameters { get_server_output: true, ..bytes(1 << 20) };
    let (report, _) = test(&plan("127.0.0.1", server.port, parameters));
    let text = ServerOutput::Text("all that was printed\n".to_owned());
    assert_eq!(report.server_output, Some(text));
    let extension = report.peer.unwrap().extension;
    let Some(EndExtension::Iperf3(told)) = extension else { panic!("{extension:?}") };
    assert!(told.cpu_percent.is_some() && told.congestion.is_some());
}

#[test]
fn clients_are_served_at_the_same_time() {
    let server = Running::start(ServePlan::default());
    let kinds = [
        Parameters::default(),
        Parameters { reverse: true, ..Parameters::default() },
        udp(Parameters::default()),
        udp(Parameters { parallel: 4, ..Parameters::default() }),
        udp(Parameters { reverse: true, parallel: 2, ..Parameters::default() }),
        udp(Parameters { bidirectional: true, ..Parameters::default() }),
    ];
    std::thread::scope(|scope| {
        for parameters in kinds {
            let parameters = Parameters { time_s: 1, bandwidth_bps: 4_000_000, ..parameters };
            let plan = plan("127.0.0.1", server.port, parameters);
            scope.spawn(move || {
                let (report, _) = test(&plan);
                for stream in streams(&report) {
                    assert!(stream.receiver().unwrap().bytes > 50_000, "{plan:?} {stream:?}");
                }
            });
        }
    });
}
