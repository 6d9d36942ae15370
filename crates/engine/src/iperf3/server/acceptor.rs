//! The thread that receives connections, and knows which tests there are.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use linerate_wire::iperf3::{Code, Cookie, State};
use socket2::Socket;

use super::Server;
use super::awaited::Awaited;
use super::hello::{Hellos, Known};
use super::listener::Beginning;
use super::test::{Arrival, Test};
use super::udp::{Claim, UdpPort};
use crate::acceptor::{Accepted, IdleTimeout, SlotLimits, Slots};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::event::Cancel;
use crate::iperf3::running::LOOK_NS;
use crate::iperf3::{Failure, Observer, ServerEvent};
use crate::poll::readable_until;
use crate::waker::Waker;

/// Connections accepted before others have their turn.
const MOST_AT_ONCE: usize = 64;
/// How long tests may take to say that the server ends.
const CLOSING_NS: u64 = 2 * SECOND_NS;

/// What tests say to the acceptor.
pub(super) enum Notice {
    /// A test wants streams of datagrams.
    Claim(Claim),
    /// A test wants streams over TCP that begin so.
    Await(u64, Beginning, Arc<Awaited>),
    /// A test has its streams: none of its cookie come any more.
    Complete(u64),
    /// A test is over.
    Over(u64, Option<Failure>),
}

/// A test as the acceptor knows it.
pub(super) struct Entry {
    cookie: Cookie,
    to: Sender<Arrival>,
    waker: Arc<Waker>,
    /// The streams over TCP that it waits for; others that come are closed.
    awaited: Option<Arc<Awaited>>,
}

impl Entry {
    /// Takes a connection that says it is one of its streams.
    fn admit(&self, socket: Socket) {
        let arrival = match self.awaited.as_ref().map(|awaited| awaited.count_in()) {
            None | Some(Ok(false)) => return,
            Some(Ok(true)) => Arrival::Stream(socket),
            Some(Err(failure)) => Arrival::Failed(failure),
        };
        // Fails only if the test is over, and then the connection closes.
        let _over = self.to.send(arrival);
        self.waker.wake();
    }
}

/// The server's first thread.
pub(super) struct Iperf3Acceptor {
    server: Server,
    waker: Arc<Waker>,
    notices: (Sender<Notice>, Receiver<Notice>),
    hellos: Hellos,
    slots: Arc<Slots>,
    udp: UdpPort,
    tests: BTreeMap<u64, Entry>,
    /// Tests so far.
    count: u64,
    idle_timeout: IdleTimeout,
    /// How the last test ended.
    last: Option<Failure>,
}

