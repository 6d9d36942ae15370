//! The client's conversation and its load, from the first byte to the last.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linerate_wire::Machine;
use linerate_wire::iperf3::client::{Client, ClientEvent};
use linerate_wire::iperf3::parameters::Offload;
use linerate_wire::iperf3::{Code, Cookie, Fault, Parameters, Protocol, Results};

use super::dial::{dial, interrupted};
use super::streams::Opener;
use crate::clock::{SECOND_NS, monotonic_ns, utc_ns};
use crate::control::random;
use crate::event::Cancel;
use crate::iperf3::control::{CLOSING_NS, Control, control, pump};
use crate::iperf3::running::{LOOK_NS, Running};
use crate::iperf3::streams::{Setup, Streams};
use crate::iperf3::tail::Late;
use crate::iperf3::{Event, Failure, Keepalive, Observer, Report, Role, TestPlan, sockets, token};
use crate::transport::MOST_SEGMENTS_OF_OLD;
use crate::waker::Waker;

/// The default block over TCP, and over UDP where the control connection tells no segment size.
const TCP_BLOCK_BYTES: u32 = 128 << 10;
const UDP_BLOCK_BYTES: u32 = 1460;
/// The largest block of datagrams.
const MOST_DATAGRAM_BYTES: u32 = 65_507;

/// A test at the client.
pub(super) struct Iperf3ClientTest<'a> {
    plan: &'a TestPlan,
    pub(super) observer: &'a mut dyn Observer,
    cancel: &'a Cancel,
    cookie: Cookie,
    control: Control<Client>,
    /// The control connection's segment size.
    mss_bytes: Option<u32>,
    waker: Arc<Waker>,
    running: Option<Running>,
    /// What this end counted, once nothing more is counted.
    totals: Option<(Results, Report)>,
    told: bool,
}

impl<'a> Iperf3ClientTest<'a> {
    /// Reaches the server.
    pub(super) fn connect(
        plan: &'a TestPlan,
        observer: &'a mut dyn Observer,
        cancel: &'a Cancel,
    ) -> Result<(Self, SocketAddr), Failure> {
        let (socket, address) = dial(plan, cancel)?;
        let failed = |error: io::Error| Failure::system(Code::CONNECT, &error);
        let host =
            |error: crate::error::Error| Failure::of(Code::INIT_TEST).because(error.to_string());
        let cookie = Cookie::of_random(random::<36>().map_err(host)?);
        let (local, remote) = sockets::addresses(&socket).map_err(failed)?;
        let machine = Client::new(cookie, monotonic_ns());
        let mut session = Self {
            plan,
            observer,
            cancel,
            cookie,
            control: control(machine, socket, plan.keepalive, plan.send_timeout)?,
            mss_bytes: None,
            waker: Arc::new(Waker::new().map_err(host)?),
            running: None,
            totals: None,
            told: false,
        };
        // The segment size is known when the other end's window is: behind the first bytes.
        session.pump()?;
        session.mss_bytes =
            session.control.channel().socket().tcp_mss().ok().filter(|mss| *mss > 0);
        session.observer.handle(&Event::Connected(Box::new(crate::iperf3::Control {
            role: Role::Client,
            local,
            remote,
            cookie,
            mss_bytes: session.mss_bytes,
            keepalive: plan.keepalive.map(Keepalive::completed),
            utc_ns: utc_ns(),
        })));
        Ok((session, address))
    }

    /// The whole test.
    pub(super) fn conduct(&mut self, address: SocketAddr) -> Result<Report, Failure> {
        self.require(&ClientEvent::ParametersWanted)?;
        let parameters = self.parameters()?;
        self.control.machine.send_parameters(&parameters);
        let wanted = self.require(&ClientEvent::StreamsWanted);
        wanted.map_err(|failure| with_likely_cause(failure, parameters.protocol))?;
        let (protocol, port) = (parameters.protocol, address.port());
        let opened = self.open_streams(parameters.clone(), address);
        let streams = opened.map_err(|failure| with_firewall(failure, protocol, port))?;
        let prepared = self.require(&ClientEvent::Prepare);
        prepared.map_err(|failure| with_firewall(failure, protocol, port))?;
        self.require(&ClientEvent::Go)?;
        let (interval, timeout) = (self.plan.interval, self.plan.receive_timeout);
        self.running = Some(Running::begin(streams, interval, timeout, self.observer));
        let ended_by_server = self.run_load()?;
        let stopped_ns = monotonic_ns();
        self.stop_load();
        self.control.machine.end_test(monotonic_ns());
        if !ended_by_server {
            self.require(&ClientEvent::ResultsWanted)?;
        }
        let late_s = monotonic_ns().saturating_sub(stopped_ns) as f64 / SECOND_NS as f64;
        let Some((own, mut report)) = self.totals.clone() else {
            return Err(Failure::of(Code::PACKAGE_RESULTS).because("this end counted nothing"));
        };
        self.control.machine.send_results(&own);
        match self.await_event()? {
            ClientEvent::Results(theirs) => {
                self.pump()?;
                let late = self.running.as_ref().map_or_else(Late::default, |running| {
                    Late::of(&running.streams, &own, &theirs, late_s)
                });
                if let Some(unknown) = report.add_peer(&theirs, &own, &parameters, &late) {
                    let detail = format!("the server's results lack stream {unknown}");
                    return Err(Failure::of(Code::STREAM_ID).because(detail));
                }
            }
            other => return Err(unexpected(other)),
        }
        self.told = true;
        self.observer.handle(&Event::Ended(Box::new(report.clone())));
        Ok(report)
    }

