//! One test at the client: asks the server, makes the data connection, conducts the load, and waits
//! for the server's results.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::Role;
use linerate_measure::plan::Family as PlanFamily;
use linerate_wire::Machine;
use linerate_wire::netperf::client::ClientEvent;
use linerate_wire::netperf::end::QUIET_NS;
use linerate_wire::netperf::fault::Fault;
use linerate_wire::netperf::message::Form;
use linerate_wire::netperf::test::{Length, Request, Results, Setup, Transport};
use socket2::Socket;

use super::address_beside;
use super::client::Client;
use super::data::{DataPlan, Granted};
use super::figures::{Measured, outcome};
use super::filling::{buffers, file_flow, plain_flow, ring_flow};
use super::job::{Job, Task};
use super::liveness::Liveness;
use super::opening::{local_address, local_fault};
use super::outcome::Outcome;
use super::plan::TestPlan;
use super::processor::Processors;
use super::request::{data_plan, fit_old_server, job, request};
use super::timing::timed_flow;
use crate::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns};
use crate::error::Error;
use crate::event::{Cancel, Event, Sink};
use crate::load::Load;
use crate::phase::Phase;
use crate::socket::tcp_figures;
use crate::waker::Waker;

/// How often a request to stop is looked for.
pub(super) const LOOK_NS: u64 = 50 * MILLISECOND_NS;
/// What was sent may take so long to arrive after the test.
const DRAIN_NS: u64 = 60 * SECOND_NS;
/// After a request to stop, a server that can't be told so is waited for no longer.
pub(super) const INTERRUPTED_NS: u64 = 6 * SECOND_NS;

/// A test that is about to be made.
pub(super) struct ClientTest<'a> {
    /// Absent: there is no netserver.
    pub(super) client: Option<&'a mut Client>,
    /// Where the server is, unless the plan names another address for its data. The port says nothing.
    pub(super) remote: SocketAddr,
    pub(super) plan: &'a TestPlan,
    pub(super) request: Request,
    pub(super) job: Job,
    pub(super) data_plan: DataPlan,
    /// The data socket, until it goes to the load.
    socket: Option<Socket>,
    /// The load's, where what says the end to the server may be lost.
    pub(super) end_socket: Option<Socket>,
    /// The load's, where the kernel is asked about it at the end.
    observed: Option<Socket>,
    /// The load's over TCP, which stays open until the server has told its figures: what still comes would reset a
    /// closed connection, and the server would take that for a failure.
    held: Option<Socket>,
    granted: Granted,
    pub(super) v6: bool,
}

/// What is going on.
struct Course {
    load: Load,
    liveness: Liveness,
    waker: Arc<Waker>,
    /// Where they were asked for.
    processors: Option<Processors>,
    results: Option<Results>,
    /// When they came.
    told_ns: u64,
    began_ns: u64,
    interrupted_ns: Option<u64>,
}

impl<'a> ClientTest<'a> {
    pub(super) fn prepare(
        client: Option<&'a mut Client>,
        remote: SocketAddr,
        plan: &'a TestPlan,
    ) -> Result<Self, Error> {
        let v6 = match plan.family {
            Some(PlanFamily::Ipv4) => false,
            Some(PlanFamily::Ipv6) => true,
            None => plan.remote.address.unwrap_or(remote.ip()).is_ipv6(),
        };
        let data_plan = data_plan(plan);
        let mut request = request(plan, v6)?;
        let opened = data_plan.open(request.transport, v6);
        let (socket, granted) = opened.map_err(|error| local_fault(&error))?;
        if request.transport == Transport::Udp {
            // Its port must be told the server.
            let bound = socket.bind(&local_address(plan, v6, remote).into());
            bound.map_err(|error| local_fault(&error))?;
            let bound = socket.local_addr().ok().and_then(|address| address.as_socket());
            request.client_port = bound.map_or(0, |address| address.port());
        }
        let mut job = job(plan, &request, &granted, buffers(plan)?, client.is_some());
        let is_old =
            client.as_ref().is_some_and(|client| client.control.machine.form() == Form::Short);
        if is_old && request.transport == Transport::Udp {
            fit_old_server(&mut request, &mut job)?;
        }
        let socket = Some(socket);
        Ok(Self {
            client,
            remote,
            plan,
            request,
            job,
            data_plan,
            socket,
            end_socket: None,
            observed: None,
            held: None,
            granted,
            v6,
        })
    }

