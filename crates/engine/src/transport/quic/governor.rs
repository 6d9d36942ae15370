//! What stands between a connection and its congestion control: it spaces packets out as it was told,
//! and says what the control knows.
//!
//! `quinn-proto` spaces packets out by itself (RFC 9002, section 7.7) except where a congestion window is
//! larger than any window is. To have it stand aside, the control's window is hidden while it has room
//! left; how much has left is then this room's to watch.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use linerate_measure::Pacing;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// A window that nothing is spaced out by: above 2^32 bytes the crate doesn't.
const BOUNDLESS: u64 = u64::MAX / 2;
/// A window that nothing leaves by but acknowledgements and probes.
const SHUT: u64 = 1;
/// Nothing was acknowledged yet.
const UNKNOWN: u64 = u64::MAX;
/// At a rate of its own, a connection may make up for so much time that it lost: on a busy machine it is
/// woken late, and would be too slow.
const CATCH_UP: Duration = Duration::from_millis(10);
/// And waits until it can send as much as this at once.
const BATCH: Duration = Duration::from_micros(500);
/// Any rate lets so many packets leave at once.
const LEAST_PACKETS: u64 = 2;

/// What is known of a connection's control. One thread has both; nothing waits for anything.
#[derive(Debug)]
pub(super) struct Governor {
    pacing: Pacing,
    window_bytes: AtomicU64,
    /// What has left and was neither acknowledged nor held to be lost. Acknowledgements count too until the
    /// next one comes: no less than the truth.
    on_their_way_bytes: AtomicU64,
    /// The truth, when the last acknowledgement had come.
    in_flight_bytes: AtomicU64,
    packet_bytes: AtomicU64,
    cuts: AtomicU64,
    ecn_events: AtomicU64,
    shut: AtomicBool,
    /// How often the window was asked for.
    asked: AtomicU64,
}

impl Governor {
    fn new(pacing: Pacing, window_bytes: u64, packet_bytes: u16) -> Self {
        Self {
            pacing,
            window_bytes: AtomicU64::new(window_bytes),
            on_their_way_bytes: AtomicU64::new(0),
            in_flight_bytes: AtomicU64::new(UNKNOWN),
            packet_bytes: AtomicU64::new(packet_bytes.into()),
            cuts: AtomicU64::new(0),
            ecn_events: AtomicU64::new(0),
            shut: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        }
    }

    /// That of a connection whose control was made by a [`GovernedFactory`].
    pub(super) fn of(connection: &quinn_proto::Connection) -> Arc<Self> {
        let control = connection.congestion_state();
        let packet_bytes = connection.current_mtu();
        control.clone_box().into_any().downcast::<Governed>().map_or_else(
            |_| Arc::new(Self::new(Pacing::On, control.window(), packet_bytes)),
            |governed| Arc::clone(&governed.governor),
        )
    }

    /// The congestion window as the control has it.
    pub(super) fn window_bytes(&self) -> u64 {
        read(&self.window_bytes)
    }

    /// What was on its way when the peer last acknowledged something; `None`: it has not yet.
    pub(super) fn in_flight_bytes(&self) -> Option<u64> {
        Some(read(&self.in_flight_bytes)).filter(|bytes| *bytes != UNKNOWN)
    }

    /// How often the window was cut.
    pub(super) fn cuts(&self) -> u64 {
        read(&self.cuts)
    }

    /// How often the window was cut because of marks of explicit congestion notification.
    pub(super) fn ecn_events(&self) -> u64 {
        read(&self.ecn_events)
    }

    /// How often the window was asked for. The crate asks once whether a packet fits into it and, if so,
    /// once more whether the packet may leave already.
    pub(super) fn asked(&self) -> u64 {
        read(&self.asked)
    }

    /// The gate of a connection that has a rate of its own.
    pub(super) fn gate(&self, now: Instant) -> Option<Gate> {
        match self.pacing {
            Pacing::Rate { bps } => Some(Gate::new(bps, now)),
            Pacing::On | Pacing::Off => None,
        }
    }

    /// How many packets of this length may leave together, of so many that the socket takes.
    pub(super) fn packets_at_once(&self, most: usize, packet_bytes: u64) -> usize {
        if self.pacing == Pacing::On {
            return most;
        }
        let room = self.window_bytes().saturating_sub(read(&self.on_their_way_bytes));
        most.min((room / packet_bytes.max(1)) as usize).max(1)
    }

