//! How bytes get from one TCP connection to another: by a copy, or through a pipe inside the kernel (splice(2)).

use bytes::Bytes;
use linerate_wire::relay::{Moved, Sink, Source};
use rustix::io::{Errno, retry_on_intr as retried};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::Socket;

use crate::transport::Pipe;

/// What is read with one call at most.
pub(super) const PIECE_BYTES: usize = 128 << 10;
/// What a pipe is asked to hold. It holds a page, or a longer piece of what a network card received, in each of its
/// slots, and has a slot for each 4 KiB of this.
const PIPE_BYTES: usize = 256 << 10;
/// Pipes of a thread: each has two descriptors, which connections need more.
const MOST_PIPES: usize = 64;
/// The kernel lets a user without privilege have so many pages in pipes before all further pipes of the user are tiny
/// (pipe(7)); 0: no limit.
const USER_PAGES: &str = "/proc/sys/fs/pipe-user-pages-soft";
/// The share of these pages that the pipes of all threads take at most: the user has other programs.
const SHARE_OF_PAGES: u64 = 4;
/// What a slot of a pipe counts there, bytes.
const PAGE_BYTES: u64 = 4096;
/// A way whose pieces are shorter is copied: a pipe would pin whole pages for a few bytes.
const LEAST_SPLICED_BYTES: usize = 16 << 10;

/// What the pairs of a thread carry bytes with.
pub(super) struct Mover {
    scratch: Vec<u8>,
    /// Empty ones.
    pipes: Vec<Pipe>,
    /// Those, and those of ways.
    opened_pipes: usize,
    /// Of the latter at most so many; none where splice(2) is refused.
    most_pipes: usize,
}

/// One way through a pair.
#[derive(Default)]
pub(super) struct Way {
    /// What one end gave and the other has not taken.
    waiting: Option<Piece>,
    /// Whether the last piece was long.
    is_bulk: bool,
}

enum Piece {
    Copied(Bytes),
    InPipe(Pipe),
}

impl Mover {
    /// One of so many threads.
    pub(super) fn new(threads: u32) -> Self {
        let pages = std::fs::read_to_string(USER_PAGES);
        let pages = pages.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let most_pipes = most_pipes(pages, threads);
        Self { scratch: vec![0; PIECE_BYTES], pipes: Vec::new(), opened_pipes: 0, most_pipes }
    }

    fn take_pipe(&mut self) -> Option<Pipe> {
        if let Some(pipe) = self.pipes.pop() {
            return Some(pipe);
        }
        let pipe =
            (self.opened_pipes < self.most_pipes).then(|| Pipe::open(PIPE_BYTES).ok()).flatten()?;
        self.opened_pipes += 1;
        Some(pipe)
    }

    /// A way has ended: closes its pipe, if it has one, with what is in it.
    pub(super) fn drop_waiting(&mut self, way: &mut Way) {
        if let Some(Piece::InPipe(_)) = way.waiting.take() {
            self.opened_pipes -= 1;
        }
    }

    /// Gives a connection what waits of a way.
    fn give(&mut self, way: &mut Way, to: &Socket) -> (usize, Sink) {
        match way.waiting.take() {
            None => (0, Sink::Open),
            Some(Piece::Copied(piece)) => {
                let mut left = &*piece;
                let sink = write(to, &mut left);
                let taken = piece.len() - left.len();
                if !left.is_empty() {
                    way.waiting = Some(Piece::Copied(piece.slice(taken..)));
                }
                (taken, sink)
            }
            Some(Piece::InPipe(pipe)) => self.give_from_pipe(way, pipe, to),
        }
    }

