//! The one thread that receives everybody.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use linerate_measure::Transport;
use linerate_wire::native::opening::Opening;
use linerate_wire::native::server::ServerEvent;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event as Ready, EventData, EventFlags};
use socket2::Socket;

use super::ServeOptions;
use super::admission::{Admission, Limits};
use super::arrival::{Arrival, Identified};
use super::control::{Control, Standing};
use super::lifetime::Lifetime;
use super::listening::Listener;
use super::test::Test;
use super::udp::{Hello, UdpPort};
use crate::acceptor::{Accepted, Origin, Pending, Turns, accept};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::connections::restore_accepted;
use crate::control::{control_server, data_server, random, server_tls};
use crate::error::Error;
use crate::event::{Cancel, Event, Sink};
use crate::poll::timespec;
use crate::probe::{processors, raise_open_files_limit};
use crate::socket::{Binding, configure_stream, plain};
use crate::transport::Negotiation;
use crate::waker::Waker;

pub(super) const LISTENER: usize = 0;
const DATAGRAMS: usize = 1;
const WAKER: usize = 2;
const FIRST_CLIENT: usize = 3;

/// The most connections without a test. When there are more, the oldest of the largest group is closed.
const MOST_WAITING: usize = 512;
/// Connections accepted before other clients are served. All connections wait in one backlog, so it is
/// kept short: accepting costs little, and is done first.
const MOST_ACCEPTED_AT_ONCE: usize = 128;
/// How long a wait lasts before it is seen whether the server shall stop.
const LOOK_NS: u64 = 100 * MILLISECOND_NS;

/// How a test has ended that was not cut short.
const COMPLETE: &str = "complete";

/// A connected client.
pub(super) enum Incoming {
    Arriving(Arrival),
    Control(Box<Control>),
}

/// TLS with the server's key.
pub(super) struct Configurations {
    /// Of control connections.
    control: Arc<rustls::ServerConfig>,
    /// Of flows.
    pub(super) data: Arc<rustls::ServerConfig>,
}

/// The one thread that receives everybody.
pub(super) struct NativeAcceptor {
    pub(super) options: ServeOptions,
    pub(super) listener: Listener,
    pub(super) udp: UdpPort,
    pub(super) poll: OwnedFd,
    pub(super) waker: Arc<Waker>,
    pub(super) tls: Configurations,
    pub(super) clients: Pending<Incoming>,
    pub(super) turns: Turns,
    pub(super) tests: HashMap<[u8; 16], usize>,
    pub(super) admission: Admission,
    pub(super) lifetime: Lifetime,
    pub(super) sink: Sink,
}

impl NativeAcceptor {
    pub(super) fn new(
        options: ServeOptions,
        listener: Socket,
        datagrams: Socket,
        address: SocketAddr,
        sink: Sink,
    ) -> Result<Self, Error> {
        let failed = |error| Error::Host(format!("can't poll for clients: {error}"));
        let poll = epoll::create(CreateFlags::CLOEXEC).map_err(failed)?;
        let waker = Arc::new(Waker::new()?);
        for (token, source) in
            [(LISTENER, listener.as_fd()), (DATAGRAMS, datagrams.as_fd()), (WAKER, waker.as_fd())]
        {
            let data = EventData::new_u64(token as u64);
            epoll::add(&poll, source, data, EventFlags::IN).map_err(failed)?;
        }
        let limits = Limits {
            max_tests: options.max_tests,
            max_rate_bps: options.max_rate_bps,
            max_time_ns: options.max_time_ns,
            max_descriptors: raise_open_files_limit(),
            processors: processors(&options.cpus),
            // One processor is left to everybody else. A server that has only one polls on it all the same, as
            // its owner asked: the scheduler shares it.
            spinning_threads: options
                .busy_poll
                .then(|| processors(&options.cpus).min(processors(&[]).saturating_sub(1)).max(1)),
        };
        let local = datagrams.local_addr().ok().and_then(|local| local.as_socket());
        let binding = Binding { bind: None, device: options.bind_device.clone() };
        Ok(Self {
            listener: Listener::new(listener)?,
            udp: UdpPort::new(datagrams, local.unwrap_or(address), binding, random()?),
            poll,
            waker,
            tls: Configurations {
                control: Arc::new(control_server(&options.identity)?),
                data: Arc::new(server_tls(&options.identity, &[], Vec::new())?),
            },
            clients: Pending::new(FIRST_CLIENT),
            turns: Turns::default(),
            tests: HashMap::new(),
            admission: Admission::new(limits),
            lifetime: Lifetime::new(&options),
            sink,
            options,
        })
    }

