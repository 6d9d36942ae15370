//! Connections: every one that comes is continued by one to the target, and what is read from one
//! end takes the path before it is written to the other. A full path makes the sender wait.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;

use super::{CLIENTS_MAX, Source};
use crate::path::{Packet, Path};
use linerate_system::clock::monotonic_ns;

/// The most that is read at once.
pub(super) const BUFFER_BYTES: usize = 65_536;
/// Read at once at least, where the rate allows so much in a millisecond or not.
const PIECE_LEAST_BYTES: usize = 1448;
/// Bytes of a connection that may be between its ends, each way.
const BETWEEN_MAX_BYTES: u64 = 64 << 20;
/// Pieces taken from one end before others are looked at.
const READS_MAX: usize = 8;

/// The connections.
#[derive(Debug)]
pub(super) struct Connections {
    listener: TcpListener,
    target: SocketAddr,
    of_tag: HashMap<u32, Connection>,
    /// Ends that are not read because their path is full.
    paused: Vec<(u32, usize)>,
    next_tag: u32,
    turned_away: u64,
}

#[derive(Debug)]
struct Connection {
    /// Left and right.
    ends: [TcpStream; 2],
    /// To the right and to the left: the n-th is read from the n-th end.
    halves: [Half; 2],
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Half {
    /// Its end says nothing more.
    ended: bool,
    /// Its end isn't read for now.
    paused: bool,
    /// Read and not yet written.
    between_bytes: u64,
    /// Due, but the other end takes no more for now. A packet without bytes is the end.
    waiting: VecDeque<(Packet, usize)>,
    /// The other end was told the end.
    closed: bool,
}

impl Connections {
    pub(super) fn new(
        listener: TcpListener,
        target: SocketAddr,
        poll: &OwnedFd,
    ) -> io::Result<Self> {
        epoll::add(poll, &listener, Source::Arrival.data(), EventFlags::IN)?;
        let (of_tag, paused) = (HashMap::new(), Vec::new());
        Ok(Self { listener, target, of_tag, paused, next_tag: 0, turned_away: 0 })
    }

    /// Connections refused because there were too many.
    pub(super) fn turned_away(&self) -> u64 {
        self.turned_away
    }

    /// Clients have connected.
    pub(super) fn handle_arrivals(&mut self, poll: &OwnedFd) -> io::Result<()> {
        loop {
            let left = match self.listener.accept() {
                Ok((left, _)) => left,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client has given up, or descriptors have run out for now.
                Err(_) => return Ok(()),
            };
            if self.of_tag.len() >= CLIENTS_MAX {
                self.turned_away += 1;
                continue;
            }
            // Where the target can't be reached the client sees its connection end.
            if let Ok(right) = self.dial() {
                self.join(left, right, poll)?;
            }
        }
    }

    /// An end can be read, or written after it could not, or is gone both ways.
    pub(super) fn handle_end(
        &mut self,
        poll: &OwnedFd,
        tag: u32,
        end: usize,
        gone: bool,
        [right, left]: [&mut Path; 2],
    ) {
        // What goes to this end came from the other.
        let (from, to) = if end == 0 { (right, left) } else { (left, right) };
        if self
            .write(poll, tag, 1 - end, to)
            .and_then(|()| self.read(poll, tag, end, from))
            .is_err()
        {
            self.forget(tag, to);
        } else if gone
            && let Some(connection) = self.of_tag.get(&tag)
            && connection.halves[end].ended
        {
            // The system would go on telling, and there is nothing more to learn. What is still on
            // its way to the other end gets there.
            let _ = epoll::delete(poll, &connection.ends[end]);
        }
    }

    /// A piece of a direction is due.
    pub(super) fn send(
        &mut self,
        poll: &OwnedFd,
        direction: usize,
        packet: Packet,
        path: &mut Path,
    ) {
        let tag = packet.tag;
        let Some(connection) = self.of_tag.get_mut(&tag) else {
            path.recycle(packet.bytes);
            return;
        };
        connection.halves[direction].waiting.push_back((packet, 0));
        if self.write(poll, tag, direction, path).is_err() {
            self.forget(tag, path);
        }
    }

    /// Reads on where a path has room again.
    pub(super) fn resume(&mut self, poll: &OwnedFd, [right, left]: [&mut Path; 2]) {
        for _ in 0..self.paused.len() {
            let Some((tag, end)) = self.paused.pop() else { return };
            let Some(connection) = self.of_tag.get_mut(&tag) else { continue };
            connection.halves[end].paused = false;
            let path = if end == 0 { &mut *right } else { &mut *left };
            if self.read(poll, tag, end, path).and_then(|()| self.watch(poll, tag, end)).is_err() {
                self.forget(tag, path);
            }
        }
    }

    fn dial(&self) -> io::Result<TcpStream> {
        let domain = socket2::Domain::for_address(self.target);
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&self.target.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(socket.into()),
        }
    }

