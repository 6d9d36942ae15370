//! Which thread carries which stream.
//!
//! iperf3 has a rule of its own here. Other loads have one thread for each processor (`load::spread`), at both
//! ends. The peer of an iperf3 test may be the original, which has a thread for each stream. Few senders and all
//! receivers were slower than the original where they shared threads. docs/tuning.md has the figures of both rules.
//!
//! * Many senders share one thread for each processor: they outrun any number of receivers.
//! * Few senders over TCP have a thread each, in blocking calls: a shared thread fills the buffers of one stream
//!   after the other, and the bytes have left the cache when they are received.
//! * A receiver over TCP has a thread of its own, as in the original. If the peer has a thread for each sender,
//!   two threads that receive from all of them get too little processor time, and the bytes have left the cache.
//! * Streams of datagrams share one thread for each processor.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::load::{PlacedShard, Placement, RECEIVE_BYTES};
use crate::probe::cpus_online;

/// Threads that the streams of this process may have for themselves: those of two tests of the most
/// streams. Streams beyond them share threads, so that many tests at once don't fill the memory. This is a limit,
/// not a tuned value.
const MOST_OWN: usize = 256;

/// Receivers with a thread each have half of a receive buffer when they are more than this: buffers that
/// together fill the processors' cache cost more than the calls that they save.
const MANY: usize = 32;

/// A test's senders share threads when they are more than this.
const FEW_SENDERS: usize = 16;

/// How many there are.
static OWN: AtomicUsize = AtomicUsize::new(0);

/// The threads of one load.
pub(super) struct Spread {
    /// How many streams each thread carries.
    pub(super) threads: Vec<usize>,
    /// The thread of each stream.
    places: Vec<usize>,
    own: Own,
}

impl Spread {
    /// For streams of which these send; of datagrams or not.
    pub(super) fn new(sends: &[bool], datagrams: bool) -> Self {
        let receivers = sends.iter().filter(|sends| !**sends).count();
        let few = sends.len() - receivers <= FEW_SENDERS;
        let streams = if few { sends.len() } else { receivers };
        // Receivers first, where there is no room for all.
        let mut own = Own::claim(if datagrams { 0 } else { streams });
        if own.0 == 0 && !datagrams {
            own = Own::claim(receivers);
        }
        let all_alone = own.0 == sends.len();
        let alone = |sends: bool| own.0 > 0 && (all_alone || !sends);
        let sharing = sends.iter().filter(|sends| !alone(**sends)).count();
        let mut threads = vec![0; sharing.min(cpus_online() as usize)];
        let (shared, mut next) = (threads.len().max(1), 0);
        let mut places = Vec::with_capacity(sends.len());
        for sends in sends {
            let place = if alone(*sends) {
                threads.push(0);
                threads.len() - 1
            } else {
                next += 1;
                (next - 1) % shared
            };
            places.push(place);
            if let Some(streams) = threads.get_mut(place) {
                *streams += 1;
            }
        }
        Self { threads, places, own }
    }

    /// Whether each stream has a thread for itself.
    pub(super) fn are_all_alone(&self) -> bool {
        self.threads.iter().all(|streams| *streams == 1)
    }

    /// The same for the load.
    pub(super) fn placement(&self, block_bytes: usize) -> Placement {
        let shards = self.threads.iter().enumerate().map(|(thread, flows)| PlacedShard {
            flows: *flows,
            receive_bytes: self.receive_bytes(thread, block_bytes),
        });
        Placement { shards: shards.collect(), places: self.places.clone() }
    }

    /// What a thread receives into, bytes: room for the largest datagrams that the kernel merges. Blocks,
    /// which may be longer, count only where streams share threads.
    fn receive_bytes(&self, thread: usize, block_bytes: usize) -> usize {
        match self.own.0 {
            own if thread + own < self.threads.len() || own == 0 => block_bytes.max(RECEIVE_BYTES),
            0..=MANY => RECEIVE_BYTES,
            _ => RECEIVE_BYTES / 2,
        }
    }
}

/// So many threads for receivers alone; given back when dropped.
struct Own(usize);

impl Own {
    fn claim(wanted: usize) -> Self {
        let more = |taken: usize| Some(taken + wanted).filter(|taken| *taken <= MOST_OWN);
        match OWN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Self(wanted),
            Err(_) => Self(0),
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        OWN.fetch_sub(self.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_and_few_senders_are_alone_as_long_as_there_is_room() {
        let streams = |spread: &Spread| spread.threads.iter().sum::<usize>();
        let both = [true, true, true, false, false, false];
        let spread = Spread::new(&both, false);
        assert_eq!(spread.threads, [1; 6]);
        assert_eq!(spread.places, [0, 1, 2, 3, 4, 5]);
        drop(spread);

        let mut both = [true; 2 * FEW_SENDERS];
        both[0] = false;
        let spread = Spread::new(&both, false);
        let shared = spread.threads.len() - 1;
        assert!((1..both.len()).contains(&shared) && spread.threads[shared..] == [1]);
        assert_eq!((streams(&spread), spread.places[0]), (both.len(), shared));

        let cpus = cpus_online() as usize;
        for (senders, threads) in [(FEW_SENDERS, FEW_SENDERS), (128, cpus.min(128))] {
            assert_eq!(Spread::new(&vec![true; senders], false).threads.len(), threads);
        }
        let datagrams = Spread::new(&[false; 200], true);
        assert_eq!((datagrams.threads.len(), streams(&datagrams)), (cpus.min(200), 200));
        // Other tests of this process have some of the room, at the same time.
        let many: Vec<Spread> = (0..10).map(|_| Spread::new(&[false; 128], false)).collect();
        assert!(many.iter().all(|spread| streams(spread) == 128));
        let alone = many.iter().filter(|spread| spread.threads.len() == 128).count();
        assert!(alone <= MOST_OWN / 128, "{alone} of ten have all their threads");
        assert!(many.iter().all(|spread| [128, cpus.min(128)].contains(&spread.threads.len())));
    }
}
