//! The server: it sends to every client that asks, for as long as the client wants.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use linerate_wire::qperf::{Close, FILL};
use linerate_wire::visible::visible_line;

use super::binding::{Binding, Request};
use super::files::Files;
use super::{Counts, EVENTS_WAITING, Interval, LOOK, ServerPlan, Teller};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::error::Error;
use crate::transport::quic::{Cause, Dir, Endpoint, Event, Link, StreamId};

/// What is lent to QUIC at once: few long pieces cost less than many short ones.
const FILL_BYTES: usize = 512 << 10;
/// So long a server that is to stop may read what has come to its socket.
const LAST_TURNS_NS: u64 = 500 * MILLISECOND_NS;
/// How long the last words may take to leave.
const LAST_WORDS: Duration = Duration::from_millis(200);

fn close_of(cause: Cause) -> Close {
    let words = |reason: &[u8]| visible_line(&String::from_utf8_lossy(reason));
    match (cause.close, cause.kind) {
        (Some(close), _) => match close.frame {
            Some(frame) => {
                Close::Transport { code: close.code, frame, reason: words(&close.reason) }
            }
            None => Close::Application { code: close.code, reason: words(&close.reason) },
        },
        (None, std::io::ErrorKind::TimedOut) => Close::Idle,
        (None, std::io::ErrorKind::ConnectionReset) => Close::Reset,
        (None, _) => Close::Other(cause.text),
    }
}

/// Something that a server tells of the connection of this number. The numbers begin with 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A client has come.
    Accepted {
        /// The connection's number.
        number: u64,
        /// Its address.
        remote: SocketAddr,
    },
    /// The handshake is done, so long after it began.
    Established {
        /// The connection's number.
        number: u64,
        /// In ns.
        elapsed_ns: u64,
    },
    /// The client has opened a stream.
    StreamOpened {
        /// The connection's number.
        number: u64,
        /// The stream's.
        stream: u64,
    },
    /// The request on a stream is complete.
    Requested {
        /// The connection's number.
        number: u64,
    },
    /// The client wants no more of a stream.
    Stopped {
        /// With this code.
        code: u64,
    },
    /// The client gave its request up.
    Reset {
        /// With this code.
        code: u64,
    },
    /// An interval is over.
    Interval {
        /// The connection's number.
        number: u64,
        /// The interval.
        interval: Interval,
        /// The congestion window at its end, bytes.
        window_bytes: u64,
    },
    /// The connection is gone.
    Closed {
        /// The connection's number.
        number: u64,
        /// Why.
        close: Close,
        /// All that was sent.
        total: Counts,
        /// How long it sent, from the first request on, ns.
        elapsed_ns: u64,
    },
    /// So many events were dropped, because they were not taken in time.
    Dropped(u64),
    /// A file that the server writes is not whole, for this reason.
    FileFault(String),
    /// The server can't go on.
    Broken(String),
}

/// A server at work. It ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<ServerEvent>>>,
    events: Receiver<ServerEvent>,
}

