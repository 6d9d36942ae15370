//! HyStart++ (RFC 9406) around CUBIC: slow start ends when the round-trip time grows, and not only
//! when packets are lost.
//!
//! CUBIC is quinn-proto's, which can't be told that slow start is over. [`in_avoidance`] makes one of
//! it that has come as far.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};

/// RFC 9406, section 4.3.
const LEAST_THRESHOLD: Duration = Duration::from_millis(4);
const GREATEST_THRESHOLD: Duration = Duration::from_millis(16);
const THRESHOLD_DIVISOR: u32 = 8;
const SAMPLES: u32 = 8;
const GROWTH_DIVISOR: u64 = 4;
const CONSERVATIVE_ROUNDS: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    SlowStart,
    /// Slower growth, while it is found out whether the round-trip time has really grown.
    Conservative {
        baseline: Duration,
        rounds: u32,
    },
    Over,
}

/// What the round-trip times of each round say of slow start (RFC 9406, section 4.2).
#[derive(Clone, Debug)]
struct Rounds {
    phase: Phase,
    /// The packet whose acknowledgement ends the round, and the last one sent.
    ends_with: u64,
    last_sent: u64,
    last_least: Option<Duration>,
    least: Option<Duration>,
    samples: u32,
}

impl Rounds {
    fn new() -> Self {
        let (last_least, least) = (None, None);
        Self { phase: Phase::SlowStart, ends_with: 0, last_sent: 0, last_least, least, samples: 0 }
    }

    /// An acknowledgement has come, with a round-trip time if it acknowledged something new.
    fn handle_acknowledgement(&mut self, sample: Option<Duration>, largest: Option<u64>) {
        if self.phase == Phase::Over {
            return;
        }
        if let Some(sample) = sample {
            self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
            self.samples += 1;
            self.judge();
        }
        if largest.is_some_and(|largest| largest >= self.ends_with) {
            self.begin_round();
        }
    }

    fn judge(&mut self) {
        let Some(least) = self.least.filter(|_| self.samples >= SAMPLES) else { return };
        match (self.phase, self.last_least) {
            (Phase::SlowStart, Some(last_least)) => {
                let grown =
                    (last_least / THRESHOLD_DIVISOR).clamp(LEAST_THRESHOLD, GREATEST_THRESHOLD);
                if least >= last_least + grown {
                    self.phase = Phase::Conservative { baseline: least, rounds: 0 };
                }
            }
            (Phase::Conservative { baseline, .. }, _) if least < baseline => {
                self.phase = Phase::SlowStart;
            }
            _ => {}
        }
    }

    fn begin_round(&mut self) {
        self.ends_with = self.last_sent + 1;
        self.last_least = self.least.take();
        self.samples = 0;
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
            if *rounds >= CONSERVATIVE_ROUNDS {
                self.phase = Phase::Over;
            }
        }
    }
}

/// Makes CUBIC with HyStart++.
#[derive(Clone, Debug, Default)]
pub(super) struct HystartConfig {
    pub(super) cubic: CubicConfig,
}

impl ControllerFactory for HystartConfig {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let cubic = Arc::new(self.cubic.clone()).build(now, mtu);
        let initial_window = cubic.initial_window();
        Box::new(Hystart {
            cubic,
            initial_window,
            mtu,
            rounds: Rounds::new(),
            sample: None,
            left: false,
        })
    }
}

struct Hystart {
    cubic: Box<dyn Controller>,
    initial_window: u64,
    mtu: u16,
    rounds: Rounds,
    /// The least round-trip time of the packets that one acknowledgement told of.
    sample: Option<Duration>,
    /// Whether CUBIC knows that slow start is over.
    left: bool,
}

