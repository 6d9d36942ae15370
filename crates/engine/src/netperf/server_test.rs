//! A test at the server: the data socket that waits, the load that it becomes, and what comes out.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};

use linerate_measure::{EndReport, FlowReport, Role, Sample};
use linerate_wire::netperf::end::Watch;
use linerate_wire::netperf::omni::refusal;
use linerate_wire::netperf::test::{Length, Part, Request, Results, Setup, Transport};
use rustix::net::RecvFlags;
use socket2::Socket;

use super::address_beside;
use super::data::{Granted, first_sender};
use super::figures::complete_server;
use super::filling::{plain_flow, ring_flow};
use super::job::{Job, Task};
use super::liveness::Liveness;
use super::lives::accept;
use super::processor::{Processors, to_wire};
use super::spinners::{Spinner, Spinners};
use super::test_context::{TestContext, data_plan, setup, unit_bytes};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::connections::limit_blocking;
use crate::error::Error;
use crate::load::Load;
use crate::socket::accept_stream;
use crate::tally::Counts;
use crate::waiting::readiness;
use crate::waker::Waker;

/// What doesn't end when it should is given up after so long.
const GRACE_NS: u64 = SECOND_NS;
/// Data that ends a tenth of a test and so much before its time has been cut off.
const CLOSE_ENOUGH_NS: u64 = SECOND_NS;
/// How often the count of a test is looked at that ends when nothing more comes.
const LOOK_NS: u64 = SECOND_NS / 10;

/// A test at the server.
pub(super) struct ServerTest {
    request: Request,
    /// The only address whose datagrams count; absent: any address.
    client: Option<IpAddr>,
    job: Job,
    /// Made when the client has come: a waiting test takes no thread and no buffers.
    load: Option<Load>,
    /// The client of the first of connections that come and go, until it is read.
    first_peer: Option<Arc<OnceLock<SocketAddr>>>,
    /// What the load is made with.
    cpu: Option<u32>,
    cpu_count: u32,
    waker: Arc<Waker>,
    /// Grants permission to answer without sleeping, and the permission.
    spinners: Option<Arc<Spinners>>,
    spinner: Option<Spinner>,
    watch: Watch,
    /// Waits for the client, until it has come.
    waiting: Option<Socket>,
    /// Where connections come and go.
    listener: Option<Arc<Socket>>,
    granted: Granted,
    began_ns: u64,
    /// Where the client asked for it.
    processors: Option<Processors>,
    /// The beginning of the wait for the client's sign at which they were marked.
    marked_ns: Option<u64>,
    /// When the time was up, if it was.
    stopped_ns: Option<u64>,
    /// Whether its client marks the end of its data.
    gets_end_marker: bool,
}

impl ServerTest {
    /// Makes ready for the client, and says where.
    ///
    /// # Errors
    ///
    /// The error of errno(3) to answer with.
    pub(super) fn prepare(
        request: Request,
        context: &TestContext,
        waker: &Arc<Waker>,
    ) -> Result<(Self, Setup), i32> {
        let address = context.address(&request);
        let client = Some(context.client.ip()).filter(|_| !context.other_addresses);
        if let (Some(asked), Some(client)) = (request.client_address, client)
            && request.transport == Transport::Udp
            && asked != client
        {
            // An address that hasn't asked gets no datagrams.
            return Err(refusal::EACCES);
        }
        let plan = data_plan(&request);
        let waiting = plan.await_client(request.transport, address);
        let (socket, granted, data_port) = waiting.map_err(|error| number_of(&error))?;
        let unit_bytes = unit_bytes(&request, &granted);
        let mut job = Job::of_server(&request, unit_bytes);
        job.interval_ns = context.interval_ns;
        let listener = request.part.connects().then(|| {
            // Connections inherit it, from the first on.
            limit_blocking(&socket)?;
            socket.try_clone().map(Arc::new)
        });
        let listener = listener.transpose().map_err(|error| number_of(&error))?;
        let now_ns = monotonic_ns();
        let mut served = Self {
            client,
            watch: Watch::new(&request, context.marks_end, now_ns),
            load: None,
            first_peer: None,
            cpu: context.cpu,
            cpu_count: context.cpu_count,
            waker: Arc::clone(waker),
            spinners: context.spinners.clone().filter(|_| request.part == Part::Answer),
            spinner: None,
            waiting: Some(socket).filter(|_| listener.is_none()),
            listener,
            granted,
            began_ns: now_ns,
            processors: request.cpu.then(|| Processors::new(context.client, context.cpu_count)),
            marked_ns: None,
            stopped_ns: None,
            gets_end_marker: context.marks_end && !request.part.connects(),
            job,
            request,
        };
        served.begin_at_once(context.client)?;
        let measures_cpu = served.processors.is_some();
        let setup = setup(&served.request, &served.job, &served.granted, data_port, measures_cpu);
        Ok((served, setup))
    }

