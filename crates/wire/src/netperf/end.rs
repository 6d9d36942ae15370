//! When a server's part of a test is over.

use super::test::{Length, Part, Request};

/// Servers that wait for a client's word give it so much longer than the test.
pub const PAD_NS: u64 = 4 * SECOND_NS;
/// A server of connections that come and go has no sign of their end but that none comes any more.
pub const QUIET_NS: u64 = SECOND_NS / 2;
/// A data connection must come in this time where the test itself sets no limit.
const PATIENCE_NS: u64 = 120 * SECOND_NS;
const SECOND_NS: u64 = 1_000_000_000;

/// Says when a server gives up waiting for its client's sign.
///
/// 1. What sends ends by its own length, from the moment when its connection came.
/// 2. What receives or answers ends by the client's sign, or so much later than its length,
///    counted from the answer.
/// 3. Connections that come and go end when their length is over, counted from the answer, and none
///    has come for a while; or when the number asked for was served.
/// 4. Where no sign of the client's will come, 3 goes for what receives or answers, too.
/// 5. A test that ends by a number of units, or never, has until its data connection comes.
#[derive(Clone, Debug)]
pub struct Watch {
    part: Part,
    length: Length,
    /// Whether nothing on the wire says the end.
    unmarked: bool,
    answered_ns: u64,
    connected_ns: Option<u64>,
    /// What was counted when it was last looked at, and when it changed.
    count: u64,
    changed_ns: u64,
}

impl Watch {
    /// A watch over a test that was answered just now. `marks_end` says whether the client says
    /// when there is no more.
    pub fn new(request: &Request, marks_end: bool, now_ns: u64) -> Self {
        Self {
            part: request.part,
            length: request.length,
            unmarked: !marks_end,
            answered_ns: now_ns,
            connected_ns: None,
            count: 0,
            changed_ns: now_ns,
        }
    }

    /// The data connection has come, or the first datagram.
    pub fn handle_connection(&mut self, now_ns: u64) {
        self.connected_ns = Some(now_ns);
    }

    /// So much has been counted by now.
    pub fn handle_count(&mut self, count: u64, now_ns: u64) {
        if count != self.count {
            self.count = count;
            self.changed_ns = now_ns;
        }
    }

    /// When what was counted last changed, as far as was looked.
    pub fn changed_ns(&self) -> u64 {
        self.changed_ns
    }

    /// When the test is over, as far as can be said now; `None`: time doesn't tell.
    pub fn over_at_ns(&self) -> Option<u64> {
        let Length::Seconds(seconds) = self.length else {
            let counts = self.part.connects() || self.unmarked && self.part == Part::Answer;
            let served = matches!(self.length, Length::Units(units) if counts
                && self.count >= u64::from(units));
            return match self.connected_ns {
                _ if served => Some(self.changed_ns),
                None => Some(self.answered_ns.saturating_add(PATIENCE_NS)),
                Some(_) => None,
            };
        };
        let length_ns = u64::from(seconds) * SECOND_NS;
        let over_ns = self.answered_ns.saturating_add(length_ns);
        let latest_ns = over_ns.saturating_add(PAD_NS);
        Some(match self.part {
            Part::Send => {
                self.connected_ns.map_or(latest_ns, |since_ns| since_ns.saturating_add(length_ns))
            }
            Part::AnswerOnce | Part::Accept => {
                self.changed_ns.saturating_add(QUIET_NS).clamp(over_ns, latest_ns)
            }
            Part::Receive | Part::Answer if self.unmarked => {
                self.changed_ns.saturating_add(QUIET_NS).clamp(over_ns, latest_ns)
            }
            Part::Receive | Part::Answer => latest_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test::Carrier;
    use super::*;

    fn watch(part: Part, length: Length, carrier: Carrier, marks_end: bool) -> Watch {
        let request = Request { length, ..Request::new(part, carrier) };
        Watch::new(&request, marks_end, 10 * SECOND_NS)
    }

    #[test]
    fn a_receiver_waits_for_the_sign_four_seconds_longer_than_the_test() {
        let watch = watch(Part::Receive, Length::Seconds(3), Carrier::Tcp, true);
        assert_eq!(watch.over_at_ns(), Some(17 * SECOND_NS));
    }

    #[test]
    fn a_sender_counts_from_its_connection() {
        let mut watch = watch(Part::Send, Length::Seconds(3), Carrier::Tcp, true);
        assert_eq!(watch.over_at_ns(), Some(17 * SECOND_NS));
        watch.handle_connection(12 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), Some(15 * SECOND_NS));
    }

    #[test]
    fn connections_end_early_when_none_comes_and_never_before_their_length() {
        let mut watch = watch(Part::AnswerOnce, Length::Seconds(3), Carrier::Tcp, true);
        watch.handle_count(5, 11 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), Some(13 * SECOND_NS));
        watch.handle_count(6, 13 * SECOND_NS);
        watch.handle_count(6, 14 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), Some(13 * SECOND_NS + QUIET_NS));
        watch.handle_count(7, 30 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), Some(17 * SECOND_NS));
    }

    #[test]
    fn a_number_of_connections_ends_when_it_is_reached() {
        let mut watch = watch(Part::Accept, Length::Units(3), Carrier::Tcp, true);
        watch.handle_connection(11 * SECOND_NS);
        watch.handle_count(2, 12 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), None);
        watch.handle_count(3, 13 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), Some(13 * SECOND_NS));
    }

    #[test]
    fn datagrams_without_a_sign_end_early_too() {
        let mut watch = watch(Part::Receive, Length::Seconds(3), Carrier::Udp, false);
        watch.handle_count(9, 13 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), Some(13 * SECOND_NS + QUIET_NS));
    }

    #[test]
    fn requests_without_a_sign_end_early_or_with_their_number() {
        let mut timed = watch(Part::Answer, Length::Seconds(3), Carrier::Tcp, false);
        timed.handle_count(9, 12 * SECOND_NS);
        assert_eq!(
            (timed.over_at_ns(), timed.changed_ns()),
            (Some(13 * SECOND_NS), 12 * SECOND_NS)
        );
        let mut counted = watch(Part::Answer, Length::Units(3), Carrier::Tcp, false);
        counted.handle_connection(11 * SECOND_NS);
        counted.handle_count(2, 12 * SECOND_NS);
        assert_eq!(counted.over_at_ns(), None);
        counted.handle_count(3, 13 * SECOND_NS);
        assert_eq!(counted.over_at_ns(), Some(13 * SECOND_NS));
    }

    #[test]
    fn a_test_without_a_length_waits_for_its_connection_only() {
        let mut watch = watch(Part::Receive, Length::Open, Carrier::Tcp, true);
        assert_eq!(watch.over_at_ns(), Some(130 * SECOND_NS));
        watch.handle_connection(11 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), None);
    }
}