impl Server {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// When it can't listen there, or this machine refuses a thread or a log.
    pub fn start(plan: &ServerPlan) -> Result<Self, Error> {
        let socket = plan.socket()?;
        let address = socket.local_addr().ok().and_then(|address| address.as_socket());
        let address = address.unwrap_or(plan.address);
        let (side, files) = plan.side()?;
        let (sender, events) = sync_channel(EVENTS_WAITING);
        let stop = Arc::new(AtomicBool::new(false));
        let (plan, stops) = (plan.clone(), Arc::clone(&stop));
        let work = move || {
            let mut teller = Teller::new(sender);
            // An endpoint belongs to the thread that makes it.
            match plan.endpoint(socket, &side) {
                Ok(endpoint) => Worker::new(endpoint, plan.interval_ns, files, teller).run(&stops),
                Err(error) => {
                    teller.tell_in_any_case(ServerEvent::Broken(error.to_string()));
                    teller.into_rest(ServerEvent::Dropped)
                }
            }
        };
        let spawned = thread::Builder::new().name("qperf".to_owned()).spawn(work);
        let thread = Some(spawned.map_err(|error| Error::no_thread(&error))?);
        Ok(Self { address, stop, thread, events })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it tells, in order.
    pub fn events(&self) -> &Receiver<ServerEvent> {
        &self.events
    }

    /// Ends it; what it had still to tell.
    pub fn end(mut self) -> Vec<ServerEvent> {
        let rest = self.end_thread();
        self.events.try_iter().chain(rest).collect()
    }

    /// What the thread had no room to tell.
    fn end_thread(&mut self) -> Vec<ServerEvent> {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that broke off has nothing more to tell.
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end_thread();
    }
}

/// The thread of a server.
pub(super) struct Worker {
    endpoint: Endpoint,
    interval_ns: u64,
    teller: Teller<ServerEvent>,
    bindings: HashMap<Link, Binding>,
    /// How many connections were told.
    count: u64,
    fill: Bytes,
    /// When the next interval of any connection is over.
    next_ns: u64,
    files: Files,
}

impl Worker {
    pub(super) fn new(
        endpoint: Endpoint,
        interval_ns: u64,
        files: Files,
        teller: Teller<ServerEvent>,
    ) -> Self {
        let fill = Bytes::from(vec![FILL; FILL_BYTES]);
        let bindings = HashMap::new();
        let next_ns = u64::MAX;
        Self { endpoint, interval_ns, teller, bindings, count: 0, fill, next_ns, files }
    }

    /// Serves until it is to stop; what there was no room to tell.
    fn run(mut self, stop: &AtomicBool) -> Vec<ServerEvent> {
        let ended = self.serve(stop);
        self.finish(ended)
    }

