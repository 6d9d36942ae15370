//! The rules on a run's intervals as a series: whether the rate was steady, and whether the clock was set meanwhile.

use super::gate::{at_ns, told};
use super::{Reason, ReasonCode, ReasonUnit};
use crate::plan::Direction;
use crate::sample::{Role, Sample};
use crate::steady::{CHANGED_BY, RateChange, Steadiness};
use crate::units::{render_count, render_duration_ns, render_rate};

/// A clock is held to have been set if it jumped by more than this, and by more than a clock may be slewed meanwhile.
const CLOCK_STEP_NS: i64 = 10_000_000;
/// The most that a clock is slewed by (adjtimex(2)). On Linux a slew moves the time of day and the monotonic clock alike;
/// on systems where only the time of day is slewed, this share of the time is no step.
const SLEWED_PPM: i64 = 500;
/// The readings on either side of which the middle one counts: a thread may lose its processor between reading two
/// clocks.
const READINGS: usize = 3;

/// A reason for each direction whose rate was not steady.
pub(super) fn not_steady(steadiness: &[Steadiness]) -> impl Iterator<Item = Reason> {
    steadiness.iter().filter_map(|one| match (one.warm_up_ns, one.change) {
        (None, _) => Some(Reason {
            way_out: Some("measure for longer".to_owned()),
            ..told(ReasonCode::NotSteady, format!("the rate{} rose for most of the run", way(one)))
        }),
        (Some(_), Some(change)) => Some(changed(one, change)),
        (Some(_), None) => None,
    })
}

fn changed(one: &Steadiness, change: RateChange) -> Reason {
    let RateChange { at_ns: changed_ns, before, after } = change;
    let render = |rate: f64| match one.direction {
        Some(_) => render_rate(rate),
        None => format!("{}/s", render_count(rate)),
    };
    let receiver = if one.direction == Some(Direction::Up) { Role::Server } else { Role::Client };
    Reason {
        end: Some(receiver),
        at_ns: Some(changed_ns),
        value: Some((after - before).abs() / before.max(after)),
        limit: Some(CHANGED_BY),
        unit: Some(ReasonUnit::Ratio),
        way_out: Some("look for what changed then, and measure the two parts apart".to_owned()),
        ..told(
            ReasonCode::NotSteady,
            format!(
                "the rate{} changed from {} to {} at {}",
                way(one),
                render(before),
                render(after),
                at_ns(changed_ns)
            ),
        )
    }
}

/// The direction, where a rate has one.
fn way(one: &Steadiness) -> &'static str {
    match one.direction {
        Some(Direction::Up) => " up",
        Some(Direction::Down) => " down",
        Some(Direction::Both) | None => "",
    }
}

/// The largest jump of an end's time of day against the clock that it measures by.
pub(super) fn clock_step(samples: &[Sample], role: Role) -> Option<Reason> {
    // Those without a time of day are of an end that doesn't tell it.
    let tells = |sample: &&Sample| sample.role == role && sample.utc_ns != 0;
    let mut of_end: Vec<&Sample> = samples.iter().filter(tells).collect();
    of_end.sort_by_key(|sample| sample.to_ns);
    let apart = |sample: &&Sample| {
        sample.utc_ns.saturating_sub(i64::try_from(sample.to_ns).unwrap_or(i64::MAX))
    };
    let readings: Vec<i64> = of_end.iter().map(apart).collect();
    let steps = readings.windows(2 * READINGS).enumerate().filter_map(|(first, window)| {
        let (before, after) = window.split_at(READINGS);
        let step = middle(after)?.saturating_sub(middle(before)?);
        let next = of_end.get(first + READINGS)?;
        let passed_ns = of_end.get(first + 2 * READINGS - 1)?.to_ns - of_end.get(first)?.to_ns;
        let passed_ns = i64::try_from(passed_ns).unwrap_or(i64::MAX);
        let slewed = passed_ns.saturating_mul(SLEWED_PPM) / 1_000_000;
        // Of places beside each other that have the same middles the one where the jump is.
        let jump = after.first()?.saturating_sub(*before.last()?).saturating_abs();
        let is_step = step.saturating_abs() > slewed.saturating_add(CLOCK_STEP_NS);
        is_step.then_some((step.saturating_abs(), jump, step, next))
    });
    let (.., step, next) = steps.max_by_key(|(size, jump, ..)| (*size, *jump))?;
    let (end, by_ns) = (role.name(), step.unsigned_abs());
    // A monotonic clock stands still while its machine sleeps.
    let (way, or_else) =
        if step < 0 { ("back", "") } else { ("forward", ", or the machine slept,") };
    Some(Reason {
        end: Some(role),
        at_ns: Some(next.from_ns),
        value: Some(by_ns as f64 / 1e9),
        limit: Some(CLOCK_STEP_NS as f64 / 1e9),
        unit: Some(ReasonUnit::S),
        way_out: Some("times of day before and after don't fit together: measure again".to_owned()),
        ..told(
            ReasonCode::Clock,
            format!(
                "the {end}'s clock was set {way} by {}{or_else} at {}",
                render_duration_ns(by_ns),
                at_ns(next.from_ns)
            ),
        )
    })
}

