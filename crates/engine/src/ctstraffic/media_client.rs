//! The client of media streams: a connected socket for each stream, and all of them in one thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use linerate_measure::Role;
use linerate_measure::sample::DatagramCounts;
use linerate_wire::ctstraffic::Fault;
use linerate_wire::ctstraffic::data::Reference;
use linerate_wire::ctstraffic::media::datagram::{Datagram, SENDER_FREQUENCY, START};
use linerate_wire::ctstraffic::media::receiver::{FrameCounts, Reception, StreamReceiver};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use socket2::{Socket, Type};

use super::media_event::{MediaError, MediaEvent, MediaRun, MediaStreamEnd, plus, since};
use super::media_events::{Events, with_events};
use super::media_plan::MediaClientPlan;
use super::media_run::{EndTimes, MediaEnd, conduct};
use super::media_server::ticks;
use super::{MediaTotals, PORT_RETRIES};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::connections::{Call, Search};
use crate::error::Error;
use crate::event::Cancel;
use crate::poll::timespec;
use crate::probe::raise_open_files_limit;
use crate::socket::{
    LONGEST_TRAIN_BYTES, MOST_TRAINS, ReceivedTrain, enable_receive_offload, receive_trains,
    socket_drops,
};

/// Streams whose datagrams are read between two looks at the clock.
const READY: usize = 1024;
/// Calls of one stream before the others have their turn.
const CALLS_PER_TURN: u32 = 8;
/// Streams that are begun at once. The others follow, as many each millisecond: a server's socket has room for few
/// hundred STARTs that come faster than it reads.
const BEGUN_AT_ONCE: usize = 32;
/// A stream that couldn't be begun is followed by the next after so long.
const AGAIN_NS: u64 = 10 * MILLISECOND_NS;
/// Local ports tried before streams that run have their turn.
const PORTS_PER_TURN: u32 = 32;

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
    for note in plan.sockets.shortfalls(Type::DGRAM) {
        tell(MediaEvent::Note(note));
    }
    with_events(tell, &plan.cpus, |events| {
        let client = MediaClient::new(plan, poll, events);
        conduct(client, &plan.times, events, cancel)
    })
}

/// A stream that is asked for, or received.
struct Stream {
    socket: Socket,
    addresses: (SocketAddr, SocketAddr),
    receiver: StreamReceiver,
    /// What was last added to the totals: its frames, and the packets that its socket dropped, where the kernel tells.
    counted: (FrameCounts, Option<u64>),
    /// The time of its entry in the heap. Entries with another time are outdated, or of streams that have ended.
    due_ns: u64,
}

/// Memory for what a turn reads.
struct Room {
    /// Trains of datagrams, in equal parts.
    buffer: Vec<u8>,
    /// Sockets that have something to read.
    ready: Vec<Event>,
}

/// The stream that is begun next.
#[derive(Debug, Default)]
struct NextStream {
    /// The number of its route.
    number: u64,
    /// It isn't begun before.
    from_ns: u64,
    /// The search for a local port that is free.
    ports: Search,
}

struct MediaClient<'a> {
    plan: &'a MediaClientPlan,
    poll: OwnedFd,
    events: &'a Events<'a>,
    streams: Vec<Option<Stream>>,
    free: Vec<usize>,
    due: BinaryHeap<Reverse<(u64, usize)>>,
    reference: Option<Reference>,
    room: Room,
    /// Streams that were begun, or failed to begin.
    begun: u64,
    next: NextStream,
    totals: MediaTotals,
    times: EndTimes,
}

impl<'a> MediaClient<'a> {
    fn new(plan: &'a MediaClientPlan, poll: OwnedFd, events: &'a Events<'a>) -> Self {
        let shape = plan.receiver.shape;
        let longest = shape.frame_bytes.min(shape.datagram_bytes) as usize;
        Self {
            plan,
            poll,
            events,
            streams: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            reference: plan.verifies_data.then(|| Reference::new(longest)),
            room: Room {
                buffer: vec![0; MOST_TRAINS * LONGEST_TRAIN_BYTES],
                ready: Vec::with_capacity(READY),
            },
            begun: 0,
            next: NextStream::default(),
            totals: MediaTotals::default(),
            times: EndTimes::new(monotonic_ns()),
        }
    }

