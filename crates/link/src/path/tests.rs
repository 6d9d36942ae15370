//! The path under a virtual clock.

use linerate_measure::link::{BurstLoss, Corruption, Distribution, Jitter, Reorder};

use super::*;

const BYTES: usize = 1500;

/// What became of packets offered at these times, each with its number for a tag: number and time, in the order in which they came out.
fn carry(path: &mut Path, offered_ns: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut came = Vec::new();
    for (tag, at_ns) in (0_u32..).zip(offered_ns) {
        drain(path, at_ns, &mut came);
        let bytes = path.buffer();
        path.offer(at_ns, Packet { bytes, length: BYTES, tag });
    }
    drain(path, u64::MAX, &mut came);
    came
}

/// Lets the clock jump from event to event.
fn drain(path: &mut Path, until_ns: u64, came: &mut Vec<(u64, u64)>) {
    while let Some(next_ns) = path.next_time().filter(|next_ns| *next_ns <= until_ns) {
        while let Some(due) = path.take_due(next_ns) {
            let number = u64::from(due.packet.tag);
            assert!(due.due_ns <= next_ns);
            came.push((number, due.due_ns));
            path.recycle(due.packet.bytes);
        }
    }
}

fn path(direction: Direction, seed: u64) -> Path {
    Path::new(direction, seed, BYTES, false)
}

fn every(gap_ns: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| number * gap_ns)
}

/// Fails unless a count is within 4.5 standard deviations of the binomial distribution.
#[track_caller]
fn assert_binomial(what: &str, count: u64, of: u64, share: f64) {
    let (mean, deviation) = (of as f64 * share, (of as f64 * share * (1.0 - share)).sqrt());
    let off = (count as f64 - mean).abs();
    assert!(off <= 4.5 * deviation, "{what}: {count} of {of} is not {share}");
}

#[test]
fn a_delay_is_exact_and_nothing_else_happens() {
    let mut path = path(Direction { delay_ns: 290_000_001, ..Direction::default() }, 1);
    let came = carry(&mut path, every(1000, 1000));
    assert_eq!(came.len(), 1000);
    for (place, (number, at_ns)) in (0..).zip(came) {
        assert_eq!((number, at_ns), (place, place * 1000 + 290_000_001));
    }
}

#[test]
fn a_rate_is_exact_over_a_second() {
    for rate_bps in [1_000_000, 99_999_999, 1_000_000_007, 7_777_777_777] {
        let queue = Some(Amount::Packets(10));
        let mut path =
            path(Direction { rate_bps: Some(rate_bps), queue, ..Direction::default() }, 1);
        // Twice as much as the rate lets through.
        let gap_ns = BYTES as u64 * 8 * SECOND_NS / rate_bps / 2;
        let count = SECOND_NS / gap_ns;
        let came = carry(&mut path, every(gap_ns, count));
        let in_time = came.iter().filter(|(_, at_ns)| *at_ns <= SECOND_NS).count() as u64;
        let bits = in_time * BYTES as u64 * 8;
        assert!(bits <= rate_bps && bits + 2 * BYTES as u64 * 8 > rate_bps, "{bits} at {rate_bps}");
        let lost = path.counters().lost_in_queue;
        assert_eq!(lost + came.len() as u64, count);
        // No nanosecond is lost between packets: the n-th ends at n packets' time, rounded down.
        for (place, (_, at_ns)) in (1_u128..).zip(&came) {
            let exact_ns = place * BYTES as u128 * 8 * u128::from(SECOND_NS) / u128::from(rate_bps);
            assert_eq!(u128::from(*at_ns), exact_ns);
        }
    }
}

#[test]
fn a_queue_holds_what_it_says_beside_the_packet_that_is_sent() {
    for queue in [Amount::Packets(5), Amount::Bytes(5 * BYTES as u64)] {
        let direction =
            Direction { rate_bps: Some(1_000_000), queue: Some(queue), ..Direction::default() };
        let mut path = path(direction, 1);
        let came = carry(&mut path, [0; 20]);
        assert_eq!(came.len(), 6, "{queue:?}");
        assert_eq!(path.counters().lost_in_queue, 14);
    }
}

#[test]
fn loss_is_binomial_and_its_rows_can_be_limited() {
    for share in [0.001, 0.1, 0.5] {
        let mut path = path(Direction { loss: share, ..Direction::default() }, 3);
        carry(&mut path, every(1, 100_000));
        assert_binomial("lost", path.counters().lost_at_random, 100_000, share);
    }
    let direction = Direction { loss: 0.9, losses_in_a_row_max: Some(3), ..Direction::default() };
    let came = carry(&mut path(direction, 3), every(1, 10_000));
    assert!(came.windows(2).all(|pair| pair[1].0 - pair[0].0 <= 4));
    assert!(came.windows(2).any(|pair| pair[1].0 - pair[0].0 == 4));
}

#[test]
fn bursts_of_loss_have_their_mean_length_and_share() {
    let model = BurstLoss { enter: 0.01, leave: 0.25, loss_good: 0.0, loss_bad: 1.0 };
    let direction = Direction { burst_loss: Some(model), ..Direction::default() };
    let count = 400_000;
    let came = carry(&mut path(direction, 5), every(1, count));
    let gaps = came.windows(2).map(|pair| pair[1].0 - pair[0].0 - 1);
    let bursts: Vec<u64> = gaps.filter(|gap| *gap > 0).collect();
    let mean = bursts.iter().sum::<u64>() as f64 / bursts.len() as f64;
    // A geometric length of mean 4 has variance 12; some 3,800 bursts.
    let error = (12.0 / bursts.len() as f64).sqrt();
    assert!((mean - 4.0).abs() < 4.5 * error, "bursts of {mean}");
    let lost = (count - came.len() as u64) as f64 / count as f64;
    assert!((lost - model.mean_loss()).abs() < 0.004, "{lost} for {}", model.mean_loss());
}