    /// Lets nothing leave but acknowledgements and probes, or everything again.
    pub(super) fn set_shut(&self, shut: bool) {
        self.shut.store(shut, Ordering::Relaxed);
    }

    /// The window as the connection is to see it.
    fn shown_bytes(&self, window_bytes: u64) -> u64 {
        if self.pacing == Pacing::On {
            return window_bytes;
        }
        if self.shut.load(Ordering::Relaxed) {
            return SHUT;
        }
        let next = read(&self.on_their_way_bytes).saturating_add(read(&self.packet_bytes));
        if next < window_bytes { BOUNDLESS } else { window_bytes }
    }
}

fn read(from: &AtomicU64) -> u64 {
    from.load(Ordering::Relaxed)
}

fn write(to: &AtomicU64, value: u64) {
    to.store(value, Ordering::Relaxed);
}

/// A connection's own rate: what may leave grows with time, up to a bound.
#[derive(Debug)]
pub(super) struct Gate {
    bytes_per_s: f64,
    bytes: f64,
    at: Instant,
}

impl Gate {
    fn new(bps: u64, now: Instant) -> Self {
        let bytes_per_s = bps as f64 / 8.0;
        Self { bytes_per_s, bytes: bytes_per_s * CATCH_UP.as_secs_f64(), at: now }
    }

    /// How many packets of this length may leave now.
    pub(super) fn packets(&mut self, now: Instant, packet_bytes: u64) -> u64 {
        let most = self.bytes_per_s * CATCH_UP.as_secs_f64();
        let most = most.max((packet_bytes * LEAST_PACKETS) as f64);
        let grown = now.saturating_duration_since(self.at).as_secs_f64() * self.bytes_per_s;
        self.bytes = (self.bytes + grown).min(most);
        self.at = now;
        (self.bytes / packet_bytes.max(1) as f64) as u64
    }

    pub(super) fn record_sent(&mut self, bytes: usize) {
        self.bytes -= bytes as f64;
    }

    /// When so much may leave that it is worth waking up.
    pub(super) fn opens_at(&self, packet_bytes: u64) -> Instant {
        let wanted = (self.bytes_per_s * BATCH.as_secs_f64()).max(packet_bytes as f64);
        // A nanosecond more: what is due must then be there, however it was rounded.
        let missing_s = ((wanted - self.bytes) / self.bytes_per_s).max(0.0) + 1e-9;
        self.at + Duration::try_from_secs_f64(missing_s).unwrap_or(CATCH_UP)
    }
}

/// Makes governed controls of any.
pub(super) struct GovernedFactory {
    pub(super) inner: Arc<dyn ControllerFactory + Send + Sync>,
    pub(super) pacing: Pacing,
}

impl ControllerFactory for GovernedFactory {
    fn build(self: Arc<Self>, now: Instant, packet_bytes: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, packet_bytes);
        let governor = Arc::new(Governor::new(self.pacing, inner.window(), packet_bytes));
        Box::new(Governed { inner, governor })
    }
}

/// A congestion control and what is known of it.
struct Governed {
    inner: Box<dyn Controller>,
    governor: Arc<Governor>,
}

impl Governed {
    fn record_window(&self) {
        write(&self.governor.window_bytes, self.inner.window());
    }
}