    pub(super) fn serve(&mut self, cancel: &Cancel) -> Result<(), Error> {
        let mut events: Vec<Ready> = Vec::with_capacity(256);
        while self.goes_on(cancel) {
            let wait_ns = self.wait_at_most(monotonic_ns());
            let timeout = timespec(wait_ns);
            events.clear();
            // Interrupted by a signal: a round with no events.
            let _interrupted = epoll::wait(&self.poll, spare_capacity(&mut events), Some(&timeout));
            for event in &events {
                match usize::try_from(event.data.u64()).unwrap_or(usize::MAX) {
                    LISTENER if self.listener.is_left => {}
                    LISTENER => self.accept(),
                    DATAGRAMS => self.handle_datagrams(),
                    WAKER => self.handle_waker(),
                    number => self.take_notice(number),
                }
            }
            self.give_turns();
            self.conduct_all();
            self.tell_status(monotonic_ns());
            self.set_first_window();
            if self.listener.is_left {
                self.leave_or_take_listener();
            }
        }
        self.end_all_tests();
        Ok(())
    }

    fn wait_at_most(&self, now_ns: u64) -> u64 {
        if !self.turns.is_empty() {
            return 0;
        }
        let next_ns = self.clients.iter().filter_map(|(_, incoming)| match incoming {
            Incoming::Arriving(arrival) => Some(arrival.deadline_ns),
            Incoming::Control(control) => control.next_time(now_ns),
        });
        next_ns.min().map_or(LOOK_NS, |next_ns| next_ns.saturating_sub(now_ns).min(LOOK_NS))
    }

    fn accept(&mut self) {
        for _ in 0..MOST_ACCEPTED_AT_ONCE {
            match accept(&self.listener.socket) {
                Ok(Accepted::Client(socket, client)) => {
                    self.listener.accepted_ns = monotonic_ns();
                    self.receive(socket, client);
                }
                Ok(Accepted::Gone) => {}
                Ok(Accepted::Short(_)) => return self.make_room(),
                Ok(Accepted::Empty) | Err(_) => return,
            }
        }
    }

    fn handle_waker(&mut self) {
        self.waker.silence();
        for _ in 0..MOST_ACCEPTED_AT_ONCE {
            let Ok(socket) = self.listener.unclaimed.1.try_recv() else { return };
            if let Some(client) = socket.peer_addr().ok().and_then(|peer| peer.as_socket()) {
                self.receive(socket, plain(client));
            }
        }
        self.waker.wake();
    }

    fn receive(&mut self, socket: Socket, client: SocketAddr) {
        let Ok(()) = restore_accepted(&socket) else { return };
        while self.clients.waiting() >= MOST_WAITING {
            self.push_out_one();
        }
        let arrival = Arrival::new(socket, client);
        let number = self.clients.add(client, Incoming::Arriving(arrival));
        if self.watch(number).is_ok() {
            self.identify(number);
        } else {
            self.clients.remove(number);
        }
    }