    pub(super) fn serve(&mut self, stop: &AtomicBool) -> std::io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.turn(LOOK)?;
        }
        // Clients that have closed by now did so in order, though much may stand before that in the socket.
        let until_ns = monotonic_ns().saturating_add(LAST_TURNS_NS);
        while self.turn(Duration::ZERO)? && monotonic_ns() < until_ns {}
        Ok(())
    }

    /// Ends all connections and files; what there was no room to tell.
    pub(super) fn finish(mut self, ended: std::io::Result<()>) -> Vec<ServerEvent> {
        let broken = ended.err().map(|error| error.to_string());
        for (_, binding) in std::mem::take(&mut self.bindings) {
            binding.close();
            let close = match &broken {
                None => Close::Stopped,
                Some(why) => Close::Other(format!("the server can't go on: {why}")),
            };
            self.tell_closed(&binding, close);
        }
        self.endpoint.flush(LAST_WORDS);
        let faults = self.files.finish().into_iter().map(ServerEvent::FileFault);
        let last = faults.chain(broken.map(ServerEvent::Broken));
        last.for_each(|event| self.teller.tell_in_any_case(event));
        self.teller.into_rest(ServerEvent::Dropped)
    }

    /// Sends and takes in; whether there may be more to take in.
    fn turn(&mut self, at_most: Duration) -> std::io::Result<bool> {
        self.endpoint.send_out()?;
        let left = Duration::from_nanos(self.next_ns.saturating_sub(monotonic_ns()));
        self.endpoint.wait(at_most.min(left), None)?;
        let has_more = self.endpoint.take_in()?;
        while let Some((link, event)) = self.endpoint.poll_event() {
            self.handle(link, event);
        }
        self.tick();
        Ok(has_more)
    }

    fn handle(&mut self, link: Link, event: Event) {
        match event {
            Event::Accepted => {
                if let Some(connection) = self.endpoint.connection(link) {
                    let binding = Binding::new(connection.clone(), monotonic_ns());
                    self.bindings.insert(link, binding);
                }
            }
            Event::Established => {
                let Some(number) = self.announce(link) else { return };
                let accepted_ns = self.bindings.get(&link).map_or(0, |one| one.accepted_ns);
                let elapsed_ns = monotonic_ns().saturating_sub(accepted_ns);
                self.teller.tell(ServerEvent::Established { number, elapsed_ns });
            }
            Event::StreamsOpened(dir) => self.accept_streams(link, dir),
            Event::Readable(id) => self.read(link, id),
            Event::Writable(id) => self.send(link, id),
            Event::Stopped(id, code) => {
                self.teller.tell(ServerEvent::Stopped { code });
                self.give_up(link, id, code);
            }
            Event::Closed(cause) => {
                if let Some(binding) = self.bindings.remove(&link) {
                    self.tell_closed(&binding, close_of(cause));
                }
            }
            Event::Incoming(..)
            | Event::Refused
            | Event::StreamsAvailable(_)
            | Event::Delivered(_)
            | Event::Datagrams
            | Event::DatagramsWritable => {}
        }
    }

    /// Tells of a connection, once: with its handshake, or with the streams that came before the end of that. Its
    /// number.
    fn announce(&mut self, link: Link) -> Option<u64> {
        let remote = self.endpoint.connection(link)?.borrow().remote_address();
        let binding = self.bindings.get_mut(&link)?;
        if let Some(number) = binding.number {
            return Some(number);
        }
        let number = self.count;
        // The end of a connection that was told is told in any case. So there are as many at most as there is room.
        if !self.teller.tell(ServerEvent::Accepted { number, remote }) {
            return None;
        }
        self.count += 1;
        binding.number = Some(number);
        Some(number)
    }

    fn accept_streams(&mut self, link: Link, dir: Dir) {
        loop {
            let Some(connection) = self.endpoint.connection(link) else { return };
            let Some(id) = connection.borrow_mut().accept_stream(dir) else { return };
            if dir == Dir::Uni {
                // There is no way to answer on one.
                connection.borrow_mut().stop_sending(id, 0);
                continue;
            }
            if let Some(number) = self.announce(link) {
                self.teller.tell(ServerEvent::StreamOpened { number, stream: id.into() });
            }
            if let Some(binding) = self.bindings.get_mut(&link) {
                binding.insert(id);
            }
            self.read(link, id);
        }
    }

    fn read(&mut self, link: Link, id: StreamId) {
        let Some(binding) = self.bindings.get_mut(&link) else { return };
        match binding.read(id) {
            Request::Pending => {}
            Request::Reset(code) => {
                self.teller.tell(ServerEvent::Reset { code });
                self.give_up(link, id, code);
            }
            Request::Complete => {
                binding.begin_intervals(self.interval_ns, monotonic_ns());
                self.next_ns = self.next_ns.min(binding.next_ns().unwrap_or(u64::MAX));
                if let Some(number) = binding.number {
                    self.teller.tell(ServerEvent::Requested { number });
                }
                self.send(link, id);
            }
        }
    }

    fn send(&mut self, link: Link, id: StreamId) {
        if let Some(binding) = self.bindings.get_mut(&link) {
            binding.send(id, &self.fill);
        }
    }

    fn give_up(&mut self, link: Link, id: StreamId, code: u64) {
        if let Some(binding) = self.bindings.get_mut(&link) {
            binding.give_up(id, code);
        }
    }

    /// Tells the intervals that are over.
    fn tick(&mut self) {
        let now_ns = monotonic_ns();
        self.teller.tell_dropped(ServerEvent::Dropped);
        if let Some(fault) = self.files.tick(now_ns) {
            self.teller.tell_in_any_case(ServerEvent::FileFault(fault));
        }
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = u64::MAX;
        for binding in self.bindings.values_mut() {
            if let Some((interval, window_bytes)) = binding.tick(now_ns) {
                match binding.number {
                    Some(number) => {
                        let over = ServerEvent::Interval { number, interval, window_bytes };
                        self.teller.tell(over);
                    }
                    None => self.teller.drop_untold(),
                }
            }
            self.next_ns = self.next_ns.min(binding.next_ns().unwrap_or(u64::MAX));
        }
    }

    /// A connection without a first event has no last one either.
    fn tell_closed(&mut self, binding: &Binding, close: Close) {
        let Some(number) = binding.number else { return };
        let total = binding.counts();
        let elapsed_ns = binding.began_ns().map_or(0, |began| monotonic_ns().saturating_sub(began));
        self.teller.tell_in_any_case(ServerEvent::Closed { number, close, total, elapsed_ns });
    }
}
