//! When a connection's packets leave.

use std::sync::Arc;
use std::time::Instant;

use quinn_proto::Transmit;

use super::super::governor::Governor;
use super::Connection;

/// What keeps a connection from sending more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Held {
    /// There is nothing to send, or the peer allows no more.
    #[default]
    Empty,
    /// Its turn is over, or the socket has no room.
    Waiting,
    /// The congestion window is full.
    Congestion,
    /// Packets are spaced out.
    Pacing,
}

impl Connection {
    /// Makes up to so many packets that leave with one call, into `bytes`.
    pub(in super::super) fn poll_transmit(
        &mut self,
        now: Instant,
        most: usize,
        bytes: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let packet_bytes = u64::from(self.proto.current_mtu());
        if self.remote != self.proto.remote_address() {
            self.remote = self.proto.remote_address();
            self.govern(Governor::of(&self.proto));
        }
        if self.proto.is_closed() {
            self.governor.set_closed();
        }
        let mut most = self.governor.packets_at_once(most, packet_bytes);
        let mut shut = false;
        if let Some(gate) = &mut self.gate {
            let packets = gate.packets(now, packet_bytes);
            shut = packets == 0;
            self.governor.set_shut(shut);
            most = most.min(packets as usize).max(1);
        }
        let asked = self.governor.asked();
        let transmit = self.proto.poll_transmit(now, most, bytes);
        self.held = match (&transmit, self.governor.asked() - asked) {
            (Some(_), _) => Held::Waiting,
            (None, 0) => Held::Empty,
            (None, 1) if !shut => Held::Congestion,
            (None, _) => Held::Pacing,
        };
        self.has_unnoted |= transmit.is_some();
        if self.held == Held::Empty {
            self.note_limits();
        }
        let streams = self.proto.streams().send_streams();
        self.waited.record(now, self.held, streams);
        if !self.datagrams.is_empty() {
            self.datagrams.record_framed(self.proto.stats().frame_tx.datagram);
        }
        match (&mut self.gate, &transmit) {
            (Some(gate), Some(transmit)) if !shut => gate.record_sent(transmit.size),
            (Some(gate), None) => {
                self.gate_opens = shut.then(|| gate.opens_at(packet_bytes));
            }
            _ => {}
        }
        match (&transmit, &self.log) {
            (Some(transmit), _) => self.is_marked = transmit.ecn.is_some(),
            (None, Some(log)) => log.record_metrics(&self.status()),
            (None, None) => {}
        }
        transmit
    }

    /// Notes what the packets sent since the last time told the peer of its limits, and what the peer has raised. To
    /// read the statistics copies all of them: that isn't done for each packet.
    pub(super) fn note_limits(&mut self) {
        self.has_unnoted = false;
        let stats = self.proto.stats();
        self.waited.note_limits(&stats.frame_tx, &stats.frame_rx);
    }

    /// Another path's control, the same one, or that of a path that is taken again: what was counted goes on.
    fn govern(&mut self, governor: Arc<Governor>) {
        let until_now = self.other_paths.and(self.governor.congestion());
        self.other_paths = until_now.without(governor.congestion());
        self.governor = governor;
    }

    /// What keeps it from sending more, as the last try has found.
    pub(in super::super) fn held(&self) -> Held {
        self.held
    }

    /// How often it has told its peer that the peer's limits hold it: the connection's, and those of
    /// streams (RFC 9000, section 4.1).
    pub(in super::super) fn limits_told(&self) -> (u64, u64) {
        let sent = self.proto.stats().frame_tx;
        (sent.data_blocked, sent.stream_data_blocked)
    }

    /// When something is to be done, if no packet comes before.
    pub(in super::super) fn next_time(&mut self) -> Option<Instant> {
        let timer = self.proto.poll_timeout();
        match (timer, self.gate_opens) {
            (Some(timer), Some(opens)) => Some(timer.min(opens)),
            (timer, opens) => timer.or(opens),
        }
    }

    /// What was to be done by now is done.
    pub(in super::super) fn handle_time(&mut self, now: Instant) {
        self.gate_opens = self.gate_opens.filter(|opens| *opens > now);
        self.proto.handle_timeout(now);
        self.touch();
    }
}