    fn begin_streams(&mut self, now_ns: u64) {
        let (mut tries, mut left) = (0, BEGUN_AT_ONCE);
        while self.next_begin().is_some_and(|next_ns| next_ns <= now_ns) && tries < PORTS_PER_TURN {
            let number = self.next.number;
            self.next.number = number.wrapping_add(1);
            let index = self.free.pop().unwrap_or(self.streams.len());
            if index == self.streams.len() {
                self.streams.push(None);
            }
            match self.begin(number, index) {
                Ok(stream) => {
                    self.begun += 1;
                    self.next.ports = Search::default();
                    left -= 1;
                    if left == 0 {
                        self.next.from_ns = now_ns + MILLISECOND_NS;
                    }
                    let (addresses, now_ns) = (stream.addresses, stream.due_ns);
                    self.streams[index] = Some(stream);
                    self.due.push(Reverse((now_ns, index)));
                    self.events.tell(MediaEvent::Established {
                        at_ns: now_ns - self.times.began_ns,
                        addresses,
                    });
                }
                Err((call, error)) => {
                    self.free.push(index);
                    tries += 1;
                    let is_taken =
                        call == Call::Bind && error.raw_os_error() == Some(libc::EADDRINUSE);
                    let ports = &mut self.next.ports;
                    if is_taken && ports.step_over(self.plan.routes, PORT_RETRIES, now_ns) {
                        self.next.from_ns = ports.next_ns();
                        continue;
                    }
                    self.next = NextStream {
                        number: self.next.number,
                        from_ns: now_ns + AGAIN_NS,
                        ..NextStream::default()
                    };
                    self.begun += 1;
                    self.tell_unbegun(number, call, &error);
                }
            }
        }
    }

    /// When the next stream may be begun; `None`: not before one has ended.
    fn next_begin(&self) -> Option<u64> {
        let has_more = self.plan.total.is_none_or(|total| self.begun < total);
        let is_room = self.open() < self.plan.streams as usize;
        (has_more && is_room).then_some(self.next.from_ns)
    }

