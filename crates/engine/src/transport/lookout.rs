//! Whether one who finds that nothing has come asks again before it sleeps.

mod gathering;

use std::io;
use std::os::fd::AsFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::getpid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_yield};
use rustix::time::Timespec;
use socket2::Socket;

use crate::clock::monotonic_ns;
use gathering::Gathering;

/// How long a receiver in bulk asks. Measured with bytes and with trains of datagrams from another
/// processor: more have come after 20 us as a rule where the sender is never idle.
const BULK_LOOK_NS: u64 = 20_000;
/// The most of its receives that sleep at once after looks in vain.
const BULK_MOST_PASSES: u32 = 255;
/// Who got less than this last does not receive in bulk.
const BULK_BYTES: usize = 4 << 10;
/// The most receivers of a process that yield, for each pair of its processors: with many, each gives way to
/// the others and not to its sender. (128 of iperf3's streams on two processors, both ends ours: 0.88 of the
/// rate without; 8: 1.02.)
const MOST_YIELDING: usize = 16;

/// Those of this process that have a lookout.
static LOOKOUTS: AtomicUsize = AtomicUsize::new(0);
/// The most that look: as many as leave this process's other half of the processors to senders. (What
/// the process may use is what its first thread may: others are pinned.)
static MOST: LazyLock<usize> = LazyLock::new(|| {
    let cpus = sched_getaffinity(Some(getpid())).map_or(1, |cpus| cpus.count() as usize);
    (cpus / 2).max(1)
});

/// One who asks again for a moment before it sleeps.
///
/// Each time a receiver sleeps, the sender pays for waking it: more than a tenth of a sender's time where much
/// comes from another processor at full rate. There it asks again for a moment; where that is in vain it
/// sleeps at once the next times, twice as often after each failure. On the sender's own processor, where
/// that is known, and where such receivers of this process are more than half of its processors, it never
/// asks: it would only keep others from sending.
pub(crate) struct Lookout(());

impl Lookout {
    pub(crate) fn new() -> Self {
        LOOKOUTS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Tries what must not wait, again for a moment where nothing has come and there `may_come` something
    /// soon; `None`: it's time to sleep.
    #[inline]
    pub(crate) fn look<T>(
        &self,
        patience: &mut Patience,
        may_come: impl Fn() -> bool,
        attempt: impl FnMut() -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        self.look_and(patience, may_come, || {}, attempt)
    }

    /// The same, with something done between the attempts.
    #[inline]
    fn look_and<T>(
        &self,
        patience: &mut Patience,
        may_come: impl Fn() -> bool,
        between: impl Fn(),
        attempt: impl FnMut() -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        let may_come = || LOOKOUTS.load(Ordering::Relaxed) <= *MOST && may_come();
        patience.ask(may_come, between, attempt)
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        LOOKOUTS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long and how often one asks again, for one kind of thing that it waits for.
pub(crate) struct Patience {
    /// How long it asks.
    look_ns: u64,
    /// The most waits that sleep at once after looks in vain.
    most_passes: u32,
    /// When the look in progress ends.
    until_ns: Option<u64>,
    /// Waits that sleep at once before the next that may look.
    passes: u32,
    /// How many they were last.
    last_passes: u32,
}

impl Patience {
    pub(crate) fn new(look_ns: u64, most_passes: u32) -> Self {
        Self { look_ns, most_passes, until_ns: None, passes: 0, last_passes: 0 }
    }

    /// Tries what must not wait, and where nothing has come and there `may_come` something, tries again
    /// for so long, with something done in between; `None`: it's time to sleep.
    #[inline]
    fn ask<T>(
        &mut self,
        may_come: impl Fn() -> bool,
        between: impl Fn(),
        mut attempt: impl FnMut() -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        if self.passes() {
            return None;
        }
        loop {
            match attempt() {
                Err(Errno::AGAIN) => {
                    if !self.asks_again(monotonic_ns(), &may_come) {
                        return None;
                    }
                    between();
                }
                came => {
                    self.found();
                    return Some(came);
                }
            }
        }
    }

    /// Whether this wait sleeps at once.
    #[inline]
    pub(crate) fn passes(&mut self) -> bool {
        let passes = self.passes > 0;
        self.passes = self.passes.saturating_sub(1);
        passes
    }

    /// Nothing has come: whether to ask again; if not, it's time to sleep.
    #[inline]
    fn asks_again(&mut self, now_ns: u64, may_come: impl Fn() -> bool) -> bool {
        match self.until_ns {
            Some(until_ns) if now_ns < until_ns => return true,
            Some(_) => {
                self.until_ns = None;
                self.last_passes = (self.last_passes * 2 + 1).min(self.most_passes);
                self.passes = self.last_passes;
            }
            None if may_come() => {
                self.until_ns = Some(now_ns + self.look_ns);
                return true;
            }
            None => self.passes = self.most_passes,
        }
        false
    }

    /// Something has come without a sleep.
    #[inline]
    fn found(&mut self) {
        if self.until_ns.take().is_some() {
            self.last_passes = 0;
        }
    }
}

/// Whether a socket has something to take now (bytes, packets, a connection, an error), or a poll set an event.
///
/// # Errors
///
/// `EAGAIN`: not yet; or what poll(2) says.
pub(crate) fn readiness(polled: &impl AsFd) -> Result<(), Errno> {
    let mut polled = [PollFd::new(polled, PollFlags::IN)];
    match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
        0 => Err(Errno::AGAIN),
        _ => Ok(()),
    }
}

/// Whether the kernel takes the socket's packets in on another processor than this thread's.
pub(crate) fn comes_from_elsewhere(socket: &Socket) -> bool {
    incoming_processor(socket).is_some_and(|cpu| cpu != sched_getcpu())
}

/// Whether it takes them in on this thread's.
pub(crate) fn comes_from_here(socket: &Socket) -> bool {
    incoming_processor(socket).is_some_and(|cpu| cpu == sched_getcpu())
}

/// Where the kernel takes the socket's packets in (SO_INCOMING_CPU, socket(7); loopback's are taken in
/// where they are sent). Of a UDP socket without a peer it doesn't know.
fn incoming_processor(socket: &Socket) -> Option<usize> {
    socket.cpu_affinity().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU)
}

/// The lookout of a receiver in bulk.
pub(super) struct BulkLookout {
    lookout: Lookout,
    patience: Patience,
    /// For a sender on this very processor, to which it is yielded once before the receiver sleeps.
    yielding: Option<Patience>,
    /// For datagrams, where there is room for what comes during rests.
    gathering: Option<Gathering>,
    in_bulk: bool,
}

impl BulkLookout {
    /// For a socket that blocks; `None` for one that doesn't, whose receiver does other things
    /// meanwhile.
    pub(super) fn of(socket: &Socket) -> Option<Self> {
        let blocks = fcntl_getfl(socket.as_fd()).is_ok_and(|how| !how.contains(OFlags::NONBLOCK));
        blocks.then(|| Self {
            lookout: Lookout::new(),
            patience: Patience::new(BULK_LOOK_NS, BULK_MOST_PASSES),
            yielding: None,
            gathering: None,
            in_bulk: false,
        })
    }

