use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// The rules of [`SequenceTracker`] word by word, with memory without bound.
#[derive(Default)]
struct Model {
    seen: HashSet<u64>,
    next_expected: u64,
    arrived: u64,
    received: u64,
    duplicated: u64,
    reordered: u64,
    late: u64,
    transits: Vec<i64>,
}

impl Model {
    fn record(&mut self, seq: u64, sent_ns: u64, received_ns: u64, warm_up: bool) {
        let one = u64::from(!warm_up);
        let behind = u128::from(self.next_expected).saturating_sub(u128::from(seq));
        if seq == u64::MAX || behind > u128::from(WINDOW_DATAGRAMS) {
            self.late += one;
        } else if !self.seen.insert(seq) {
            self.duplicated += one;
        } else {
            self.arrived += 1;
            self.received += one;
            if seq >= self.next_expected {
                self.next_expected = seq + 1;
            } else {
                self.reordered += one;
            }
            if !warm_up {
                self.transits.push(received_ns.wrapping_sub(sent_ns) as i64);
            }
        }
    }

    fn jitter_ns(&self) -> Option<f64> {
        let changes = self.transits.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
        (self.transits.len() >= 2).then(|| {
            changes.fold(0.0, |j, change| {
                j + (change.unsigned_abs().min(Jitter::MAX_CHANGE_NS) as f64 - j) / 16.0
            })
        })
    }
}

fn assert_agrees(tracker: &SequenceTracker, model: &Model) {
    let counts = tracker.counts(None, None);
    assert_eq!(counts.received, Some(model.received), "received");
    assert_eq!(counts.duplicated, Some(model.duplicated), "duplicated");
    assert_eq!(counts.reordered, Some(model.reordered), "reordered");
    assert_eq!(counts.late, Some(model.late), "late");
    assert_eq!(tracker.arrived(), model.arrived, "arrived");
    match (tracker.jitter_ns(), model.jitter_ns()) {
        (Some(ours), Some(theirs)) => {
            assert!((ours - theirs).abs() <= theirs * 1e-9 + 0.1, "{ours} {theirs}");
        }
        (ours, theirs) => assert_eq!(ours, theirs),
    }
}

fn tracker_of(numbers: impl IntoIterator<Item = u64>) -> SequenceTracker {
    let mut tracker = SequenceTracker::new();
    numbers.into_iter().for_each(|seq| tracker.record(seq, seq, seq, false));
    tracker
}

#[test]
fn in_order_is_only_received() {
    let counts = tracker_of(0..200_000).counts(Some(200_010), Some(3));
    assert_eq!(
        counts,
        DatagramCounts {
            sent: Some(200_010),
            refused: None,
            received: Some(200_000),
            lost: Some(10),
            loss_events: Some(1),
            duplicated: Some(0),
            reordered: Some(0),
            late: Some(0),
            dropped_by_socket: Some(3),
            ..DatagramCounts::default()
        }
    );
}

#[test]
fn the_example_of_rfc_4737() {
    // Section 7.1 orders 1,2,3,4,5,6,7,8,9,10 as 1,2,3,5,6,7,8,4,9,10: one reordered.
    let counts = tracker_of([0, 1, 2, 4, 5, 6, 7, 3, 8, 9]).counts(Some(10), None);
    assert_eq!((counts.reordered, counts.lost), (Some(1), Some(0)));
}

#[test]
fn without_the_sender_losses_show_up_to_the_newest() {
    assert_eq!(tracker_of([0, 1, 5]).counts(None, None).lost, Some(3));
    assert_eq!(tracker_of([]).counts(None, None).lost, Some(0));
    assert_eq!(tracker_of([]).counts(Some(7), None).lost, Some(7));
}

#[test]
fn more_received_than_sent_is_not_a_negative_loss() {
    assert_eq!(tracker_of(0..10).counts(Some(4), None).lost, Some(0));
}

#[test]
fn warm_up_leaves_no_count_behind() {
    let mut tracker = SequenceTracker::new();
    (0..100).for_each(|seq| tracker.record(seq, 0, seq * seq, true));
    assert_eq!(tracker.counts(Some(0), None).received, Some(0));
    assert_eq!(tracker.jitter_ns(), None);
    [100, 101, 103, 99].iter().for_each(|seq| tracker.record(*seq, 0, 0, false));
    let counts = tracker.counts(None, None);
    assert_eq!((counts.received, counts.lost, counts.duplicated), (Some(3), Some(1), Some(1)));
}

