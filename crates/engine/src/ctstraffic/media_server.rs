//! The server of media streams: one socket for each address, and all streams in one thread.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use bytes::BytesMut;
use linerate_measure::Role;
use linerate_measure::sample::DatagramCounts;
use linerate_wire::ctstraffic::ConnectionId;
use linerate_wire::ctstraffic::Fault;
use linerate_wire::ctstraffic::data::Reference;
use linerate_wire::ctstraffic::media::datagram::{
    DATAGRAM_LEAST_BYTES, DataHeader, HEADER_BYTES, SENDER_FREQUENCY, check_start, encode_id,
};
use linerate_wire::ctstraffic::media::receiver::FrameCounts;
use linerate_wire::ctstraffic::media::sender::{Outgoing, StreamSender};
use linerate_wire::ctstraffic::media::shape::{Train, TrainLimits};
use rustix::event::{PollFd, PollFlags};
use socket2::{Domain, Socket, Type};

use super::MediaTotals;
use super::media_event::{MediaError, MediaEvent, MediaRun, MediaStreamEnd};
use super::media_events::{Events, with_events};
use super::media_plan::MediaServerPlan;
use super::media_run::{EndTimes, MediaEnd, conduct};
use super::sockets::listen_at_each;
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::connections::Call;
use crate::control::random;
use crate::error::Error;
use crate::event::Cancel;
use crate::poll::poll_until;
use crate::socket::{
    Outgoing as Packets, Queues, enable_packet_facts, receive_packets, send_packets,
    take_path_errors, tell_refusals,
};

/// Room for STARTs that wait: thousands, each of which takes 768 bytes of the kernel's memory.
const START_ROOM_BYTES: usize = 4 << 20;
/// STARTs that are read before frames have their turn.
const STARTS_PER_TURN: u32 = 64;
/// Sends of one stream before other streams and STARTs have their turn.
const SENDS_PER_TURN: u32 = 16;
/// What the kernel cuts into datagrams: of every kernel that has UDP_SEGMENT (linux/udp.h), and what an IPv4 datagram
/// has room for.
const TRAIN: TrainLimits = TrainLimits { most_datagrams: 64, most_bytes: 65_507 };
/// One by one.
const SINGLE: TrainLimits = TrainLimits { most_datagrams: 1, most_bytes: u32::MAX };
/// A full queue of this machine is tried again after so long.
const AGAIN_NS: u64 = MILLISECOND_NS / 10;

/// Runs a server until as many streams ended as it takes, or until the time is up or
/// the run is cancelled.
///
/// # Errors
/// An address that can't be had; or one that isn't loopback, without a limit of the rate.
pub fn run_media_server(
    plan: &MediaServerPlan,
    tell: &mut dyn FnMut(MediaEvent),
    cancel: &Cancel,
) -> Result<MediaRun, Error> {
    plan.check()?;
    let bind = |address: SocketAddr| {
        let socket = plan.sockets.bind_datagram(address).map_err(|(_, error)| error)?;
        if plan.sockets.receive_buffer_bytes.is_none() {
            // As many as the kernel allows at worst.
            let _fewer = socket.set_recv_buffer_size(START_ROOM_BYTES);
        }
        // Without the option the kernel says that a datagram was sent which a queue of this machine has dropped.
        let _dropped_untold = tell_refusals(socket.as_fd(), address.is_ipv6());
        // A host with several addresses must answer from the one that was asked.
        enable_packet_facts(socket.as_fd(), address.is_ipv6(), address.ip().is_unspecified());
        Ok(socket)
    };
    let sockets = listen_at_each(&plan.listen, bind)?;
    for note in plan.sockets.shortfalls(Type::DGRAM) {
        tell(MediaEvent::Note(note));
    }
    for address in sockets.iter().filter_map(local_address) {
        tell(MediaEvent::Listening(address));
    }
    with_events(tell, &plan.cpus, |events| {
        let server = MediaServer::new(plan, sockets, events);
        conduct(server, &plan.times, events, cancel)
    })
}

/// The ends of a stream, which only one stream has at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ends {
    socket: usize,
    /// The server's address that the client asked. `None`: that of the socket.
    local: Option<IpAddr>,
    peer: SocketAddr,
}

/// A stream that is being sent.
struct Stream {
    ends: Ends,
    id: ConnectionId,
    sender: StreamSender,
    began_ns: u64,
    bits: u64,
    /// What the socket has not taken yet.
    unsent: Option<Outgoing>,
    /// What goes out with one call: one datagram where the path doesn't carry them from one buffer.
    limits: TrainLimits,
}

