use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const MILLISECOND_NS: u64 = 1_000_000;
const START_NS: u64 = 1_000_000_000_000;

/// The number of a datagram, and when it came.
type Arrival = (u64, u64);
/// Frames completed, late and dropped; bursts of losses, and the longest.
type Outcome = ([u64; 3], (u64, u64));

fn frames(per_s: u32, datagrams: u32, depth_ms: u64) -> Frames {
    Frames { per_s, datagrams, buffer_depth_ns: depth_ms * MILLISECOND_NS, first_ns: 0 }
}

/// The rules word by word: arrivals of measured datagrams in their order.
fn expected(frames: Frames, arrivals: &[(u64, u64)]) -> Outcome {
    let n = u64::from(frames.datagrams);
    let Some((first, first_ns)) = arrivals.first() else { return Default::default() };
    let first_playout_ns = first_ns + frames.buffer_depth_ns;
    let mut came: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let [mut completed, mut late] = [0; 2];
    for (seq, at_ns) in arrivals {
        let places = came.entry(seq / n).or_default();
        if places.insert(seq % n) && places.len() as u64 == n {
            let playout_ns = first_playout_ns + frames.due_ns(seq / n) - frames.due_ns(first / n);
            completed += u64::from(*at_ns <= playout_ns);
            late += u64::from(*at_ns > playout_ns && *at_ns <= playout_ns + LATE_NS);
        }
    }
    let last = *came.keys().last().unwrap();
    let mut runs = Vec::new();
    let mut run = 0;
    for seq in 0..(last + 1) * n {
        if came.get(&(seq / n)).is_some_and(|places| places.contains(&(seq % n))) {
            runs.extend((run > 0).then_some(run));
            run = 0;
        } else {
            run += 1;
        }
    }
    runs.extend((run > 0).then_some(run));
    let longest = runs.iter().copied().max().unwrap_or(0);
    ([completed, late, last + 1 - completed - late], (runs.len() as u64, longest))
}

fn tracked(frames: Frames, arrivals: &[(u64, u64)]) -> Outcome {
    let mut tracker = FrameTracker::new(frames);
    arrivals.iter().for_each(|(seq, at_ns)| tracker.record(*seq, *at_ns, false));
    tracker.finish();
    let counts = tracker.counts();
    let of = |count: Option<u64>| count.unwrap();
    let kinds = [of(counts.completed), of(counts.late), of(counts.dropped)];
    (kinds, tracker.loss_bursts())
}

/// 10 frames of 4 datagrams, 50 a second: each datagram when its frame is due.
fn stream() -> Vec<(u64, u64)> {
    (0..40).map(|seq| (seq, START_NS + seq / 4 * 20 * MILLISECOND_NS)).collect()
}

#[test]
fn frames_are_told_apart_by_when_they_are_complete() {
    let late_by = |ms: u64, seq: u64| {
        let mut arrivals = stream();
        arrivals.iter_mut().filter(|(s, _)| *s == seq).for_each(|a| a.1 += ms * MILLISECOND_NS);
        arrivals.sort_by_key(|(_, at_ns)| *at_ns);
        arrivals
    };
    let without = |lost: &[u64]| {
        stream().into_iter().filter(|(seq, _)| !lost.contains(seq)).collect::<Vec<_>>()
    };
    let twice = |seq: usize| {
        let mut arrivals = stream();
        arrivals.insert(seq, arrivals[seq]);
        arrivals
    };
    let table: [(Vec<Arrival>, Outcome); 11] = [
        (stream(), ([10, 0, 0], (0, 0))),
        (late_by(100, 22), ([10, 0, 0], (0, 0))),
        (late_by(101, 22), ([9, 1, 0], (0, 0))),
        (late_by(1_100, 22), ([9, 1, 0], (0, 0))),
        (late_by(1_101, 22), ([9, 0, 1], (0, 0))),
        (without(&[5]), ([9, 0, 1], (1, 1))),
        (without(&[5, 7, 8, 9]), ([8, 0, 2], (2, 3))),
        (without(&[36, 37, 38, 39]), ([9, 0, 0], (0, 0))),
        // What comes twice makes up for nothing.
        (twice(9), ([10, 0, 0], (0, 0))),
        ([twice(9), without(&[10])].concat(), ([10, 0, 0], (0, 0))),
        (without(&(0..24).collect::<Vec<_>>()), ([4, 0, 6], (1, 24))),
    ];
    for (arrivals, outcome) in table {
        assert_eq!(tracked(frames(50, 4, 100), &arrivals), outcome, "{arrivals:?}");
    }
}

