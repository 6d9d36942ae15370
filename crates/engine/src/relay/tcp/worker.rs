//! One thread of a proxy of TCP: the pairs of connections whose clients it has accepted.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use linerate_measure::SocketOptions;
use linerate_wire::relay::End;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;
use socket2::{Socket, TcpKeepalive};

use super::super::counts::Counts;
use super::super::{ProxyEvent, ProxyPlan, Shared};
use super::mover::Mover;
use super::pair::{Fate, Pair};
use crate::acceptor::{Accepted, accept};
use crate::socket::{Binding, connect_stream};

/// How soon a request to stop is noticed.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// How often what the pairs hold is counted.
const COUNT_EVERY: Duration = Duration::from_millis(500);
/// Marks the listener among the events.
const LISTENER: u64 = u64::MAX;
/// Clients accepted before others have their turn.
const ACCEPTED_AT_ONCE: usize = 64;
/// How long nobody is accepted where this machine has no descriptor to spare.
const SHORT: Duration = Duration::from_millis(100);
/// How long a connection may carry nothing before the kernel asks whether its peer is there, how often it asks then,
/// and after how many questions without an answer the connection is broken.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(60))
    .with_interval(Duration::from_secs(15))
    .with_retries(4);
/// Events taken at once.
const EVENTS: usize = 256;

/// One thread of a proxy of TCP.
pub(in super::super) struct Worker {
    plan: ProxyPlan,
    shared: Shared,
    counts: Arc<Counts>,
    listener: Arc<Socket>,
    poll: OwnedFd,
    pairs: Vec<Option<Pair>>,
    vacant: Vec<usize>,
    /// Pairs whose connection to the target doesn't stand, and until when it may take.
    connecting: VecDeque<(Instant, usize)>,
    mover: Mover,
    /// Pairs that have more to carry, and leave others their turn before.
    unfinished: BTreeSet<usize>,
    /// No client is accepted before.
    short_until: Option<Instant>,
}

impl Worker {
    pub(in super::super) fn new(
        plan: &ProxyPlan,
        listener: Arc<Socket>,
        shared: Shared,
    ) -> io::Result<Self> {
        let worker = Self {
            plan: plan.clone(),
            counts: Arc::clone(&shared.counts),
            shared,
            listener,
            poll: epoll::create(CreateFlags::CLOEXEC)?,
            pairs: Vec::new(),
            vacant: Vec::new(),
            connecting: VecDeque::new(),
            mover: Mover::new(plan.threads),
            unfinished: BTreeSet::new(),
            short_until: None,
        };
        worker.listen()?;
        Ok(worker)
    }

    fn listen(&self) -> io::Result<()> {
        let interest = EventFlags::IN | EventFlags::EXCLUSIVE;
        Ok(epoll::add(&self.poll, &*self.listener, EventData::new_u64(LISTENER), interest)?)
    }

