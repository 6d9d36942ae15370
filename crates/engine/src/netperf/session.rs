//! One client's control connection at the server, from its first word to its last.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_measure::EndReport;
use linerate_wire::Machine as _;
use linerate_wire::netperf::fault::Fault;
use linerate_wire::netperf::server::{Server as Machine, ServerEvent};
use linerate_wire::netperf::test::Request;
use rustix::event::{PollFd, PollFlags};

use super::control::{Control, is_acknowledged, set_patient, unheard};
use super::liveness::Liveness;
use super::observer::{Asked, Observation};
use super::processor::local_calibration;
use super::server::ServerOptions;
use super::server_test::{Conclusion, ServerTest};
use super::spinners::Spinners;
use super::test_context::TestContext;
use crate::acceptor::{ClientSlot, Progress};
use crate::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns};
use crate::control::{Lost, TcpChannel};
use crate::event::{Observe, TestEnding};
use crate::waker::Waker;

/// A session looks this often whether the server is to stop.
const LOOK_NS: u64 = 500 * MILLISECOND_NS;
/// A client for which others wait must begin its next test within this time.
const SERIAL_IDLE_NS: u64 = 20 * SECOND_NS;

/// What all sessions of a server have.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerContext {
    pub(super) passphrase: Option<String>,
    /// Processors that tests run on, in turn; empty: wherever the kernel likes.
    pub(super) cpus: Vec<u32>,
    /// Whether datagrams may go to and come from other addresses than the client's.
    pub(super) other_addresses: bool,
    pub(super) serial: bool,
    pub(super) cpu_count: Option<u32>,
    /// Grants permission to answer without sleeping; absent: no test has it.
    pub(super) spinners: Option<Arc<Spinners>>,
    pub(super) observe: Option<Arc<dyn Observe<Asked, EndReport>>>,
}

impl ServerContext {
    pub(super) fn of(options: &ServerOptions) -> Self {
        Self {
            passphrase: options.passphrase.clone(),
            cpus: options.cpus.clone(),
            other_addresses: options.other_addresses,
            serial: options.serial,
            cpu_count: options.cpu_count,
            spinners: options.busy_poll.then(|| Arc::new(Spinners::of_this_process())),
            observe: options.observe.clone(),
        }
    }

    /// The number of processors reported to clients.
    fn cpu_count(&self) -> u32 {
        self.cpu_count.unwrap_or_else(|| local_calibration().cpus)
    }
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// As the client wished, after so many tests.
    Ended(u32),
    /// Otherwise, for this reason.
    Failed(String),
}

/// One client's session.
pub(super) struct ServedClient {
    control: Control<Machine>,
    client: SocketAddr,
    local: SocketAddr,
    server: Arc<ServerContext>,
    waker: Arc<Waker>,
    test: Option<ServerTest>,
    /// Of the test under way, where tests are observed.
    observed: Option<Observation>,
    /// From a test's answer until its results have arrived; otherwise the kernel notices that the client is gone.
    liveness: Option<Liveness>,
    tests: u32,
    /// When it came to have no test.
    idle_since_ns: u64,
}

impl ServedClient {
    pub(super) fn new(
        channel: TcpChannel,
        (local, client): (SocketAddr, SocketAddr),
        server: Arc<ServerContext>,
        waker: Arc<Waker>,
    ) -> Self {
        let idle_since_ns = monotonic_ns();
        let machine = Machine::new(server.passphrase.as_deref(), idle_since_ns);
        Self {
            control: Control::new(machine, channel),
            client,
            local,
            server,
            waker,
            test: None,
            observed: None,
            liveness: None,
            tests: 0,
            idle_since_ns,
        }
    }

    /// Serves the client until it has finished, something has failed, others need its slot, or the
    /// server is to stop.
    pub(super) fn run(mut self, stopping: &AtomicBool, mut slot: Option<ClientSlot>) -> SessionEnd {
        let (end, interrupts) = self.serve(stopping, &mut slot);
        self.end_cut_off(&end, interrupts);
        end
    }

    /// Likewise; also returns whether an end chose to stop a test under way.
    fn serve(
        &mut self,
        stopping: &AtomicBool,
        slot: &mut Option<ClientSlot>,
    ) -> (SessionEnd, bool) {
        let failed = |why: &str| (SessionEnd::Failed(why.to_owned()), false);
        loop {
            while let Some(event) = self.control.machine.poll_event() {
                match event {
                    ServerEvent::Test { request, cpu, marks_end } => {
                        self.begin_test(*request, cpu, marks_end);
                    }
                    ServerEvent::Calibration => {
                        let rate = local_calibration().rate;
                        self.control.machine.calibrate(
                            monotonic_ns(),
                            rate,
                            self.server.cpu_count(),
                        );
                    }
                    ServerEvent::Ended => return (SessionEnd::Ended(self.tests), false),
                    ServerEvent::Failed(fault) => {
                        let has_left = matches!(fault, Fault::Closed { .. });
                        return (SessionEnd::Failed(fault.to_string()), has_left);
                    }
                }
            }
            if let Err(Lost::Writing(error)) = self.control.say() {
                return failed(&format!("its control connection broke: {error}"));
            }
            // After the writes, so that a client that is closed after its test has its results.
            if let Some(slot) = slot {
                slot.note(self.progress());
                if slot.must_go() {
                    return failed("other clients needed the slot");
                }
            }
            if let Some(why) = self.why_lost() {
                return failed(&why);
            }
            if self.server.serial && self.has_dawdled() {
                return failed("it had no test while other clients waited");
            }
            if stopping.load(Ordering::Relaxed) {
                return (SessionEnd::Failed("the server was stopped".to_owned()), true);
            }
            self.go_on();
        }
    }

