//! Datagrams that were sent and have a higher number than all that arrived.
//!
//! A receiver counts as lost what is missing below the highest number that it has seen. What is missing above that number
//! shows only when both ends' counts are known.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_wire::iperf3::datagram::Header;
use linerate_wire::iperf3::{Parameters, Protocol, Results, StreamResult};
use rustix::net::{RecvFlags, recv};
use socket2::Socket;

use super::Role;
use super::streams::Streams;
use crate::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns};

/// How long a server awaits what the client had sent when it ended the test, and how long after the
/// last of it that came.
pub(super) const TAIL_NS: u64 = SECOND_NS;
pub(super) const TAIL_SILENCE_NS: u64 = 250 * MILLISECOND_NS;
/// How often it looks meanwhile.
pub(super) const TAIL_LOOK_NS: u64 = 2 * MILLISECOND_NS;

/// What a receiver that stopped may have left unread in its socket, as time.
const UNREAD_S: f64 = 0.02;

/// The most that one call receives: the kernel may merge datagrams.
const MOST_BYTES: usize = 64 << 10;

/// What came to a client after it had stopped counting. It is neither lost nor received.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// How long the server may have sent after this end stopped counting.
    seconds: f64,
    /// The highest numbers of datagrams, by the stream.
    numbers: BTreeMap<u32, u64>,
}

impl Late {
    /// What comes to a client that has stopped, until it is all that the server says it sent, or nothing comes any more.
    pub(super) fn of(streams: &Streams, own: &Results, theirs: &Results, seconds: f64) -> Self {
        let mut late = Self { seconds, numbers: BTreeMap::new() };
        if streams.setup.parameters.protocol != Protocol::Udp {
            return late;
        }
        let (began_ns, mut buffer) = (monotonic_ns(), vec![0; MOST_BYTES]);
        let mut last_ns = began_ns;
        loop {
            if late.take(streams, &mut buffer) {
                last_ns = monotonic_ns();
            }
            let is_missing = |one: &StreamResult| {
                let highest =
                    own.stream(one.id).map_or(0, |own| own.packets.max(late.number(one.id)));
                one.packets > highest
            };
            let receives = streams.each.iter().filter(|(stream, _)| !stream.sends);
            let mut results = receives.filter_map(|(stream, _)| theirs.stream(stream.id));
            let now_ns = monotonic_ns();
            let is_over = now_ns.saturating_sub(last_ns) >= TAIL_SILENCE_NS
                || now_ns.saturating_sub(began_ns) >= TAIL_NS;
            if is_over || !results.any(is_missing) {
                return late;
            }
            std::thread::sleep(Duration::from_nanos(TAIL_LOOK_NS));
        }
    }

    /// Takes what lies in the sockets; says whether that was anything.
    fn take(&mut self, streams: &Streams, buffer: &mut [u8]) -> bool {
        let parameters = &streams.setup.parameters;
        let (wide, block_bytes) = (parameters.wide_counters, parameters.block_bytes as usize);
        let mut came = false;
        for (stream, shared) in streams.each.iter().filter(|(stream, _)| !stream.sends) {
            let Some(socket) = &shared.flow.socket else { continue };
            if let Some(number) = highest(socket, wide, block_bytes.max(1), buffer) {
                let known = self.numbers.entry(stream.id).or_default();
                *known = number.max(*known);
                came = true;
            }
        }
        came
    }

    fn number(&self, id: u32) -> u64 {
        self.numbers.get(&id).copied().unwrap_or(0)
    }
}

