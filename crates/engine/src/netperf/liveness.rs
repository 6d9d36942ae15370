//! Whether a peer's machine is there while a test is under way.
//!
//! Its answers to the kernel's probes may wait behind the test's own load for as long as the path has a queue, or be
//! dropped there among many others. Data that moves is as good a sign.

use std::time::Duration;

use linerate_measure::Role;
use linerate_wire::netperf::test::Transport;

use super::job::{Job, Task};
use crate::clock::SECOND_NS;
use crate::tally::Counts;

/// A peer of which nothing shows for so long is gone. It has the longest queues of a path in it.
const SILENCE_NS: u64 = 60 * SECOND_NS;
/// A receiver of datagrams sends nothing back. Where the path carries less than the load, the load also drops most
/// keepalives, which go the same way. A client waits longer than a server: its user chose the peer.
const ONE_WAY_SILENCE_NS: u64 = 600 * SECOND_NS;
/// A server waits less: the client's address may belong to another machine by then.
const SERVER_ONE_WAY_SILENCE_NS: u64 = 120 * SECOND_NS;
/// How often it is looked.
const LOOK_NS: u64 = SECOND_NS;

/// What shows of a peer's machine.
#[derive(Debug)]
pub(super) struct Liveness {
    /// Whether what was sent has come to the peer, but for a send buffer full.
    sent_shows: bool,
    silence_ns: u64,
    next_look_ns: u64,
    /// What only a peer that is there has data come to, and when that last changed.
    moved: u64,
    moved_ns: u64,
}

impl Liveness {
    /// Of a test that begins now; this end does its part.
    pub(super) fn new(role: Role, job: &Job, now_ns: u64) -> Self {
        let is_one_way = job.transport == Transport::Udp && job.task == Task::Send;
        Self {
            // Sends wait for what was sent before to be acknowledged; paced ones fill the buffer first, which may
            // take them longer than any silence.
            sent_shows: job.transport == Transport::Tcp && job.pacing.is_none(),
            silence_ns: match role {
                _ if !is_one_way => SILENCE_NS,
                Role::Client => ONE_WAY_SILENCE_NS,
                Role::Server => SERVER_ONE_WAY_SILENCE_NS,
            },
            next_look_ns: now_ns.saturating_add(LOOK_NS),
            moved: 0,
            moved_ns: now_ns,
        }
    }

    /// Whether the peer must be taken for gone. `unheard`: how long ago a packet of its came over the control
    /// connection; it costs a call, and isn't asked for each time.
    pub(super) fn is_lost(
        &mut self,
        unheard: impl FnOnce() -> Duration,
        counts: &Counts,
        now_ns: u64,
    ) -> bool {
        if now_ns < self.next_look_ns {
            return false;
        }
        self.next_look_ns = now_ns.saturating_add(LOOK_NS);
        let sent_bytes = if self.sent_shows { counts.sent_bytes } else { 0 };
        let moved = counts.received_bytes.wrapping_add(sent_bytes);
        let moved = moved.wrapping_add(counts.transactions);
        if moved != self.moved {
            (self.moved, self.moved_ns) = (moved, now_ns);
        }
        let still_ns = now_ns.saturating_sub(self.moved_ns);
        still_ns >= self.silence_ns && unheard().as_nanos() >= self.silence_ns.into()
    }

    /// What is said where it is lost.
    pub(super) fn why(&self) -> String {
        format!("its machine sent nothing for {} s", self.silence_ns / SECOND_NS)
    }
}

#[cfg(test)]
mod tests {
    use linerate_wire::netperf::test::{Part, Request};

    use super::*;

    fn job(part: Part, transport: Transport) -> Job {
        Job::of_server(&Request::new(part, transport), 1)
    }

    fn liveness(part: Part, transport: Transport) -> Liveness {
        Liveness::new(Role::Server, &job(part, transport), 0)
    }

    /// When a silent peer is lost to which data leaves all the time, in seconds.
    fn lost_while_sending_s(mut liveness: Liveness) -> Option<u64> {
        let mut lost_at = |at_s: u64| {
            let counts = Counts { sent_bytes: at_s, ..Counts::default() };
            liveness.is_lost(silent_for(at_s), &counts, at_s * SECOND_NS)
        };
        (0..2000).find(|at_s| lost_at(*at_s))
    }

    fn silent_for(silence_s: u64) -> impl Fn() -> Duration {
        move || Duration::from_secs(silence_s)
    }

    #[test]
    fn a_peer_that_sends_packets_is_alive_whatever_moves() {
        for (part, transport) in [(Part::Receive, Transport::Tcp), (Part::Send, Transport::Udp)] {
            let mut liveness = liveness(part, transport);
            let heard = |at_s: u64| at_s.min(5);
            assert!((0..2000).all(|at_s| {
                let now_ns = at_s * SECOND_NS;
                !liveness.is_lost(silent_for(heard(at_s)), &Counts::default(), now_ns)
            }));
        }
    }

    #[test]
    fn silent_peer_is_lost_a_minute_after_its_data_stops() {
        for (part, transport) in [
            (Part::Receive, Transport::Udp),
            (Part::Receive, Transport::Tcp),
            (Part::Send, Transport::Tcp),
            (Part::Answer, Transport::Udp),
            (Part::Accept, Transport::Tcp),
        ] {
            let mut liveness = liveness(part, transport);
            let mut counts = Counts::default();
            let mut lost_at = |at_s: u64| {
                if at_s <= 1000 {
                    match part {
                        Part::Send => counts.sent_bytes += 1,
                        Part::Accept => counts.transactions += 1,
                        _ => counts.received_bytes += 1,
                    }
                }
                liveness.is_lost(silent_for(at_s), &counts, at_s * SECOND_NS)
            };
            assert_eq!((0..2000).find(|at_s| lost_at(*at_s)), Some(1060), "{part:?} {transport:?}");
        }
    }

    #[test]
    fn datagrams_that_leave_are_no_sign() {
        let job = job(Part::Send, Transport::Udp);
        for (role, after_s) in [(Role::Client, 600), (Role::Server, 120)] {
            assert_eq!(lost_while_sending_s(Liveness::new(role, &job, 0)), Some(after_s));
        }
    }

    #[test]
    fn paced_sends_that_a_buffer_takes_are_no_sign() {
        for role in [Role::Client, Role::Server] {
            let mut job = job(Part::Send, Transport::Tcp);
            assert_eq!(lost_while_sending_s(Liveness::new(role, &job, 0)), None);
            job.pacing = Some((1, 1_000_000));
            assert_eq!(lost_while_sending_s(Liveness::new(role, &job, 0)), Some(60));
        }
    }
}
