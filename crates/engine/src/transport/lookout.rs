//! Whether a receiver that finds nothing asks again before it sleeps.

use std::io;
use std::os::fd::AsFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu};
use socket2::Socket;

use crate::clock::monotonic_ns;

/// How long it asks. Measured with bytes and with trains of datagrams from another processor: more have
/// come after 20 us as a rule where the sender is never idle.
const LOOK_NS: u64 = 20_000;
/// The most receives that sleep at once after looks in vain.
const MOST_PASSES: u32 = 255;

/// Receivers of this process that have a lookout.
static LOOKOUTS: AtomicUsize = AtomicUsize::new(0);
/// The most of them that leave a processor to each sender on this machine.
static MOST: LazyLock<usize> = LazyLock::new(|| {
    let cpus = sched_getaffinity(None).map_or(1, |cpus| cpus.count() as usize);
    (cpus / 2).max(1)
});

/// A receiver's patience with an empty socket.
///
/// Each time it sleeps, the sender pays for waking it: more than a tenth of a sender's time where much
/// comes from another processor at full rate. There it asks again for a moment; where that is in vain it
/// sleeps at once the next times, twice as often after each failure. On the sender's own processor, and
/// where receivers are more than half of the processors, it never asks: it would only keep others from
/// sending.
#[derive(Default)]
pub(super) struct Lookout {
    /// When the look in progress ends.
    until_ns: Option<u64>,
    /// Receives that sleep at once before the next that may look.
    passes: u32,
    /// How many they were last.
    last_passes: u32,
}

impl Lookout {
    /// For a socket that blocks; `None` for one that doesn't, whose receiver does other things
    /// meanwhile.
    pub(super) fn of(socket: &Socket) -> Option<Self> {
        let blocks = fcntl_getfl(socket.as_fd()).is_ok_and(|how| !how.contains(OFlags::NONBLOCK));
        blocks.then(|| {
            LOOKOUTS.fetch_add(1, Ordering::Relaxed);
            Self::default()
        })
    }

    /// Receives, asking again for a moment where nothing has come, and then as the socket does.
    #[inline]
    pub(super) fn receive(&mut self, socket: &Socket, into: &mut [u8]) -> io::Result<usize> {
        let sleep = |into: &mut [u8]| {
            let (length, _) = rustix::net::recv(socket.as_fd(), into, RecvFlags::empty())?;
            Ok(length)
        };
        if self.passes() {
            return sleep(into);
        }
        loop {
            match rustix::net::recv(socket.as_fd(), &mut *into, RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN) => {
                    if !self.asks_again(monotonic_ns(), || may_find_more(socket)) {
                        return sleep(into);
                    }
                }
                received => {
                    self.found();
                    return Ok(received?.0);
                }
            }
        }
    }

    /// Whether the next receive sleeps at once.
    #[inline]
    fn passes(&mut self) -> bool {
        let passes = self.passes > 0;
        self.passes = self.passes.saturating_sub(1);
        passes
    }

    /// Nothing has come: whether to ask again; if not, it's time to sleep.
    #[inline]
    fn asks_again(&mut self, now_ns: u64, may_find_more: impl Fn() -> bool) -> bool {
        match self.until_ns {
            Some(until_ns) if now_ns < until_ns => return true,
            Some(_) => {
                self.until_ns = None;
                self.last_passes = (self.last_passes * 2 + 1).min(MOST_PASSES);
                self.passes = self.last_passes;
            }
            None if may_find_more() => {
                self.until_ns = Some(now_ns + LOOK_NS);
                return true;
            }
            None => self.passes = MOST_PASSES,
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

impl Drop for Lookout {
    fn drop(&mut self) {
        LOOKOUTS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether there is a processor to spare, and the kernel takes the socket's packets in on another one
/// than this thread's (SO_INCOMING_CPU, socket(7); loopback's are taken in where they are sent).
fn may_find_more(socket: &Socket) -> bool {
    if LOOKOUTS.load(Ordering::Relaxed) > *MOST {
        return false;
    }
    let cpu = socket.cpu_affinity().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU);
    cpu.is_some_and(|cpu| cpu != sched_getcpu())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookout() -> Lookout {
        let socket = Socket::from(std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        Lookout::of(&socket).unwrap()
    }

    /// How often it asks in one wait in which nothing comes, a microsecond a time.
    fn asks_in_vain(lookout: &mut Lookout, now_ns: &mut u64, elsewhere: bool) -> u32 {
        let mut asks = 0;
        if lookout.passes() {
            return asks;
        }
        while lookout.asks_again(*now_ns, || elsewhere) {
            asks += 1;
            *now_ns += 1_000;
        }
        asks
    }

    #[test]
    fn looks_in_vain_become_rare_and_one_that_finds_something_makes_them_common_again() {
        let (mut lookout, mut now_ns) = (lookout(), 1);
        let mut waits_between = Vec::new();
        let mut waits = 0;
        while waits_between.len() < 10 {
            match asks_in_vain(&mut lookout, &mut now_ns, true) {
                0 => waits += 1,
                asks => {
                    assert_eq!(asks, 20);
                    waits_between.push(waits);
                    waits = 0;
                }
            }
        }
        assert_eq!(waits_between, [0, 1, 3, 7, 15, 31, 63, 127, 255, 255]);

        while lookout.passes() {}
        assert!(lookout.asks_again(now_ns, || true));
        lookout.found();
        assert_eq!(asks_in_vain(&mut lookout, &mut now_ns, true), 20);
        assert_eq!(asks_in_vain(&mut lookout, &mut now_ns, true), 0);
        assert_eq!(asks_in_vain(&mut lookout, &mut now_ns, true), 20);
    }

    #[test]
    fn on_the_senders_processor_it_never_asks() {
        let (mut lookout, mut now_ns) = (lookout(), 1);
        for _ in 0..1_000 {
            assert_eq!(asks_in_vain(&mut lookout, &mut now_ns, false), 0);
        }
    }

    #[test]
    fn a_socket_that_does_not_block_has_none() {
        let socket = Socket::from(std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        assert!(Lookout::of(&socket).is_some());
        socket.set_nonblocking(true).unwrap();
        assert!(Lookout::of(&socket).is_none());
    }
}
