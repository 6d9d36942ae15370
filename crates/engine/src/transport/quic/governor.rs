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

mod counts;
mod gate;

use super::events::EventLog;
pub(super) use counts::CongestionCounts;
pub(super) use gate::Gate;
use gate::rate_window_bytes;

/// A window that nothing is spaced out by: above 2^32 bytes the crate doesn't.
const BOUNDLESS: u64 = u64::MAX / 2;
/// A window that nothing leaves by but probes; acknowledgements wait, too, while there is data.
const SHUT: u64 = 1;
/// Nothing was acknowledged yet.
const UNKNOWN: u64 = u64::MAX;
/// What any sender may have unacknowledged, and what none may exceed.
const SEND_WINDOW_MIN_BYTES: u64 = 1 << 20;
const SEND_WINDOW_MAX_BYTES: u64 = 64 << 20;
/// One connection is one thread's, which seals no more than this.
const MOST_BPS: u64 = 40_000_000_000;
/// What may be unacknowledged beside what a path of that rate holds: what an acknowledgement waits for.
const BETWEEN_ACKS_BYTES: u64 = 512 << 10;

/// What a sender may have unacknowledged before anything is known of its path.
pub(super) fn first_send_window_bytes(pacing: Pacing, packet_bytes: u16) -> u64 {
    match pacing {
        Pacing::Rate { bps } => {
            rate_window_bytes(bps, Duration::ZERO, packet_bytes.into()).min(SEND_WINDOW_MIN_BYTES)
        }
        Pacing::On | Pacing::Off => SEND_WINDOW_MIN_BYTES,
    }
}

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
    /// The least round-trip time so far, ns.
    least_rtt_ns: AtomicU64,
    packet_bytes: AtomicU64,
    events: AtomicU64,
    ecn_events: AtomicU64,
    shut: AtomicBool,
    /// Whether the connection has closed.
    closed: AtomicBool,
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
            least_rtt_ns: AtomicU64::new(UNKNOWN),
            packet_bytes: AtomicU64::new(packet_bytes.into()),
            events: AtomicU64::new(0),
            ecn_events: AtomicU64::new(0),
            shut: AtomicBool::new(false),
            closed: AtomicBool::new(false),
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

    /// How often the path was found congested, until now.
    pub(super) fn congestion(&self) -> CongestionCounts {
        CongestionCounts { events: read(&self.events), ecn_events: read(&self.ecn_events) }
    }

    /// How often the window was asked for. The crate asks once whether a packet fits into it and, if so,
    /// once more whether the packet may leave already.
    pub(super) fn asked(&self) -> u64 {
        read(&self.asked)
    }

    /// What a sender may have unacknowledged: as much as keeps the path busy, and not much more. What is taken
    /// from a sender early arrives late.
    pub(super) fn send_window_bytes(&self, rtt: Duration) -> u64 {
        let window = self.window_bytes().saturating_mul(2);
        let window = window.clamp(SEND_WINDOW_MIN_BYTES, SEND_WINDOW_MAX_BYTES);
        match self.pacing {
            Pacing::Rate { bps } => window.min(rate_window_bytes(bps, rtt, self.packet_bytes())),
            Pacing::On | Pacing::Off => window,
        }
    }

    /// What the fastest connection may have unacknowledged on this path; no bound before a round trip is known.
    pub(super) fn path_bytes(&self) -> u64 {
        let rtt_ns = read(&self.least_rtt_ns);
        let held_bits = u128::from(rtt_ns) * u128::from(MOST_BPS) / 1_000_000_000;
        u64::try_from(held_bits / 8).unwrap_or(u64::MAX).saturating_add(BETWEEN_ACKS_BYTES)
    }

    fn packet_bytes(&self) -> u64 {
        read(&self.packet_bytes)
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

    /// The connection has closed: all that still leaves is what tells the peer so, and no window holds that
    /// back (RFC 9002, section 7). The crate has it wait where anything else that the peer would have to
    /// acknowledge is left to be sent, and as no acknowledgement counts any more, for ever.
    pub(super) fn set_closed(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// The window as the connection is to see it.
    fn shown_bytes(&self, window_bytes: u64) -> u64 {
        if self.closed.load(Ordering::Relaxed) {
            return BOUNDLESS;
        }
        if self.pacing == Pacing::On {
            return window_bytes;
        }
        if self.shut.load(Ordering::Relaxed) {
            return SHUT;
        }
        let next = read(&self.on_their_way_bytes).saturating_add(self.packet_bytes());
        if next < window_bytes { BOUNDLESS } else { window_bytes }
    }
}

fn read(from: &AtomicU64) -> u64 {
    from.load(Ordering::Relaxed)
}

fn write(to: &AtomicU64, value: u64) {
    to.store(value, Ordering::Relaxed);
}

/// Makes governed controls of any.
pub(super) struct GovernedFactory {
    pub(super) inner: Arc<dyn ControllerFactory + Send + Sync>,
    pub(super) pacing: Pacing,
    /// Whether the control answers congestion at once, with a smaller window.
    pub(super) cuts: bool,
    /// Where what the control does is written down.
    pub(super) events: Option<Arc<EventLog>>,
}

impl ControllerFactory for GovernedFactory {
    fn build(self: Arc<Self>, now: Instant, packet_bytes: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, packet_bytes);
        let inner = match &self.events {
            Some(events) => events.traced_control(inner),
            None => inner,
        };
        let governor = Arc::new(Governor::new(self.pacing, inner.window(), packet_bytes));
        Box::new(Governed { inner, governor, cuts: self.cuts, recovers_from: None })
    }
}

