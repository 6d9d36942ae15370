//! When a server's part of a test is over.

use super::test::{Length, Part, Request, Transport};

/// A server that waits for its client's data, or for its word, waits so much longer than the test is.
pub const PAD_NS: u64 = 4 * SECOND_NS;
/// A server of connections that come and go has no sign of their end but that none comes any more.
pub const QUIET_NS: u64 = SECOND_NS / 2;
/// Data must begin in this time where the test itself sets no limit.
const FIRST_DATA_NS: u64 = 120 * SECOND_NS;
/// A number of datagrams is given up when none has come for so long.
const UNSEEN_NS: u64 = 20 * SECOND_NS;
const SECOND_NS: u64 = 1_000_000_000;

/// Says when a server gives up waiting for its client's sign.
///
/// The length of a test counts from the moment when its data connection came, or its first datagram: a
/// client may wait with them as long as 5 says. A sender of datagrams waits for nothing, and counts from its answer.
///
/// 1. What sends ends by its own length.
/// 2. What receives or answers ends by the client's sign, or so much later than its length, as in the
///    original. What arrives until then counts, and prolongs nothing.
/// 3. Connections that come and go end when their length is over and none has come for a while; or
///    when the number asked for was served.
/// 4. Where no sign of the client's will come, 3 goes for what receives or answers, too.
/// 5. A test whose data never begins ends so much later than its length, too, counted from the answer.
/// 6. A number of datagrams, or of transactions over them, may never be reached, and the datagrams that say the end
///    be lost as well: such a test ends when nothing has come for long.
#[derive(Clone, Debug)]
pub struct Watch {
    part: Part,
    transport: Transport,
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
            transport: request.transport,
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

    /// Since when, or from when on, the client's sign is all that is waited for: that is no part of a test
    /// which time ends. Data that is awaited, too, puts it off. `None` where no such wait is to come, as
    /// far as can be said now.
    pub fn waits_from_ns(&self) -> Option<u64> {
        let awaits_sign = matches!(self.part, Part::Receive | Part::Answer) && !self.unmarked;
        let over_ns = self.length_over_ns().filter(|_| awaits_sign)?;
        Some(if self.takes_late() { over_ns.max(self.changed_ns) } else { over_ns })
    }

    /// Whether it ends with a number of what may be lost.
    pub fn counts_datagrams(&self) -> bool {
        let takes = matches!(self.part, Part::Receive | Part::Answer);
        takes && self.transport == Transport::Udp && matches!(self.length, Length::Units(_))
    }

    /// When the length of a test is over whose data has begun.
    fn length_over_ns(&self) -> Option<u64> {
        let Length::Seconds(seconds) = self.length else { return None };
        Some(self.connected_ns?.saturating_add(u64::from(seconds) * SECOND_NS))
    }

    /// Whether the time in which it received what came after its length is part of the test.
    fn takes_late(&self) -> bool {
        self.part == Part::Receive && self.transport == Transport::Tcp
    }

    /// When the test is over, as far as can be said now; `None`: time doesn't tell.
    pub fn over_at_ns(&self) -> Option<u64> {
        if self.connected_ns.is_none() {
            return Some(self.given_up_ns());
        }
        let Some(over_ns) = self.length_over_ns() else {
            let counts = self.part.connects() || self.unmarked && self.part == Part::Answer;
            let served = matches!(self.length, Length::Units(units) if counts
                && self.count >= u64::from(units));
            let silent_ns = self.counts_datagrams().then(|| {
                let last_ns = self.connected_ns.unwrap_or(0).max(self.changed_ns);
                last_ns.saturating_add(UNSEEN_NS)
            });
            return if served { Some(self.changed_ns) } else { silent_ns };
        };
        let latest_ns = over_ns.saturating_add(PAD_NS);
        let after_last = |quiet_ns: u64, from_ns: u64, to_ns: u64| {
            self.changed_ns.saturating_add(quiet_ns).clamp(from_ns, to_ns)
        };
        Some(match self.part {
            Part::Send => over_ns,
            Part::AnswerOnce | Part::Accept => after_last(QUIET_NS, over_ns, latest_ns),
            Part::Receive | Part::Answer if self.unmarked => {
                after_last(QUIET_NS, over_ns, latest_ns)
            }
            Part::Receive | Part::Answer => latest_ns,
        })
    }

