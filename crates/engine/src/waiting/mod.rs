//! How threads wait for their sockets.
//!
//! A thread whose socket is empty sleeps in the kernel, polls the socket again for a moment, yields its
//! processor once and asks again, or rests before it asks at all. [`choose`] picks one of the first three
//! by three facts: what is awaited ([`Awaited`]), on which processor the peer runs ([`Peer`]), and how many
//! threads of this process poll already. [`Rests`] decides about the fourth by the rate with and without.
//! [`counts`] keep what was done, since a receiver that changes how it waits changes what is measured: the
//! report of each end has them.

mod bulk;
mod cost;
mod counts;
mod flood;
mod look;
mod rests;
mod yielding;

use std::sync::LazyLock;
use std::time::Duration;

use rustix::process::getpid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu};
use socket2::Socket;

pub(crate) use bulk::BulkWait;
pub(crate) use cost::{Cost, CostMark};
pub(crate) use counts::{counts, record_look, record_yield};
pub(crate) use look::{Backoff, Look, readiness};
pub(crate) use rests::Rests;
pub(crate) use yielding::{DATAGRAM_BYTES_PER_YIELD, Yielding};

/// The most threads of a process that yield, for each pair of its processors. With many, each yields to the
/// others and not to its sender.
const MOST_YIELDING: usize = 16;

/// The most threads that poll: as many as leave the other half of this process's processors to senders. The
/// first thread tells what the process may use: others are pinned.
static MOST_LOOKING: LazyLock<usize> = LazyLock::new(|| {
    let cpus = sched_getaffinity(Some(getpid())).map_or(1, |cpus| cpus.count() as usize);
    (cpus / 2).max(1)
});

/// What a thread does while its socket is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It sleeps until the kernel wakes it.
    Sleep,
    /// It polls the socket for a moment first.
    Look,
    /// It yields its processor once, then asks again.
    Yield,
}

/// Where the packets of a socket come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// On the processor of this thread.
    Here,
    /// On another one.
    Elsewhere,
    /// The kernel doesn't know, as of a UDP socket without a peer, or of one that has received nothing.
    Unknown,
}

impl Peer {
    /// Where the kernel takes the socket's packets in (SO_INCOMING_CPU, socket(7)). Those of loopback are
    /// taken in where they are sent.
    pub(crate) fn of(socket: &Socket) -> Self {
        match socket.cpu_affinity().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU) {
            Some(cpu) if cpu == sched_getcpu() => Self::Here,
            Some(_) => Self::Elsewhere,
            None => Self::Unknown,
        }
    }
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Bytes of a connection that brings many.
    Stream,
    /// Datagrams that come without end.
    Datagrams,
    /// The next step of a peer with one connection at a time.
    Exchange,
    /// Packets of a QUIC socket that brings many.
    QuicPackets,
    /// A little more in a connection that carries frames.
    Frames,
}

/// How one kind of wait is done. docs/tuning.md has the measurements.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// How long a thread polls.
    look_ns: u64,
    /// The most waits that sleep at once after polls in vain.
    most_passes: u32,
    /// Whether it polls where the kernel doesn't know the peer's processor.
    looks_for_unknown: bool,
    /// Whether it yields to a peer on its own processor.
    yields_here: bool,
}

impl Awaited {
    /// How long a thread polls for it.
    pub(crate) const fn look(self) -> Duration {
        Duration::from_nanos(self.rule().look_ns)
    }

    const fn rule(self) -> Rule {
        let (look_us, most_passes) = match self {
            // More has come after 20 us as a rule where the sender is never idle.
            Self::Stream | Self::Datagrams => (20, 255),
            // Both ends stay awake once either has come back while the other was still polling.
            Self::Exchange => (50, 15),
            // With packets of 1,472 bytes in clear a train comes about as often; 20 us are too short
            // half of the time.
            Self::QuicPackets => (50, 255),
            Self::Frames => (50, 255),
        };
        Rule {
            look_ns: look_us * 1_000,
            most_passes,
            looks_for_unknown: matches!(self, Self::QuicPackets),
            // Only where what waits can't be lost: of datagrams of 1400 bytes half as many arrived.
            yields_here: matches!(self, Self::Stream),
        }
    }
}

/// How a thread waits that has found its socket empty, where so many threads of the process poll or may.
///
/// Each time a receiver sleeps, its sender pays for waking it: more than a tenth of a sender's time where
/// much comes from another processor at full rate. On the sender's own processor a poll would only keep the
/// sender from sending. A receiver that sleeps there is woken by the next packet, and takes the processor from
/// the sender for the little that has come: one that yields finds much, and neither is woken.
fn choose(rule: &Rule, peer: Peer, looking: usize) -> Wait {
    let looks = match peer {
        Peer::Elsewhere => true,
        Peer::Unknown => rule.looks_for_unknown,
        Peer::Here => false,
    };
    if looks && looking <= *MOST_LOOKING {
        Wait::Look
    } else if peer == Peer::Here && rule.yields_here && looking <= MOST_YIELDING * *MOST_LOOKING {
        Wait::Yield
    } else {
        Wait::Sleep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Awaited; 5] = [
        Awaited::Stream,
        Awaited::Datagrams,
        Awaited::Exchange,
        Awaited::QuicPackets,
        Awaited::Frames,
    ];

    #[test]
    fn a_peer_on_another_processor_is_polled_by_few_threads() {
        for rule in ALL.map(Awaited::rule) {
            assert_eq!(choose(&rule, Peer::Elsewhere, *MOST_LOOKING), Wait::Look);
            assert_eq!(choose(&rule, Peer::Elsewhere, *MOST_LOOKING + 1), Wait::Sleep);
        }
    }

    #[test]
    fn a_peer_on_the_same_processor_is_never_polled_and_only_streams_yield_to_it() {
        for awaited in ALL {
            let rule = awaited.rule();
            let yields = awaited == Awaited::Stream;
            let expected = if yields { Wait::Yield } else { Wait::Sleep };
            assert_eq!(choose(&rule, Peer::Here, 1), expected, "{awaited:?}");
            let many = MOST_YIELDING * *MOST_LOOKING + 1;
            assert_eq!(choose(&rule, Peer::Here, many), Wait::Sleep, "{awaited:?}");
        }
    }

    #[test]
    fn only_quic_sockets_are_polled_where_the_peer_is_unknown() {
        for awaited in ALL {
            let looks = choose(&awaited.rule(), Peer::Unknown, 1) == Wait::Look;
            assert_eq!(looks, awaited == Awaited::QuicPackets, "{awaited:?}");
        }
    }
}
