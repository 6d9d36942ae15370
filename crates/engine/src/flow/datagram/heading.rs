//! What stands at the beginning of the datagrams of a bulk flow, dialect by dialect.

use linerate_measure::datagram::SequenceTracker;
use linerate_wire::native::datagram::{DATA_HEADER_BYTES, DataHeader};

use crate::flow::Ending;
use crate::tally::Tally;

/// What a datagram says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Its number, from 0 on.
    pub(crate) seq: u64,
    /// When it was sent, by the sender's clock.
    pub(crate) sent_ns: u64,
    /// Whether it was sent in the warm-up.
    pub(crate) warm_up: bool,
}

/// How a dialect writes marks. Senders and receivers are made for one of these, so that the choice
/// costs nothing where bytes move.
pub(crate) trait Heading: Copy + Send + 'static {
    /// How long it is; 0: there is none, and nothing is written.
    const BYTES: usize;
    /// Whether datagrams of another length than the flow's are of it as well.
    const ANY_LENGTH: bool = false;
    /// What a receiver finds out of the marks.
    type Arrivals: Arrivals;

    /// Writes a mark to the beginning of a datagram that has room for it.
    fn write(&self, datagram: &mut [u8], mark: Mark);
    /// Reads a datagram's mark; `None` where it isn't one of the flow.
    fn read(&self, datagram: &[u8]) -> Option<Mark>;
    /// What a receiver finds out, before anything has come.
    fn arrivals(&self) -> Self::Arrivals {
        Self::Arrivals::default()
    }
}

/// What a receiver finds out of the marks of the datagrams that come, in a dialect's arithmetic.
pub(crate) trait Arrivals: Default {
    /// Whether a datagram with this mark belongs to the flow, by what has come before.
    #[inline]
    fn accepts(&self, _mark: Mark) -> bool {
        true
    }
    /// So many datagrams came with numbers that follow each other, sent at one time.
    fn record_run(&mut self, first: Mark, count: u32, now_ns: u64);
    /// There is a warm-up, whether anything of it comes or not.
    fn expect_warm_up(&mut self) {}
    /// The measured part has begun; marks may tell that, too.
    fn end_warm_up(&mut self) {}
    /// Tells the flow's tally what is known after a call that brought datagrams of so many bytes.
    fn publish(&self, bytes: usize, unit_bytes: usize, tally: &Tally);
    /// Leaves what there is to tell at the flow's end.
    fn leave(self, ending: &mut Ending);
}

impl Arrivals for SequenceTracker {
    #[inline]
    fn record_run(&mut self, first: Mark, count: u32, now_ns: u64) {
        Self::record_run(self, first.seq, count, first.sent_ns, now_ns, first.warm_up);
    }

    fn expect_warm_up(&mut self) {
        Self::expect_warm_up(self);
    }

    /// Duplicates don't count: a stream is complete when every datagram has come, not when as many have.
    #[inline]
    fn publish(&self, _: usize, unit_bytes: usize, tally: &Tally) {
        let arrived = self.arrived();
        let fresh = arrived - tally.datagrams.received.value();
        tally.record_received(usize::try_from(fresh).unwrap_or(0) * unit_bytes);
        tally.datagrams.received.set(arrived);
        tally.datagrams.expected.set(self.next_expected());
        tally.datagrams.loss_events.set(self.loss_events());
    }

    fn leave(self, ending: &mut Ending) {
        ending.datagrams.arrivals = Some(Box::new(self));
    }
}

/// linerate's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeHeading {
    /// Stands in every datagram of the flow.
    pub(crate) tag: u32,
}

impl Heading for NativeHeading {
    const BYTES: usize = DATA_HEADER_BYTES;
    type Arrivals = SequenceTracker;

    #[inline]
    fn write(&self, datagram: &mut [u8], mark: Mark) {
        let Mark { seq, sent_ns, warm_up } = mark;
        // A datagram has room for its header: the plan's limits see to it.
        let _has_room = DataHeader { tag: self.tag, seq, sent_ns, warm_up }.encode(datagram);
    }

    #[inline]
    fn read(&self, datagram: &[u8]) -> Option<Mark> {
        let DataHeader { tag, seq, sent_ns, warm_up } = DataHeader::decode(datagram).ok()?;
        (tag == self.tag).then_some(Mark { seq, sent_ns, warm_up })
    }
}

/// None at all: a sender's datagrams are all alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoHeading;

impl Heading for NoHeading {
    const BYTES: usize = 0;
    type Arrivals = SequenceTracker;

    fn write(&self, _: &mut [u8], _: Mark) {}

    fn read(&self, _: &[u8]) -> Option<Mark> {
        Some(Mark::default())
    }
}