    fn give_from_pipe(&mut self, way: &mut Way, mut pipe: Pipe, to: &Socket) -> (usize, Sink) {
        let before = pipe.held_bytes();
        let drained = drain(&mut pipe, to);
        let taken = before - pipe.held_bytes();
        let sink = match drained {
            Err(error) if is_refusal(error) => {
                self.give_up_splicing();
                self.opened_pipes -= 1;
                let Ok(rest) = pipe.read_out() else { return (taken, Sink::Gone) };
                way.waiting = Some(Piece::Copied(rest.into()));
                let (copied, sink) = self.give(way, to);
                return (taken + copied, sink);
            }
            Err(error) => sink_of(error),
            Ok(()) => Sink::Open,
        };
        if pipe.held_bytes() == 0 {
            self.pipes.push(pipe);
        } else {
            way.waiting = Some(Piece::InPipe(pipe));
        }
        (taken, sink)
    }

    /// What this system refuses once is not tried again.
    fn give_up_splicing(&mut self) {
        self.most_pipes = 0;
        self.opened_pipes -= self.pipes.len();
        self.pipes.clear();
    }

    /// Gives the end that takes what waits of a way, then what the other has, in pieces of so many bytes, until it
    /// has had so many.
    pub(super) fn carry(
        &mut self,
        way: &mut Way,
        [from, to]: [&Socket; 2],
        [piece_bytes, most_bytes]: [usize; 2],
    ) -> Moved {
        let (mut taken_bytes, mut source) = (0, Source::More);
        let (given, mut sink) = self.give(way, to);
        taken_bytes += given;
        while taken_bytes < most_bytes && sink == Sink::Open {
            let passed = if way.is_bulk
                && let Some(pipe) = self.take_pipe()
            {
                self.pass_by_pipe(way, pipe, [from, to], piece_bytes)
            } else {
                self.pass_by_copy(way, [from, to], piece_bytes)
            };
            match passed {
                Ok((given, now)) => (taken_bytes, sink) = (taken_bytes + given, now),
                Err(none) => {
                    source = none;
                    break;
                }
            }
        }
        Moved { held_bytes: way.held_bytes(), taken_bytes, source, sink }
    }

    fn pass_by_copy(
        &mut self,
        way: &mut Way,
        [from, to]: [&Socket; 2],
        piece_bytes: usize,
    ) -> Result<(usize, Sink), Source> {
        let most = piece_bytes.min(self.scratch.len());
        let space = self.scratch.get_mut(..most).unwrap_or_default();
        let read = read_of(retried(|| {
            recv(from, &mut *space, RecvFlags::empty()).map(|(length, _)| length)
        }))?;
        way.is_bulk = read >= LEAST_SPLICED_BYTES;
        let mut left = space.get(..read).unwrap_or_default();
        let sink = write(to, &mut left);
        way.waiting = (!left.is_empty()).then(|| Piece::Copied(Bytes::copy_from_slice(left)));
        Ok((read - left.len(), sink))
    }

    fn pass_by_pipe(
        &mut self,
        way: &mut Way,
        mut pipe: Pipe,
        [from, to]: [&Socket; 2],
        piece_bytes: usize,
    ) -> Result<(usize, Sink), Source> {
        let filled = retried(|| pipe.fill(from, piece_bytes));
        if filled.is_err_and(is_refusal) {
            self.give_up_splicing();
            self.opened_pipes -= 1;
            return self.pass_by_copy(way, [from, to], piece_bytes);
        }
        let read = read_of(filled);
        way.is_bulk =
            read.is_ok_and(|read| read >= LEAST_SPLICED_BYTES) || read == Err(Source::Empty);
        way.waiting = Some(Piece::InPipe(pipe));
        let given = self.give(way, to);
        read.map(|_| given)
    }
}

impl Way {
    fn held_bytes(&self) -> usize {
        match &self.waiting {
            None => 0,
            Some(Piece::Copied(piece)) => piece.len(),
            Some(Piece::InPipe(pipe)) => pipe.held_bytes(),
        }
    }
}

/// Bytes that were read, at least one; else why there are none.
fn read_of(read: Result<usize, Errno>) -> Result<usize, Source> {
    match read {
        Ok(0) => Err(Source::Finished),
        Ok(length) => Ok(length),
        Err(Errno::AGAIN) => Err(Source::Empty),
        Err(_) => Err(Source::Gone),
    }
}

