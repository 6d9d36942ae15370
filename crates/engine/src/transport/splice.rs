//! TCP whose bytes never are in the program: from the page cache, and into nowhere.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, sendfile};
use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use socket2::Socket;

use super::{ByteStream, Tcp};

/// What the pipe to nowhere is asked to hold.
const PIPE_BYTES: usize = 1 << 20;

/// A file that flows send from.
#[derive(Clone)]
pub(crate) struct PageCache {
    file: Arc<OwnedFd>,
    /// Where it begins again, for one that is sent from end to end; absent: every send is its
    /// beginning.
    length: Option<u64>,
}

impl PageCache {
    /// A file of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> io::Result<Self> {
        let mut file = File::from(memfd_create("linerate", MemfdFlags::CLOEXEC)?);
        file.write_all(bytes)?;
        Ok(Self { file: Arc::new(file.into()), length: None })
    }

    /// A file that there is, which is sent over and over.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let facts = file.metadata()?;
        if !facts.is_file() || facts.len() == 0 {
            return Err(io::Error::other("no file with anything in it"));
        }
        Ok(Self { file: Arc::new(file.into()), length: Some(facts.len()) })
    }
}

/// A connected TCP socket that sends from a file (sendfile(2)): of what is to be sent only the
/// length matters.
pub(crate) struct FromPageCache {
    socket: Tcp,
    file: PageCache,
    /// Where the next send begins.
    at: u64,
}

impl FromPageCache {
    pub(crate) fn new(socket: Tcp, file: PageCache) -> Self {
        Self { socket, file, at: 0 }
    }
}

impl ByteStream for FromPageCache {
    const SHORT_MEANS_EMPTY: bool = true;

    fn socket(&self) -> &Socket {
        self.socket.socket()
    }

    fn establish(&mut self) -> io::Result<()> {
        self.socket.establish()
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let began_at = self.at;
            let mut from = began_at;
            let sent = sendfile(&*self.socket.0, &*self.file.file, Some(&mut from), bytes.len())?;
            if let Some(length) = self.file.length {
                self.at = if from >= length || sent == 0 { 0 } else { from };
            }
            // Nothing is sent of a file that has become shorter meanwhile: it begins again.
            if sent > 0 || began_at == 0 {
                return Ok(sent);
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.receive(into)
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.socket.finish_sending()
    }
}

/// A connected TCP socket whose received bytes go through a pipe to /dev/null (splice(2)): the
/// buffer of a receive stays as it is.
pub(crate) struct IntoNowhere(pub(crate) Tcp);

impl ByteStream for IntoNowhere {
    const SHORT_MEANS_EMPTY: bool = true;

    fn socket(&self) -> &Socket {
        self.0.socket()
    }

    fn establish(&mut self) -> io::Result<()> {
        self.0.establish()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    #[inline]
    fn receive(&mut self, _into: &mut [u8]) -> io::Result<usize> {
        SINK.with(|kept| {
            let mut sink = kept.take().map_or_else(Sink::open, Ok)?;
            let moved = sink.fill(&self.0);
            // A pipe that failed half way isn't empty and is of no more use.
            match moved {
                Ok(_) => sink.empty()?,
                Err(error) => {
                    kept.set(Some(sink));
                    return Err(error);
                }
            }
            kept.set(Some(sink));
            moved
        })
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.0.finish_sending()
    }
}

thread_local! {
    /// The flows of a thread share one: it is empty after each receive.
    static SINK: Cell<Option<Sink>> = const { Cell::new(None) };
}

/// A pipe that bytes of sockets go through inside the kernel. No call on an empty one waits for it.
pub(crate) struct Pipe {
    outlet: OwnedFd,
    inlet: OwnedFd,
    held_bytes: usize,
}

impl Pipe {
    /// An empty one that is to hold so many bytes. A kernel that refuses leaves it at less, which costs calls.
    pub(crate) fn open(bytes: usize) -> io::Result<Self> {
        let (outlet, inlet) = pipe_with(PipeFlags::CLOEXEC)?;
        let _smaller_at_worst = fcntl_setpipe_size(&inlet, bytes);
        Ok(Self { outlet, inlet, held_bytes: 0 })
    }

    /// Takes up to so many bytes of a socket; 0: it has ended.
    pub(crate) fn fill(&mut self, from: impl AsFd, most_bytes: usize) -> rustix::io::Result<usize> {
        let taken = splice(from, None, &self.inlet, None, most_bytes, SpliceFlags::MOVE)?;
        self.held_bytes += taken;
        Ok(taken)
    }

    /// Gives what it holds; how much was taken.
    pub(crate) fn empty(&mut self, into: impl AsFd) -> rustix::io::Result<usize> {
        let given = splice(&self.outlet, None, into, None, self.held_bytes, SpliceFlags::MOVE)?;
        self.held_bytes = self.held_bytes.saturating_sub(given);
        Ok(given)
    }

    /// Takes what it holds out by a copy.
    pub(crate) fn read_out(&mut self) -> rustix::io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.held_bytes];
        let mut read = 0;
        while read < bytes.len() {
            match retry_on_intr(|| {
                rustix::io::read(&self.outlet, bytes.get_mut(read..).unwrap_or_default())
            })? {
                // Nobody else has the other end.
                0 => break,
                count => read += count,
            }
        }
        bytes.truncate(read);
        self.held_bytes = 0;
        Ok(bytes)
    }

    /// One that splice(2) refuses to fill.
    #[cfg(test)]
    pub(crate) fn refused() -> Self {
        let null = || OwnedFd::from(File::options().write(true).open("/dev/null").unwrap());
        Self { outlet: null(), inlet: null(), held_bytes: 0 }
    }

    /// Bytes that it was given and nobody has taken.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

/// A pipe, and nowhere behind it.
struct Sink {
    pipe: Pipe,
    nowhere: OwnedFd,
}

impl Sink {
    fn open() -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let nowhere = rustix::fs::open("/dev/null", flags, Mode::empty())?;
        Ok(Self { pipe: Pipe::open(PIPE_BYTES)?, nowhere })
    }

    fn fill(&mut self, from: &Tcp) -> io::Result<usize> {
        Ok(self.pipe.fill(from.0.as_fd(), PIPE_BYTES)?)
    }

    fn empty(&mut self) -> io::Result<()> {
        while self.pipe.held_bytes() > 0 {
            self.pipe.empty(&self.nowhere)?;
        }
        Ok(())
    }
}
