//! Datagrams that were sent and have a higher number than all that arrived.
//!
//! A receiver counts as lost what is missing below the highest number that it has seen. What is missing above that number
//! shows only when both ends' counts are known.

use linerate_wire::iperf3::{Parameters, StreamResult};

use super::Role;

/// What a receiver that stopped may have left unread in its socket, as time.
const UNREAD_S: f64 = 0.02;

/// What both ends counted of one stream.
pub(super) struct Ends<'a> {
    /// Whether this end sent.
    pub(super) sends: bool,
    /// Which end this is.
    pub(super) role: Role,
    /// What this end counted.
    pub(super) own: &'a StreamResult,
    /// What the other end counted.
    pub(super) theirs: &'a StreamResult,
}

impl Ends<'_> {
    /// How many datagrams of the counted time never arrived and have a higher number than all that did. Where the
    /// server sends, it goes on until the client's word arrives: what it may have sent meanwhile was not lost.
    /// `late_s`: how long a server may have sent after this client stopped counting.
    pub(super) fn tail(&self, parameters: &Parameters, late_s: f64) -> u64 {
        let (sent, received) =
            if self.sends { (self.own, self.theirs) } else { (self.theirs, self.own) };
        let counted = match sent.omitted_packets {
            Some(omitted) => sent.packets.saturating_sub(omitted),
            None if parameters.omit_s == 0 => sent.packets,
            None => sent.bytes / u64::from(parameters.block_bytes.max(1)),
        };
        let missing = sent.packets.saturating_sub(received.packets).min(counted);
        let server_sends = self.sends == (self.role == Role::Server);
        if !server_sends {
            return missing;
        }
        let late_s = match self.role {
            Role::Client => Some(late_s),
            Role::Server => self.seconds_after_client(parameters),
        };
        let seconds = sent.seconds().or(received.seconds()).filter(|seconds| *seconds > 0.0);
        let Some((late_s, seconds)) = late_s.zip(seconds) else { return 0 };
        // The cast saturates.
        let on_the_way = (counted as f64 / seconds * (late_s + UNREAD_S)).ceil() as u64;
        missing.saturating_sub(on_the_way.saturating_add(1))
    }

    /// How long this server counted after its client had stopped; not known where the client doesn't tell its time.
    fn seconds_after_client(&self, parameters: &Parameters) -> Option<f64> {
        let asked = (parameters.time_s > 0).then_some(f64::from(parameters.time_s));
        let theirs = self.theirs.seconds().filter(|seconds| *seconds > 0.0).or(asked)?;
        Some((self.own.seconds()? - theirs).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(packets: u64, seconds: f64) -> StreamResult {
        StreamResult {
            id: 1,
            packets,
            bytes: packets.saturating_mul(1000),
            omitted_packets: Some(0),
            start_time_s: Some(0.0),
            end_time_s: Some(seconds),
            ..StreamResult::default()
        }
    }

    fn tail(role: Role, sends: bool, own: StreamResult, theirs: StreamResult, late_s: f64) -> u64 {
        let parameters = Parameters { time_s: 5, block_bytes: 1000, ..Parameters::default() };
        Ends { sends, role, own: &own, theirs: &theirs }.tail(&parameters, late_s)
    }

    #[test]
    fn all_that_a_client_sent_and_a_server_did_not_get_is_lost() {
        assert_eq!(tail(Role::Client, true, counted(624, 5.0), counted(375, 5.0), 9.0), 249);
        assert_eq!(tail(Role::Server, false, counted(375, 5.0), counted(624, 5.0), 9.0), 249);
        assert_eq!(tail(Role::Client, true, counted(250, 2.0), counted(0, 2.0), 0.0), 250);
        assert_eq!(tail(Role::Client, true, counted(250, 2.0), counted(250, 2.0), 0.0), 0);
        // A peer's claim.
        assert_eq!(tail(Role::Client, true, counted(250, 2.0), counted(u64::MAX, 2.0), 0.0), 0);
    }

    #[test]
    fn what_a_server_sends_until_its_client_ends_the_test_is_not_lost() {
        // 1000 a second; the client's word took 100 ms, and 20 ms may be unread.
        let at_client = |received| tail(Role::Client, false, received, counted(5100, 5.1), 0.1);
        assert_eq!(at_client(counted(5000, 5.0)), 0);
        assert_eq!(at_client(counted(4980, 5.0)), 0);
        assert!((2100 - 122..=2100 - 121).contains(&at_client(counted(3000, 5.0))));
        let at_server = |received| tail(Role::Server, true, counted(5100, 5.1), received, 0.0);
        assert_eq!(at_server(counted(5000, 5.0)), 0);
        assert!((2100 - 122..=2100 - 121).contains(&at_server(counted(3000, 5.0))));
        // A client that doesn't tell its time kept to the one it asked for.
        let silent = StreamResult { start_time_s: None, end_time_s: None, ..counted(5000, 5.0) };
        assert_eq!(at_server(silent), 0);
    }

    #[test]
    fn datagrams_of_the_omitted_time_are_not_missing() {
        let sent = StreamResult { omitted_packets: Some(100), ..counted(300, 2.0) };
        assert_eq!(tail(Role::Client, true, sent, counted(0, 2.0), 0.0), 200);
    }
}