/// Memory for what is sent and received.
struct Room {
    /// Datagrams of the full length with the data that all have, one behind the other. Headers are written anew each
    /// time.
    train: Vec<u8>,
    /// The datagram that came last.
    incoming: BytesMut,
}

struct MediaServer<'a> {
    plan: &'a MediaServerPlan,
    sockets: Vec<Socket>,
    events: &'a Events<'a>,
    streams: Vec<Option<Stream>>,
    free: Vec<usize>,
    by_ends: HashMap<Ends, usize>,
    by_address: HashMap<IpAddr, u64>,
    /// When each stream has something to send.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    room: Room,
    accepted: u64,
    totals: MediaTotals,
    times: EndTimes,
}

impl<'a> MediaServer<'a> {
    fn new(plan: &'a MediaServerPlan, sockets: Vec<Socket>, events: &'a Events<'a>) -> Self {
        let longest = plan.shape.datagram_bytes.max(DATAGRAM_LEAST_BYTES);
        let longest = longest.min(plan.shape.frame_bytes) as usize;
        let mut datagram = vec![0; HEADER_BYTES];
        datagram.extend_from_slice(
            Reference::new(longest).part(0, longest.saturating_sub(HEADER_BYTES)),
        );
        // A train may end with a shorter datagram, of which there is no whole one.
        let most = (TRAIN.most_bytes as usize).div_ceil(longest.max(1));
        let most = most.clamp(1, TRAIN.most_datagrams as usize);
        Self {
            plan,
            sockets,
            events,
            streams: Vec::new(),
            free: Vec::new(),
            by_ends: HashMap::new(),
            by_address: HashMap::new(),
            due: BinaryHeap::new(),
            room: Room { train: datagram.repeat(most), incoming: BytesMut::new() },
            accepted: 0,
            totals: MediaTotals::default(),
            times: EndTimes::new(monotonic_ns()),
        }
    }

    fn receive(&mut self, socket: usize) {
        for _ in 0..STARTS_PER_TURN {
            self.room.incoming.clear();
            let came = receive_packets(self.sockets[socket].as_fd(), &mut self.room.incoming);
            let Ok(came) = came else { return };
            let Some(peer) = came.from else { continue };
            match check_start(&self.room.incoming) {
                Ok(()) => {
                    let local = came.to.filter(|to| !to.is_multicast());
                    self.handle_start(Ends { socket, local, peer });
                }
                Err(error) => {
                    self.totals.counts.errors += 1;
                    self.tell_bad(peer, MediaError::Malformed(error));
                }
            }
        }
    }

    fn tell_bad(&self, peer: SocketAddr, error: MediaError) {
        let at_ns = monotonic_ns() - self.times.began_ns;
        let (id, sequence) = (None, None);
        self.events.tell(MediaEvent::BadDatagram { at_ns, peer, id, sequence, error });
    }

    fn handle_start(&mut self, ends: Ends) {
        let peer = ends.peer;
        if self.by_ends.contains_key(&ends) {
            self.totals.counts.repeated += 1;
            return;
        }
        if self.plan.limit.is_some_and(|limit| self.accepted >= limit) {
            return;
        }
        let stream_bps = self.plan.stream_bps();
        let exceeds = |streams: u64, most: Option<u64>| {
            most.filter(|most| (streams + 1).saturating_mul(stream_bps) > *most)
        };
        let to_address = self.by_address.get(&peer.ip()).copied().unwrap_or(0);
        let over = exceeds(self.by_ends.len() as u64, self.plan.max_rate_bps)
            .map(MediaError::OverRate)
            .or_else(|| {
                exceeds(to_address, self.plan.max_address_rate_bps).map(MediaError::OverAddressRate)
            });
        if let Some(error) = over {
            self.totals.refused += 1;
            return self.tell_bad(peer, error);
        }
        self.begin(ends, to_address);
    }