/// Sends the beginning of a piece; what is left is what the connection doesn't take now.
fn write(socket: &Socket, left: &mut &[u8]) -> Sink {
    while !left.is_empty() {
        match retried(|| send(socket, left, SendFlags::NOSIGNAL)) {
            Ok(sent) => *left = left.get(sent..).unwrap_or_default(),
            Err(error) => return sink_of(error),
        }
    }
    Sink::Open
}

/// Sends the beginning of what a pipe holds; why that was not all.
fn drain(pipe: &mut Pipe, socket: &Socket) -> Result<(), Errno> {
    while pipe.held_bytes() > 0 {
        retried(|| pipe.empty(socket))?;
    }
    Ok(())
}

/// Whether splice(2) itself is refused, by the kernel or by a filter of system calls. No connection breaks with
/// these errors.
fn is_refusal(error: Errno) -> bool {
    matches!(
        error,
        Errno::INVAL | Errno::NOSYS | Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::NOMEM
    )
}

/// How many pipes a thread may have where a user's pipes may have so many pages.
fn most_pipes(user_pages: u64, threads: u32) -> usize {
    let pages_of_a_pipe = PIPE_BYTES as u64 / PAGE_BYTES;
    match user_pages {
        0 => MOST_PIPES,
        pages => {
            let pipes = pages / SHARE_OF_PAGES / pages_of_a_pipe / u64::from(threads.max(1));
            usize::try_from(pipes).unwrap_or(MOST_PIPES).min(MOST_PIPES)
        }
    }
}

