//! The thread that receives connections, and knows which tests there are.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use linerate_wire::iperf3::{Code, Cookie, State};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use socket2::Socket;

use super::awaited::Awaited;
use super::guests::Guests;
use super::listener::Beginning;
use super::room::first_to_go;
use super::test::{Arrival, Test};
use super::udp::{Claim, UdpPort};
use super::{Server, peer_of};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::event::Cancel;
use crate::iperf3::running::LOOK_NS;
use crate::iperf3::{Failure, Observer, ServerEvent};
use crate::pending::Origin;
use crate::socket::is_short_of_descriptors;
use crate::waker::Waker;

/// Connections accepted before others have their turn.
const MOST_AT_ONCE: usize = 64;
/// How long tests may take to say that the server ends.
const FAREWELL_NS: u64 = 2 * SECOND_NS;

/// What tests say to the reception.
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

/// A test as the reception knows it.
pub(super) struct Entry {
    cookie: Cookie,
    pub(super) origin: Origin,
    to: Sender<Arrival>,
    waker: Arc<Waker>,
    /// Whether it has its streams.
    pub(super) complete: bool,
    /// The streams over TCP that it waits for; others that come are closed.
    awaited: Option<Arc<Awaited>>,
    /// Tells it that others need its place.
    pub(super) turned_out: Cancel,
}

impl Entry {
    /// Takes a connection that says it is one of its streams.
    fn admit(&self, socket: Socket) {
        let arrival = match self.awaited.as_ref().map(|awaited| awaited.count_in()) {
            None | Some(Ok(false)) => return,
            Some(Ok(true)) => Arrival::Stream(socket),
            Some(Err(failure)) => Arrival::Failed(failure),
        };
        // A test that is over hears nothing, and the connection closes.
        let _over = self.to.send(arrival);
        self.waker.wake();
    }
}

/// The server's first thread.
pub(super) struct Reception {
    server: Server,
    waker: Arc<Waker>,
    notices: (Sender<Notice>, Receiver<Notice>),
    guests: Guests,
    udp: UdpPort,
    tests: BTreeMap<u64, Entry>,
    /// Tests so far.
    count: u64,
    /// When the server last had anything to do.
    busy_ns: u64,
    /// How the last test ended.
    last: Option<Failure>,
}

impl Reception {
    pub(super) fn new(mut server: Server) -> Result<Self, Failure> {
        let waker = Waker::new()
            .map_err(|error| Failure::of(Code::INIT_TEST).because(error.to_string()))?;
        let udp = UdpPort::new(server.datagrams.take());
        Ok(Self {
            server,
            waker: Arc::new(waker),
            notices: channel(),
            guests: Guests::default(),
            udp,
            tests: BTreeMap::new(),
            count: 0,
            busy_ns: monotonic_ns(),
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
            for (cookie, socket) in self.guests.take_known() {
                self.receive(cookie, socket, observe, tell, cancel);
            }
            self.udp.handle_greetings();
            let over = self.handle_notices(tell)?;
            if over && self.server.plan.one_off {
                return self.last.take().map_or(Ok(()), Err);
            }
            if over && self.tests.is_empty() {
                tell(self.listening());
            }
            if self.server.plan.one_off && self.is_idle() {
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
            match self.server.listener.accept() {
                Ok(socket) => self.guests.add(socket),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK) => {
                        return Err(Failure::system(Code::ACCEPT, &error));
                    }
                    _ if is_short_of_descriptors(&error) && self.guests.push_out_one() => {}
                    _ if is_short_of_descriptors(&error) => {
                        // Whoever waits in the backlog is served when a test has ended.
                        std::thread::sleep(std::time::Duration::from_millis(10));
                        return Ok(());
                    }
                    // Nobody is there, or who was has gone.
                    _ => return Ok(()),
                },
            }
        }
        Ok(())
    }