    /// A sender of datagrams doesn't wait for its client.
    fn begin_at_once(&mut self, client: SocketAddr) -> Result<(), i32> {
        if self.request.transport == Transport::Udp && self.request.part == Part::Send {
            if self.request.client_port == 0 {
                return Err(refusal::EINVAL);
            }
            let address = self.request.client_address.unwrap_or(client.ip());
            let peer = address_beside(address, self.request.client_port, client);
            self.begin_datagrams(peer).map_err(|error| number_of(&error))?;
        }
        Ok(())
    }

    fn make_load(&mut self) -> Result<Load, Error> {
        self.spinner = self.spinners.as_ref().and_then(Spinners::admit);
        self.job.busy_poll = self.spinner.is_some();
        let connections = self.listener.as_ref().map(|listener| {
            let (connections, first_peer) = accept(listener, &self.request, &self.job);
            self.first_peer = Some(first_peer);
            connections
        });
        let workload = self.job.endless_workload();
        let (cpus, steps) = (Vec::from_iter(self.cpu), vec![self.job.steps_at_server()]);
        Load::prepare_given(Role::Server, &workload, steps, &cpus, &self.waker, connections)
    }

    /// The load goes on from here.
    fn begin(&mut self, mut load: Load, peer: Option<SocketAddr>) {
        // To make ready is no part of the test.
        if let Some(processors) = &mut self.processors {
            peer.into_iter().for_each(|peer| processors.meet(peer));
            processors.restart();
        }
        self.began_ns = monotonic_ns();
        self.watch.handle_connection(self.began_ns);
        load.open(self.began_ns);
        self.load = Some(load);
    }

    /// What the client's data has come to so far.
    pub(super) fn counts(&self) -> Counts {
        self.load.as_ref().map(Load::counts).unwrap_or_default()
    }

    /// When its data began, on the monotonic clock.
    pub(super) fn data_began_ns(&self) -> Option<u64> {
        self.load.as_ref().and_then(Load::opened_ns)
    }

    /// The sample of an interval that is over.
    pub(super) fn sample(&mut self, now_ns: u64) -> Option<Sample> {
        self.load.as_mut().and_then(|load| load.tick(now_ns))
    }

    pub(super) fn liveness(&self) -> Liveness {
        Liveness::new(Role::Server, &self.job, monotonic_ns())
    }

    /// What to wait for beside the control connection and the waker.
    pub(super) fn awaited(&self) -> Option<&Socket> {
        let listener = self.listener.as_deref().filter(|_| self.load.is_none());
        self.waiting.as_ref().or(listener).filter(|_| self.stopped_ns.is_none())
    }

    /// Whether it may end because nothing more comes.
    fn ends_quietly(&self) -> bool {
        !self.gets_end_marker || self.watch.counts_datagrams()
    }