    fn begin_test(&mut self, request: Request, cpu: Option<u32>, marks_end: bool) {
        let observe = self.server.observe.as_deref();
        let observed = Observation::begin(observe, self.local, &request);
        let context = TestContext {
            local: self.local,
            client: self.client,
            cpu: cpu.or_else(|| self.next_cpu()),
            marks_end,
            other_addresses: self.server.other_addresses,
            cpu_count: self.server.cpu_count(),
            spinners: self.server.spinners.clone(),
            interval_ns: Observation::interval_ns(observed.as_ref()),
        };
        match ServerTest::prepare(request, &context, &self.waker) {
            Ok((test, setup)) => {
                self.control.machine.set_up(&setup);
                set_patient(self.control.channel(), true);
                self.liveness = Some(test.liveness());
                (self.test, self.observed) = (Some(test), observed);
            }
            Err(error) => {
                self.control.machine.refuse(monotonic_ns(), error);
                observed.into_iter().for_each(|observed| observed.refuse(error));
            }
        }
    }

    /// Tells of a test that was under way when the session ended.
    fn end_cut_off(&mut self, end: &SessionEnd, interrupts: bool) {
        let (Some(test), Some(observed)) = (self.test.take(), self.observed.take()) else { return };
        let Conclusion { sample, report, .. } = test.conclude(monotonic_ns());
        let how = match end {
            SessionEnd::Failed(why) if interrupts => TestEnding::Interrupted(why.clone()),
            SessionEnd::Failed(why) => TestEnding::Failed(why.clone()),
            SessionEnd::Ended(_) => TestEnding::Interrupted("the client has left".to_owned()),
        };
        observed.end(sample.as_ref(), report, &how);
    }

    /// How far the client has come; `None` while its test is under way.
    fn progress(&self) -> Option<Progress> {
        match &self.test {
            Some(test) => test.awaited().map(|_| Progress::Answered),
            None if self.tests > 0 => Some(Progress::Served),
            None => Some(Progress::Silent),
        }
    }

    /// Why the client's machine must be taken for gone, if it must.
    fn why_lost(&mut self) -> Option<String> {
        let liveness = self.liveness.as_mut()?;
        if self.test.is_none() && is_acknowledged(self.control.channel()) {
            set_patient(self.control.channel(), false);
            self.liveness = None;
            return None;
        }
        let counts = self.test.as_ref().map(ServerTest::counts).unwrap_or_default();
        let is_lost = liveness.is_lost(|| unheard(self.control.channel()), &counts, monotonic_ns());
        is_lost.then(|| liveness.why())
    }

    /// Whether it has had no test for so long that others needn't wait for the next.
    fn has_dawdled(&self) -> bool {
        let idle_ns = monotonic_ns().saturating_sub(self.idle_since_ns);
        self.test.is_none() && idle_ns > SERIAL_IDLE_NS
    }

    fn next_cpu(&self) -> Option<u32> {
        let cpus = &self.server.cpus;
        cpus.get(self.tests as usize % cpus.len().max(1)).copied()
    }

    /// Waits for something to happen, and sees to it.
    fn go_on(&mut self) {
        let now_ns = monotonic_ns();
        let test_ns = self.test.as_ref().and_then(ServerTest::next_ns).unwrap_or(u64::MAX);
        let data = self.test.as_ref().and_then(ServerTest::awaited);
        let data = data.map(|socket| PollFd::new(socket, PollFlags::IN));
        self.control.wait(Some(&self.waker), data.as_slice(), test_ns.min(now_ns + LOOK_NS));
        // The machine tells what it missed.
        let _told = self.control.listen();
        self.control.handle_time();
        let is_over = self.test.as_mut().is_some_and(|test| test.advance(monotonic_ns()));
        if let Some(test) = &mut self.test {
            let sample = test.sample(monotonic_ns());
            self.observed.iter_mut().for_each(|observed| observed.look(test, sample.as_ref()));
        }
        if let Some(test) = self.test.take_if(|_| is_over) {
            self.end_test(test);
        }
    }

    fn end_test(&mut self, test: ServerTest) {
        let Conclusion { results, sample, report, cut_short } = test.conclude(monotonic_ns());
        self.tests = self.tests.saturating_add(1);
        self.idle_since_ns = monotonic_ns();
        self.control.machine.finish(monotonic_ns(), &results);
        let Some(observed) = self.observed.take() else { return };
        let how = match (&report, cut_short) {
            (None, _) => TestEnding::Failed("the client sent no data".to_owned()),
            (Some(_), Some(why)) => TestEnding::Interrupted(why),
            (Some(_), None) => TestEnding::Complete,
        };
        // The result is kept after the client has gone, so that the client doesn't wait for that.
        let _told_later = self.control.say();
        observed.end(sample.as_ref(), report, &how);
    }
}