#[test]
fn the_same_seed_gives_the_same_fates_whenever_packets_come() {
    let direction = Direction {
        delay_ns: 10_000_000,
        loss: 0.1,
        duplicate: 0.1,
        reorder: Some(Reorder { share: 0.1, by_ns: 5_000_000 }),
        corrupt: Some(Corruption {
            bit_error_rate: Some(1e-4),
            packets: None,
            repair_checksums: false,
            least_packet_bytes: 0,
        }),
        ..Direction::default()
    };
    let fates = |seed, gap_ns| {
        let mut path = path(direction.clone(), seed);
        let came = carry(&mut path, every(gap_ns, 5000));
        let mut late: Vec<(u64, bool)> = came
            .iter()
            .map(|(number, at_ns)| (*number, at_ns - number * gap_ns > 10_000_000))
            .collect();
        late.sort_unstable();
        (late, path.into_flips())
    };
    assert_eq!(fates(1, 10_000_000), fates(1, 20_000_000));
    assert_ne!(fates(1, 10_000_000), fates(2, 10_000_000));
}

#[test]
fn jitter_keeps_the_order_unless_it_may_not() {
    for distribution in [Distribution::Uniform, Distribution::Normal, Distribution::Pareto] {
        for may_reorder in [false, true] {
            let jitter = Jitter { width_ns: 5_000_000, distribution, may_reorder };
            let direction =
                Direction { delay_ns: 20_000_000, jitter: Some(jitter), ..Direction::default() };
            let mut path = path(direction, 1);
            let came = carry(&mut path, every(100_000, 20_000));
            assert_eq!(came.len(), 20_000);
            assert_eq!(path.counters().reordered > 0, may_reorder, "{distribution:?}");
            if may_reorder {
                let delays: Vec<f64> =
                    came.iter().map(|(n, at_ns)| (at_ns - n * 100_000) as f64 / 1e6).collect();
                let mean = delays.iter().sum::<f64>() / delays.len() as f64;
                let expected = if distribution == Distribution::Pareto { 22.5 } else { 20.0 };
                assert!((mean - expected).abs() < 0.2, "{distribution:?}: {mean} ms");
            }
        }
    }
}

#[test]
fn held_packets_are_overtaken_and_copies_counted() {
    let direction = Direction {
        delay_ns: 1_000_000,
        reorder: Some(Reorder { share: 0.05, by_ns: 50_000 }),
        duplicate: 0.02,
        ..Direction::default()
    };
    let mut path = path(direction, 11);
    let came = carry(&mut path, every(20_000, 50_000));
    let counters = path.counters();
    assert_binomial("doubled", counters.duplicated, 50_000, 0.02);
    assert_eq!(came.len() as u64, 50_000 + counters.duplicated);
    assert_eq!(counters.delivered, came.len() as u64);
    // A held packet that others pass, and its copy if it has one; two held ones beside each other
    // keep their order, and both are behind what comes between.
    let held = 50_000.0 * 0.05 * 1.02;
    assert!((counters.reordered as f64 - held).abs() < 300.0, "{counters:?}");
}

#[test]
fn bits_flip_at_their_rate_where_the_record_says() {
    let corrupt = Corruption {
        bit_error_rate: Some(1e-5),
        packets: None,
        repair_checksums: true,
        least_packet_bytes: 0,
    };
    let mut path = path(Direction { corrupt: Some(corrupt), ..Direction::default() }, 7);
    let mut wrong = Vec::new();
    for number in 0..50_000 {
        let bytes = path.buffer();
        path.offer(number, Packet { bytes, length: BYTES, tag: 0 });
        let mut due = path.take_due(number).unwrap();
        for (at, byte) in due.packet.bytes.iter_mut().enumerate().filter(|(_, byte)| **byte != 0) {
            for bit in (0..8).filter(|bit| *byte >> bit & 1 == 1) {
                wrong.push((number, at as u32, bit as u8));
            }
            *byte = 0;
        }
        path.recycle(due.packet.bytes);
    }
    let counters = path.counters();
    assert_binomial("flipped", counters.flipped_bits, 50_000 * BYTES as u64 * 8, 1e-5);
    let recorded: Vec<(u64, u32, u8)> = path
        .into_flips()
        .iter()
        .map(|flip| (flip.packet, flip.packet_offset_bytes, flip.bit))
        .collect();
    assert_eq!(recorded, wrong);
}

#[test]
fn a_change_holds_from_its_time_on() {
    let slow = Direction { rate_bps: Some(12_000_000), ..Direction::default() };
    let mut path = path(slow.clone(), 1);
    let offer = |path: &mut Path, at_ns| {
        let bytes = path.buffer();
        path.offer(at_ns, Packet { bytes, length: BYTES, tag: 0 });
    };
    offer(&mut path, 0);
    offer(&mut path, 0);
    path.change(500_000, Direction { rate_bps: Some(120_000_000), ..slow });
    assert_eq!(path.take_due(u64::MAX - 1).unwrap().due_ns, 1_000_000);
    assert_eq!(path.take_due(u64::MAX - 1).unwrap().due_ns, 1_100_000);
}