impl Controller for Governed {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        let on_their_way = &self.governor.on_their_way_bytes;
        write(on_their_way, read(on_their_way).saturating_add(bytes));
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
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        write(&self.governor.in_flight_bytes, in_flight);
        write(&self.governor.on_their_way_bytes, in_flight);
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        self.record_window();
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let governor = &self.governor;
        let left = read(&governor.on_their_way_bytes).saturating_sub(lost_bytes);
        write(&governor.on_their_way_bytes, left);
        let before_bytes = self.inner.window();
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        // Most losses belong to an event that was answered already.
        if self.inner.window() < before_bytes {
            write(&governor.cuts, read(&governor.cuts) + 1);
            if lost_bytes == 0 {
                write(&governor.ecn_events, read(&governor.ecn_events) + 1);
            }
        }
        self.record_window();
    }

    fn on_mtu_update(&mut self, packet_bytes: u16) {
        write(&self.governor.packet_bytes, packet_bytes.into());
        self.inner.on_mtu_update(packet_bytes);
        self.record_window();
    }

    fn window(&self) -> u64 {
        write(&self.governor.asked, read(&self.governor.asked) + 1);
        self.governor.shown_bytes(self.inner.window())
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), governor: Arc::clone(&self.governor) })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use quinn_proto::congestion::NewRenoConfig;

    use super::*;

    fn governed(pacing: Pacing, window_bytes: u64) -> (Box<dyn Controller>, Arc<Governor>) {
        let mut config = NewRenoConfig::default();
        config.initial_window(window_bytes);
        let inner: Arc<dyn ControllerFactory + Send + Sync> = Arc::new(config);
        let made = Arc::new(GovernedFactory { inner, pacing }).build(Instant::now(), 1_000);
        let governed = made.clone_box().into_any().downcast::<Governed>().unwrap();
        (made, Arc::clone(&governed.governor))
    }

    #[test]
    fn a_window_is_hidden_while_it_has_room_and_pacing_is_off() {
        let now = Instant::now();
        let (paced, _) = governed(Pacing::On, 10_000);
        assert_eq!(paced.window(), 10_000);
        let (mut unpaced, governor) = governed(Pacing::Off, 10_000);
        assert_eq!(unpaced.window(), BOUNDLESS);
        assert_eq!(governor.packets_at_once(44, 1_000), 10);
        unpaced.on_sent(now, 8_999, 8);
        assert_eq!((unpaced.window(), governor.packets_at_once(44, 1_000)), (BOUNDLESS, 1));
        unpaced.on_sent(now, 1, 9);
        assert_eq!((unpaced.window(), governor.window_bytes()), (10_000, 10_000));
        unpaced.on_end_acks(now, 3_000, false, Some(5));
        assert_eq!((unpaced.window(), governor.in_flight_bytes()), (BOUNDLESS, Some(3_000)));
        // What was sent before the control was made is none of its losses.
        let later = now + Duration::from_secs(1);
        unpaced.on_congestion_event(later, later, false, 1_000);
        assert_eq!(governor.window_bytes(), 5_000);
        assert_eq!((governor.packets_at_once(44, 1_000), governor.ecn_events()), (3, 0));
        // A loss from before the cut doesn't cut again.
        unpaced.on_congestion_event(later, later, false, 1_000);
        assert_eq!((governor.cuts(), governor.ecn_events()), (1, 0));
        let latest = later + Duration::from_secs(1);
        unpaced.on_congestion_event(latest, latest, false, 0);
        assert_eq!((governor.cuts(), governor.ecn_events()), (2, 1));
    }

    #[test]
    fn a_shut_gate_lets_nothing_leave() {
        let (control, governor) = governed(Pacing::Rate { bps: 8_000_000 }, 10_000);
        governor.set_shut(true);
        assert_eq!(control.window(), SHUT);
        governor.set_shut(false);
        assert_eq!(control.window(), BOUNDLESS);
    }

    proptest::proptest! {
        #[test]
        fn a_gate_keeps_to_its_rate(bps in 1_000_u64..10_000_000_000, packet in 1_200_u64..65_000) {
            let begin = Instant::now();
            let mut gate = Gate::new(bps, begin);
            let (mut now, mut sent) = (begin, 0);
            for _ in 0..200 {
                let packets = gate.packets(now, packet).min(44);
                gate.record_sent((packets * packet) as usize);
                sent += packets * packet;
                if gate.packets(now, packet) == 0 {
                    let opens = gate.opens_at(packet);
                    proptest::prop_assert!(opens > now);
                    now = opens;
                    proptest::prop_assert!(gate.packets(now, packet) > 0);
                }
            }
            let allowed = bps as f64 / 8.0 * (now - begin + CATCH_UP).as_secs_f64();
            let most = allowed + (packet * LEAST_PACKETS) as f64;
            proptest::prop_assert!(sent as f64 <= most * 1.001, "{sent} of {most}");
            proptest::prop_assert!(sent as f64 >= allowed * 0.9 - (packet * 90) as f64, "{sent} of {allowed}");
        }
    }
}