/// A congestion control and what is known of it.
struct Governed {
    inner: Box<dyn Controller>,
    governor: Arc<Governor>,
    cuts: bool,
    /// When the last congestion was counted of a control that doesn't cut.
    recovers_from: Option<Instant>,
}

impl Governed {
    fn record_window(&self) {
        write(&self.governor.window_bytes, self.inner.window());
    }

    /// Whether congestion is news. Most losses belong to an event that was answered already.
    fn is_event(&mut self, now: Instant, sent: Instant, before_bytes: u64) -> bool {
        if self.cuts {
            return self.inner.window() < before_bytes;
        }
        let is_event = self.recovers_from.is_none_or(|from| sent > from);
        self.recovers_from = if is_event { Some(now) } else { self.recovers_from };
        is_event
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
        let least_ns = u64::try_from(rtt.min().as_nanos()).unwrap_or(UNKNOWN);
        write(&self.governor.least_rtt_ns, least_ns);
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
        let on_their_way = &self.governor.on_their_way_bytes;
        write(on_their_way, read(on_their_way).saturating_sub(lost_bytes));
        let before_bytes = self.inner.window();
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        if self.is_event(now, sent, before_bytes) {
            let governor = &self.governor;
            write(&governor.events, read(&governor.events) + 1);
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
        let (inner, governor) = (self.inner.clone_box(), Arc::clone(&self.governor));
        Box::new(Self { inner, governor, ..*self })
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
    use quinn_proto::congestion::{BbrConfig, NewRenoConfig};

    use super::*;

    fn governed(pacing: Pacing, window_bytes: u64) -> (Box<dyn Controller>, Arc<Governor>) {
        let mut config = NewRenoConfig::default();
        config.initial_window(window_bytes);
        made(Arc::new(config), pacing, true)
    }

    fn made(
        inner: Arc<dyn ControllerFactory + Send + Sync>,
        pacing: Pacing,
        cuts: bool,
    ) -> (Box<dyn Controller>, Arc<Governor>) {
        let made = Arc::new(GovernedFactory { inner, pacing, cuts, events: None })
            .build(Instant::now(), 1_000);
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
        assert_eq!(governor.packets_at_once(44, 1_000), 3);
        assert_eq!(governor.congestion(), CongestionCounts { events: 1, ecn_events: 0 });
        // A loss from before the cut doesn't cut again.
        unpaced.on_congestion_event(later, later, false, 1_000);
        assert_eq!(governor.congestion(), CongestionCounts { events: 1, ecn_events: 0 });
        let latest = later + Duration::from_secs(1);
        unpaced.on_congestion_event(latest, latest, false, 0);
        assert_eq!(governor.congestion(), CongestionCounts { events: 2, ecn_events: 1 });
    }

    #[test]
    fn congestion_that_is_answered_later_is_counted_once_too() {
        let (mut control, governor) = made(Arc::new(BbrConfig::default()), Pacing::On, false);
        let window_bytes = control.window();
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        for (now, sent, lost_bytes, events, ecn_events) in
            [(20, 5, 1_000, 1, 0), (21, 19, 2_000, 1, 0), (22, 20, 0, 1, 0), (40, 21, 0, 2, 1)]
        {
            control.on_congestion_event(at(now), at(sent), false, lost_bytes);
            assert_eq!(control.window(), window_bytes);
            assert_eq!(governor.congestion(), CongestionCounts { events, ecn_events }, "{now}");
        }
    }

    #[test]
    fn a_sender_with_a_rate_is_given_no_more_than_it_can_send_soon() {
        let rtt = Duration::from_millis(25);
        let (_, unbound) = governed(Pacing::Off, 10_000_000);
        assert_eq!(unbound.send_window_bytes(rtt), 20_000_000);
        let (_, bound) = governed(Pacing::Rate { bps: 8_000_000 }, 10_000_000);
        assert_eq!(bound.send_window_bytes(rtt), 100_000);
        let (_, slow) = governed(Pacing::Rate { bps: 1_000 }, 10_000_000);
        assert_eq!(slow.send_window_bytes(rtt), 16 << 10);
        assert_eq!(first_send_window_bytes(Pacing::Rate { bps: 8_000_000 }, 1_200), 50_000);
        assert_eq!(first_send_window_bytes(Pacing::Rate { bps: 1_000 }, 65_000), 130_000);
    }

    #[test]
    fn a_path_holds_what_its_least_round_trip_and_the_fastest_rate_allow() {
        let (_, governor) = governed(Pacing::Off, 10_000_000);
        assert_eq!(governor.path_bytes(), u64::MAX, "no round trip is known");
        write(&governor.least_rtt_ns, 1_000_000);
        assert_eq!(governor.path_bytes(), 5_000_000 + (512 << 10));
        write(&governor.least_rtt_ns, 0);
        assert_eq!(governor.path_bytes(), 512 << 10);
    }

    #[test]
    fn a_shut_gate_lets_nothing_leave_but_a_close() {
        let (control, governor) = governed(Pacing::Rate { bps: 8_000_000 }, 10_000);
        governor.set_shut(true);
        assert_eq!(control.window(), SHUT);
        governor.set_shut(false);
        assert_eq!(control.window(), BOUNDLESS);
        governor.set_shut(true);
        governor.set_closed();
        assert_eq!(control.window(), BOUNDLESS);
        let (paced, governor) = governed(Pacing::On, 10_000);
        governor.set_closed();
        assert_eq!(paced.window(), BOUNDLESS);
    }
}