#[test]
fn behind_the_window_is_late_and_at_its_edge_is_not() {
    let mut tracker = tracker_of([WINDOW_DATAGRAMS]);
    tracker.record(0, 0, 0, false);
    tracker.record(1, 0, 0, false);
    tracker.record(1, 0, 0, false);
    let counts = tracker.counts(None, None);
    assert_eq!((counts.late, counts.reordered, counts.duplicated), (Some(1), Some(1), Some(1)));
}

#[test]
fn jumps_to_the_end_neither_hang_nor_panic() {
    let numbers = [0, u64::MAX, u64::MAX - 1, u64::MAX - 1, u64::MAX - 2, 5, u64::MAX];
    let mut tracker = tracker_of(numbers);
    tracker.record_run(u64::MAX - 3, 8, 0, u64::MAX, false);
    tracker.record_run(0, 0, 0, 0, false);
    let mut model = Model::default();
    numbers.iter().for_each(|seq| model.record(*seq, *seq, *seq, false));
    (u64::MAX - 3..=u64::MAX).for_each(|seq| model.record(seq, 0, u64::MAX, false));
    // Numbers past the last one are late as the last one is.
    model.late += 4;
    assert_agrees(&tracker, &model);
    assert!(tracker.counts(None, None).lost.unwrap() > u64::MAX / 2);
}

#[test]
fn jitter_converges_to_a_steady_change() {
    let mut tracker = SequenceTracker::new();
    // Transit times 0, 1000, 0, 1000, ...: every change is 1000.
    (0..1000).for_each(|seq| tracker.record(seq, seq * 100, seq * 100 + seq % 2 * 1000, false));
    assert!((tracker.jitter_ns().unwrap() - 1000.0).abs() < 0.1);
}

#[test]
fn loss_events_are_runs_of_lost_numbers() {
    let events =
        |numbers: &[u64], sent| tracker_of(numbers.iter().copied()).counts(sent, None).loss_events;
    assert_eq!(events(&[0, 1, 2, 3], Some(4)), Some(0));
    assert_eq!(events(&[0, 1, 5, 6, 8], Some(9)), Some(2));
    // The first, and the last.
    assert_eq!(events(&[2, 3], Some(9)), Some(2));
    assert_eq!(events(&[], Some(9)), Some(1));
    assert_eq!(events(&[], None), Some(0));
    // What comes late splits a run, shortens it, or ends it.
    assert_eq!(events(&[0, 6, 3], None), Some(2));
    assert_eq!(events(&[0, 6, 1], None), Some(1));
    assert_eq!(events(&[0, 6, 5], None), Some(1));
    assert_eq!(events(&[0, 6, 5, 1, 3, 2, 4], None), Some(0));
}

#[test]
fn loss_events_of_the_warm_up_are_left_out() {
    let mut tracker = SequenceTracker::new();
    tracker.expect_warm_up();
    [0, 3, 9].iter().for_each(|seq| tracker.record(*seq, 0, 0, true));
    assert_eq!(tracker.loss_events(), 0);
    // Between the parts.
    tracker.record(12, 0, 0, false);
    assert_eq!(tracker.loss_events(), 0);
    tracker.record(14, 0, 0, false);
    assert_eq!(tracker.loss_events(), 1);
    // The measured part began earlier, with a gap behind it.
    tracker.record(10, 0, 0, false);
    assert_eq!(tracker.loss_events(), 2);
    tracker.record_run(20, 5, 0, 0, false);
    assert_eq!(tracker.loss_events(), 3);
}

/// Mostly in order, with gaps, repeats, steps back and the odd jump.
fn steps() -> impl Strategy<Value = Vec<(i64, u64, u64, bool)>> {
    let step = prop_oneof![
        8 => Just(1_i64),
        2 => -100..100_i64,
        1 => -70_000..70_000_i64,
        1 => any::<i64>(),
    ];
    let time = prop_oneof![4 => 0..1_000_000_u64, 1 => any::<u64>()];
    proptest::collection::vec((step, time.clone(), time, proptest::bool::weighted(0.2)), 0..400)
}