fn middle(values: &[i64]) -> Option<i64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::next_word;

    const SECOND_NS: u64 = 1_000_000_000;

    fn steadiness(warm_up_ns: Option<u64>, change: Option<RateChange>) -> Steadiness {
        Steadiness {
            name: "goodput_bps".to_owned(),
            direction: Some(Direction::Up),
            intervals: 100,
            warm_up_ns,
            rate: 1e6,
            varied_by: None,
            change,
        }
    }

    #[test]
    fn a_rate_that_is_not_steady_is_a_reason_for_doubt() {
        let change = RateChange { at_ns: 6 * SECOND_NS, before: 95e6, after: 48e6 };
        let all = [
            steadiness(Some(0), None),
            steadiness(None, None),
            steadiness(Some(5), Some(change)),
            Steadiness {
                direction: None,
                ..steadiness(Some(0), Some(RateChange { before: 1e3, after: 2e3, ..change }))
            },
        ];
        let reasons: Vec<Reason> = not_steady(&all).collect();
        let texts: Vec<&str> = reasons.iter().map(|reason| reason.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "the rate up rose for most of the run",
                "the rate up changed from 95.0 Mbit/s to 48.0 Mbit/s at 6.0 s",
                "the rate changed from 1.00k/s to 2.00k/s at 6.0 s",
            ]
        );
        assert_eq!((reasons[1].end, reasons[1].at_ns), (Some(Role::Server), Some(6 * SECOND_NS)));
        assert_eq!((reasons[2].value, reasons[2].limit), (Some(0.5), Some(0.25)));
    }

    /// Samples a second long, whose times of day are off by so much each.
    fn samples(offsets_ns: &[i64]) -> Vec<Sample> {
        let sample = |(place, offset_ns): (u64, &i64)| Sample {
            from_ns: place * SECOND_NS,
            to_ns: (place + 1) * SECOND_NS,
            utc_ns: 1_700_000_000_000_000_000 + ((place + 1) * SECOND_NS) as i64 + offset_ns,
            ..Sample::nothing(Role::Client)
        };
        (0..).zip(offsets_ns).map(sample).collect()
    }

    #[test]
    fn a_clock_that_was_set_is_a_reason_for_doubt() {
        let forward = [0, 0, 0, 0, 5_200_000_000, 5_200_000_000, 5_200_000_000, 5_200_000_000];
        let reason = clock_step(&samples(&forward), Role::Client).unwrap();
        assert_eq!(
            reason.text,
            "the client's clock was set forward by 5.20 s, or the machine slept, at 4.0 s"
        );
        assert_eq!((reason.value, reason.at_ns), (Some(5.2), Some(4 * SECOND_NS)));
        let back: Vec<i64> = forward.iter().map(|offset| -offset).collect();
        let reason = clock_step(&samples(&back), Role::Client).unwrap();
        assert!(reason.text.contains("was set back by 5.20 s at"), "{reason:?}");
        assert_eq!(clock_step(&samples(&forward), Role::Server), None);
    }

    #[test]
    fn clocks_that_are_slewed_or_read_late_are_no_reason() {
        // 500 ppm, and a thread that lost its processor between two readings.
        let slewed: Vec<i64> = (0..100).map(|place| place * 500_000).collect();
        assert_eq!(clock_step(&samples(&slewed), Role::Client), None);
        let mut state = 7;
        for _ in 0..1_000 {
            let late: Vec<i64> = (0..60)
                .map(|_| match next_word(&mut state) % 40 {
                    0 => (next_word(&mut state) % 200_000_000) as i64,
                    _ => (next_word(&mut state) % 100_000) as i64,
                })
                .collect();
            let alone = late
                .windows(3)
                .all(|three| three.iter().filter(|late_ns| **late_ns > 1_000_000).count() < 2);
            assert!(!alone || clock_step(&samples(&late), Role::Client).is_none(), "{late:?}");
        }
        assert_eq!(clock_step(&samples(&[0; 5]), Role::Client), None);
        assert_eq!(
            clock_step(&samples(&[i64::MIN / 2, 0, 0, 0, i64::MAX / 2, 7, 7]), Role::Client),
            None
        );
    }
}