    /// The same, for a receiver that yields its processor to a sender that shares it.
    ///
    /// Whoever sleeps there is woken by the next packet, and takes the processor from the sender for the
    /// little that has come. A receiver that yields it finds much, and neither is woken: 1.2 times the rate.
    /// Only where what waits can't be lost: of datagrams of 1400 bytes half as many arrived.
    pub(super) fn of_stream(socket: &Socket) -> Option<Self> {
        let yielding = Some(Patience::new(0, BULK_MOST_PASSES));
        Self::of(socket).map(|lookout| Self { yielding, ..lookout })
    }

    /// The same, for a receiver of datagrams that lets some gather while they come without end.
    pub(super) fn of_datagrams(socket: &Socket) -> Option<Self> {
        Self::of(socket).map(|lookout| Self { gathering: Gathering::of(socket), ..lookout })
    }

    /// Whether the last receive brought much.
    #[inline]
    pub(super) fn is_in_bulk(&self) -> bool {
        self.in_bulk
    }

    /// Receives, asking again for a moment where nothing has come, and then as the socket does.
    #[inline]
    pub(super) fn receive(&mut self, socket: &Socket, into: &mut [u8]) -> io::Result<usize> {
        let mut received = self.receive_awake(socket, into);
        if received.is_none() {
            received = self.receive_after_yield(socket, into);
        }
        let received = received.unwrap_or_else(|| receive(socket, into, RecvFlags::empty()));
        self.in_bulk = received.is_ok_and(|length| length >= BULK_BYTES);
        Ok(received?)
    }

    /// The same, of datagrams of one size.
    #[inline]
    pub(super) fn receive_train(
        &mut self,
        socket: &Socket,
        into: &mut [u8],
        unit_bytes: usize,
    ) -> io::Result<usize> {
        let length = self.receive(socket, into)?;
        if let Some(gathering) = &mut self.gathering {
            gathering.record_train(length, unit_bytes);
        }
        Ok(length)
    }

    /// Receives what has come or comes in a moment; `None`: it's time to sleep.
    #[inline]
    fn receive_awake(&mut self, socket: &Socket, into: &mut [u8]) -> Option<Result<usize, Errno>> {
        if !self.in_bulk {
            return None;
        }
        let gathering = self.gathering.as_ref();
        let came = self.lookout.look_and(
            &mut self.patience,
            || comes_from_elsewhere(socket),
            || gathering.into_iter().for_each(Gathering::wait),
            || receive(socket, into, RecvFlags::DONTWAIT),
        );
        if let Some(gathering) = &mut self.gathering {
            gathering.record_wait(came.is_some());
        }
        came
    }

    /// Receives what has come, or comes while the sender has this processor; `None`: it's time to sleep.
    #[inline]
    fn receive_after_yield(
        &mut self,
        socket: &Socket,
        into: &mut [u8],
    ) -> Option<Result<usize, Errno>> {
        let yielding = self.yielding.as_mut().filter(|_| self.in_bulk)?;
        yielding.ask(
            || LOOKOUTS.load(Ordering::Relaxed) <= MOST_YIELDING * *MOST && comes_from_here(socket),
            sched_yield,
            || receive(socket, into, RecvFlags::DONTWAIT),
        )
    }
}

#[inline]
fn receive(socket: &Socket, into: &mut [u8], how: RecvFlags) -> Result<usize, Errno> {
    rustix::net::recv(socket.as_fd(), into, how).map(|(length, _)| length)
}

#[cfg(test)]
mod tests;
