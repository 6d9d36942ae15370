//! QUIC connections that each have a UDP socket, and so a port, of their own.

mod place;
mod turn;
mod waiting;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags};

use super::endpoint::{Look, insist};
use super::multiplexed::{MultiplexedEndpoint, QUIET};
use crate::socket::is_short_of_descriptors;
use crate::transport::multiplexer::{
    Destination, Link, LinkEvent, Multiplexer, Sending, StreamWaits,
};
use place::{Place, UNSAID_LIMIT};

/// Readiness taken at once.
const READY_AT_ONCE: usize = 64;

/// Makes the endpoint of another connection.
type Opening<'a> = Box<dyn Fn() -> io::Result<MultiplexedEndpoint> + 'a>;

/// Connections of a client, each over an endpoint of its own.
pub(crate) struct SeparateEndpoints<'a> {
    opening: Opening<'a>,
    poll: OwnedFd,
    places: Vec<Place>,
    vacant: Vec<u32>,
    /// How many places have a socket.
    open: usize,
    /// The only one that has, where the poll set doesn't know it: it is asked itself, which costs less.
    alone: Option<u32>,
    /// Places that something has happened to, in the order in which they are served.
    queue: VecDeque<u32>,
    /// Those whose sockets have something that wasn't taken in yet.
    unread: VecDeque<u32>,
    /// When places are to be looked at. Entries that don't say what their place says mean nothing.
    times: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Connections that have ended, and when their sockets may close; earliest first, but for those that stay
    /// longer.
    stays: VecDeque<(Instant, Link)>,
    events: VecDeque<(Link, LinkEvent)>,
    /// Readiness as it was taken, kept for its memory.
    ready: Vec<epoll::Event>,
    look: Look,
    /// The place that packets came to last.
    heard: Option<u32>,
    /// How long to try again and again before sleeping.
    busy: Duration,
    block: Option<Arc<Vec<u8>>>,
    watches: bool,
    /// Whether connections are followed by others.
    repeats: bool,
    /// The next connection's endpoint, made while there was nothing else to do.
    spare: Option<MultiplexedEndpoint>,
    /// Whether there was none to be had since the last socket closed.
    lacks_spare: bool,
}

impl<'a> SeparateEndpoints<'a> {
    /// # Errors
    ///
    /// Where this machine has no poll set.
    pub(crate) fn new(opening: Opening<'a>) -> io::Result<Self> {
        Ok(Self {
            opening,
            poll: epoll::create(CreateFlags::CLOEXEC)?,
            places: Vec::new(),
            vacant: Vec::new(),
            open: 0,
            alone: None,
            queue: VecDeque::new(),
            unread: VecDeque::new(),
            times: BinaryHeap::new(),
            stays: VecDeque::new(),
            events: VecDeque::new(),
            ready: Vec::with_capacity(READY_AT_ONCE),
            look: Look::new(),
            heard: None,
            busy: Duration::ZERO,
            block: None,
            watches: false,
            repeats: false,
            spare: None,
            lacks_spare: false,
        })
    }

    /// One whose connections are followed by others: their sockets are opened ahead, while servers think.
    pub(crate) fn repeating(mut self, repeats: bool) -> Self {
        self.repeats = repeats;
        self
    }

    /// One that tries again and again for so long before it sleeps.
    pub(crate) fn spinning(mut self, busy: Duration) -> Self {
        self.busy = busy;
        self
    }

    /// How many sockets there are.
    #[cfg(test)]
    pub(crate) fn sockets(&self) -> usize {
        self.open
    }

    fn endpoint(&mut self, link: Link) -> Option<(&mut MultiplexedEndpoint, Link)> {
        let place = self.places.get_mut(link.index as usize)?;
        let found = place.endpoint.as_mut().filter(|_| place.generation == link.generation)?;
        Some((&mut found.0, found.1))
    }

    /// The endpoint of a connection that is given something to do.
    fn touched(&mut self, link: Link) -> Option<(&mut MultiplexedEndpoint, Link)> {
        self.endpoint(link)?;
        self.touch(link.index);
        self.endpoint(link)
    }

    /// Opens the next connection's socket, if there will be one and there is a descriptor to spare.
    fn open_ahead(&mut self) {
        if self.repeats && self.spare.is_none() && !self.lacks_spare && self.open > 0 {
            self.spare = self.open().ok();
            self.lacks_spare = self.spare.is_none();
        }
    }

