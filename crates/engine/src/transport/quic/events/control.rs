//! What the congestion control of a connection is told and decides, as quicly's events.

use std::any::Any;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};

use super::super::qlog::PacketKind;
use super::ConnectionEvents;
use super::frames::Value::Number;

/// A congestion control that is written down.
pub(super) struct TracedControl {
    pub(super) inner: Box<dyn Controller>,
    pub(super) events: ConnectionEvents,
    /// What the acknowledgement that is being handled came to.
    acked: Acked,
    in_flight_bytes: u64,
}

/// What an acknowledgement came to.
#[derive(Clone, Copy, Debug, Default)]
struct Acked {
    bytes: u64,
    /// The round-trip times before it, the least and the mean, and its own.
    min_rtt: Duration,
    smoothed_rtt: Duration,
    latest_rtt: Duration,
}

impl TracedControl {
    pub(super) fn new(inner: Box<dyn Controller>, events: ConnectionEvents) -> Self {
        Self { inner, events, acked: Acked::default(), in_flight_bytes: 0 }
    }

    fn state(&self) -> [(&'static str, super::frames::Value<'static>); 2] {
        [("cwnd", Number(self.inner.window())), ("inflight", Number(self.in_flight_bytes))]
    }
}

impl Controller for TracedControl {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.in_flight_bytes = self.in_flight_bytes.saturating_add(bytes);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.acked = Acked {
            bytes: self.acked.bytes.saturating_add(bytes),
            min_rtt: rtt.min(),
            smoothed_rtt: rtt.get(),
            // The last packet is the one that was sent last.
            latest_rtt: now.saturating_duration_since(sent),
        };
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        self.in_flight_bytes = in_flight;
        let Acked { bytes, min_rtt, smoothed_rtt, latest_rtt } = std::mem::take(&mut self.acked);
        let [cwnd, inflight] = self.state();
        let ms = |time: Duration| Number(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let mut lines = self.events.lines(PacketKind::Data);
        if bytes > 0 {
            let fields = [
                ("min-rtt", ms(min_rtt)),
                ("smoothed-rtt", ms(smoothed_rtt)),
                ("latest-rtt", ms(latest_rtt)),
                cwnd,
                inflight,
            ];
            lines.add("quictrace-cc-ack", &fields);
        }
        let largest = Number(largest_packet_num_acked.unwrap_or(0));
        let fields = [("largest-acked", largest), ("bytes-acked", Number(bytes)), cwnd, inflight];
        lines.add("cc-ack-received", &fields);
        self.events.log.write(lines.text());
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(lost_bytes);
        let Some((kind, lost)) = self.events.sent().take_lost(lost_bytes) else { return };
        let mut lines = self.events.lines(kind);
        for number in &lost {
            let fields = [("pn", Number(*number)), ("packet-type", lines.packet_type())];
            lines.add("packet-lost", &fields);
        }
        let [cwnd, inflight] = self.state();
        // As quicly has it, the number behind the last one that was lost.
        let behind = lost.last().map_or(0, |last| last.saturating_add(1));
        lines.add("cc-congestion", &[("max-lost-pn", Number(behind)), inflight, cwnd]);
        self.events.log.write(lines.text());
    }

    fn on_mtu_update(&mut self, packet_bytes: u16) {
        self.inner.on_mtu_update(packet_bytes);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let (inner, events) = (self.inner.clone_box(), self.events.clone());
        Box::new(Self { inner, events, ..*self })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
