//! A test's conversation and its load at the server.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_wire::Machine;
use linerate_wire::iperf3::server::{Server, ServerEvent as Said};
use linerate_wire::iperf3::{Code, Fault, Parameters, Protocol, Results};
use socket2::Socket;

use super::acceptor::Notice;
use super::awaited::{Awaited, EACH_NS, MOST_NS, STREAM_NS, opening_limit_ns};
use super::listener::Beginning;
use super::test::{Arrival, Test};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::iperf3::control::{CLOSING_NS, Control, pump};
use crate::iperf3::descriptors::Reserved;
use crate::iperf3::running::{LOOK_NS, Running};
use crate::iperf3::streams::{Setup, Streams};
use crate::iperf3::tail::Late;
use crate::iperf3::tail::TAIL_LOOK_NS;
use crate::iperf3::{Event, Failure, Report, Role, repeats, sockets};

/// How long a test may take beyond its time before the server ends it; the original's value.
const GRACE_NS: u64 = 40 * SECOND_NS;

/// How many times as long as a client that asks again an answer waits that is said again unasked: an original that
/// was only slow takes it for data.
const UNASKED_WAITS: u64 = 4;

/// A test at the server.
pub(super) struct Conversation {
    test: Test,
    control: Control<Server>,
    addresses: (SocketAddr, SocketAddr),
    running: Option<Running>,
    /// Has the descriptors of its streams set aside.
    awaited: Option<Arc<Awaited>>,
    told: bool,
    /// Whether the client has left in order, before the end.
    left: bool,
}

impl Conversation {
    pub(super) fn new(
        test: Test,
        control: Control<Server>,
        addresses: (SocketAddr, SocketAddr),
    ) -> Self {
        Self { test, control, addresses, running: None, awaited: None, told: false, left: false }
    }

    /// The whole test, as far as the client wants it.
    pub(super) fn conduct(&mut self) -> Result<(), Failure> {
        let outcome = self.conduct_whole();
        if self.left { Ok(()) } else { outcome }
    }

    fn conduct_whole(&mut self) -> Result<(), Failure> {
        let parameters = match self.await_said()? {
            Said::Asked(parameters) => *parameters,
            other => return Err(self.unexpected(other)),
        };
        self.test.observer.handle(&Event::Asked(Box::new(parameters.clone())));
        let reserved = self.test.admit(&parameters)?;
        let streams = self.open_streams(parameters, reserved)?;
        self.control.machine.start();
        self.pump()?;
        let (interval, timeout) = (self.test.plan.interval, self.test.plan.receive_timeout);
        let observer = &mut *self.test.observer;
        self.running = Some(Running::begin(streams, interval, timeout, observer));
        self.run_load()?;
        if let Some(running) = &mut self.running {
            running.streams.stop_sending();
        }
        self.control.machine.exchange_results(monotonic_ns());
        let theirs = match self.await_said()? {
            Said::Results(theirs) => *theirs,
            other => return Err(self.unexpected(other)),
        };
        self.await_tail(&theirs)?;
        let Some((mut results, report)) = self.stop_load() else {
            return Err(Failure::of(Code::PACKAGE_RESULTS).because("this end counted nothing"));
        };
        self.tell(report, Some((&theirs, &results)));
        if self.wants_output() {
            results.server_output = self.test.observer.server_output();
        }
        self.control.machine.send_results(monotonic_ns(), &results);
        match self.await_said()? {
            Said::Done => Ok(()),
            other => Err(self.unexpected(other)),
        }
    }

