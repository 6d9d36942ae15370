//! The client of media streams: a connected socket for each stream, and all of them in one thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use linerate_wire::ctstraffic::Fault;
use linerate_wire::ctstraffic::data::Reference;
use linerate_wire::ctstraffic::media::datagram::{SENDER_FREQUENCY, START};
use linerate_wire::ctstraffic::media::receiver::{FrameCounts, Reception, StreamReceiver};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use socket2::Socket;

use super::media_event::{
    MediaError, MediaEvent, MediaRun, MediaStreamEnd, StatusRows, plus, since,
};
use super::media_plan::MediaClientPlan;
use super::media_server::ticks;
use super::{Events, LOOK_NS, MediaTotals, with_events};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::error::Error;
use crate::event::Cancel;
use crate::poll::timespec;
use crate::probe::raise_open_files_limit;
use crate::socket::receive_batch;

/// Datagrams of one call.
const BATCH: usize = 64;
/// Calls of one stream before the others have their turn.
const CALLS_PER_TURN: u32 = 8;
/// A stream that couldn't be begun is followed by the next after so long.
const AGAIN_NS: u64 = 10 * MILLISECOND_NS;

/// Runs a client until its streams were received, or until the time is up or the run is cancelled.
///
/// # Errors
/// This machine can't: no thread, no descriptor.
pub fn run_media_client(
    plan: &MediaClientPlan,
    tell: &mut dyn FnMut(MediaEvent),
    cancel: &Cancel,
) -> Result<MediaRun, Error> {
    raise_open_files_limit();
    let poll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| {
        Error::Host(format!("can't wait for datagrams (epoll_create: {error})"))
    })?;
    with_events(tell, |events| MediaClient::new(plan, poll, events).run(cancel))
}

/// A stream that is asked for, or received.
struct Stream {
    socket: Socket,
    addresses: (SocketAddr, SocketAddr),
    receiver: StreamReceiver,
    /// What was last added to the totals.
    counted: FrameCounts,
    /// The time of its entry in the heap. Entries with another time are outdated, or of streams that have ended.
    due_ns: u64,
}

struct MediaClient<'a> {
    plan: &'a MediaClientPlan,
    poll: OwnedFd,
    events: &'a Events<'a>,
    streams: Vec<Option<Stream>>,
    free: Vec<usize>,
    due: BinaryHeap<Reverse<(u64, usize)>>,
    reference: Option<Reference>,
    /// Room for a batch of datagrams, in equal parts.
    buffer: Vec<u8>,
    /// Streams that were begun, or tried.
    begun: u64,
    /// No stream is begun before.
    next_begin_ns: u64,
    totals: MediaTotals,
    began_ns: u64,
}

impl<'a> MediaClient<'a> {
    fn new(plan: &'a MediaClientPlan, poll: OwnedFd, events: &'a Events<'a>) -> Self {
        let shape = plan.receiver.shape;
        // One byte more than a datagram may have, so that longer ones show; and room for an id.
        let longest = shape.frame_bytes.min(shape.datagram_bytes) as usize;
        let slot_bytes = longest.max(64) + 1;
        Self {
            plan,
            poll,
            events,
            streams: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            reference: plan.verifies_data.then(|| Reference::new(longest)),
            buffer: vec![0; BATCH * slot_bytes],
            begun: 0,
            next_begin_ns: 0,
            totals: MediaTotals::default(),
            began_ns: monotonic_ns(),
        }
    }

    fn run(mut self, cancel: &Cancel) -> MediaRun {
        let limit = self.plan.time_limit.map(|limit| limit.as_nanos() as u64);
        let ends_ns = limit.map_or(u64::MAX, |limit| self.began_ns.saturating_add(limit));
        let mut rows = StatusRows::new(self.began_ns, self.plan.status_ns);
        self.tell_status(&mut rows, self.began_ns);
        let mut events = Vec::with_capacity(BATCH);
        let is_complete = loop {
            let now_ns = monotonic_ns();
            if cancel.requested() {
                break false;
            }
            if now_ns >= ends_ns {
                self.events.tell(MediaEvent::TimeIsUp);
                break false;
            }
            self.begin_streams(now_ns);
            if self.open() == 0 && self.plan.total.is_some_and(|total| self.begun >= total) {
                break true;
            }
            self.handle_due(now_ns);
            if now_ns >= rows.next_ns() {
                self.tell_status(&mut rows, now_ns);
            }
            self.wait(rows.next_ns().min(ends_ns).min(now_ns + LOOK_NS), &mut events);
            for index in events.iter().map(|event: &Event| event.data.u64() as usize) {
                self.receive(index);
            }
        };
        let now_ns = monotonic_ns();
        self.tell_status(&mut rows, now_ns);
        MediaRun {
            totals: self.totals,
            open: self.open() as u64,
            elapsed_ns: now_ns - self.began_ns,
            is_complete,
        }
    }