    pub(super) fn run(mut self, sink: &Sink, cancel: &Cancel) -> Result<Outcome, Error> {
        let setup = self.ask(cancel)?;
        self.wait_as_asked(cancel)?;
        let address = self.plan.remote.address.unwrap_or(self.remote.ip());
        if address.is_ipv6() != self.v6 {
            return Err(Error::Plan(format!(
                "the data connection can't go to {address}, which is of another address family than \
                 requested: give an address of that family (-H behind the --)"
            )));
        }
        let server = address_beside(address, setup.data_port, self.remote);
        let granted = self.granted;
        let mut course = self.begin(server)?;
        self.conduct(&mut course, sink, cancel)?;
        let ended_ns = monotonic_ns();
        // A peer may wait until the connection is closed at this end.
        let tcp = self.observed.take().and_then(|socket| tcp_figures(socket.as_fd()));
        course.processors.iter_mut().for_each(Processors::end);
        let server_knows = self.server_knows();
        if let Some(client) = &mut self.client {
            client.control.machine.handle_data_over(ended_ns, server_knows);
        }
        let interrupted = course.interrupted_ns.is_some();
        let stopped_ns = course.load.stopped_ns();
        let (sample, counts, report) = course.load.conclude(ended_ns);
        if let Some(sample) = sample {
            sink.offer(Event::Sample(Box::new(sample)));
        }
        let mut told = self.client.is_some();
        let results = match course.results {
            Some(results) => results,
            None if !told => Results::default(),
            None => match self.await_results(course.began_ns, course.interrupted_ns, cancel) {
                Ok(results) => results,
                Err(error) if cancel.requested() && self.outlives(&error) => {
                    told = false;
                    Results::default()
                }
                Err(error) => return Err(error),
            },
        };
        if let Some(client) = &self.client {
            client.set_patient(false);
        }
        // The threads see that the time is up a moment later.
        let over_ns = stopped_ns.filter(|_| self.ends_on_time()).unwrap_or(ended_ns);
        let elapsed_ns = over_ns.min(ended_ns).saturating_sub(course.began_ns);
        let load_cpu = report.cpu.unwrap_or_default();
        let cpu = course.processors.and_then(|processors| processors.used(load_cpu, elapsed_ns));
        let mut measured =
            Measured { elapsed_ns, interrupted, counts, report, cpu, tcp, granted, server, told };
        if !told {
            if let Some(client) = &mut self.client {
                client.leave_at_once();
            }
            let why = match self.client {
                Some(_) => {
                    "the client did not wait for the server: the server's figures are missing"
                }
                None => "without a control connection the other end's figures are missing",
            };
            measured.report.notes.push(why.to_owned());
        }
        Ok(outcome(self.plan, &self.job, &setup, &results, measured))
    }

    /// Whether this end's counts are a result after an interrupt without the server's results: a server that sends
    /// sees its connection break, and a server that doesn't know of the end sends nothing.
    fn outlives(&self, error: &Error) -> bool {
        match error {
            Error::Unfinished(_) => self.job.task == Task::Receive || !self.server_knows(),
            Error::Peer(_) => matches!(self.job.task, Task::Receive | Task::Connections),
            _ => false,
        }
    }

    /// Whether the server learns of the end of data: all datagrams that mark the end may be lost.
    fn server_knows(&self) -> bool {
        !self.job_is_connections() && self.request.transport == Transport::Tcp
    }

    pub(super) fn job_is_connections(&self) -> bool {
        self.job.task == Task::Connections
    }

    /// Asks for the test; where the server listens for it.
    fn ask(&mut self, cancel: &Cancel) -> Result<Setup, Error> {
        let Some(client) = &mut self.client else {
            return Ok(Setup { data_port: self.plan.remote.port, ..Setup::default() });
        };
        let cpu = client.server_cpu();
        client.control.machine.request(monotonic_ns(), &self.request, cpu).map_err(Error::Plan)?;
        match client.await_event(cancel)? {
            ClientEvent::Setup(setup) => Ok(setup),
            _ => Err(client.failed(&Fault::Protocol("it answers something else".to_owned()))),
        }
    }