impl Controller for Hystart {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.rounds.last_sent = self.rounds.last_sent.max(last_packet_number);
        self.cubic.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        if !self.left {
            let sample = now.saturating_duration_since(sent);
            self.sample = Some(self.sample.map_or(sample, |least| least.min(sample)));
        }
        let grows = match self.rounds.phase {
            Phase::Conservative { .. } => bytes / GROWTH_DIVISOR,
            Phase::SlowStart => bytes,
            Phase::Over => {
                if !self.left {
                    self.cubic = in_avoidance(self.cubic.window(), now, self.mtu, rtt);
                    self.left = true;
                }
                bytes
            }
        };
        self.cubic.on_ack(now, sent, grows, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.rounds.handle_acknowledgement(self.sample.take(), largest_packet_num_acked);
        self.cubic.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        // CUBIC leaves slow start by itself; only the first one is watched.
        self.rounds.phase = Phase::Over;
        self.left = true;
        self.cubic.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.cubic.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.cubic.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.cubic.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let cubic = self.cubic.clone_box();
        Box::new(Self { cubic, rounds: self.rounds.clone(), ..*self })
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// CUBIC with this window, at the end of slow start: its threshold is its window (RFC 9406, section
/// 4.2; RFC 9438, section 4.8).
///
/// Persistent congestion cuts the threshold to 0.7 of 0.7 of the window, and forgets when congestion
/// was; from the least window it is at the threshold by one acknowledgement.
fn in_avoidance(window: u64, now: Instant, mtu: u16, rtt: &RttEstimator) -> Box<dyn Controller> {
    let mut cubic = above(window, now, mtu);
    let missing = threshold(&*cubic).saturating_sub(cubic.window());
    cubic.on_ack(now, now, missing, false, rtt);
    cubic
}

/// CUBIC with the least window and a threshold of `window`.
fn above(window: u64, now: Instant, mtu: u16) -> Box<dyn Controller> {
    let mut config = CubicConfig::default();
    // Both cuts round down.
    config.initial_window((window as f64 / 0.49).ceil() as u64 + 4);
    let mut cubic = Arc::new(config).build(now, mtu);
    cubic.on_congestion_event(now, now, true, 0);
    cubic
}

fn threshold(cubic: &dyn Controller) -> u64 {
    cubic.metrics().ssthresh.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Rounds of ten packets, each acknowledged by itself after this time.
    fn round(rounds: &mut Rounds, rtt: Duration) {
        let first = rounds.last_sent + 1;
        rounds.last_sent += 10;
        for number in first..first + 10 {
            rounds.handle_acknowledgement(Some(rtt), Some(number));
        }
    }

    #[test]
    fn slow_start_lasts_while_round_trips_stay_as_they_are() {
        let mut rounds = Rounds::new();
        for extra in 0..20 {
            round(&mut rounds, 40 * MS + extra * MS / 8);
            assert_eq!(rounds.phase, Phase::SlowStart);
        }
    }

    #[test]
    fn round_trips_that_grow_end_it_after_five_rounds() {
        let mut rounds = Rounds::new();
        round(&mut rounds, 40 * MS);
        round(&mut rounds, 40 * MS);
        assert_eq!(rounds.phase, Phase::SlowStart);
        // An eighth of 40 ms is 5 ms.
        round(&mut rounds, 45 * MS);
        assert!(matches!(rounds.phase, Phase::Conservative { .. }), "{rounds:?}");
        // Each round begins with the first acknowledgement of its packets.
        for _ in 0..5 {
            assert_ne!(rounds.phase, Phase::Over);
            round(&mut rounds, 46 * MS);
        }
        assert_eq!(rounds.phase, Phase::Over);
    }

    #[test]
    fn a_round_trip_time_that_falls_again_resumes_it() {
        let mut rounds = Rounds::new();
        round(&mut rounds, 40 * MS);
        round(&mut rounds, 50 * MS);
        assert!(matches!(rounds.phase, Phase::Conservative { .. }), "{rounds:?}");
        round(&mut rounds, 41 * MS);
        assert_eq!(rounds.phase, Phase::SlowStart);
    }

    #[test]
    fn few_samples_and_small_growth_say_nothing() {
        let mut rounds = Rounds::new();
        round(&mut rounds, 4 * MS);
        // The least threshold is 4 ms, however short the path.
        round(&mut rounds, 7 * MS);
        assert_eq!(rounds.phase, Phase::SlowStart);
        for _ in 0..SAMPLES - 1 {
            rounds.handle_acknowledgement(Some(90 * MS), None);
        }
        assert_eq!(rounds.phase, Phase::SlowStart);
    }

    #[test]
    fn cubic_comes_to_stand_at_its_threshold() {
        for window in [14_720_u64, 100_000, 1_234_567, 900_000_000] {
            let cubic = above(window, Instant::now(), 1452);
            let threshold = threshold(&*cubic);
            assert!((window..window + 5).contains(&threshold), "{threshold} for {window}");
            assert_eq!(cubic.window(), 2 * 1452);
        }
    }
}
