//! iperf3's datagrams: their heading, what a receiver makes of it, and what a flow does in its step.

use std::io;

use linerate_measure::step::Step;
use linerate_wire::iperf3::datagram::{Arrivals, HEADER_BYTES, Header};

use crate::flow::{
    self, BulkRules, DatagramProtocol, DatagramReceiver, DatagramSender, Ending, Heading, Local,
    Mark, Stage,
};
use crate::tally::Tally;
use crate::transport::DatagramPath;

/// iperf3's heading.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    /// Whether numbers have 64 bits.
    pub(super) wide: bool,
}

impl Heading for Numbered {
    const BYTES: usize = HEADER_BYTES;
    const ANY_LENGTH: bool = true;
    type Arrivals = Arrivals;

    #[inline]
    fn write(&self, datagram: &mut [u8], mark: Mark) {
        Header { sent_ns: mark.sent_ns, number: mark.seq + 1 }.encode(self.wide, datagram);
    }

    /// The greeting and its answer are too short to be data; said again they have the number 0.
    #[inline]
    fn read(&self, datagram: &[u8]) -> Option<Mark> {
        let Header { sent_ns, number } = Header::decode(self.wide, datagram)?;
        Some(Mark { seq: number.checked_sub(1)?, sent_ns, warm_up: false })
    }
}

impl flow::Arrivals for Arrivals {
    #[inline]
    fn record_run(&mut self, first: Mark, count: u32, now_ns: u64) {
        for further in 0..u64::from(count) {
            let number = first.seq.saturating_add(1).saturating_add(further);
            self.record(Header { sent_ns: first.sent_ns, number }, now_ns);
        }
    }

    fn end_warm_up(&mut self) {
        self.end_omitted();
    }

    #[inline]
    fn publish(&self, bytes: usize, _: usize, tally: &Tally) {
        let arrivals = &tally.extra().arrivals;
        arrivals.lost.set(self.lost);
        arrivals.reordered.set(self.out_of_order);
        arrivals.jitter_ns.set((self.jitter_s() * 1e9).to_bits());
        tally.datagrams.expected.set(self.highest);
        tally.record_received(bytes);
    }

    fn leave(self, _: &mut Ending) {}
}

/// The protocol of a test's datagrams.
pub(super) struct Datagrams {
    pub(super) heading: Numbered,
    pub(super) rules: BulkRules,
}

/// A step that has begun.
pub(super) enum Doing {
    Sending(Box<DatagramSender<Numbered>>),
    Receiving(DatagramReceiver<Numbered>),
}

impl<P: DatagramPath> DatagramProtocol<P> for Datagrams {
    const COUNTS_BY_CLOCK: bool = true;
    type Doing = Doing;

    fn begin(&self, path: &mut P, step: Step) -> Option<Doing> {
        match step {
            Step::Send(transfer) => {
                let sender = DatagramSender::new(path, self.heading, &transfer);
                Some(Doing::Sending(Box::new(sender.with_rules(&self.rules))))
            }
            Step::Receive(transfer) => Some(Doing::Receiving(DatagramReceiver::with_rules(
                path,
                self.heading,
                &transfer,
                &self.rules,
            ))),
            _ => None,
        }
    }

    #[inline]
    fn turn(
        doing: &mut Doing,
        path: &mut P,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        match doing {
            Doing::Sending(sender) => sender.turn(path, tally, local),
            Doing::Receiving(receiver) => receiver.turn(path, tally, local),
        }
    }

    fn leave(doing: Doing, path: &P, ending: &mut Ending) {
        match doing {
            Doing::Sending(sender) => (*sender).leave(path, &mut ending.datagrams),
            Doing::Receiving(receiver) => receiver.leave(path, ending),
        }
    }

    /// The peer's port may be closed for a moment; the conversation tells why.
    fn outlives(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::ConnectionRefused
    }
}
