//! A load that ends by what it has done, and does nothing any more.

use std::os::fd::AsFd;

use linerate_measure::sample::{Role, Sample};
use linerate_measure::{Arrivals, End, Kind, Workload};

use super::Load;
use crate::clock::SECOND_NS;
use crate::phase::Phase;
use crate::socket::tcp_movement;

/// A load in which nothing moves for so long, though something was due, is given up.
const STANDSTILL_NS: u64 = 30 * SECOND_NS;
/// How often it is looked whether anything moves: a look asks all flows.
const STANDSTILL_LOOK_NS: u64 = SECOND_NS;
/// No gap of a Poisson process is longer than so many mean ones, but one in 10^10.
const LONGEST_GAP: f64 = 25.0;

/// What of a load was last seen to move.
pub(super) struct Standstill {
    limit_ns: u64,
    next_look_ns: u64,
    moved_ns: u64,
    counted: u64,
    carried: u64,
}

impl Load {
    /// A load by time is stopped when its time is up. One by bytes or by a count would be held by a
    /// server for as long as that likes; the server itself is held by no client that is gone.
    pub(super) fn watch_for_standstill(&self, now_ns: u64) -> Option<Standstill> {
        let by_time = matches!(self.workload.end, End::Time { .. });
        // Other dialects know their own peers.
        let watched = self.role == Role::Client && !by_time && self.given.is_empty();
        watched.then(|| Standstill {
            limit_ns: STANDSTILL_NS.saturating_add(longest_pause_ns(&self.workload)),
            next_look_ns: now_ns.saturating_add(STANDSTILL_LOOK_NS),
            moved_ns: now_ns,
            counted: 0,
            carried: 0,
        })
    }

    /// What the server has sampled: it may still be taking in what this end has long handed to its
    /// kernel.
    pub(crate) fn handle_peer_sample(&mut self, sample: &Sample, now_ns: u64) {
        let traffic = [sample.sent, sample.received];
        let moves = traffic.into_iter().flatten().any(|traffic| traffic.calls > Some(0));
        if let Some(standstill) = self.standstill.as_mut().filter(|_| moves) {
            standstill.moved_ns = now_ns;
        }
    }

    pub(super) fn look_for_standstill(&mut self, now_ns: u64) {
        let Some(mut standstill) = self.standstill.take() else { return };
        if self.phase.current() >= Phase::Stop {
            return;
        }
        if now_ns >= standstill.next_look_ns {
            standstill.next_look_ns = now_ns.saturating_add(STANDSTILL_LOOK_NS);
            if self.moves(&mut standstill) {
                standstill.moved_ns = now_ns;
            }
        }
        if now_ns.saturating_sub(standstill.moved_ns) >= standstill.limit_ns && !self.all_ended() {
            self.notes.push(format!(
                "nothing moved for {} s: the load was ended, and flows that had not ended were given \
                 up",
                standstill.limit_ns / SECOND_NS
            ));
            self.stop();
            self.abort();
            return;
        }
        self.standstill = Some(standstill);
    }

    /// Whether anything has been done since the last look: counted by this end's flows, or taken by
    /// the server's kernel of what they have handed to this one.
    fn moves(&self, standstill: &mut Standstill) -> bool {
        let ends = self.flows.iter().flatten().map(|flow| flow.tally.last_ns.value());
        // A connection that fails counts nothing, and has come to its end.
        let counted = ends.fold(self.sum_of_counters(), u64::wrapping_add);
        if counted != standstill.counted {
            standstill.counted = counted;
            return true;
        }
        let carried = self.carried();
        let moves = carried != standstill.carried;
        standstill.carried = carried;
        moves
    }

    /// Whether bytes or responses of the peer's have come since this was last asked; asked once a second, as
    /// it looks at every flow.
    pub(crate) fn hears_peer(&mut self, now_ns: u64) -> bool {
        if !self.is_open() || now_ns < self.heard.0.saturating_add(SECOND_NS) {
            return false;
        }
        let come = self.flows.iter().flatten().fold(0, |sum: u64, flow| {
            let counts = flow.tally.counts();
            sum.wrapping_add(counts.received_bytes).wrapping_add(counts.transactions)
        });
        let before = std::mem::replace(&mut self.heard, (now_ns, come));
        before.1 != come
    }

    pub(super) fn carried(&self) -> u64 {
        self.flows.iter().flatten().fold(0, |sum: u64, flow| {
            let tcp = flow.socket.as_ref().and_then(|socket| tcp_movement(socket.as_fd()));
            // Of a stream's bytes it is known in large pieces only what was acknowledged.
            let quic = flow.path().map(|path| {
                path.acked_bytes.unwrap_or(0).wrapping_add(path.received_acks.unwrap_or(0))
            });
            sum.wrapping_add(tcp.unwrap_or(0)).wrapping_add(quic.unwrap_or(0))
        })
    }
}

/// How long a load may do nothing as it was planned: nothing is due by its rate, or a response or a
/// connection is awaited.
fn longest_pause_ns(workload: &Workload) -> u64 {
    let timeout_ns = match workload.kind {
        Kind::Stream { .. } => 0,
        Kind::Rr { timeout_ns, .. } | Kind::Connect { timeout_ns, .. } => timeout_ns,
    };
    // The last flow left may be alone with its part of the rate.
    let gap_s = workload.schedule().map_or(0.0, |schedule| {
        let mean_s = f64::from(workload.flows) / schedule.per_s;
        if schedule.arrivals == Arrivals::Poisson { LONGEST_GAP * mean_s } else { mean_s }
    });
    let unit_bytes = match workload.kind {
        Kind::Stream { send_bytes, .. } if workload.has_datagrams() => send_bytes,
        // The pace cuts what a stream sends into pieces as short as it must.
        _ => 1,
    };
    let unit_s =
        workload.rate_per_flow_bps().map_or(0.0, |bps| f64::from(unit_bytes) * 8.0 / bps as f64);
    // Saturates.
    timeout_ns.saturating_add(((gap_s + unit_s) * 1e9) as u64)
}