    /// Starts the shard, then the clock, then connects: the time of a test begins before its
    /// connection.
    fn begin(&mut self, server: SocketAddr) -> Result<Course, Error> {
        let waker = Arc::new(Waker::new()?);
        let workload = self.job.workload();
        let connections = self.job_is_connections().then(|| self.dial(server));
        let cpus: Vec<u32> = self.plan.local.bind_cpu.into_iter().collect();
        let steps = vec![self.job.steps()];
        let mut load =
            Load::prepare_given(Role::Client, &workload, steps, &cpus, &waker, connections)?;
        load.be_patient(DRAIN_NS);
        let made = match file_flow(self.plan)?.or_else(|| ring_flow(&self.job)) {
            None => timed_flow(&self.job)?,
            made => made,
        };
        // Connections that come and go make sockets of their own.
        let socket = self.socket.take().filter(|_| !self.job_is_connections());
        if let Some(socket) = &socket
            && self.request.transport == Transport::Tcp
        {
            self.bind(socket)?;
        }
        if let Some(client) = &self.client {
            client.set_patient(true);
        }
        // To make ready is no part of the test.
        let processors = Processors::at_client(&self.plan.local, self.remote, server);
        let began_ns = monotonic_ns();
        if let Some(client) = &mut self.client {
            client.control.machine.handle_data_begun(began_ns);
        }
        load.open(began_ns);
        if let Some(socket) = socket {
            self.connect(&socket, server)?;
            if self.plan.reads_tcp_info && self.request.transport == Transport::Tcp {
                self.observed = socket.try_clone().ok();
            }
            if self.request.transport == Transport::Tcp && self.ends_on_time() {
                self.held = socket.try_clone().ok();
            }
            match (self.request.transport, made) {
                (Transport::Udp, _) => {
                    if self.job.says_end && self.job.task != Task::Receive {
                        self.end_socket = socket.try_clone().ok();
                    }
                    load.add_made(0, socket, plain_flow(&self.job));
                }
                (Transport::Tcp, Some(made)) => load.add_made(0, socket, made),
                (Transport::Tcp, None) => load.add_stream(0, socket, None),
            }
        }
        Ok(Course {
            load,
            liveness: Liveness::new(Role::Client, &self.job, began_ns),
            waker,
            processors,
            results: None,
            told_ns: 0,
            began_ns,
            interrupted_ns: None,
        })
    }

    /// Until this end's part is over.
    fn conduct(&mut self, course: &mut Course, sink: &Sink, cancel: &Cancel) -> Result<(), Error> {
        loop {
            let now_ns = monotonic_ns();
            if let Some(sample) = course.load.tick(now_ns) {
                sink.offer(Event::Sample(Box::new(sample)));
            }
            if course.load.all_ended() {
                return Ok(());
            }
            let awaited = self.client.as_ref().filter(|client| !client.control.machine.is_over());
            if let Some(client) = awaited.filter(|_| course.results.is_none()) {
                client.look_for_server(&mut course.liveness, &course.load.counts())?;
            }
            if cancel.requested() && course.interrupted_ns.is_none() {
                course.interrupted_ns = Some(now_ns);
                course.load.stop();
                if self.job.task == Task::Receive {
                    course.load.drain();
                }
            }
            let is_late = self.latest_ns(course).is_some_and(|limit_ns| now_ns >= limit_ns);
            if is_late || self.ends_on_time() && course.load.phase() == Phase::Stop {
                course.load.drain();
            }
            let stuck_ns = course.interrupted_ns.map(|at_ns| at_ns + INTERRUPTED_NS);
            if stuck_ns.is_some_and(|stuck_ns| now_ns >= stuck_ns) {
                course.load.abort();
            }
            let next_ns = course.load.next_tick(now_ns).unwrap_or(u64::MAX);
            let wait_ns = next_ns.saturating_sub(now_ns).min(LOOK_NS);
            match self.listen(Some(&course.waker), wait_ns) {
                Ok(Some(results)) => {
                    course.results = Some(results);
                    course.told_ns = monotonic_ns();
                }
                Ok(None) => {}
                // Its load ends all the same; that there are no results is seen when they are awaited.
                Err(error) if cancel.requested() && self.outlives(&error) => {}
                Err(error) => return Err(error),
            }
            course.waker.silence();
        }
    }

    /// Whether this end's part is over when its time is up, whatever is outstanding: a path that is down then would
    /// otherwise make the test longer. What a sender has handed to its socket is still delivered.
    fn ends_on_time(&self) -> bool {
        self.job.task != Task::Send && matches!(self.request.length, Length::Seconds(_))
    }

    /// When a test that its server ends is over here.
    fn latest_ns(&self, course: &Course) -> Option<u64> {
        let began_ns = course.began_ns;
        match (self.job.task, self.request.length) {
            // The server's word of the end may be late, or lost. A peer that isn't a netserver never stops by itself.
            (Task::Receive, Length::Seconds(seconds)) => {
                Some(began_ns.saturating_add(u64::from(seconds) * SECOND_NS))
            }
            // What was sent has come soon after the server's word of it, or never will.
            (Task::Receive, Length::Units(_)) if self.request.transport == Transport::Udp => {
                course.results.as_ref().map(|_| course.told_ns.saturating_add(QUIET_NS))
            }
            _ => None,
        }
    }
}