    /// When to look at it again at the latest.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let now_ns = monotonic_ns();
        if let Some(stopped_ns) = self.stopped_ns {
            return Some(stopped_ns.saturating_add(GRACE_NS).max(now_ns));
        }
        let look_ns = self.ends_quietly().then(|| now_ns.saturating_add(LOOK_NS));
        let mark_ns = self.watch.waits_from_ns().filter(|at_ns| Some(*at_ns) > self.marked_ns);
        let tick_ns = self.load.as_ref().and_then(|load| load.next_tick(now_ns));
        [self.watch.over_at_ns(), look_ns, mark_ns, tick_ns].into_iter().flatten().min()
    }

    /// Goes on as far as it can; says whether it is over.
    pub(super) fn advance(&mut self, now_ns: u64) -> bool {
        if self.stopped_ns.is_none() {
            self.take_client(now_ns);
            // A client that has come took time to receive.
            let now_ns = if self.began_ns > now_ns { monotonic_ns() } else { now_ns };
            let counts = self.counts();
            let count = match self.request.part {
                Part::Receive => counts.receive_calls,
                _ => counts.transactions,
            };
            self.watch.handle_count(count, now_ns);
            // The silence that says the end is no part of the test.
            if self.ends_quietly() && self.watch.changed_ns() == now_ns {
                let peer = self.first_peer.as_ref().and_then(|peer| peer.get()).copied();
                if let Some(processors) = &mut self.processors {
                    if let Some(peer) = peer {
                        self.first_peer = None;
                        processors.meet(peer);
                    }
                    processors.mark();
                }
            }
            // Nor is the wait for the client's sign, should it never come.
            let waits_from_ns = self.watch.waits_from_ns().filter(|at_ns| *at_ns <= now_ns);
            if waits_from_ns > self.marked_ns {
                self.marked_ns = waits_from_ns;
                self.processors.iter_mut().for_each(Processors::mark);
            }
            if self.watch.over_at_ns().is_some_and(|over_ns| over_ns <= now_ns) {
                self.stop(now_ns);
            }
        }
        let given_up =
            self.stopped_ns.is_some_and(|at_ns| now_ns >= at_ns.saturating_add(GRACE_NS));
        let never_came = self.stopped_ns.is_some() && self.load.is_none();
        self.load.as_ref().is_some_and(Load::all_ended) || given_up || never_came
    }

    fn stop(&mut self, now_ns: u64) {
        self.stopped_ns = Some(now_ns);
        let Some(load) = &mut self.load else { return };
        match self.job.task {
            Task::Send => load.stop(),
            _ => load.drain(),
        }
    }

    /// The data connection, or the first datagram, if it has come.
    fn take_client(&mut self, now_ns: u64) {
        if let Some(listener) = self.listener.as_deref().filter(|_| self.load.is_none()) {
            // Its own loop accepts.
            if readiness(listener).is_ok() {
                match self.make_load() {
                    Ok(load) => self.begin(load, None),
                    Err(_) => self.stop(now_ns),
                }
            }
            return;
        }
        let Some(socket) = &self.waiting else { return };
        match self.request.transport {
            Transport::Tcp => {
                match accept_stream(socket, false) {
                    Ok(stream) => match self.make_load() {
                        Ok(mut load) => {
                            self.waiting = None;
                            let peer = stream.peer_addr().ok().and_then(|peer| peer.as_socket());
                            match ring_flow(&self.job) {
                                Some(flow) => load.add_made(0, stream, flow),
                                None => load.add_stream(0, stream, None),
                            }
                            self.begin(load, peer);
                        }
                        // No thread for it: the test can't be.
                        Err(_) => self.stop(now_ns),
                    },
                    Err(error) if is_passing(&error) => {}
                    // Out of descriptors, for one: the test can't be.
                    Err(_) => self.stop(now_ns),
                }
            }
            Transport::Udp => {
                if let Some(peer) = first_sender(socket, self.client)
                    && self.begin_datagrams(peer).is_err()
                {
                    // Clients that can't be answered are ignored.
                    self.discard_datagram();
                }
            }
        }
    }

    fn begin_datagrams(&mut self, peer: SocketAddr) -> io::Result<()> {
        let Some(socket) = &self.waiting else { return Ok(()) };
        socket.connect(&peer.into())?;
        let mut load = self.make_load().map_err(io::Error::other)?;
        if let Some(socket) = self.waiting.take() {
            load.add_made(0, socket, plain_flow(&self.job));
            self.begin(load, Some(peer));
        }
        Ok(())
    }

    fn discard_datagram(&self) {
        if let Some(socket) = &self.waiting {
            let _gone = rustix::net::recv(socket.as_fd(), &mut [0; 1], RecvFlags::DONTWAIT);
        }
    }

    /// How long the test was; its load's last sign of life came so long after the load had begun.
    fn elapsed_ns(&self, now_ns: u64, last_ns: Option<u64>) -> u64 {
        let elapsed_ns = now_ns.saturating_sub(self.began_ns);
        let waited = self.stopped_ns.is_some() && self.job.task != Task::Send;
        let of_test_ns = match waited {
            true if self.ends_quietly() => {
                // The change is seen a while after it.
                let changed_ns = self.watch.changed_ns().saturating_sub(self.began_ns);
                last_ns.map_or(changed_ns, |last_ns| last_ns.min(changed_ns))
            }
            true => self.watch.waits_from_ns().unwrap_or(now_ns).saturating_sub(self.began_ns),
            false => elapsed_ns,
        };
        of_test_ns.max(1)
    }

    /// What came of it.
    pub(super) fn conclude(mut self, now_ns: u64) -> Conclusion {
        // What ended by the client's sign went on until then.
        let by_sign = self.stopped_ns.is_none() && self.gets_end_marker;
        let end = if by_sign { Processors::mark } else { Processors::end };
        self.processors.iter_mut().for_each(end);
        // Of a client that never came there is nothing to tell.
        let (sample, counts, mut report) = match self.load.take() {
            Some(load) => {
                let (sample, counts, report) = load.conclude(now_ns);
                (sample, counts, Some(report))
            }
            None => (None, Counts::default(), None),
        };
        let flow = report.as_ref().and_then(|report| report.flows.first());
        let elapsed_ns = self.elapsed_ns(now_ns, flow.and_then(|flow| flow.to_ns));
        let load_cpu = report.as_ref().and_then(|report| report.cpu).unwrap_or_default();
        let cpus = self.processors.as_ref().map_or(0, |_| self.cpu_count);
        let measures_cpu = self.processors.is_some();
        let cpu = self.processors.take().and_then(|used| used.used(load_cpu, elapsed_ns));
        let results = Results {
            elapsed_s: Some(elapsed_ns as f32 / 1e9),
            cpu: cpu.as_ref().map(to_wire),
            cpus,
            ..self.counted(&counts, flow)
        };
        if let Some(report) = &mut report {
            let setup = setup(&self.request, &self.job, &self.granted, 0, measures_cpu);
            report.elapsed_ns = elapsed_ns;
            complete_server(report, &self.request, &setup, &counts, cpu);
        }
        let cut_short = self.cut_short(&counts, elapsed_ns);
        if let Some(report) = report.as_mut().filter(|_| cut_short.is_none()) {
            self.forgive_last(report);
        }
        Conclusion { results, sample, report, cut_short }
    }

    /// A client whose time is up leaves what is under way: one connection, or its flow, breaks then, which is no
    /// failure.
    fn forgive_last(&self, report: &mut EndReport) {
        let by_time = matches!(self.request.length, Length::Seconds(_));
        if !by_time || self.request.part == Part::Receive {
            return;
        }
        let broken = ["reset", "closed_early"];
        let last = broken.into_iter().find(|kind| report.errors.contains_key(*kind));
        let Some(count) = last.and_then(|kind| report.errors.get_mut(kind)) else { return };
        *count -= 1;
        report.errors.retain(|_, count| *count > 0);
        report.flows.iter_mut().for_each(|flow| flow.error = None);
    }

    /// What a test came to whose data ended before what was asked for. A client that goes may end its data as it
    /// always does.
    fn cut_short(&self, counts: &Counts, elapsed_ns: u64) -> Option<String> {
        let done = match self.request.part {
            Part::Send => counts.sent_bytes,
            Part::Receive => counts.received_bytes,
            Part::Answer | Part::AnswerOnce | Part::Accept => counts.transactions,
        };
        match self.request.length {
            Length::Seconds(seconds) => {
                // The client's time begins before its connection, and either end may be busy.
                let enough_ns =
                    (u64::from(seconds) * SECOND_NS / 10 * 9).saturating_sub(CLOSE_ENOUGH_NS);
                let elapsed_s = elapsed_ns as f64 / 1e9;
                (elapsed_ns < enough_ns)
                    .then(|| format!("data ended after {elapsed_s:.2} s of {seconds} s"))
            }
            Length::Units(units) => (done < units.into())
                .then(|| format!("data ended after {done} of {units} bytes or transactions")),
            Length::Open => None,
        }
    }

    fn counted(&self, counts: &Counts, flow: Option<&FlowReport>) -> Results {
        let socket = flow.and_then(|flow| flow.socket.as_ref());
        let over_udp = self.request.transport == Transport::Udp;
        // In bulk a call may move several; of requests and responses each has its own.
        let is_bulk = matches!(self.request.part, Part::Send | Part::Receive);
        let calls = |calls: u64, datagrams: u64| match over_udp && is_bulk {
            true => datagrams as u32,
            false => calls as u32,
        };
        let at_end = |size: Option<u32>, start: i32| {
            size.and_then(|size| i32::try_from(size).ok()).filter(|size| *size > 0).unwrap_or(start)
        };
        let send_buffer = socket.and_then(|socket| socket.send_buffer_bytes);
        let receive_buffer = socket.and_then(|socket| socket.receive_buffer_bytes);
        let again = flow.and_then(|flow| flow.tcp).map(|tcp| tcp.retransmitted_segments);
        Results {
            bytes_received: counts.received_bytes,
            receive_calls: calls(counts.receive_calls, counts.datagrams.received),
            receive_buffer_bytes: at_end(receive_buffer, self.granted.receive_buffer_bytes),
            bytes_sent: counts.sent_bytes,
            send_calls: calls(counts.send_calls, counts.datagrams.sent),
            send_buffer_bytes: at_end(send_buffer, self.granted.send_buffer_bytes),
            transactions: counts.transactions as u32,
            retransmits: again.map_or(-1, |again| i32::try_from(again).unwrap_or(i32::MAX)),
            congestion: socket
                .and_then(|socket| socket.congestion.clone())
                .filter(|_| self.request.routed && !over_udp),
            ..Results::default()
        }
    }
}

/// What came of a test.
pub(super) struct Conclusion {
    /// What the client is told.
    pub(super) results: Results,
    /// The rest of an interval that the end has cut off.
    pub(super) sample: Option<Sample>,
    /// What this end counted; absent: no data came.
    pub(super) report: Option<EndReport>,
    /// How much was done, where that is less than was asked for.
    pub(super) cut_short: Option<String>,
}

fn number_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Whether a failed accept says nothing about the next one.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted | ConnectionReset)
}

#[cfg(test)]
mod tests;