    /// A stream of this number; or the call that failed, and why.
    fn begin(&self, number: u64, index: usize) -> Result<Stream, (Call, io::Error)> {
        let route = (self.plan.route)(number);
        let any = match route.server {
            SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0_u16; 8], 0)),
        };
        let socket = self.plan.sockets.bind_datagram(route.local.unwrap_or(any))?;
        // From then on the kernel takes datagrams from the server's address alone.
        socket.connect(&route.server.into()).map_err(|error| (Call::Connect, error))?;
        // Without it datagrams come one by one.
        let _one_by_one = enable_receive_offload(socket.as_fd());
        let data = EventData::new_u64(index as u64);
        epoll::add(&self.poll, socket.as_fd(), data, EventFlags::IN)
            .map_err(|error| (Call::Socket, error.into()))?;
        let local = socket.local_addr().map_err(|error| (Call::Socket, error))?;
        let local = local.as_socket().unwrap_or(any);
        Ok(Stream {
            socket,
            addresses: (local, route.server),
            receiver: StreamReceiver::new(self.plan.receiver, monotonic_ns()),
            counted: Default::default(),
            due_ns: monotonic_ns(),
        })
    }

    /// A stream whose socket this machine doesn't give has failed.
    fn tell_unbegun(&mut self, number: u64, call: Call, error: &io::Error) {
        let route = (self.plan.route)(number);
        let local = route.local.unwrap_or(SocketAddr::from(([0; 4], 0)));
        let fault = Fault::Network(error.raw_os_error().unwrap_or(0));
        self.totals.record_end(Some(&fault));
        self.events.tell(MediaEvent::Finished(Box::new(MediaStreamEnd {
            at_ns: monotonic_ns() - self.times.began_ns,
            addresses: (local, route.server),
            id: None,
            counts: FrameCounts::default(),
            elapsed_ns: 0,
            fault: Some(fault),
            call,
            socket_drops: None,
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
        let mut trains = [ReceivedTrain::default(); MOST_TRAINS];
        for _ in 0..CALLS_PER_TURN {
            if stream.receiver.is_over() {
                break;
            }
            let mut buffer = std::mem::take(&mut self.room.buffer);
            let received = receive_trains(
                stream.socket.as_fd(),
                &mut buffer,
                LONGEST_TRAIN_BYTES,
                &mut trains,
            );
            let now_ns = monotonic_ns();
            let count = *received.as_ref().unwrap_or(&0);
            if count > 0 {
                self.times.record_moved(now_ns);
            }
            let came = trains.get(..count).unwrap_or_default();
            for (slot, train) in buffer.chunks_exact(LONGEST_TRAIN_BYTES).zip(came) {
                self.handle_train(&mut stream, now_ns, slot, *train);
            }
            self.room.buffer = buffer;
            if let Err(error) = received {
                handle_failure(&mut stream, now_ns, &error);
                break;
            }
            if count < MOST_TRAINS {
                break;
            }
        }
        if stream.receiver.is_over() {
            self.end(index, stream);
        } else {
            self.streams[index] = Some(stream);
        }
    }

    fn handle_train(&self, stream: &mut Stream, now_ns: u64, slot: &[u8], train: ReceivedTrain) {
        let bytes = slot.get(..train.length).unwrap_or_default();
        if bytes.is_empty() {
            return self.handle_datagram(stream, now_ns, bytes);
        }
        for datagram in bytes.chunks(train.segment_bytes.max(1)) {
            self.handle_datagram(stream, now_ns, datagram);
        }
    }

    fn handle_datagram(&self, stream: &mut Stream, now_ns: u64, bytes: &[u8]) {
        let receiver = &mut stream.receiver;
        if bytes.len() > receiver.datagram_most_bytes() as usize {
            return receiver.handle_truncated(now_ns);
        }
        let counter = (ticks(now_ns - self.times.began_ns), SENDER_FREQUENCY);
        let reference = self.reference.as_ref();
        let error = match receiver.handle_datagram(now_ns, bytes, counter, reference) {
            Reception::Malformed(error) => MediaError::Malformed(error),
            Reception::Wrong(wrong) => MediaError::Wrong(wrong),
            Reception::Id | Reception::Counted | Reception::OutsideWindow | Reception::Ignored => {
                return;
            }
        };
        let (at_ns, peer, id) = (now_ns - self.times.began_ns, stream.addresses.1, receiver.id());
        let sequence = match Datagram::decode(bytes) {
            Ok(Datagram::Data(header, _)) => Some(header.sequence),
            _ => None,
        };
        self.events.tell(MediaEvent::BadDatagram { at_ns, peer, id, sequence, error });
    }

    fn end(&mut self, index: usize, mut stream: Stream) {
        let now_ns = monotonic_ns();
        count(&mut stream, &mut self.totals);
        self.free.push(index);
        let fault = stream.receiver.fault();
        self.totals.record_end(fault.as_ref());
        self.events.tell(MediaEvent::Finished(Box::new(MediaStreamEnd {
            at_ns: now_ns - self.times.began_ns,
            addresses: stream.addresses,
            id: stream.receiver.id(),
            counts: stream.receiver.counts(),
            elapsed_ns: stream.receiver.elapsed_ns(now_ns),
            fault,
            call: Call::Receive,
            socket_drops: stream.counted.1,
        })));
    }
}

impl MediaEnd for MediaClient<'_> {
    fn is_done(&self) -> bool {
        self.open() == 0 && self.plan.total.is_some_and(|total| self.begun >= total)
    }

    fn open(&self) -> usize {
        self.streams.len() - self.free.len()
    }

    fn role(&self) -> Role {
        Role::Client
    }

    fn spins(&self) -> bool {
        false
    }

    fn totals(&mut self) -> MediaTotals {
        for stream in self.streams.iter_mut().flatten() {
            count(stream, &mut self.totals);
        }
        self.totals
    }

    fn times(&self) -> EndTimes {
        self.times
    }

    fn datagrams(&self) -> DatagramCounts {
        let dropped_by_socket = Some(self.totals.socket_drops);
        DatagramCounts { dropped_by_socket, ..DatagramCounts::default() }
    }

    fn turn(&mut self, now_ns: u64, until_ns: u64, rest_until_ns: u64) {
        self.begin_streams(now_ns);
        self.handle_due(now_ns);
        if self.is_done() {
            return;
        }
        // A stream that has just ended makes room for the next.
        let until_ns = self.next_begin().map_or(until_ns, |next_ns| until_ns.min(next_ns));
        // Datagrams of many streams are read together, but for more than one turn has room for.
        if self.room.ready.len() < READY {
            let rest_ns = rest_until_ns.saturating_sub(monotonic_ns());
            if rest_ns > 0 {
                std::thread::sleep(Duration::from_nanos(rest_ns));
            }
        }
        let due_ns = self.due.peek().map_or(until_ns, |Reverse((due_ns, _))| *due_ns);
        let wait_ns = due_ns.min(until_ns).saturating_sub(monotonic_ns());
        let mut ready = std::mem::take(&mut self.room.ready);
        ready.clear();
        // Interrupted by a signal: a round with nothing to read.
        let _interrupted =
            epoll::wait(&self.poll, spare_capacity(&mut ready), Some(&timespec(wait_ns)));
        for index in ready.iter().map(|event| event.data.u64() as usize) {
            self.receive(index);
        }
        self.room.ready = ready;
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
    let (counts_before, drops_before) = stream.counted;
    totals.counts = plus(totals.counts, since(counts, counts_before));
    let drops = socket_drops(stream.socket.as_fd()).or(drops_before);
    totals.socket_drops += drops.unwrap_or(0).saturating_sub(drops_before.unwrap_or(0));
    stream.counted = (counts, drops);
}