    /// Serves until the proxy stops.
    pub(in super::super) fn run(mut self) -> io::Result<()> {
        let (mut counted, mut events) = (Instant::now(), Vec::with_capacity(EVENTS));
        while !self.shared.stop.load(Ordering::Relaxed) {
            let at_most = if self.unfinished.is_empty() { &LOOK } else { &NOW };
            match epoll::wait(&self.poll, spare_capacity(&mut events), Some(at_most)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept_some()?,
                    key => self.handle_ready(key, event.flags),
                }
            }
            for number in std::mem::take(&mut self.unfinished) {
                self.work(number);
            }
            self.look_at_connecting();
            if self.short_until.is_some_and(|until| Instant::now() >= until) {
                self.short_until = None;
                self.listen()?;
            }
            if counted.elapsed() >= COUNT_EVERY {
                counted = Instant::now();
                self.count();
            }
        }
        for number in 0..self.pairs.len() {
            self.forget(number, true);
        }
        self.count();
        Ok(())
    }

    fn accept_some(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTED_AT_ONCE {
            match accept(&self.listener)? {
                Accepted::Client(socket, client) => match self.shared.admission.admit(client) {
                    Ok(admitted) => self.begin(socket, client, admitted),
                    Err(limit) => {
                        self.counts.refused.add(1);
                        self.shared.tell(ProxyEvent::Refused(client, limit));
                        let _reset_at_best = socket.set_linger(Some(Duration::ZERO));
                    }
                },
                Accepted::Gone => {}
                Accepted::Empty => return Ok(()),
                Accepted::Short(_) => {
                    // A listener that is not emptied would wake this thread at once, again and again.
                    epoll::delete(&self.poll, &*self.listener)?;
                    self.short_until = Some(Instant::now() + SHORT);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        client_socket: Socket,
        client: std::net::SocketAddr,
        admitted: super::super::admission::Admitted,
    ) {
        let target = self.plan.target;
        let connected = connect_stream(target, &Binding::default(), &SocketOptions::default());
        self.counts.connections.add(1);
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.pairs.push(None);
            self.pairs.len() - 1
        });
        let added = connected.and_then(|target_socket| {
            for (end, socket) in (0_u64..).zip([&client_socket, &target_socket]) {
                socket.set_tcp_nodelay(true)?;
                socket.set_tcp_keepalive(&KEEPALIVE)?;
                let data = EventData::new_u64(number as u64 * 2 + end);
                let interest =
                    EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                epoll::add(&self.poll, socket, data, interest)?;
            }
            Ok(target_socket)
        });
        match added {
            Ok(target_socket) => {
                let sockets = [client_socket, target_socket];
                let due = Instant::now() + self.plan.connect_timeout;
                let buffer_bytes = self.plan.limits.buffer_bytes as usize;
                let counts = Arc::clone(&self.counts);
                let pair = Pair::new(client, sockets, (buffer_bytes, due), counts, admitted);
                if let Some(slot) = self.pairs.get_mut(number) {
                    *slot = Some(pair);
                }
                self.counts.open.add(1);
                self.connecting.push_back((due, number));
            }
            Err(error) => {
                self.vacant.push(number);
                self.counts.failed.add(1);
                let why = format!("can't connect to the target {target}: {error}");
                self.shared.tell(ProxyEvent::TargetFailed(client, why));
                let _reset_at_best = client_socket.set_linger(Some(Duration::ZERO));
            }
        }
    }

    fn handle_ready(&mut self, key: u64, flags: EventFlags) {
        let number = (key / 2) as usize;
        let end = if key.is_multiple_of(2) { End::Client } else { End::Target };
        let Some(pair) = self.pairs.get_mut(number).and_then(Option::as_mut) else { return };
        if !pair.is_connected() && end == End::Target {
            let error = pair.socket(end).take_error().ok().flatten();
            if let Some(error) = error {
                return self.lose_target(number, &error.to_string());
            }
            if pair.socket(end).peer_addr().is_err() {
                return;
            }
            pair.handle_connected();
        }
        let ended = EventFlags::HUP | EventFlags::ERR;
        let is_readable = flags.intersects(EventFlags::IN | EventFlags::RDHUP | ended);
        pair.handle_ready(end, is_readable, flags.intersects(EventFlags::OUT | ended));
        // A connection that was reset may have nothing left to read or write that would tell.
        let is_reset = flags.contains(EventFlags::ERR);
        self.work(number);
        let Some(pair) = self.pairs.get(number).and_then(Option::as_ref) else { return };
        if is_reset && pair.socket(end).take_error().ok().flatten().is_some() {
            self.forget(number, true);
        }
    }

    fn work(&mut self, number: usize) {
        let Some(pair) = self.pairs.get_mut(number).and_then(Option::as_mut) else { return };
        match pair.work(&mut self.mover) {
            Fate::GoesOn => {}
            Fate::Unfinished => {
                self.unfinished.insert(number);
            }
            Fate::Over => self.forget(number, false),
            Fate::Broken => self.forget(number, true),
        }
    }

    /// The connection to the target failed before it stood.
    fn lose_target(&mut self, number: usize, why: &str) {
        let Some(pair) = self.pairs.get(number).and_then(Option::as_ref) else { return };
        let why = format!("can't connect to the target {}: {why}", self.plan.target);
        self.counts.failed.add(1);
        self.shared.tell(ProxyEvent::TargetFailed(pair.client, why));
        self.forget(number, true);
    }

    fn look_at_connecting(&mut self) {
        while let Some((limit, number)) = self.connecting.front().copied() {
            let pair = self.pairs.get(number).and_then(Option::as_ref);
            // The number may be another pair's by now.
            let is_connecting = pair.is_some_and(|pair| !pair.is_connected() && pair.due == limit);
            if is_connecting && Instant::now() < limit {
                return;
            }
            self.connecting.pop_front();
            if is_connecting {
                let timeout = self.plan.connect_timeout;
                self.lose_target(number, &format!("no answer for {timeout:?}"));
            }
        }
    }

    fn forget(&mut self, number: usize, breaks: bool) {
        let Some(pair) = self.pairs.get_mut(number).and_then(Option::take) else { return };
        if breaks {
            pair.break_off();
        }
        pair.end(&mut self.mover);
        self.vacant.push(number);
        self.counts.open.set(self.counts.open.value().saturating_sub(1));
    }

    /// Counts what the pairs hold.
    fn count(&self) {
        for end in End::ALL {
            let held_bytes: usize =
                self.pairs.iter().flatten().map(|pair| pair.held_bytes(end)).sum();
            self.counts.end(end).held_bytes.set(held_bytes as u64);
        }
    }
}