    fn wants_output(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.streams.setup.parameters.get_server_output)
    }

    /// Receives the client's streams.
    fn open_streams(
        &mut self,
        parameters: Parameters,
        reserved: Reserved,
    ) -> Result<Streams, Failure> {
        let total = parameters.total_streams();
        let awaited = Arc::new(Awaited::new(total, reserved));
        self.awaited = Some(Arc::clone(&awaited));
        self.test.tell(if parameters.protocol == Protocol::Udp {
            let unasked_ns =
                UNASKED_WAITS * repeats::wait_ns(self.control.channel().socket().as_fd());
            let block_bytes = parameters.block_bytes as usize;
            Notice::Claim(self.test.claim(self.addresses, awaited, unasked_ns, block_bytes))
        } else {
            Notice::Await(self.test.number, Beginning::of(&parameters), awaited)
        });
        self.await_turn()?;
        self.control.machine.create_streams();
        let opened = self.receive_streams(&parameters, total)?;
        // A test that has its streams is never displaced.
        self.test.slot.note(None);
        self.test.tell(Notice::Complete(self.test.number));
        let setup = Setup {
            role: Role::Server,
            affinity: parameters.server_affinity.or(self.test.plan.affinity),
            parameters,
            file: self.test.plan.file.clone(),
        };
        let streams = Streams::prepare(setup, opened, &self.test.waker)?;
        while !streams.load.all_ready() && !streams.load.any_ended() {
            self.control.wait(Some(&self.test.waker), &[], monotonic_ns() + LOOK_NS);
            self.check()?;
        }
        Ok(streams)
    }

    /// Takes the streams as they come. Announced streams that don't come don't prolong the wait.
    fn receive_streams(
        &mut self,
        parameters: &Parameters,
        total: usize,
    ) -> Result<Vec<Socket>, Failure> {
        let began_ns = monotonic_ns();
        let mut last_ns = began_ns;
        let mut opened = Vec::new();
        let (each_ns, absent) = match parameters.protocol {
            // A greeting or its answer may be lost.
            Protocol::Udp => (
                repeats::wait_ns(self.control.channel().socket().as_fd()),
                "they did not come (does a firewall let UDP pass?)",
            ),
            _ => (EACH_NS, "they did not come"),
        };
        while opened.len() < total {
            let deadline_ns = began_ns.saturating_add(opening_limit_ns(opened.len(), each_ns));
            match self.await_arrival(deadline_ns.min(last_ns + STREAM_NS), absent)? {
                Arrival::Stream(socket) => {
                    self.set_options(&socket, parameters)?;
                    opened.push(socket);
                    last_ns = monotonic_ns();
                }
                Arrival::Turn => {}
                Arrival::Failed(failure) => return Err(failure),
            }
        }
        Ok(opened)
    }

    /// Waits until the client may make streams.
    fn await_turn(&mut self) -> Result<(), Failure> {
        let deadline_ns = monotonic_ns().saturating_add(MOST_NS);
        match self
            .await_arrival(deadline_ns, "other tests from its address were opening their streams")?
        {
            Arrival::Failed(failure) => Err(failure),
            Arrival::Turn | Arrival::Stream(_) => Ok(()),
        }
    }

    fn set_options(&mut self, socket: &Socket, parameters: &Parameters) -> Result<(), Failure> {
        sockets::set_options(socket, self.addresses.1, parameters)?;
        if parameters.protocol == Protocol::Udp {
            return Ok(());
        }
        if let Err(error) = sockets::set_congestion(socket, parameters) {
            // Where the algorithm is unknown here, the test goes on with this machine's.
            let name = parameters.congestion.as_deref().unwrap_or_default();
            self.test.observer.handle(&Event::Warning(format!(
                "unable to set congestion control {name} ({error}): this host's default is used"
            )));
        }
        let timeout = self.test.plan.send_timeout;
        if timeout.is_some() {
            socket
                .set_tcp_user_timeout(timeout)
                .map_err(|error| Failure::system(Code::USER_TIMEOUT, &error))?;
        }
        Ok(())
    }

    fn await_arrival(&mut self, deadline_ns: u64, otherwise: &str) -> Result<Arrival, Failure> {
        loop {
            self.check()?;
            if let Ok(arrival) = self.test.arrivals.try_recv() {
                return Ok(arrival);
            }
            let now_ns = monotonic_ns();
            if now_ns >= deadline_ns {
                let detail = format!("no streams in time: {otherwise}");
                return Err(Failure::of(Code::STREAM_ACCEPT).because(detail));
            }
            self.control.wait(Some(&self.test.waker), &[], deadline_ns.min(now_ns + LOOK_NS));
        }
    }

    /// Nothing may be said now but that the client gives up.
    fn check(&mut self) -> Result<(), Failure> {
        self.pump()?;
        match self.control.machine.poll_event() {
            None => self.check_cancel(),
            Some(said) => Err(self.unexpected(said)),
        }
    }

    /// The client says what ends its test before the end.
    fn unexpected(&mut self, said: Said) -> Failure {
        self.left = said == Said::Left;
        failure_of(said)
    }

    fn check_cancel(&mut self) -> Result<(), Failure> {
        if self.test.cancel.requested() {
            let interrupted = Failure::of(Code::SERVER_TERMINATED);
            return Err(Failure { interrupted: true, ..interrupted });
        }
        if self.test.slot.must_go() && self.running.is_none() {
            return Err(Failure::of(Code::ACCESS_DENIED)
                .because("its streams did not come, and other clients needed the slot"));
        }
        Ok(())
    }

    /// What the client says next.
    fn await_said(&mut self) -> Result<Said, Failure> {
        loop {
            self.pump()?;
            if let Some(said) = self.control.machine.poll_event() {
                return Ok(said);
            }
            self.check_cancel()?;
            self.control.wait(Some(&self.test.waker), &[], monotonic_ns() + LOOK_NS);
        }
    }

    /// Moves bytes between the connection and the machine.
    fn pump(&mut self) -> Result<(), Failure> {
        pump(&mut self.control)
    }

    /// Runs the load until the client ends it.
    fn run_load(&mut self) -> Result<(), Failure> {
        let mut rate = (monotonic_ns(), 0);
        loop {
            self.pump()?;
            match self.control.machine.poll_event() {
                None => {}
                Some(Said::Ended) => return Ok(()),
                Some(said) => return Err(self.unexpected(said)),
            }
            self.check_cancel()?;
            let Some(running) = &mut self.running else { return Ok(()) };
            let now_ns = monotonic_ns();
            running.tick(now_ns, &mut *self.test.observer);
            if let Some(failure) = running.failure(now_ns) {
                return Err(failure);
            }
            let up_ns = running.time_is_up_ns().map(|up_ns| up_ns.saturating_add(GRACE_NS));
            if up_ns.is_some_and(|up_ns| now_ns >= up_ns) {
                let detail = "the client did not end its test in time";
                return Err(Failure::of(Code::DURATION_EXPIRED).because(detail));
            }
            let until_ns = running.next_tick(now_ns);
            self.check_rate(now_ns, &mut rate)?;
            self.control.wait(Some(&self.test.waker), &[], until_ns);
        }
    }

    /// Ends a test that carries more than the server lets it, on average since the last look.
    fn check_rate(&self, now_ns: u64, last: &mut (u64, u64)) -> Result<(), Failure> {
        let (Some(limit), Some(running)) = (self.test.plan.rate_limit, &self.running) else {
            return Ok(());
        };
        let elapsed_ns = u128::from(now_ns.saturating_sub(last.0));
        if elapsed_ns < limit.interval.as_nanos() || elapsed_ns == 0 {
            return Ok(());
        }
        let bytes = running.carried();
        let bits = u128::from(bytes.saturating_sub(last.1)) * 8;
        *last = (now_ns, bytes);
        if bits * u128::from(SECOND_NS) / elapsed_ns > u128::from(limit.bps) {
            return Err(Failure::of(Code::TOTAL_RATE));
        }
        Ok(())
    }

    /// Waits for what the client had sent when it ended the test.
    fn await_tail(&mut self, theirs: &Results) -> Result<(), Failure> {
        let since_ns = monotonic_ns();
        loop {
            let now_ns = monotonic_ns();
            let over = match &mut self.running {
                Some(running) => running.tail_is_over(theirs, since_ns, now_ns),
                None => true,
            };
            if over {
                return Ok(());
            }
            self.check()?;
            self.control.wait(Some(&self.test.waker), &[], now_ns + TAIL_LOOK_NS);
        }
    }

    /// Stops the load, takes what has come already, and says what this end counted.
    fn stop_load(&mut self) -> Option<(Results, Report)> {
        let running = self.running.as_mut()?;
        running.streams.drain();
        let totals = running.finish(&self.test.waker, &mut *self.test.observer);
        running.streams.close();
        Some(totals)
    }

    /// Tells what came out; where the client told its part, with that beside what it is told.
    fn tell(&mut self, mut report: Report, exchanged: Option<(&Results, &Results)>) {
        self.told = true;
        if let (Some((theirs, own)), Some(running)) = (exchanged, &self.running) {
            let parameters = &running.streams.setup.parameters;
            report.add_peer(theirs, own, parameters, &Late::default());
        }
        self.test.observer.handle(&Event::Ended(Box::new(report)));
    }

    /// Tells the client why the test failed, where it did; and what there is.
    pub(super) fn close(mut self, failure: Option<&Failure>) {
        if let Some(failure) = failure {
            if failure.interrupted {
                self.control.machine.terminate();
            } else {
                self.control.machine.refuse(failure.code, failure.system_error.unwrap_or(0));
            }
            // The client may be gone.
            let _gone = self.pump();
            if !self.told
                && let Some((_, report)) = self.stop_load()
            {
                self.tell(report, None);
            }
        }
        if failure.is_none() {
            // Its descriptors are others' before the client knows that all is over, and comes with its next test. One
            // that failed keeps them a while: a reset of a stream might arrive before the reason does.
            self.running = None;
            self.awaited = None;
        }
        // A client that was turned out is not waited for.
        if !self.test.slot.must_go() {
            self.control.close(CLOSING_NS);
        }
    }
}

fn failure_of(said: Said) -> Failure {
    match said {
        Said::Failed(Fault::Silent { code, seconds }) => {
            Failure::of(code).because(format!("the client sent nothing for {seconds} s"))
        }
        Said::Failed(fault) => match fault.code() {
            code @ Code::RECEIVE_RESULTS => {
                Failure::of(code).because("the client sent no valid results")
            }
            code @ Code::RECEIVE_PARAMETERS => {
                Failure::of(code).because("the client sent no valid parameters")
            }
            code => Failure::of(code),
        },
        Said::ClientTerminated => Failure::of(Code::CLIENT_TERMINATED),
        _ => Failure::of(Code::MESSAGE),
    }
}
