//! QUIC connections that each have a UDP socket, and so a port, of their own.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;

use super::multiplexed::{LAST_WORDS, MultiplexedEndpoint};
use crate::transport::multiplexer::{
    Destination, Link, LinkEvent, Multiplexer, Sending, StreamWaits,
};

/// Readiness taken at once.
const READY_AT_ONCE: usize = 256;
/// A socket that had no room is tried again after so long.
const TRY_AGAIN: Duration = Duration::from_millis(1);

/// Makes the endpoint of another connection.
type Opening<'a> = Box<dyn FnMut() -> io::Result<MultiplexedEndpoint> + 'a>;

/// Connections of a client, each over an endpoint of its own.
pub(crate) struct SeparateEndpoints<'a> {
    open: Opening<'a>,
    poll: OwnedFd,
    places: Vec<Place>,
    vacant: Vec<u32>,
    events: VecDeque<(Link, LinkEvent)>,
    /// Readiness as it was taken, kept for its memory.
    ready: Vec<epoll::Event>,
    block: Option<Arc<Vec<u8>>>,
    watches: bool,
}

#[derive(Default)]
struct Place {
    generation: u32,
    /// The endpoint, and its only connection as it knows it.
    endpoint: Option<(MultiplexedEndpoint, Link)>,
    /// When the socket is closed, once the connection has ended.
    closes: Option<Instant>,
}

impl<'a> SeparateEndpoints<'a> {
    pub(crate) fn new(open: Opening<'a>) -> io::Result<Self> {
        Ok(Self {
            open,
            poll: epoll::create(CreateFlags::CLOEXEC)?,
            places: Vec::new(),
            vacant: Vec::new(),
            events: VecDeque::new(),
            ready: Vec::with_capacity(READY_AT_ONCE),
            block: None,
            watches: false,
        })
    }

    fn place(&mut self, link: Link) -> Option<(&mut MultiplexedEndpoint, Link)> {
        let place = self.places.get_mut(link.index as usize)?;
        let found = place.endpoint.as_mut().filter(|_| place.generation == link.generation)?;
        Some((&mut found.0, found.1))
    }

    /// Takes over what has happened at a place.
    fn collect(&mut self, index: usize) {
        let Some(place) = self.places.get_mut(index) else { return };
        let Some((endpoint, _)) = &mut place.endpoint else { return };
        let link = Link { index: index as u32, generation: place.generation };
        while let Some((_, event)) = endpoint.poll_event() {
            if matches!(event, LinkEvent::Ended { .. }) {
                place.closes = Some(Instant::now() + LAST_WORDS);
            }
            self.events.push_back((link, event));
        }
    }

    /// Sends what all have to send, closes what is over; says how long nothing needs to be done.
    fn send_out(&mut self, at_most: Duration) -> io::Result<Duration> {
        let now = Instant::now();
        let mut wait = at_most;
        for index in 0..self.places.len() {
            let Some(place) = self.places.get_mut(index) else { break };
            let Some((endpoint, _)) = &mut place.endpoint else { continue };
            endpoint.send_out()?;
            if place.closes.is_some_and(|at| endpoint.is_idle() || at <= now) {
                let _gone = epoll::delete(&self.poll, endpoint.as_fd());
                let generation = place.generation.wrapping_add(1);
                *place = Place { generation, ..Place::default() };
                self.vacant.push(index as u32);
                continue;
            }
            let due = endpoint.next_time().map(|due| due.saturating_duration_since(now));
            wait = wait.min(due.unwrap_or(wait));
            if endpoint.is_blocked() {
                wait = wait.min(TRY_AGAIN);
            } else if endpoint.is_busy() {
                wait = Duration::ZERO;
            }
        }
        Ok(wait)
    }
}

impl Multiplexer for SeparateEndpoints<'_> {
    fn connect(&mut self, to: &Destination) -> io::Result<Link> {
        let mut endpoint = (self.open)()?;
        if let Some(block) = &self.block {
            endpoint.lend(block);
        }
        if self.watches {
            endpoint.watch_waits();
        }
        let own = endpoint.connect(to)?;
        let index = self.vacant.pop().unwrap_or(self.places.len() as u32);
        if index as usize == self.places.len() {
            self.places.push(Place::default());
        }
        let data = EventData::new_u64(index.into());
        epoll::add(&self.poll, endpoint.as_fd(), data, EventFlags::IN)?;
        let Some(place) = self.places.get_mut(index as usize) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        place.endpoint = Some((endpoint, own));
        Ok(Link { index, generation: place.generation })
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        let mut wait = self.send_out(at_most)?;
        if !self.events.is_empty() {
            wait = Duration::ZERO;
        }
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        let mut ready = std::mem::take(&mut self.ready);
        match epoll::wait(&self.poll, spare_capacity(&mut ready), Some(&wait)) {
            // A signal: the caller looks whether it was one to stop.
            Err(rustix::io::Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        for event in ready.drain(..) {
            let place = self.places.get_mut(event.data.u64() as usize);
            if let Some((endpoint, _)) = place.and_then(|place| place.endpoint.as_mut()) {
                endpoint.take_in()?;
            }
        }
        self.ready = ready;
        let now = Instant::now();
        for index in 0..self.places.len() {
            let place = self.places.get_mut(index);
            let endpoint = place.and_then(|place| place.endpoint.as_mut());
            if let Some((endpoint, _)) = endpoint
                && endpoint.next_time().is_some_and(|due| due <= now)
            {
                endpoint.take_in()?;
            }
            self.collect(index);
        }
        Ok(())
    }

    fn poll_event(&mut self) -> Option<(Link, LinkEvent)> {
        self.events.pop_front()
    }

    fn open_stream(&mut self, link: Link) -> Option<u64> {
        let (endpoint, own) = self.place(link)?;
        endpoint.open_stream(own)
    }

    fn open_one_way(&mut self, link: Link) -> Option<u64> {
        let (endpoint, own) = self.place(link)?;
        endpoint.open_one_way(own)
    }

    fn send(&mut self, link: Link, stream: u64, sending: Sending<'_>) -> Option<usize> {
        let (endpoint, own) = self.place(link)?;
        endpoint.send(own, stream, sending)
    }

    fn stop(&mut self, link: Link, stream: u64) {
        if let Some((endpoint, own)) = self.place(link) {
            endpoint.stop(own, stream);
        }
    }

    fn abort(&mut self, link: Link, stream: u64) {
        if let Some((endpoint, own)) = self.place(link) {
            endpoint.abort(own, stream);
        }
    }

    fn watch_waits(&mut self) {
        self.watches = true;
    }

    fn take_waits(&mut self, link: Link, stream: u64) -> Option<StreamWaits> {
        let (endpoint, own) = self.place(link)?;
        endpoint.take_waits(own, stream)
    }

    fn delivered_bytes(&mut self, link: Link, stream: u64) -> Option<u64> {
        let (endpoint, own) = self.place(link)?;
        endpoint.delivered_bytes(own, stream)
    }

    fn lends(&self) -> bool {
        true
    }

    fn lend(&mut self, block: &Arc<Vec<u8>>) {
        self.block = Some(Arc::clone(block));
    }

    fn flush(&mut self) {
        let end = Instant::now() + LAST_WORDS;
        while self.places.iter().any(|place| place.endpoint.is_some()) && Instant::now() < end {
            if self.wait(Duration::from_millis(10)).is_err() {
                return;
            }
        }
    }

    fn close(&mut self, link: Link) {
        if let Some((endpoint, own)) = self.place(link) {
            endpoint.close(own);
        }
    }
}