impl Iperf3Acceptor {
    pub(super) fn new(mut server: Server) -> Result<Self, Failure> {
        let waker = Waker::new()
            .map_err(|error| Failure::of(Code::INIT_TEST).because(error.to_string()))?;
        let udp = UdpPort::new(server.datagrams.take());
        let most = server.plan.most_tests;
        let limits = SlotLimits { most, most_idle: most, most_leaving: most, promised: true };
        let idle_limit = server.plan.idle_timeout;
        Ok(Self {
            server,
            waker: Arc::new(waker),
            notices: channel(),
            hellos: Hellos::new(),
            slots: Slots::new(limits),
            udp,
            tests: BTreeMap::new(),
            count: 0,
            idle_timeout: IdleTimeout::new(
                idle_limit.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)),
            ),
            last: None,
        })
    }

    pub(super) fn run(
        mut self,
        observe: &dyn Fn(u64) -> Box<dyn Observer>,
        tell: &mut dyn FnMut(ServerEvent),
        cancel: &Cancel,
    ) -> Result<(), Failure> {
        tell(self.listening());
        loop {
            if cancel.requested() {
                self.say_farewell(tell);
                return Ok(());
            }
            self.accept()?;
            for known in self.hellos.take_known() {
                self.receive(known, observe, tell, cancel);
            }
            self.udp.handle_greetings();
            let over = self.handle_notices(tell)?;
            if over && self.server.plan.one_off {
                return self.last.take().map_or(Ok(()), Err);
            }
            if over && self.tests.is_empty() {
                tell(self.listening());
            }
            if self.server.plan.one_off
                && self.tests.is_empty()
                && self.idle_timeout.overdue_ns().is_some()
            {
                return Ok(());
            }
            self.wait();
        }
    }

    fn listening(&self) -> ServerEvent {
        ServerEvent::Listening { address: self.server.local_address(), test_number: self.count + 1 }
    }

    fn accept(&mut self) -> Result<(), Failure> {
        for _ in 0..MOST_AT_ONCE {
            let accepted = self.server.listener.accept();
            match accepted.map_err(|error| Failure::system(Code::ACCEPT, &error))? {
                Accepted::Client(socket, client) => self.hellos.add(socket, client),
                Accepted::Gone => {}
                Accepted::Empty => return Ok(()),
                Accepted::Short(_) if self.hellos.push_out_one() => {}
                Accepted::Short(_) => {
                    // Connections in the backlog are accepted when a test has ended.
                    std::thread::sleep(std::time::Duration::from_millis(10));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A connection has sent the cookie of its test.
    fn receive(
        &mut self,
        known: Known,
        observe: &dyn Fn(u64) -> Box<dyn Observer>,
        tell: &mut dyn FnMut(ServerEvent),
        cancel: &Cancel,
    ) {
        let Known { cookie, socket, client } = known;
        if let Some(entry) = self.tests.values().find(|entry| entry.cookie == cookie) {
            return entry.admit(socket);
        }
        self.server.listener.restore(&socket);
        match self.begin_test(cookie, client, observe, cancel) {
            Some(test) => test.start(socket),
            None => {
                // Fails only if the receiver is gone.
                let _unheard = socket.send(&[State::AccessDenied.byte()]);
                tell(ServerEvent::Busy { client });
            }
        }
    }

    /// A test of this client's, where there is room for one.
    fn begin_test(
        &mut self,
        cookie: Cookie,
        client: SocketAddr,
        observe: &dyn Fn(u64) -> Box<dyn Observer>,
        cancel: &Cancel,
    ) -> Option<Test> {
        if self.server.plan.one_off && self.count > 0 {
            return None;
        }
        let waker = Arc::new(Waker::new().ok()?);
        let slot = self.slots.admit(client, Arc::clone(&waker))?;
        self.count += 1;
        let (to, arrivals) = channel();
        let entry = Entry { cookie, to: to.clone(), waker: Arc::clone(&waker), awaited: None };
        self.tests.insert(self.count, entry);
        Some(Test {
            number: self.count,
            cookie,
            plan: self.server.plan.clone(),
            gate: self.server.gate.clone(),
            observer: observe(self.count),
            cancel: cancel.clone(),
            slot,
            waker,
            to_self: to,
            arrivals,
            acceptor: (self.notices.0.clone(), Arc::clone(&self.waker)),
        })
    }

    /// Hears what tests have to say; whether one is over.
    fn handle_notices(&mut self, tell: &mut dyn FnMut(ServerEvent)) -> Result<bool, Failure> {
        let mut over = false;
        while let Ok(notice) = self.notices.1.try_recv() {
            self.idle_timeout.note_busy();
            match notice {
                Notice::Claim(claim) => {
                    let device = self.server.plan.bind_device.as_deref();
                    self.udp.claim(claim, self.server.local_address(), device);
                }
                Notice::Await(test, beginning, awaited) => {
                    self.prepare_for(test, beginning, awaited)?;
                }
                Notice::Complete(test) => {
                    self.udp.release(test);
                    self.server.listener.release(test);
                    if let Some(entry) = self.tests.get_mut(&test) {
                        entry.awaited = None;
                    }
                }
                Notice::Over(test, failure) => {
                    self.udp.release(test);
                    self.server.listener.release(test);
                    over |= self.tests.remove(&test).is_some();
                    self.last.clone_from(&failure);
                    tell(ServerEvent::TestEnded { test_number: test, failure });
                }
            }
        }
        Ok(over)
    }

    /// The streams of a test are to come.
    fn prepare_for(
        &mut self,
        test: u64,
        beginning: Beginning,
        awaited: Arc<Awaited>,
    ) -> Result<(), Failure> {
        if self.server.listener.is_changed_by(beginning) {
            for _ in 0..MOST_AT_ONCE {
                self.accept()?;
            }
        }
        let Some(entry) = self.tests.get_mut(&test) else { return Ok(()) };
        let prepared = self.server.listener.await_streams(test, beginning);
        prepared.map_err(|error| Failure::system(Code::LISTEN, &error))?;
        entry.awaited = Some(awaited);
        // Fails only if the test is over.
        let _over = entry.to.send(Arrival::Turn);
        entry.waker.wake();
        Ok(())
    }

    fn wait(&self) {
        let own = [self.waker.as_fd(), self.server.listener.descriptor()];
        let others = self.hellos.descriptors().chain(self.udp.descriptor());
        readable_until(own.into_iter().chain(others), monotonic_ns() + LOOK_NS);
        self.waker.silence();
    }

    /// Lets the tests tell their clients that the server ends.
    fn say_farewell(&mut self, tell: &mut dyn FnMut(ServerEvent)) {
        let deadline_ns = monotonic_ns() + CLOSING_NS;
        for entry in self.tests.values() {
            entry.waker.wake();
        }
        loop {
            let _lost = self.handle_notices(tell);
            let now_ns = monotonic_ns();
            if self.tests.is_empty() || now_ns >= deadline_ns {
                return;
            }
            // The waker may have been used before the notice was there.
            self.waker.wait(deadline_ns.min(now_ns + LOOK_NS));
        }
    }
}