proptest! {
    #[test]
    fn agrees_with_the_model(start in prop_oneof![Just(0_u64), any::<u64>()], steps in steps()) {
        let (mut tracker, mut model) = (SequenceTracker::new(), Model::default());
        let mut seq = start;
        for (step, sent_ns, received_ns, warm_up) in steps {
            tracker.record(seq, sent_ns, received_ns, warm_up);
            model.record(seq, sent_ns, received_ns, warm_up);
            seq = seq.saturating_add_signed(step);
        }
        assert_agrees(&tracker, &model);
    }

    #[test]
    fn a_run_is_as_many_single_records(
        runs in proptest::collection::vec((-300..300_i64, 0..200_u32, 0..1_000_u64, any::<bool>()), 0..40),
        jump in prop_oneof![Just(0_u64), Just(200_000), Just(u64::MAX - 5_000)],
    ) {
        let (mut tracker, mut model) = (SequenceTracker::new(), Model::default());
        let mut first = 0_u64;
        for (place, (step, count, time, warm_up)) in runs.into_iter().enumerate() {
            tracker.record_run(first, count, time, time * 3, warm_up);
            for seq in (0..u64::from(count)).map(|offset| first.saturating_add(offset)) {
                model.record(seq, time, time * 3, warm_up);
            }
            assert_agrees(&tracker, &model);
            first = first.saturating_add(u64::from(count)).saturating_add_signed(step);
            if place == 20 {
                first = first.saturating_add(jump);
            }
        }
    }

    #[test]
    fn received_and_lost_add_up_to_what_was_sent(
        kept in proptest::collection::vec(any::<bool>(), 1..2000),
    ) {
        let numbers = kept.iter().enumerate().filter(|(_, kept)| **kept).map(|(seq, _)| seq as u64);
        let counts = tracker_of(numbers).counts(Some(kept.len() as u64), None);
        prop_assert_eq!(counts.received.unwrap() + counts.lost.unwrap(), kept.len() as u64);
    }
}

proptest! {
    /// However datagrams are swapped on the way, the runs at the end are those of the set that arrived.
    #[test]
    fn loss_events_depend_on_what_arrived_and_not_on_the_order(
        kept in proptest::collection::vec(proptest::bool::weighted(0.7), 1..400),
        swaps in proptest::collection::vec((any::<usize>(), any::<usize>()), 0..50),
        warm_up in 0..50_u64,
    ) {
        let mut numbers: Vec<u64> =
            (0..kept.len() as u64).filter(|&seq| kept[seq as usize]).collect();
        let count = numbers.len().max(1);
        for (a, b) in swaps.into_iter().filter(|_| count > 1) {
            numbers.swap(a % count, b % count);
        }
        let mut tracker = SequenceTracker::new();
        if warm_up > 0 {
            tracker.expect_warm_up();
        }
        numbers.iter().for_each(|&seq| tracker.record(seq, 0, 0, seq < warm_up));
        let first = numbers.iter().copied().filter(|&seq| seq >= warm_up).min();
        let first = if warm_up > 0 { first.unwrap_or(u64::MAX) } else { 0 };
        let after = numbers.iter().copied().filter(|&seq| seq >= warm_up).max().map_or(0, |seq| seq + 1);
        let lost = |seq: u64| (first..after).contains(&seq) && !kept[seq as usize];
        let events = (first..after).filter(|&seq| lost(seq) && !(seq > 0 && lost(seq - 1))).count();
        prop_assert_eq!(tracker.loss_events(), events as u64);
    }
}

proptest! {
    // Each case fills the model with a hundred thousand numbers.
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_long_run_fills_the_window(first in 0..100_000_u64, count in 60_000..140_000_u32, probe in 0..240_000_u64) {
        let (mut tracker, mut model) = (SequenceTracker::new(), Model::default());
        tracker.record_run(first, count, 0, 0, false);
        (first..first + u64::from(count)).for_each(|seq| model.record(seq, 0, 0, false));
        tracker.record(probe, 0, 0, false);
        model.record(probe, 0, 0, false);
        assert_agrees(&tracker, &model);
    }
}

#[test]
fn datagrams_that_were_only_overtaken_are_told_once() {
    let mut intervals = LossIntervals::default();
    // Two are overtaken in each interval and come in the next one; three are lost at last.
    let told: Vec<u64> = [2, 2, 0, 2, 2, 5, 3].map(|lost| intervals.next(lost)).into();
    assert_eq!(told, [2, 0, 0, 0, 0, 3, 0]);
    assert_eq!(LossIntervals::from(7).next(9), 2);
    let mut intervals = LossIntervals::from(u64::MAX);
    assert_eq!((intervals.next(0), intervals.next(u64::MAX)), (0, 0));
}