    fn open(&self) -> usize {
        self.streams.len() - self.free.len()
    }

    fn tell_status(&mut self, rows: &mut StatusRows, now_ns: u64) {
        for stream in self.streams.iter_mut().flatten() {
            count(stream, &mut self.totals);
        }
        self.events.tell(MediaEvent::Status(rows.cut(now_ns, self.open(), self.totals.counts)));
    }

    fn wait(&self, until_ns: u64, events: &mut Vec<Event>) {
        let due_ns = self.due.peek().map_or(until_ns, |Reverse((due_ns, _))| *due_ns);
        let wait_ns = due_ns.min(until_ns).saturating_sub(monotonic_ns());
        events.clear();
        // Interrupted by a signal: a round with no events.
        let _interrupted =
            epoll::wait(&self.poll, spare_capacity(events), Some(&timespec(wait_ns)));
    }

    fn begin_streams(&mut self, now_ns: u64) {
        let most = self.plan.streams as usize;
        let has_more = |begun| self.plan.total.is_none_or(|total| begun < total);
        while self.open() < most && has_more(self.begun) && self.next_begin_ns <= now_ns {
            let number = self.begun;
            self.begun += 1;
            let index = self.free.pop().unwrap_or(self.streams.len());
            if index == self.streams.len() {
                self.streams.push(None);
            }
            match self.begin(number, index) {
                Ok(stream) => {
                    let (addresses, now_ns) = (stream.addresses, stream.due_ns);
                    self.streams[index] = Some(stream);
                    self.due.push(Reverse((now_ns, index)));
                    self.events
                        .tell(MediaEvent::Established { at_ns: now_ns - self.began_ns, addresses });
                }
                Err(error) => {
                    self.free.push(index);
                    self.next_begin_ns = now_ns + AGAIN_NS;
                    self.tell_unbegun(number, &error);
                }
            }
        }
    }