    fn begin(&mut self, ends: Ends, to_address: u64) {
        let now_ns = monotonic_ns();
        // Without random bytes there is an id all the same, which only names the stream in logs.
        let random = random().unwrap_or_default();
        let stream = Stream {
            ends,
            id: ConnectionId::of_random(random),
            sender: StreamSender::new(self.plan.shape, now_ns),
            began_ns: now_ns,
            bits: 0,
            unsent: None,
            limits: if cuts_trains(ends.peer) { SINGLE } else { TRAIN },
        };
        let addresses = self.addresses(&ends);
        let index = self.free.pop().unwrap_or(self.streams.len());
        if index == self.streams.len() {
            self.streams.push(None);
        }
        self.streams[index] = Some(stream);
        self.by_ends.insert(ends, index);
        self.by_address.insert(ends.peer.ip(), to_address + 1);
        self.accepted += 1;
        self.due.push(Reverse((now_ns, index)));
        self.events
            .tell(MediaEvent::Established { at_ns: now_ns - self.times.began_ns, addresses });
    }

    /// The server's address and the client's.
    fn addresses(&self, ends: &Ends) -> (SocketAddr, SocketAddr) {
        let address = self.sockets.get(ends.socket).and_then(local_address);
        let mut address = address.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        if let Some(local) = ends.local {
            address.set_ip(local);
        }
        (address, ends.peer)
    }

    /// Sends what is due. Of all streams that are due, the longest overdue goes first.
    fn send_due(&mut self) {
        for _ in 0..self.due.len() {
            let Some(Reverse((due_ns, index))) = self.due.peek().copied() else { return };
            if due_ns > monotonic_ns() {
                return;
            }
            self.due.pop();
            let Some(mut stream) = self.streams.get_mut(index).and_then(Option::take) else {
                continue;
            };
            let sent = self.send_frame(&mut stream);
            // What this turn left unsent is due as before.
            let next_ns = stream.unsent.map(|_| due_ns).or_else(|| stream.sender.next_time());
            match (sent, next_ns) {
                (Ok(()), Some(next_ns)) => self.put_back(index, stream, next_ns),
                (Ok(()), None) => self.end(index, stream, None),
                (Err(error), _) if is_passing(&error) => {
                    self.put_back(index, stream, monotonic_ns() + AGAIN_NS);
                }
                // The socket is every stream's: the error is that of another one's client.
                (Err(_), _) if take_path_errors(self.sockets[stream.ends.socket].as_fd()) => {
                    self.put_back(index, stream, monotonic_ns() + AGAIN_NS);
                }
                (Err(error), _) => {
                    let number = error.raw_os_error().unwrap_or(0);
                    self.end(index, stream, Some(Fault::Network(number)));
                }
            }
        }
    }

    fn put_back(&mut self, index: usize, stream: Stream, next_ns: u64) {
        self.streams[index] = Some(stream);
        self.due.push(Reverse((next_ns, index)));
    }

    /// Sends what is due of a stream now.
    fn send_frame(&mut self, stream: &mut Stream) -> io::Result<()> {
        for _ in 0..SENDS_PER_TURN {
            let limits = stream.limits;
            let next =
                stream.unsent.take().or_else(|| stream.sender.poll_send(monotonic_ns(), limits));
            let Some(next) = next else { return Ok(()) };
            if let Err(error) = self.send(stream, next) {
                let is_train = matches!(next, Outgoing::Data { train, .. } if train.datagram_bytes < train.bytes);
                stream.unsent = Some(next);
                if !is_train || stream.limits == SINGLE || is_passing(&error) {
                    return Err(error);
                }
                // The path's longest packet is shorter than a datagram, or its device can't: fragments may do.
                stream.limits = SINGLE;
            }
        }
        Ok(())
    }