    /// What is asked for, with nothing left open.
    fn parameters(&mut self) -> Result<Parameters, Failure> {
        let mut parameters = self.plan.parameters.clone();
        let udp = parameters.protocol == Protocol::Udp;
        let mss = self.mss_bytes;
        if parameters.block_bytes == 0 {
            parameters.block_bytes = match mss {
                _ if !udp => TCP_BLOCK_BYTES,
                Some(mss) => mss.min(MOST_DATAGRAM_BYTES),
                None => UDP_BLOCK_BYTES,
            };
        }
        let block_bytes = parameters.block_bytes;
        if let Some(mss) = mss.filter(|mss| udp && block_bytes > *mss) {
            self.observer.handle(&Event::Warning(format!(
                "UDP block size {block_bytes} exceeds TCP MSS {mss}, may result in fragmentation / \
                 drops"
            )));
        }
        if parameters.offload.gso && parameters.offload.gso_datagram_bytes == 0 {
            parameters.offload = with_trains(parameters.offload, block_bytes);
        }
        if let Some(credentials) = &self.plan.credentials {
            let sealed = token::make_token(credentials, utc_ns())?;
            parameters.auth_token = Some(STANDARD.encode(sealed));
        }
        Ok(parameters)
    }

    fn open_streams(
        &mut self,
        parameters: Parameters,
        server: SocketAddr,
    ) -> Result<Streams, Failure> {
        let opener = Opener {
            plan: self.plan,
            parameters: &parameters,
            server,
            cookie: self.cookie,
            control: self.control.channel().socket(),
            cancel: self.cancel,
        };
        let opened = match opener.open() {
            Ok(Some(opened)) => opened,
            // What the server has said is the better reason, where it has said any.
            Ok(None) => return Err(self.await_failure()),
            Err(failure) => return Err(failure),
        };
        let setup = Setup {
            role: Role::Client,
            parameters,
            file: self.plan.file.clone(),
            affinity: self.plan.affinity,
        };
        self.control.machine.await_start(monotonic_ns());
        let streams = Streams::prepare(setup, opened, &self.waker)?;
        while !streams.load.all_ready() && !streams.load.any_ended() {
            self.control.wait(Some(&self.waker), &[], monotonic_ns() + LOOK_NS);
            self.pump()?;
            if self.cancel.requested() {
                return Err(self.terminate());
            }
        }
        Ok(streams)
    }