    fn join(&mut self, left: TcpStream, right: TcpStream, poll: &OwnedFd) -> io::Result<()> {
        left.set_nonblocking(true)?;
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        for (end, stream) in [&left, &right].into_iter().enumerate() {
            // Pieces go out when they are due, not when there are more of them.
            stream.set_nodelay(true)?;
            epoll::add(poll, stream, Source::End(tag, end).data(), EventFlags::IN)?;
        }
        let halves = [Half::default(), Half::default()];
        self.of_tag.insert(tag, Connection { ends: [left, right], halves });
        Ok(())
    }

    fn read(&mut self, poll: &OwnedFd, tag: u32, end: usize, path: &mut Path) -> io::Result<()> {
        let Some(connection) = self.of_tag.get_mut(&tag) else { return Ok(()) };
        let half = &mut connection.halves[end];
        let piece_bytes = piece_bytes(path.rate_bps());
        for _ in 0..READS_MAX {
            if half.ended || half.paused {
                return Ok(());
            }
            let now_ns = monotonic_ns();
            let full = path.is_full(now_ns, piece_bytes as u64);
            if full || half.between_bytes >= BETWEEN_MAX_BYTES {
                half.paused = true;
                self.paused.push((tag, end));
                return self.watch(poll, tag, end);
            }
            let mut bytes = path.buffer();
            match connection.ends[end].read(&mut bytes[..piece_bytes]) {
                Ok(length) => {
                    half.ended = length == 0;
                    half.between_bytes += length as u64;
                    path.offer(monotonic_ns(), Packet { bytes, length, tag });
                }
                Err(error) => {
                    path.recycle(bytes);
                    return match error.kind() {
                        io::ErrorKind::WouldBlock
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::NotConnected => Ok(()),
                        _ => Err(error),
                    };
                }
            }
        }
        if half.ended { self.watch(poll, tag, end) } else { Ok(()) }
    }

    /// Writes what is due to the other end.
    fn write(
        &mut self,
        poll: &OwnedFd,
        tag: u32,
        direction: usize,
        path: &mut Path,
    ) -> io::Result<()> {
        let Some(connection) = self.of_tag.get_mut(&tag) else { return Ok(()) };
        let Connection { ends, halves } = connection;
        let (half, end) = (&mut halves[direction], &mut ends[1 - direction]);
        let could_all = half.waiting.len() <= 1;
        while let Some((packet, written)) = half.waiting.front_mut() {
            let rest = &packet.content()[*written..];
            let result = if rest.is_empty() {
                half.closed = true;
                // An end that has gone already needs no word of it.
                let _ = end.shutdown(Shutdown::Write);
                Ok(0)
            } else {
                end.write(rest)
            };
            match result {
                Ok(length) => {
                    *written += length;
                    half.between_bytes = half.between_bytes.saturating_sub(length as u64);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected => {
                        return self.watch(poll, tag, 1 - direction);
                    }
                    io::ErrorKind::Interrupted => continue,
                    _ => return Err(error),
                },
            }
            if *written >= packet.length
                && let Some((packet, _)) = half.waiting.pop_front()
            {
                path.recycle(packet.bytes);
            }
        }
        if halves.iter().all(|half| half.closed) {
            self.of_tag.remove(&tag);
            return Ok(());
        }
        if could_all { Ok(()) } else { self.watch(poll, tag, 1 - direction) }
    }

    /// Asks to be told what this end's state calls for.
    fn watch(&self, poll: &OwnedFd, tag: u32, end: usize) -> io::Result<()> {
        let Some(connection) = self.of_tag.get(&tag) else { return Ok(()) };
        let mut flags = EventFlags::empty();
        let half = &connection.halves[end];
        if !half.ended && !half.paused {
            flags |= EventFlags::IN;
        }
        if !connection.halves[1 - end].waiting.is_empty() {
            flags |= EventFlags::OUT;
        }
        let data = Source::End(tag, end).data();
        match epoll::modify(poll, &connection.ends[end], data, flags) {
            // It is gone and no longer watched.
            Err(Errno::NOENT) => Ok(()),
            done => Ok(done?),
        }
    }

    /// A connection has failed: both ends see it end.
    fn forget(&mut self, tag: u32, path: &mut Path) {
        let Some(connection) = self.of_tag.remove(&tag) else { return };
        for half in connection.halves {
            half.waiting.into_iter().for_each(|(packet, _)| path.recycle(packet.bytes));
        }
    }
}

/// How much to read at once: what the rate sends in a millisecond.
fn piece_bytes(rate_bps: Option<u64>) -> usize {
    let of_rate = rate_bps.map_or(BUFFER_BYTES as u64, |rate_bps| rate_bps / 8000);
    (of_rate as usize).clamp(PIECE_LEAST_BYTES, BUFFER_BYTES)
}