    /// Somebody has said which test it is of.
    fn receive(
        &mut self,
        cookie: Cookie,
        socket: Socket,
        observe: &dyn Fn(u64) -> Box<dyn Observer>,
        tell: &mut dyn FnMut(ServerEvent),
        cancel: &Cancel,
    ) {
        if let Some(entry) = self.tests.values().find(|entry| entry.cookie == cookie) {
            return entry.admit(socket);
        }
        self.server.listener.restore(&socket);
        let begun = if self.has_room(&socket) {
            self.begin_test(cookie, &socket, observe, cancel)
        } else {
            None
        };
        match begun {
            Some(test) => test.start(socket),
            None => {
                // Fails only where nobody listens.
                let _unheard = socket.send(&[State::AccessDenied.byte()]);
                if let Some(client) = peer_of(&socket) {
                    tell(ServerEvent::Busy { client });
                }
            }
        }
    }

    /// Whether another test may begin. When there are too many, one goes that has no streams yet, of
    /// the place that holds the most such.
    fn has_room(&self, socket: &Socket) -> bool {
        let plan = &self.server.plan;
        if plan.one_off && self.count > 0 {
            return false;
        }
        let going = self.tests.values().filter(|entry| entry.turned_out.requested()).count();
        if self.tests.len() - going < plan.most_tests {
            return true;
        }
        let Some(client) = peer_of(socket).filter(|_| going < plan.most_tests) else {
            return false;
        };
        let Some(entry) = first_to_go(self.tests.values(), Origin::of(client)) else {
            return false;
        };
        entry.turned_out.request();
        entry.waker.wake();
        true
    }

    fn begin_test(
        &mut self,
        cookie: Cookie,
        socket: &Socket,
        observe: &dyn Fn(u64) -> Box<dyn Observer>,
        cancel: &Cancel,
    ) -> Option<Test> {
        let origin = Origin::of(peer_of(socket)?);
        let waker = Arc::new(Waker::new().ok()?);
        self.count += 1;
        let (to, arrivals) = channel();
        let turned_out = Cancel::default();
        let entry = Entry {
            cookie,
            origin,
            to: to.clone(),
            waker: Arc::clone(&waker),
            complete: false,
            awaited: None,
            turned_out: turned_out.clone(),
        };
        self.tests.insert(self.count, entry);
        Some(Test {
            number: self.count,
            cookie,
            plan: self.server.plan.clone(),
            gate: self.server.gate.clone(),
            observer: observe(self.count),
            cancel: cancel.clone(),
            turned_out,
            waker,
            to_self: to,
            arrivals,
            reception: (self.notices.0.clone(), Arc::clone(&self.waker)),
        })
    }

    /// Hears what tests have to say; whether one is over.
    fn handle_notices(&mut self, tell: &mut dyn FnMut(ServerEvent)) -> Result<bool, Failure> {
        let mut over = false;
        while let Ok(notice) = self.notices.1.try_recv() {
            self.busy_ns = monotonic_ns();
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
                        entry.complete = true;
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
        // A test that is over hears nothing.
        let _over = entry.to.send(Arrival::Turn);
        entry.waker.wake();
        Ok(())
    }

    fn idle_limit_ns(&self) -> u64 {
        let limit = self.server.plan.idle_timeout;
        limit.map_or(u64::MAX, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
    }

    fn is_idle(&self) -> bool {
        let idle_ns = monotonic_ns().saturating_sub(self.busy_ns);
        self.tests.is_empty() && idle_ns >= self.idle_limit_ns()
    }

    fn wait(&self) {
        let mut polled = vec![
            PollFd::from_borrowed_fd(self.waker.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.server.listener.descriptor(), PollFlags::IN),
        ];
        let others: Vec<BorrowedFd<'_>> =
            self.guests.descriptors().chain(self.udp.descriptor()).collect();
        polled.extend(others.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK_NS as _ };
        let _interrupted = poll(&mut polled, Some(&timeout));
        self.waker.silence();
    }

    /// Lets the tests tell their clients that the server ends.
    fn say_farewell(&mut self, tell: &mut dyn FnMut(ServerEvent)) {
        let deadline_ns = monotonic_ns() + FAREWELL_NS;
        for entry in self.tests.values() {
            entry.waker.wake();
        }
        loop {
            let _lost = self.handle_notices(tell);
            let now_ns = monotonic_ns();
            if self.tests.is_empty() || now_ns >= deadline_ns {
                return;
            }
            // A ring may have been heard before its notice was there.
            self.waker.wait(deadline_ns.min(now_ns + LOOK_NS));
        }
    }
}
