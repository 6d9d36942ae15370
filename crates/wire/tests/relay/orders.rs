//! Every order of opening, sending, finishing, resetting, stopping and closing, at both ends.

use linerate_wire::relay::{Close, CloseKind, End, Limits};
use proptest::collection::vec;
use proptest::prelude::*;

use super::world::{World, at};

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Open(End, bool),
    Send(End, usize, usize),
    Finish(End, usize),
    Reset(End, usize, u64),
    Stop(End, usize, u64),
    Take(End, usize, usize),
    Allow(End, bool, u64),
    Work(usize),
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Client), Just(End::Target)]
}

fn step() -> impl Strategy<Value = Step> {
    let (stream, code) = (0..50_usize, 0..(1_u64 << 62));
    prop_oneof![
        3 => (end(), any::<bool>()).prop_map(|(end, one_way)| Step::Open(end, one_way)),
        6 => (end(), stream.clone(), 0..9_000_usize).prop_map(|(end, one, n)| Step::Send(end, one, n)),
        2 => (end(), stream.clone()).prop_map(|(end, one)| Step::Finish(end, one)),
        1 => (end(), stream.clone(), code.clone()).prop_map(|(end, one, n)| Step::Reset(end, one, n)),
        1 => (end(), stream.clone(), code).prop_map(|(end, one, n)| Step::Stop(end, one, n)),
        4 => (end(), stream, 0..5_000_usize).prop_map(|(end, one, n)| Step::Take(end, one, n)),
        1 => (end(), any::<bool>(), 1..4_u64).prop_map(|(end, one_way, n)| Step::Allow(end, one_way, n)),
        6 => (1..20_usize).prop_map(Step::Work),
    ]
}

/// The bytes of a piece, which say where they belong.
fn bytes(world: &World, end: End, stream: u64, count: usize) -> Vec<u8> {
    let from = world.ends[at(end)].from_peer[&stream].written.len();
    let byte = |place: usize| ((place as u64).wrapping_mul(31) ^ stream.wrapping_mul(7)) as u8;
    (from..from + count).map(byte).collect()
}

fn perform(world: &mut World, step: &Step) {
    match *step {
        Step::Open(end, one_way) => drop(world.open(end, one_way)),
        Step::Work(steps) => drop(world.work(steps)),
        Step::Allow(end, one_way, more) => world.allow(end, one_way, more),
        Step::Send(end, number, count) => {
            if let Some(stream) = world.pick(end, number, true) {
                let bytes = bytes(world, end, stream, count);
                world.send(end, stream, &bytes);
            }
        }
        Step::Finish(end, number) => {
            if let Some(stream) = world.pick(end, number, true) {
                world.finish(end, stream);
            }
        }
        Step::Reset(end, number, code) => {
            if let Some(stream) = world.pick(end, number, true) {
                world.reset(end, stream, code);
            }
        }
        Step::Stop(end, number, code) => {
            if let Some(stream) = world.pick(end, number, false) {
                world.stop(end, stream, code);
            }
        }
        Step::Take(end, number, count) => {
            if let Some(stream) = world.pick(end, number, false) {
                world.take(end, stream, count);
            }
        }
    }
}

fn limits(buffer_bytes: usize) -> Limits {
    Limits { buffer_bytes, piece_bytes: 16 << 10, streams: 8 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn what_one_peer_sends_is_what_the_other_receives(
        steps in vec(step(), 0..120),
        buffer_bytes in 64..40_000_usize,
        allowed in 0..4_u64,
    ) {
        let mut world = World::new(limits(buffer_bytes), allowed);
        for step in &steps {
            perform(&mut world, step);
            world.check_streams(false);
        }
        world.run_out();
        world.check_streams(true);
        for end in End::ALL {
            prop_assert_eq!(world.relay.held_bytes(end), 0);
        }
    }

    #[test]
    fn a_close_reaches_the_other_peer_once_whatever_came_before(
        steps in vec(step(), 0..80),
        more in vec(step(), 0..20),
        closer in end(),
        both in any::<bool>(),
        code in 0..(1_u64 << 62),
    ) {
        let mut world = World::new(limits(10_000), 3);
        for step in &steps {
            perform(&mut world, step);
        }
        let close = Close { kind: CloseKind::Application, code, reason: b"why".to_vec() };
        world.close(closer, 0, &close);
        for step in &more {
            perform(&mut world, step);
        }
        if both {
            world.close(closer.other(), 0, &close);
        }
        world.run_out();
        world.check_streams(false);
        let closes = &world.ends[at(closer.other())].closes;
        let is_lost = world.ends[at(closer.other())].is_lost;
        // One that closed by itself may have been closed at the same time.
        prop_assert!(is_lost || closes.len() == 1, "{closes:?} {is_lost}");
        prop_assert!(closes.len() <= 1, "{closes:?}");
        prop_assert!(closes.iter().all(|one| *one == close));
        prop_assert!(world.relay.is_over());
        prop_assert_eq!(&world.ends[at(closer)].closes, &[]);
    }
}
