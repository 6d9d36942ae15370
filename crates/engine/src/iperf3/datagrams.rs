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

    /// The greeting and its answer are too short to be data.
    #[inline]
    fn read(&self, datagram: &[u8]) -> Option<Mark> {
        let Header { sent_ns, number } = Header::decode(self.wide, datagram)?;
        Some(Mark { seq: number.wrapping_sub(1), sent_ns, warm_up: false })
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals::new(self.wide)
    }
}

impl flow::Arrivals for Arrivals {
    #[inline]
    fn accepts(&self, mark: Mark) -> bool {
        self.is_data(mark.seq.wrapping_add(1))
    }

    #[inline]
    fn record_run(&mut self, first: Mark, count: u32, now_ns: u64) {
        for further in 1..=u64::from(count) {
            let number = first.seq.wrapping_add(further);
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

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_wire::iperf3::datagram::greeting_again;

    use crate::flow::Arrivals as _;

    const TURN: u64 = 1 << 32;

    /// Datagrams as a sender writes them, from this number on, and as a receiver takes them that is so far.
    fn pass(wide: bool, numbers: impl Iterator<Item = u64>, received: Arrivals) -> Arrivals {
        let heading = Numbered { wide };
        let mut arrivals = received;
        for number in numbers {
            let mut datagram = [0; HEADER_BYTES];
            heading.write(&mut datagram, Mark { seq: number - 1, ..Mark::default() });
            let mark = heading.read(&datagram).unwrap();
            if arrivals.accepts(mark) {
                arrivals.record_run(mark, 1, 1_000);
            }
        }
        arrivals
    }

    /// A receiver to which this number came last.
    fn so_far(wide: bool, highest: u64) -> Arrivals {
        let mut arrivals = Arrivals::new(wide);
        arrivals.highest = highest;
        arrivals
    }

    #[test]
    fn counts_go_on_beyond_what_the_numbers_of_datagrams_hold() {
        for wide in [false, true] {
            for turns in 1..4 {
                let begin = turns * TURN - 10;
                let begun = so_far(wide, begin - 1);
                // One in four is lost, and one comes late.
                let sent = (begin..begin + 40).filter(|number| number % 4 != 1);
                let late = turns * TURN + 1;
                let all = pass(wide, sent.chain([late]), begun);
                let case = format!("wide {wide}, {turns}");
                // The last one of all is lost too, and nothing tells that.
                assert_eq!((all.highest, all.lost), (begin + 38, 8), "{case}");
                assert_eq!(all.out_of_order, 1, "{case}");
            }
        }
    }

    #[test]
    fn a_greeting_that_is_said_again_is_no_data_and_the_number_0_of_a_later_turn_is() {
        let repeated = |arrivals: &Arrivals, wide: bool| {
            let again = greeting_again(5, 100);
            arrivals.accepts(Numbered { wide }.read(&again).unwrap())
        };
        for wide in [false, true] {
            let new = Arrivals::new(wide);
            assert!(!repeated(&new, wide), "wide {wide}");
            assert!(!repeated(&so_far(wide, 1_000_000), wide), "wide {wide}");
        }
        let turned = so_far(false, TURN - 1);
        assert!(repeated(&turned, false));
        assert!(!repeated(&so_far(true, TURN - 1), true));
    }
}