    fn watch(&self, number: usize) -> io::Result<()> {
        let Some(Incoming::Arriving(arrival)) = self.clients.kept(number) else { return Ok(()) };
        let data = EventData::new_u64(number as u64);
        let edges = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.poll, arrival.socket.as_fd(), data, edges)?)
    }

    pub(super) fn handle_ready(&mut self, number: usize) {
        match self.clients.kept(number) {
            Some(Incoming::Arriving(_)) => self.begin_control(number),
            Some(Incoming::Control(_)) => self.listen(number),
            None => {}
        }
    }

    /// Looks at what an arrival has said.
    pub(super) fn identify(&mut self, number: usize) {
        let Some(Incoming::Arriving(arrival)) = self.clients.kept_mut(number) else { return };
        match arrival.identify() {
            Identified::NotYet => {}
            Identified::Foreign(why) => self.remove(number, Some(why)),
            Identified::Control => {
                arrival.has_spoken = true;
                let origin = Origin::of(arrival.client);
                self.turns.push(number, origin);
                self.place(number);
            }
            Identified::Data(opening) => {
                let Some(Incoming::Arriving(arrival)) = self.clients.remove(number) else { return };
                self.handle_data(arrival, &opening);
            }
        }
    }

    fn begin_control(&mut self, number: usize) {
        let Self { clients, listener, tls, .. } = self;
        clients.replace(number, |incoming| match incoming {
            Incoming::Arriving(Arrival { socket, client, .. }) => {
                listener.first_window.restore(&socket);
                let _slower_at_worst = socket.set_tcp_nodelay(true);
                let control = Control::new(socket, client, &tls.control).ok()?;
                Some(Incoming::Control(Box::new(control)))
            }
            control @ Incoming::Control(_) => Some(control),
        });
        self.listen(number);
    }

    /// A data connection: it goes to the test whose token it shows.
    fn handle_data(&mut self, arrival: Arrival, opening: &Opening) {
        let refuse = |sink: &Sink, why: &str| {
            sink.offer(Event::Refused { client: arrival.client, why: why.to_owned() });
        };
        let data_tls = Arc::clone(&self.tls.data);
        let _was_watched = epoll::delete(&self.poll, arrival.socket.as_fd());
        let Some(test) = self.test_of(&opening.token) else {
            return refuse(&self.sink, "a data connection shows the token of no running test");
        };
        if test.takes_connections() {
            return test.add_connection(opening.flow, arrival.socket);
        }
        let Some(load) = test.load_lacking(opening.flow) else {
            return refuse(
                &self.sink,
                "a data connection is for a flow that its test doesn't have, or that has a connection \
                 already",
            );
        };
        let workload = load.workload();
        if matches!(workload.transport, Transport::Udp | Transport::Quic) {
            return refuse(&self.sink, "a data connection belongs to a test over UDP");
        }
        if let Err(error) = configure_stream(&arrival.socket, &workload.socket, workload.no_delay())
        {
            return refuse(&self.sink, &format!("its options can't be set: {error}"));
        }
        let negotiation = match workload.transport {
            Transport::Tls => match Negotiation::server(data_server(&data_tls, workload)) {
                Ok(negotiation) => Some(negotiation),
                Err(error) => return refuse(&self.sink, &format!("can't begin TLS: {error}")),
            },
            Transport::Tcp | Transport::Udp | Transport::Quic => None,
        };
        load.add_stream(opening.flow, arrival.socket, negotiation);
    }

    fn test_of(&mut self, token: &[u8; 16]) -> Option<&mut Test> {
        match self.clients.kept_mut(*self.tests.get(token)?)? {
            Incoming::Control(control) => control.test.as_mut(),
            Incoming::Arriving(_) => None,
        }
    }

    fn listen(&mut self, number: usize) {
        let Some(Incoming::Control(control)) = self.clients.kept_mut(number) else { return };
        match control.listen(self.options.shared_key.as_ref()) {
            Standing::Goes => {
                if control.has_unread() {
                    self.turns.push_unread(number);
                }
                self.handle_events(number);
            }
            Standing::Over(why) => self.remove(number, why),
        }
    }

    fn conduct_all(&mut self) {
        self.note_tests_beside();
        let numbers: Vec<usize> = self.clients.iter().map(|(number, _)| number).collect();
        for number in numbers {
            // What came while others had their turn, or while the machine was busy elsewhere, is no silence.
            if self.is_thought_silent(number) {
                self.listen(number);
            }
            self.conduct(number);
        }
    }

    /// Tells each test that is being measured how many others are. The tests of a lease are one.
    fn note_tests_beside(&mut self) {
        if self.tests.len() < 2 {
            return;
        }
        let measuring = self.tests.values().filter_map(|number| {
            let Some(Incoming::Control(control)) = self.clients.kept(*number) else { return None };
            let is_measuring = control.test.as_ref().is_some_and(Test::is_measuring);
            is_measuring.then(|| control.place(*number))
        });
        let mut places: Vec<usize> = measuring.collect();
        places.sort_unstable();
        places.dedup();
        let others = u32::try_from(places.len().saturating_sub(1)).unwrap_or(u32::MAX);
        for number in self.tests.values() {
            if let Some(Incoming::Control(control)) = self.clients.kept_mut(*number)
                && let Some(test) = &mut control.test
            {
                test.handle_other_tests(others);
            }
        }
    }

    /// Tells what the server does, where somebody reads it.
    fn tell_status(&mut self, now_ns: u64) {
        let Some(mut status) = self.lifetime.teller.begin(now_ns) else { return };
        status.waiting = self.admission.waiting().count() as u64;
        for number in self.tests.values() {
            if let Some(Incoming::Control(control)) = self.clients.kept_mut(*number)
                && let Some(test) = &mut control.test
            {
                status.add_test(test.figures(now_ns));
            }
        }
        self.lifetime.teller.tell(&status);
    }

    /// Whether a client that has agreed on TLS is about to lose its place. Handshakes of others wait for their turns
    /// between it and the acceptor; what it has sent costs little to read.
    fn is_thought_silent(&self, number: usize) -> bool {
        let Some(Incoming::Control(control)) = self.clients.kept(number) else { return false };
        control.has_agreed() && control.is_overdue()
    }

    pub(super) fn conduct(&mut self, number: usize) {
        let now_ns = monotonic_ns();
        let Some(Incoming::Control(control)) = self.clients.kept_mut(number) else {
            if let Some(Incoming::Arriving(arrival)) = self.clients.kept(number)
                && arrival.deadline_ns <= now_ns
            {
                let why = match arrival.has_spoken {
                    true => "its handshake had no turn in time: too many others came before it",
                    false => "it said nothing",
                };
                self.remove(number, Some(why.to_owned()));
            }
            return;
        };
        let standing = control.conduct(now_ns);
        if control.test.as_ref().is_some_and(Test::is_over) {
            self.end_test(number, COMPLETE);
            self.depart(number);
        }
        // A conversation that has failed is over, too, and may be written out already: why it failed comes first. What
        // the client asked for before that is of no use any more.
        while let Some(Incoming::Control(control)) = self.clients.kept_mut(number)
            && let Some(event) = control.poll_event()
        {
            if let ServerEvent::Failed(fault) = event {
                self.handle_fault(number, &fault);
            }
        }
        if let Standing::Over(why) = standing {
            self.remove(number, why);
        }
        self.place(number);
    }

    pub(super) fn remove(&mut self, number: usize, why: Option<String>) {
        self.end_test(number, why.as_deref().unwrap_or("ended"));
        self.release_lease(number);
        let client = match self.clients.remove(number) {
            Some(Incoming::Arriving(arrival)) => arrival.client,
            Some(Incoming::Control(control)) => control.client,
            None => return,
        };
        self.turns.remove(number, Origin::of(client));
        self.depart(number);
        if let Some(why) = why {
            self.sink.offer(Event::Refused { client, why });
        }
    }

    /// Leaves the listener to the loads that take their connections from it themselves, as long as
    /// there is one.
    pub(super) fn leave_or_take_listener(&mut self) {
        let leave = self.running_tests().any(Test::accepts);
        self.listener.leave_or_take(&self.poll, leave);
    }

    /// Lets connections begin with the window that all tests want that await some.
    pub(super) fn set_first_window(&mut self) {
        let running = running(&self.tests, &self.clients);
        let awaiting = running.filter(|test| test.awaits_connections());
        self.listener.set_first_window(awaiting.map(|test| test.workload().socket.window_bytes));
    }

    pub(super) fn running_tests(&self) -> impl Iterator<Item = &Test> {
        running(&self.tests, &self.clients)
    }

    fn handle_datagrams(&mut self) {
        for hello in self.udp.hellos() {
            self.handle_hello(&hello);
        }
    }

    fn handle_hello(&mut self, hello: &Hello) {
        let Some(Incoming::Control(control)) =
            self.tests.get(&hello.token).and_then(|number| self.clients.kept_mut(*number))
        else {
            return;
        };
        let (Some(test), Some(machine)) = (&mut control.test, &mut control.conversation.machine)
        else {
            return;
        };
        if !matches!(test.workload().transport, Transport::Udp | Transport::Quic) {
            return;
        }
        if let Some(load) = test.load_lacking(hello.flow)
            && let Err(error) = self.udp.answer(hello, &hello.token, load)
        {
            test.fail(machine, error.to_string(), monotonic_ns());
        }
    }

    /// Whether the server goes on.
    fn goes_on(&mut self, cancel: &Cancel) -> bool {
        let Self { lifetime, tests, clients, sink, .. } = self;
        !cancel.requested()
            && lifetime.goes_on(!tests.is_empty(), |number| clients.kept(number).is_some(), sink)
    }

    /// The server ends, and with it every test that runs.
    fn end_all_tests(&mut self) {
        let running: Vec<usize> = self.tests.values().copied().collect();
        for number in running {
            self.end_test(number, "the server was stopped");
        }
    }
}

/// The tests that run.
fn running<'a>(
    tests: &'a HashMap<[u8; 16], usize>,
    clients: &'a Pending<Incoming>,
) -> impl Iterator<Item = &'a Test> {
    tests.values().filter_map(|number| match clients.kept(*number) {
        Some(Incoming::Control(control)) => control.test.as_ref(),
        _ => None,
    })
}
