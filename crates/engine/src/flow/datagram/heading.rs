//! What stands at the beginning of the datagrams of a bulk flow, dialect by dialect.

use linerate_wire::native::datagram::{DATA_HEADER_BYTES, DataHeader};

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

    /// Writes a mark to the beginning of a datagram that has room for it.
    fn write(&self, datagram: &mut [u8], mark: Mark);
    /// Reads a datagram's mark; `None` where it isn't one of the flow.
    fn read(&self, datagram: &[u8]) -> Option<Mark>;
}

/// linerate's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeHeading {
    /// Stands in every datagram of the flow.
    pub(crate) tag: u32,
}

impl Heading for NativeHeading {
    const BYTES: usize = DATA_HEADER_BYTES;

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

    fn write(&self, _: &mut [u8], _: Mark) {}

    fn read(&self, _: &[u8]) -> Option<Mark> {
        Some(Mark::default())
    }
}