    /// Opens a socket that is needed now, if must be in place of one whose connection has ended.
    fn open_at_once(&mut self) -> io::Result<MultiplexedEndpoint> {
        match self.open() {
            Err(error) if is_short_of_descriptors(&error) && self.forget_ended() => self.open(),
            opened => opened,
        }
    }

    fn open(&self) -> io::Result<MultiplexedEndpoint> {
        let mut endpoint = (self.opening)()?;
        if let Some(block) = &self.block {
            endpoint.lend(block);
        }
        if self.watches {
            endpoint.watch_waits();
        }
        Ok(endpoint)
    }
}

impl Multiplexer for SeparateEndpoints<'_> {
    fn connect(&mut self, to: &Destination) -> io::Result<Link> {
        let mut endpoint = match self.spare.take() {
            Some(endpoint) => endpoint,
            None => self.open_at_once()?,
        };
        let own = endpoint.connect(to)?;
        let index = self.vacant.last().copied().unwrap_or(self.places.len() as u32);
        self.enlist(index, &endpoint)?;
        if self.vacant.pop().is_none() {
            self.places.push(Place::default());
        }
        let Some(place) = self.places.get_mut(index as usize) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        place.endpoint = Some((endpoint, own));
        let link = Link { index, generation: place.generation };
        self.open += 1;
        self.touch(index);
        Ok(link)
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        self.send_out();
        if !self.has_work() {
            self.look_at_stays(Instant::now(), Duration::ZERO);
            self.open_ahead();
        }
        let spin = self.busy.min(at_most);
        let came = |this: &mut Self| {
            insist(spin, || {
                this.take_in(Duration::ZERO)?;
                Ok(this.has_work())
            })
        };
        if !self.has_work() && came(self)? {
            return Ok(());
        }
        self.take_in(at_most)
    }

    fn poll_event(&mut self) -> Option<(Link, LinkEvent)> {
        self.events.pop_front()
    }

    fn open_stream(&mut self, link: Link) -> Option<u64> {
        let (endpoint, own) = self.touched(link)?;
        endpoint.open_stream(own)
    }

    fn open_one_way(&mut self, link: Link) -> Option<u64> {
        let (endpoint, own) = self.touched(link)?;
        endpoint.open_one_way(own)
    }

    fn send(&mut self, link: Link, stream: u64, sending: Sending<'_>) -> Option<usize> {
        let (endpoint, own) = self.touched(link)?;
        endpoint.send(own, stream, sending)
    }

    fn stop(&mut self, link: Link, stream: u64, code: u64) {
        if let Some((endpoint, own)) = self.touched(link) {
            endpoint.stop(own, stream, code);
        }
    }

    fn reset(&mut self, link: Link, stream: u64, code: u64) {
        if let Some((endpoint, own)) = self.touched(link) {
            endpoint.reset(own, stream, code);
        }
    }

    fn abort(&mut self, link: Link, stream: u64, code: u64) {
        if let Some((endpoint, own)) = self.touched(link) {
            endpoint.abort(own, stream, code);
        }
    }

    fn watch_waits(&mut self) {
        self.watches = true;
    }

    fn take_waits(&mut self, link: Link, stream: u64) -> Option<StreamWaits> {
        let (endpoint, own) = self.endpoint(link)?;
        endpoint.take_waits(own, stream)
    }

    fn delivered_bytes(&mut self, link: Link, stream: u64) -> Option<u64> {
        let (endpoint, own) = self.endpoint(link)?;
        endpoint.delivered_bytes(own, stream)
    }

    fn lends(&self) -> bool {
        true
    }

    fn lend(&mut self, block: &Arc<Vec<u8>>) {
        self.block = Some(Arc::clone(block));
    }

    fn flush(&mut self) {
        (self.repeats, self.spare) = (false, None);
        let end = Instant::now() + UNSAID_LIMIT;
        while self.open > 0 && Instant::now() < end {
            if self.wait(QUIET).is_err() {
                return;
            }
            self.events.clear();
        }
    }

    fn close(&mut self, link: Link) {
        if let Some((endpoint, own)) = self.touched(link) {
            endpoint.close(own);
            self.collect(link.index);
        }
    }
}

#[cfg(test)]
mod tests;