    /// When a test is over whose data hasn't begun.
    fn given_up_ns(&self) -> u64 {
        let limit_ns = match self.length {
            Length::Seconds(seconds) => u64::from(seconds) * SECOND_NS + PAD_NS,
            Length::Units(_) | Length::Open => FIRST_DATA_NS,
        };
        self.answered_ns.saturating_add(limit_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(part: Part, length: Length, transport: Transport, marks_end: bool) -> Watch {
        let request = Request { length, ..Request::new(part, transport) };
        Watch::new(&request, marks_end, 10 * SECOND_NS)
    }

    /// The same, whose data began two seconds later.
    fn begun(part: Part, transport: Transport, marks_end: bool) -> Watch {
        let mut watch = watch(part, Length::Seconds(3), transport, marks_end);
        watch.handle_connection(12 * SECOND_NS);
        watch
    }

    #[test]
    fn wait_for_the_end_marker_is_four_seconds_longer_than_the_test() {
        let parts = [
            (Part::Receive, Transport::Tcp),
            (Part::Receive, Transport::Udp),
            (Part::Answer, Transport::Tcp),
            (Part::Answer, Transport::Udp),
        ];
        for (part, transport) in parts {
            let watch = begun(part, transport, true);
            assert_eq!(watch.over_at_ns(), Some(19 * SECOND_NS), "{part:?} {transport:?}");
        }
    }

    #[test]
    fn late_arrivals_do_not_prolong_the_wait() {
        for transport in [Transport::Tcp, Transport::Udp] {
            let mut watch = begun(Part::Receive, transport, true);
            watch.handle_count(5, 18 * SECOND_NS);
            assert_eq!(watch.over_at_ns(), Some(19 * SECOND_NS), "{transport:?}");
        }
    }

    #[test]
    fn counted_time_ends_with_the_last_arrival() {
        let mut watch = begun(Part::Receive, Transport::Tcp, true);
        watch.handle_count(5, 18 * SECOND_NS);
        assert_eq!(watch.waits_from_ns(), Some(18 * SECOND_NS));
        // It came until the end.
        watch.handle_count(6, 19 * SECOND_NS);
        assert_eq!(watch.waits_from_ns(), Some(19 * SECOND_NS));
        for (part, transport) in [(Part::Receive, Transport::Udp), (Part::Answer, Transport::Tcp)] {
            let mut watch = begun(part, transport, true);
            watch.handle_count(5, 18 * SECOND_NS);
            assert_eq!(watch.waits_from_ns(), Some(15 * SECOND_NS));
        }
    }

    #[test]
    fn no_wait_for_a_sign_follows_where_none_comes_or_time_ends_nothing() {
        let watches = [
            begun(Part::Send, Transport::Tcp, true),
            begun(Part::AnswerOnce, Transport::Tcp, true),
            begun(Part::Receive, Transport::Udp, false),
            watch(Part::Receive, Length::Seconds(3), Transport::Udp, true),
            watch(Part::Receive, Length::Open, Transport::Udp, true),
        ];
        for watch in watches {
            assert_eq!(watch.waits_from_ns(), None, "{watch:?}");
        }
    }

    #[test]
    fn a_sender_sends_for_its_length() {
        assert_eq!(begun(Part::Send, Transport::Tcp, true).over_at_ns(), Some(15 * SECOND_NS));
    }

    #[test]
    fn a_test_whose_data_never_begins_ends_four_seconds_after_its_length() {
        let parts = [Part::Send, Part::Receive, Part::Answer, Part::AnswerOnce, Part::Accept];
        for (part, transport) in parts
            .into_iter()
            .flat_map(|part| [Transport::Tcp, Transport::Udp].map(|transport| (part, transport)))
        {
            for marks_end in [true, false] {
                let over_s = |length: Length| {
                    let over_ns = watch(part, length, transport, marks_end).over_at_ns();
                    over_ns.map(|over_ns| over_ns / SECOND_NS - 10)
                };
                assert_eq!(over_s(Length::Seconds(3)), Some(7), "{part:?} {transport:?}");
                assert_eq!(over_s(Length::Seconds(200)), Some(204), "{part:?} {transport:?}");
                assert_eq!(over_s(Length::Units(3)), Some(120), "{part:?} {transport:?}");
                assert_eq!(over_s(Length::Open), Some(120), "{part:?} {transport:?}");
            }
        }
    }

    #[test]
    fn a_test_that_begins_late_has_its_whole_length() {
        for part in [Part::Send, Part::Receive, Part::Answer, Part::AnswerOnce, Part::Accept] {
            for marks_end in [true, false] {
                let mut watch = watch(part, Length::Seconds(3), Transport::Tcp, marks_end);
                watch.handle_connection(16 * SECOND_NS);
                assert!(watch.over_at_ns() >= Some(19 * SECOND_NS), "{part:?} {marks_end}");
            }
        }
    }

    #[test]
    fn connections_end_early_when_none_comes_and_never_before_their_length() {
        let mut watch = begun(Part::AnswerOnce, Transport::Tcp, true);
        watch.handle_count(5, 13 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), Some(15 * SECOND_NS));
        watch.handle_count(6, 15 * SECOND_NS);
        watch.handle_count(6, 16 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), Some(15 * SECOND_NS + QUIET_NS));
        watch.handle_count(7, 30 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), Some(19 * SECOND_NS));
    }

    #[test]
    fn a_number_of_connections_ends_when_it_is_reached() {
        let mut watch = watch(Part::Accept, Length::Units(3), Transport::Tcp, true);
        watch.handle_connection(11 * SECOND_NS);
        watch.handle_count(2, 12 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), None);
        watch.handle_count(3, 13 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), Some(13 * SECOND_NS));
    }

    #[test]
    fn datagrams_without_a_sign_end_early_too() {
        let mut watch = begun(Part::Receive, Transport::Udp, false);
        watch.handle_count(9, 15 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), Some(15 * SECOND_NS + QUIET_NS));
    }

    #[test]
    fn requests_without_a_sign_end_early_or_with_their_number() {
        let mut timed = begun(Part::Answer, Transport::Tcp, false);
        timed.handle_count(9, 14 * SECOND_NS);
        assert_eq!(
            (timed.over_at_ns(), timed.changed_ns()),
            (Some(15 * SECOND_NS), 14 * SECOND_NS)
        );
        let mut counted = watch(Part::Answer, Length::Units(3), Transport::Tcp, false);
        counted.handle_connection(11 * SECOND_NS);
        counted.handle_count(2, 12 * SECOND_NS);
        assert_eq!(counted.over_at_ns(), None);
        counted.handle_count(3, 13 * SECOND_NS);
        assert_eq!(counted.over_at_ns(), Some(13 * SECOND_NS));
    }

    #[test]
    fn a_number_of_datagrams_that_is_never_reached_ends_in_silence() {
        for part in [Part::Receive, Part::Answer] {
            for marks_end in [true, false] {
                let mut watch = watch(part, Length::Units(3), Transport::Udp, marks_end);
                watch.handle_connection(50 * SECOND_NS);
                assert_eq!(watch.over_at_ns(), Some(70 * SECOND_NS), "{part:?} {marks_end}");
                watch.handle_count(2, 60 * SECOND_NS);
                assert_eq!(watch.over_at_ns(), Some(80 * SECOND_NS), "{part:?} {marks_end}");
            }
        }
        // TCP loses nothing, and a sender needs no sign.
        for (part, transport) in [(Part::Answer, Transport::Tcp), (Part::Send, Transport::Udp)] {
            let mut watch = watch(part, Length::Units(3), transport, true);
            watch.handle_connection(11 * SECOND_NS);
            assert_eq!(watch.over_at_ns(), None, "{part:?} {transport:?}");
        }
    }

    #[test]
    fn a_test_without_a_length_waits_for_its_connection_only() {
        let mut watch = watch(Part::Receive, Length::Open, Transport::Tcp, true);
        assert_eq!(watch.over_at_ns(), Some(130 * SECOND_NS));
        watch.handle_connection(11 * SECOND_NS);
        assert_eq!(watch.over_at_ns(), None);
    }
}