    fn begin(&self, number: u64, index: usize) -> io::Result<Stream> {
        let route = (self.plan.route)(number);
        let any = match route.server {
            SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0_u16; 8], 0)),
        };
        let socket = self.plan.sockets.bind(route.local.unwrap_or(any))?;
        // From then on the kernel takes datagrams from the server's address alone.
        socket.connect(&route.server.into())?;
        epoll::add(&self.poll, socket.as_fd(), EventData::new_u64(index as u64), EventFlags::IN)?;
        let local = socket.local_addr()?.as_socket().unwrap_or(any);
        Ok(Stream {
            socket,
            addresses: (local, route.server),
            receiver: StreamReceiver::new(self.plan.receiver, monotonic_ns()),
            counted: FrameCounts::default(),
            due_ns: monotonic_ns(),
        })
    }

    /// A stream whose socket this machine doesn't give has failed.
    fn tell_unbegun(&mut self, number: u64, error: &io::Error) {
        let route = (self.plan.route)(number);
        let local = route.local.unwrap_or(SocketAddr::from(([0; 4], 0)));
        let fault = Fault::Network(error.raw_os_error().unwrap_or(0));
        self.totals.record_end(Some(&fault));
        self.events.tell(MediaEvent::Finished(Box::new(MediaStreamEnd {
            at_ns: monotonic_ns() - self.began_ns,
            addresses: (local, route.server),
            id: None,
            counts: FrameCounts::default(),
            elapsed_ns: 0,
            fault: Some(fault),
        })));
    }

    /// Sends STARTs and renders frames that are due.
    fn handle_due(&mut self, now_ns: u64) {
        while let Some(Reverse((due_ns, index))) = self.due.peek().copied() {
            if due_ns > now_ns {
                return;
            }
            self.due.pop();
            let Some(mut stream) = self.streams.get_mut(index).and_then(Option::take) else {
                continue;
            };
            if stream.due_ns != due_ns {
                self.streams[index] = Some(stream);
                continue;
            }
            if stream.receiver.poll_start(now_ns) {
                // A START that can't be sent is sent again, like a lost one.
                let _sent_again = stream.socket.send(&START);
            }
            while let Some(rendered) = stream.receiver.poll_frame(now_ns) {
                if let Some(row) = rendered.row().filter(|_| self.plan.tells_jitter) {
                    self.events.tell(MediaEvent::Jitter(row));
                }
            }
            self.put_back(index, stream, now_ns);
        }
    }

    /// Keeps a stream that goes on, with an entry for when it is next of use; ends the others.
    fn put_back(&mut self, index: usize, mut stream: Stream, now_ns: u64) {
        match stream.receiver.next_time() {
            Some(next_ns) => {
                stream.due_ns = next_ns.max(now_ns + 1);
                self.due.push(Reverse((stream.due_ns, index)));
                self.streams[index] = Some(stream);
            }
            None => self.end(index, stream),
        }
    }

    fn receive(&mut self, index: usize) {
        let Some(mut stream) = self.streams.get_mut(index).and_then(Option::take) else { return };
        let mut lengths = [0; BATCH];
        for _ in 0..CALLS_PER_TURN {
            if stream.receiver.is_over() {
                break;
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            let slot_bytes = buffer.len() / BATCH;
            let received =
                receive_batch(stream.socket.as_fd(), &mut buffer, slot_bytes, &mut lengths);
            let now_ns = monotonic_ns();
            let count = *received.as_ref().unwrap_or(&0);
            let lengths = lengths.get(..count).unwrap_or_default();
            for (slot, length) in buffer.chunks_exact(slot_bytes).zip(lengths) {
                let bytes = slot.get(..*length).unwrap_or_default();
                self.handle_datagram(&mut stream, now_ns, bytes);
            }
            self.buffer = buffer;
            if let Err(error) = received {
                handle_failure(&mut stream, now_ns, &error);
                break;
            }
            if count < BATCH {
                break;
            }
        }
        if stream.receiver.is_over() {
            self.end(index, stream);
        } else {
            self.streams[index] = Some(stream);
        }
    }

    fn handle_datagram(&self, stream: &mut Stream, now_ns: u64, bytes: &[u8]) {
        let receiver = &mut stream.receiver;
        if bytes.len() > receiver.datagram_most_bytes() as usize {
            return receiver.handle_truncated(now_ns);
        }
        let counter = (ticks(now_ns - self.began_ns), SENDER_FREQUENCY);
        let reference = self.reference.as_ref();
        let error = match receiver.handle_datagram(now_ns, bytes, counter, reference) {
            Reception::Malformed(error) => MediaError::Malformed(error),
            Reception::Wrong(wrong) => MediaError::Wrong(wrong),
            Reception::Id | Reception::Counted | Reception::OutsideWindow | Reception::Ignored => {
                return;
            }
        };
        let (at_ns, peer) = (now_ns - self.began_ns, stream.addresses.1);
        self.events.tell(MediaEvent::BadDatagram { at_ns, peer, error });
    }

    fn end(&mut self, index: usize, mut stream: Stream) {
        let now_ns = monotonic_ns();
        count(&mut stream, &mut self.totals);
        self.free.push(index);
        let fault = stream.receiver.fault();
        self.totals.record_end(fault.as_ref());
        self.events.tell(MediaEvent::Finished(Box::new(MediaStreamEnd {
            at_ns: now_ns - self.began_ns,
            addresses: stream.addresses,
            id: stream.receiver.id(),
            counts: stream.receiver.counts(),
            elapsed_ns: stream.receiver.elapsed_ns(now_ns),
            fault,
        })));
    }
}

/// A server that isn't there yet may come: START is sent again until the first frame is due.
fn handle_failure(stream: &mut Stream, now_ns: u64, error: &io::Error) {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused => {}
        _ => stream.receiver.handle_error(now_ns, error.raw_os_error().unwrap_or(0)),
    }
}

/// Adds what a stream has come to since the last time.
fn count(stream: &mut Stream, totals: &mut MediaTotals) {
    let counts = stream.receiver.counts();
    totals.counts = plus(totals.counts, since(counts, stream.counted));
    stream.counted = counts;
}