    /// Waits for what must come next.
    fn require(&mut self, expected: &ClientEvent) -> Result<(), Failure> {
        match self.await_event()? {
            event if event == *expected => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    fn await_event(&mut self) -> Result<ClientEvent, Failure> {
        loop {
            self.pump()?;
            if let Some(event) = self.control.machine.poll_event() {
                return Ok(event);
            }
            if self.cancel.requested() {
                return Err(self.terminate());
            }
            self.control.wait(Some(&self.waker), &[], monotonic_ns() + LOOK_NS);
        }
    }

    /// The reason that the control connection gives.
    fn await_failure(&mut self) -> Failure {
        match self.await_event() {
            Ok(event) => unexpected(event),
            Err(failure) => failure,
        }
    }

    /// Moves bytes between the connection and the machine.
    fn pump(&mut self) -> Result<(), Failure> {
        pump(&mut self.control)
    }

    /// Runs the load until its end; says whether the server ended it.
    fn run_load(&mut self) -> Result<bool, Failure> {
        loop {
            self.pump()?;
            match self.control.machine.poll_event() {
                None => {}
                Some(ClientEvent::ResultsWanted) => return Ok(true),
                Some(other) => return Err(unexpected(other)),
            }
            if self.cancel.requested() {
                return Err(self.terminate());
            }
            let Some(running) = &mut self.running else { return Ok(false) };
            let now_ns = monotonic_ns();
            if running.is_complete(now_ns) {
                return Ok(false);
            }
            running.tick(now_ns, self.observer);
            if let Some(failure) = running.failure(now_ns) {
                return Err(failure);
            }
            let until_ns = running.next_tick(now_ns);
            self.control.wait(Some(&self.waker), &[], until_ns);
        }
    }

    /// Stops the load and takes what this end counted.
    fn stop_load(&mut self) {
        let Some(running) = &mut self.running else { return };
        running.streams.drain();
        self.totals = Some(running.finish(&self.waker, self.observer));
    }

    /// Tells the server that the user wants to stop.
    fn terminate(&mut self) -> Failure {
        self.control.machine.terminate();
        // The server may be gone already.
        let _gone = self.pump();
        interrupted()
    }

    /// Tells the server that this end doesn't go on, where it doesn't know.
    pub(super) fn give_up(&mut self) {
        self.control.machine.give_up();
        // The server may be gone already.
        let _gone = self.pump();
    }

    /// What came out, where the test didn't come to its end.
    pub(super) fn report_so_far(&mut self) -> Option<Report> {
        if self.told {
            return None;
        }
        if self.totals.is_none() {
            self.stop_load();
        }
        self.totals.take().map(|(_, report)| report)
    }

    pub(super) fn close(mut self) {
        if let Some(running) = &mut self.running {
            running.streams.close();
        }
        self.control.close(CLOSING_NS);
    }
}

/// As many whole datagrams at once as every kernel takes: it is an original server that sends so many with one call, and
/// fails where its kernel takes fewer.
fn with_trains(offload: Offload, block_bytes: u32) -> Offload {
    let most = MOST_DATAGRAM_BYTES.checked_div(block_bytes).unwrap_or(0);
    let most = most.min(MOST_SEGMENTS_OF_OLD as u32);
    Offload { gso_datagram_bytes: block_bytes, gso_buffer_bytes: most * block_bytes, ..offload }
}

fn unexpected(event: ClientEvent) -> Failure {
    match event {
        ClientEvent::Failed(fault) => failure_of(fault),
        ClientEvent::ServerTerminated => Failure::of(Code::SERVER_TERMINATED),
        _ => Failure::of(Code::MESSAGE),
    }
}

fn failure_of(fault: Fault) -> Failure {
    match fault {
        Fault::Wrong(code) => match code {
            Code::RECEIVE_RESULTS => Failure::of(code).because("the server sent no valid results"),
            _ => Failure::of(code),
        },
        Fault::Peer(code, error) => Failure {
            system_error: Some(error).filter(|error| *error > 0),
            from_peer: true,
            ..Failure::of(code)
        },
        Fault::Silent { code, seconds } => {
            Failure::of(code).because(format!("the server sent nothing for {seconds} s"))
        }
    }
}

/// Why a server may say nothing for long when it has been asked for a test. The streams of one test over UDP have nothing to
/// tell them from another's but their address.
fn with_likely_cause(failure: Failure, protocol: Protocol) -> Failure {
    let Some(silence) = failure.detail.clone().filter(|_| protocol == Protocol::Udp) else {
        return failure;
    };
    failure.because(format!(
        "{silence} (another UDP test from this address may be opening its streams)"
    ))
}

/// Why a server may not get the streams of a test that it took.
fn with_firewall(failure: Failure, protocol: Protocol, port: u16) -> Failure {
    let has_reason = failure.detail.is_some() || failure.system_error.is_some();
    if has_reason || failure.code != Code::STREAM_ACCEPT {
        return failure;
    }
    let protocol = if protocol == Protocol::Udp { "UDP" } else { "TCP" };
    failure.because(format!(
        "the test's streams did not reach the server: does a firewall let {protocol} port {port} pass?"
    ))
}

#[test]
fn streams_that_a_server_did_not_get_may_have_met_a_firewall() {
    let failure = Failure { from_peer: true, ..Failure::of(Code::STREAM_ACCEPT) };
    let told = |failure: &Failure| with_firewall(failure.clone(), Protocol::Udp, 5201).detail;
    assert!(told(&failure).unwrap().ends_with("does a firewall let UDP port 5201 pass?"));
    assert_eq!(told(&Failure::of(Code::MESSAGE)), None);
    assert_eq!(told(&Failure { system_error: Some(24), ..failure }), None);
}

#[test]
fn a_silent_server_may_be_busy_with_other_streams_over_udp() {
    let told = |protocol| {
        let silent = failure_of(Fault::Silent { code: Code::RECEIVE_MESSAGE, seconds: 30 });
        with_likely_cause(silent, protocol).detail.unwrap()
    };
    assert_eq!(told(Protocol::Tcp), "the server sent nothing for 30 s");
    let udp = "the server sent nothing for 30 s (another UDP test from this address may be opening its \
         streams)";
    assert_eq!(told(Protocol::Udp), udp);
    let refused = Failure::of(Code::TOTAL_RATE);
    assert_eq!(with_likely_cause(refused, Protocol::Udp).detail, None);
}

#[test]
fn trains_are_of_whole_datagrams_and_no_longer_than_every_kernel_takes() {
    let trains = |block_bytes| {
        let offload = with_trains(Offload { gso: true, ..Offload::default() }, block_bytes);
        (offload.gso_datagram_bytes, offload.gso_buffer_bytes)
    };
    assert_eq!(trains(1400), (1400, 46 * 1400));
    assert_eq!(trains(1024), (1024, 63 * 1024));
    assert_eq!(trains(507), (507, 64 * 507));
    assert_eq!(trains(16), (16, 64 * 16));
    assert_eq!(trains(65_507), (65_507, 65_507));
}