#[test]
fn frames_of_the_warm_up_are_left_out() {
    let mut tracker = FrameTracker::new(frames(50, 4, 100));
    for (seq, at_ns) in stream() {
        if seq != 2 && seq != 30 {
            tracker.record(seq, at_ns, seq < 20);
        }
    }
    tracker.finish();
    let counts = tracker.counts();
    assert_eq!((counts.completed, counts.late, counts.dropped), (Some(4), Some(0), Some(1)));
    assert_eq!(tracker.loss_bursts(), (1, 1));
}

#[test]
fn frames_of_a_warm_up_that_is_lost_are_left_out() {
    for (is_expected, dropped) in [(true, 0), (false, 5)] {
        let mut tracker = FrameTracker::new(frames(50, 4, 100));
        if is_expected {
            tracker.expect_warm_up();
        }
        for (seq, at_ns) in stream().into_iter().skip(20) {
            tracker.record(seq, at_ns, false);
        }
        tracker.finish();
        let counts = tracker.counts();
        assert_eq!((counts.completed, counts.dropped), (Some(5), Some(dropped)));
        assert_eq!(tracker.loss_bursts().1, dropped * 4);
    }
}

#[test]
fn any_numbers_are_counted_without_a_panic() {
    for datagrams in [1, 64, 65, 32_768] {
        let mut tracker = FrameTracker::new(frames(100, datagrams, 0));
        for seq in [0, u64::MAX, 5, u64::MAX / 2, u64::MAX, u64::MAX - 1] {
            for at_ns in [0, u64::MAX, 1] {
                tracker.record(seq, at_ns, false);
            }
        }
        tracker.finish();
        assert!(tracker.counts().dropped.unwrap() > 0);
    }
}

#[test]
fn the_least_delay_is_of_the_last_seconds() {
    let mut delays = DelayVariation::default();
    // The sender's clock is far ahead: the differences go through zero.
    let mut at = |sent_ms: u64, took_ms: i64| {
        let sent_ns = sent_ms * MILLISECOND_NS;
        let received_ns = (START_NS + sent_ns).wrapping_add_signed(took_ms * 1_000_000);
        delays.record(sent_ns.wrapping_add(1 << 62), received_ns) / MILLISECOND_NS
    };
    assert_eq!(at(0, 5), 0);
    assert_eq!(at(10, 7), 2);
    assert_eq!(at(20, 4), 0);
    assert_eq!(at(30, 5), 1);
    // The one of 4 ms is still that of the time before.
    assert_eq!(at(12_000, 10), 6);
    assert_eq!(at(25_000, 11), 1);
    assert_eq!(at(40_000, 9), 0);
}

proptest! {
    #[test]
    fn frames_agree_with_their_definition(
        datagrams in 1_u32..100,
        per_s in 1_u32..60,
        depth_ms in 0_u64..300,
        fates in prop::collection::vec((0_u64..10, 0_u64..1_500), 1..300),
    ) {
        let frames = frames(per_s, datagrams, depth_ms);
        let mut arrivals = Vec::new();
        for (seq, (fate, delay_ms)) in (0_u64..).zip(fates) {
            let due_ns = START_NS + frames.due_ns(seq / u64::from(datagrams));
            // One in ten is lost, one delayed, one comes twice.
            let copies: &[u64] = match fate {
                0 => &[],
                1 => &[delay_ms],
                2 => &[0, delay_ms],
                _ => &[0],
            };
            arrivals.extend(copies.iter().map(|ms| (seq, due_ns + ms * MILLISECOND_NS)));
        }
        arrivals.sort_by_key(|(_, at_ns)| *at_ns);
        // What comes after it left the window is the one thing that the definition doesn't know.
        let window = frames.window();
        let mut newest = 0;
        arrivals.retain(|(seq, _)| {
            let frame = seq / u64::from(datagrams);
            newest = newest.max(frame);
            newest - frame + 2 < window
        });
        prop_assert_eq!(tracked(frames, &arrivals), expected(frames, &arrivals));
    }

    #[test]
    fn delay_variation_is_the_delay_over_the_least(took_ns in prop::collection::vec(0_u64..1_000_000, 1..200)) {
        let mut delays = DelayVariation::default();
        let mut least_ns = u64::MAX;
        for (sent_ns, took_ns) in (0..).step_by(1000).zip(took_ns) {
            least_ns = least_ns.min(took_ns);
            prop_assert_eq!(delays.record(sent_ns, START_NS + sent_ns + took_ns), took_ns - least_ns);
        }
    }
}