    /// Sends with one call; what is left of it is kept.
    fn send(&mut self, stream: &mut Stream, next: Outgoing) -> io::Result<()> {
        let id;
        let (bytes, segment_bytes) = match next {
            Outgoing::Id => {
                id = encode_id(&stream.id);
                (&id[..], None)
            }
            Outgoing::Data { sequence, train, due_ns } => {
                let datagram = Train { bytes: train.datagram_bytes, ..train };
                let now = if stream.limits == SINGLE { datagram } else { train };
                let header = DataHeader {
                    sequence,
                    sender_counter: ticks(monotonic_ns() - self.times.began_ns),
                    sender_frequency: SENDER_FREQUENCY,
                };
                let bytes = self.room.train.get_mut(..now.bytes as usize).unwrap_or_default();
                bytes.chunks_mut(now.datagram_bytes as usize).for_each(|one| header.encode(one));
                if now != train {
                    let left = train.after_first();
                    stream.unsent = left.map(|train| Outgoing::Data { sequence, train, due_ns });
                }
                let is_train = now.datagram_bytes < now.bytes;
                (&*bytes, u16::try_from(now.datagram_bytes).ok().filter(|_| is_train))
            }
        };
        let packets = Packets {
            to: Some(stream.ends.peer),
            from: stream.ends.local,
            class: 0,
            ipv4: stream.ends.peer.is_ipv4(),
            segment_bytes,
            bytes,
        };
        let datagrams = segment_bytes.map_or(1, |each| bytes.len().div_ceil(each.max(1).into()));
        match send_packets(self.sockets[stream.ends.socket].as_fd(), &packets) {
            sent if matches!(next, Outgoing::Id) => sent?,
            // A datagram that a queue of this machine drops is lost as one that the path drops: it isn't sent again.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                self.totals.queue_drops += datagrams as u64;
            }
            sent => {
                sent?;
                let bits = 8 * bytes.len() as u64;
                stream.bits += bits;
                self.totals.counts.bits += bits;
                self.totals.sent_datagrams += datagrams as u64;
                let now_ns = monotonic_ns();
                self.times.record_moved(now_ns);
            }
        }
        Ok(())
    }

    fn end(&mut self, index: usize, stream: Stream, fault: Option<Fault>) {
        self.by_ends.remove(&stream.ends);
        let to = stream.ends.peer.ip();
        if let Some(streams) = self.by_address.get_mut(&to) {
            *streams = streams.saturating_sub(1);
            if *streams == 0 {
                self.by_address.remove(&to);
            }
        }
        self.free.push(index);
        self.totals.record_end(fault.as_ref());
        let now_ns = monotonic_ns();
        self.events.tell(MediaEvent::Finished(Box::new(MediaStreamEnd {
            at_ns: now_ns - self.times.began_ns,
            addresses: self.addresses(&stream.ends),
            id: Some(stream.id),
            counts: FrameCounts { bits: stream.bits, ..FrameCounts::default() },
            elapsed_ns: now_ns - stream.began_ns,
            fault,
            call: Call::Send,
            socket_drops: None,
        })));
    }
}

impl MediaEnd for MediaServer<'_> {
    fn is_done(&self) -> bool {
        self.plan.limit.is_some_and(|limit| self.totals.ended() >= limit)
    }

    fn open(&self) -> usize {
        self.by_ends.len()
    }

    fn role(&self) -> Role {
        Role::Server
    }

    fn spins(&self) -> bool {
        self.plan.spins
    }

    fn totals(&mut self) -> MediaTotals {
        self.totals
    }

    fn times(&self) -> EndTimes {
        self.times
    }

    fn datagrams(&self) -> DatagramCounts {
        DatagramCounts {
            sent: Some(self.totals.sent_datagrams),
            refused: Some(self.totals.queue_drops),
            ..DatagramCounts::default()
        }
    }

    fn turn(&mut self, _now_ns: u64, until_ns: u64, rest_until_ns: u64) {
        (0..self.sockets.len()).for_each(|socket| self.receive(socket));
        self.send_due();
        if self.plan.spins || self.is_done() {
            return;
        }
        let due_ns = self.due.peek().map_or(until_ns, |Reverse((due_ns, _))| *due_ns);
        let mut polled: Vec<PollFd<'_>> = self
            .sockets
            .iter()
            .map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN))
            .collect();
        poll_until(&mut polled, due_ns.min(until_ns).max(rest_until_ns));
        for (socket, polled) in self.sockets.iter().zip(&polled) {
            if polled.revents().contains(PollFlags::ERR) {
                take_path_errors(socket.as_fd());
            }
        }
    }
}

/// Whether a queue of this machine on the way to this address cuts trains of datagrams and drops parts of them untold.
fn cuts_trains(peer: SocketAddr) -> bool {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, None);
    let connected = socket.and_then(|socket| socket.connect(&peer.into()).map(|()| socket));
    connected.is_ok_and(|socket| Queues::of(&socket).cut_trains)
}

fn local_address(socket: &Socket) -> Option<SocketAddr> {
    socket.local_addr().ok()?.as_socket()
}

/// A time as ticks of the counter that datagrams have.
pub(super) fn ticks(time_ns: u64) -> i64 {
    let per_tick = 1_000_000_000 / SENDER_FREQUENCY.unsigned_abs();
    i64::try_from(time_ns / per_tick).unwrap_or(i64::MAX)
}

/// Whether a send may be tried again: the machine has no room now, or another datagram was
/// answered with an error that this socket is told of.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    ) || error.raw_os_error() == Some(libc::ENOBUFS)
}