fn sink_of(error: Errno) -> Sink {
    if error == Errno::AGAIN { Sink::Full } else { Sink::Gone }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    /// A connection over loopback: a peer's end that blocks, and the relay's that doesn't.
    fn connection() -> (TcpStream, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        ours.set_nonblocking(true).unwrap();
        (peer, ours.into())
    }

    /// A mover with as many pipes as a thread may have, whatever this machine lets a user have.
    fn with_pipes() -> Mover {
        Mover { most_pipes: MOST_PIPES, ..Mover::new(1) }
    }

    /// Carries as long as something moves; what came of the last move.
    fn carry_all(mover: &mut Mover, way: &mut Way, sockets: [&Socket; 2]) -> Moved {
        loop {
            let moved = mover.carry(way, sockets, [PIECE_BYTES, 8 * PIECE_BYTES]);
            if moved.taken_bytes == 0 {
                return moved;
            }
        }
    }

    #[test]
    fn long_pieces_go_through_pipes_and_all_bytes_arrive_in_order() {
        let ([mut writer, mut reader], [from, to]) = {
            let ((writer, from), (reader, to)) = (connection(), connection());
            ([writer, reader], [from, to])
        };
        let (mut mover, mut way) = (with_pipes(), Way::default());
        let sent: Vec<u8> =
            (0..20_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (mut came, whole) = (Vec::new(), sent.clone());
        let writes = std::thread::spawn(move || {
            writer.write_all(&whole).unwrap();
            // A short piece at the end of long ones.
            writer.write_all(b"end").unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
            writer
        });
        let mut held_in_pipe = 0;
        loop {
            let moved = carry_all(&mut mover, &mut way, [&from, &to]);
            held_in_pipe += usize::from(matches!(way.waiting, Some(Piece::InPipe(_))));
            match (moved.sink, moved.source) {
                (Sink::Full, _) => {
                    assert!(moved.held_bytes > 0 && moved.held_bytes <= PIECE_BYTES);
                    let mut part = vec![0; 3_000_000];
                    let read = reader.read(&mut part).unwrap();
                    came.extend_from_slice(&part[..read]);
                }
                (_, Source::Finished) => break,
                (Sink::Open, Source::Empty) => std::thread::yield_now(),
                other => panic!("{other:?}"),
            }
        }
        to.shutdown(Shutdown::Write).unwrap();
        reader.read_to_end(&mut came).unwrap();
        assert!(came.strip_suffix(b"end") == Some(&sent[..]), "{} bytes", came.len());
        assert!(held_in_pipe > 0, "no piece went through a pipe");
        assert_eq!((mover.opened_pipes, mover.pipes.len()), (1, 1));
        drop(writes.join().unwrap());
    }

    #[test]
    fn short_pieces_are_copied() {
        let ((mut writer, from), (mut reader, to)) = (connection(), connection());
        let (mut mover, mut way) = (with_pipes(), Way::default());
        for _ in 0..20 {
            writer.write_all(&[1; 100]).unwrap();
            while mover.carry(&mut way, [&from, &to], [PIECE_BYTES; 2]).taken_bytes == 0 {}
            reader.read_exact(&mut [0; 100]).unwrap();
        }
        assert_eq!(mover.opened_pipes, 0);
    }

    #[test]
    fn pipes_leave_most_of_a_users_pages_alone() {
        // The kernel's default, on two and on 64 processors.
        assert_eq!([1, 2, 64, 65].map(|threads| most_pipes(16_384, threads)), [64, 32, 1, 0]);
        assert_eq!(most_pipes(0, 64), MOST_PIPES);
        assert_eq!([most_pipes(1, 1), most_pipes(u64::MAX, 0)], [0, MOST_PIPES]);
    }

    #[test]
    fn bytes_are_copied_where_splice_is_refused_on_the_way_in() {
        let ((mut writer, from), (mut reader, to)) = (connection(), connection());
        let (mut mover, mut way) = (with_pipes(), Way { waiting: None, is_bulk: true });
        (mover.pipes, mover.opened_pipes) = (vec![Pipe::refused(), Pipe::refused()], 2);
        writer.write_all(b"hello").unwrap();
        while mover.carry(&mut way, [&from, &to], [PIECE_BYTES; 2]).taken_bytes == 0 {}
        let mut came = [0; 5];
        reader.read_exact(&mut came).unwrap();
        assert_eq!(&came, b"hello");
        assert_eq!((mover.opened_pipes, mover.pipes.len(), mover.most_pipes), (0, 0, 0));
    }

    /// A file in append mode takes nothing from splice(2).
    #[test]
    fn bytes_are_copied_where_splice_is_refused_on_the_way_out() {
        let ((mut writer, from), (mut reader, to)) = (connection(), connection());
        let flags = rustix::fs::fcntl_getfl(&to).unwrap();
        rustix::fs::fcntl_setfl(&to, flags | rustix::fs::OFlags::APPEND).unwrap();
        let (mut mover, mut way) = (with_pipes(), Way { waiting: None, is_bulk: true });
        writer.write_all(b"hello").unwrap();
        let mut moved = 0;
        while moved == 0 {
            way.is_bulk = true;
            let step = mover.carry(&mut way, [&from, &to], [PIECE_BYTES; 2]);
            assert_eq!(step.sink, Sink::Open);
            moved += step.taken_bytes;
        }
        let mut came = [0; 5];
        reader.read_exact(&mut came).unwrap();
        assert_eq!((&came, moved), (b"hello", 5));
        assert_eq!((mover.opened_pipes, mover.most_pipes), (0, 0));
    }

    #[test]
    fn ways_beyond_the_pipes_are_copied_and_a_dropped_way_closes_its_pipe() {
        let (mut mover, mut ways) = (with_pipes(), Vec::new());
        for _ in 0..MOST_PIPES {
            let pipe = mover.take_pipe().unwrap();
            ways.push(Way { waiting: Some(Piece::InPipe(pipe)), is_bulk: true });
        }
        assert!(mover.take_pipe().is_none());
        mover.drop_waiting(&mut ways[0]);
        assert_eq!(mover.opened_pipes, MOST_PIPES - 1);
        let (pipe, (_peer, from)) = (mover.take_pipe().unwrap(), connection());
        assert!(mover.take_pipe().is_none());
        let mut way = Way { waiting: None, is_bulk: true };
        let moved = mover.carry(&mut way, [&from, &from], [PIECE_BYTES; 2]);
        assert_eq!((moved.source, moved.taken_bytes), (Source::Empty, 0), "read by a copy");
        drop(pipe);
    }
}