/// The highest number of the datagrams that lie in a socket.
fn highest(socket: &Socket, wide: bool, block_bytes: usize, buffer: &mut [u8]) -> Option<u64> {
    let mut highest = None;
    // A socket that was shut down has an end, once it is empty.
    while let Ok((_, length @ 1..)) = recv(socket, &mut *buffer, RecvFlags::DONTWAIT) {
        let bytes = buffer.get(..length).unwrap_or_default();
        let numbers = bytes.chunks(block_bytes).filter_map(|one| Header::decode(wide, one));
        highest = highest.max(numbers.map(|header| header.number).max());
    }
    highest
}

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
    /// server sends, it goes on until the client's word arrives: what it may have sent meanwhile was not lost. Where the
    /// client sends, an original server stops reading at that word: a few last datagrams may have arrived unread.
    pub(super) fn tail(&self, parameters: &Parameters, late: &Late) -> u64 {
        let (sent, received) =
            if self.sends { (self.own, self.theirs) } else { (self.theirs, self.own) };
        let counted = match sent.omitted_packets {
            Some(omitted) => sent.packets.saturating_sub(omitted),
            None if parameters.omit_s == 0 => sent.packets,
            None => sent.bytes / u64::from(parameters.block_bytes.max(1)),
        };
        let missing =
            sent.packets.saturating_sub(received.packets.max(late.number(sent.id))).min(counted);
        let seconds = sent.seconds().or(received.seconds()).filter(|seconds| *seconds > 0.0);
        // The cast saturates.
        let sent_in = |time_s: f64| {
            let rate = seconds.map(|seconds| counted as f64 / seconds);
            rate.map(|rate| ((rate * time_s).ceil() as u64).saturating_add(1))
        };
        let late_s = match (self.sends, self.role) {
            // This end is a server that waits for what its client had sent.
            (false, Role::Server) => return missing,
            (true, Role::Client) => {
                let unread = sent_in(UNREAD_S).unwrap_or(0);
                return if received.packets > 0 && missing <= unread { 0 } else { missing };
            }
            (false, Role::Client) => Some(late.seconds),
            (true, Role::Server) => self.seconds_after_client(parameters),
        };
        let on_the_way = late_s.and_then(|late_s| sent_in(late_s + UNREAD_S));
        on_the_way.map_or(0, |on_the_way| missing.saturating_sub(on_the_way))
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
        let late = Late { seconds: late_s, ..Late::default() };
        Ends { sends, role, own: &own, theirs: &theirs }.tail(&parameters, &late)
    }

    #[test]
    fn all_that_a_client_sent_and_a_server_did_not_get_is_lost() {
        assert_eq!(tail(Role::Client, true, counted(624, 5.0), counted(375, 5.0), 9.0), 249);
        assert_eq!(tail(Role::Server, false, counted(375, 5.0), counted(624, 5.0), 9.0), 249);
        assert_eq!(tail(Role::Client, true, counted(250, 2.0), counted(0, 2.0), 0.0), 250);
        assert_eq!(tail(Role::Client, true, counted(250, 2.0), counted(250, 2.0), 0.0), 0);
        // What an original server may have left unread was not lost; where nothing came, all was.
        assert_eq!(tail(Role::Client, true, counted(126, 1.0), counted(125, 1.0), 0.0), 0);
        assert_eq!(tail(Role::Client, true, counted(126, 1.0), counted(122, 1.0), 0.0), 0);
        assert_eq!(tail(Role::Client, true, counted(126, 1.0), counted(121, 1.0), 0.0), 5);
        assert_eq!(tail(Role::Client, true, counted(2, 1.0), counted(0, 1.0), 0.0), 2);
        assert_eq!(tail(Role::Server, false, counted(125, 1.0), counted(126, 1.0), 0.0), 1);
        // A peer's claim.
        assert_eq!(tail(Role::Client, true, counted(250, 2.0), counted(u64::MAX, 2.0), 0.0), 0);
    }

    #[test]
    fn datagrams_sent_until_the_client_ends_the_test_are_not_lost() {
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

    #[test]
    fn datagrams_after_a_receivers_shutdown_are_read() {
        let [sender, receiver] =
            [(), ()].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        receiver.connect(sender.local_addr().unwrap()).unwrap();
        let receiver = Socket::from(receiver);
        receiver.shutdown(std::net::Shutdown::Read).unwrap();
        for number in [5, 9, 7] {
            let mut datagram = [0; 100];
            Header { sent_ns: 0, number }.encode(false, &mut datagram);
            sender.send(&datagram).unwrap();
        }
        let mut buffer = vec![0; MOST_BYTES];
        assert_eq!(highest(&receiver, false, 100, &mut buffer), Some(9));
        assert_eq!(highest(&receiver, false, 100, &mut buffer), None);
        let late = Late { seconds: 0.0, numbers: BTreeMap::from([(1, 4990)]) };
        let (own, theirs) = (counted(3000, 5.0), counted(5000, 5.0));
        let ends = Ends { sends: false, role: Role::Client, own: &own, theirs: &theirs };
        assert_eq!(ends.tail(&Parameters::default(), &late), 0);
    }
}
