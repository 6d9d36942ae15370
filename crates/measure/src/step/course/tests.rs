use super::*;
use crate::step::{BytePattern, Close, Difference, Size};

const SECOND_NS: u64 = 1_000_000_000;

fn life(steps: &[LifeStep]) -> Life {
    Life::new(steps.to_vec(), Close::Graceful)
}

/// Runs both ends of a connection over a path that holds any number of bytes, with calls of at most `most` bytes;
/// the sequences of (sends, bytes) of the client, turn by turn.
fn run(client: &Life, number: u32, most: u64) -> (Course, Course, Vec<(bool, u64)>) {
    let server = client.mirrored(Close::AfterPeer);
    let mut ends = [Course::new(client, number, 1), Course::new(&server, number, 2)];
    let lives = [client, &server];
    let mut under_way: [u64; 2] = [0, 0];
    let mut turns: Vec<(bool, u64)> = Vec::new();
    let mut idle = 0;
    while ends.iter().zip(lives).any(|(end, life)| !end.is_over(life)) {
        for end in 0..2 {
            let Move::Transfer { send_bytes, receive_bytes, .. } =
                ends[end].poll_move(lives[end], 0)
            else {
                continue;
            };
            let sent = send_bytes.min(most);
            if sent > 0 {
                ends[end].record_sent(lives[end], sent);
                under_way[1 - end] += sent;
            }
            let came = receive_bytes.min(most).min(under_way[end]);
            if came > 0 {
                ends[end].record_received(lives[end], came);
                under_way[end] -= came;
            }
            if end == 0 {
                for (sends, bytes) in [(true, sent), (false, came)] {
                    match turns.last_mut() {
                        _ if bytes == 0 => {}
                        Some(last) if last.0 == sends => last.1 += bytes,
                        _ => turns.push((sends, bytes)),
                    }
                }
            }
            idle = if sent + came > 0 { 0 } else { idle + 1 };
            assert!(idle < 4, "neither end goes on");
        }
    }
    assert_eq!(under_way, [0, 0]);
    let [client, server] = ends;
    (client, server, turns)
}

fn alternate(bytes: u64, send_bytes: u32, receive_bytes: u32) -> Life {
    let bytes = Size::Fixed(bytes);
    life(&[LifeStep::Alternate { bytes, send_bytes, receive_bytes, sends_first: true }])
}

#[test]
fn turns_alternate_and_the_last_is_cut_short() {
    let (client, server, _) = run(&alternate(3_000_001, 1 << 20, 1 << 20), 0, 65_536);
    assert_eq!(client.moved(), (1_951_425, 1_048_576));
    assert_eq!(server.moved(), (1_048_576, 1_951_425));
    let (client, _, turns) = run(&alternate(10_001, 1000, 3000), 0, 700);
    assert_eq!(client.moved(), (3000, 7001));
    let [up, down] = [(true, 1000), (false, 3000)];
    assert_eq!(turns, [up, down, up, down, up, (false, 1001)]);
    assert_eq!(alternate(10_001, 1000, 3000).amounts(), (3000, 7001));
    assert_eq!(alternate(10_001, 1000, 3000).mirrored(Close::Reset).amounts(), (7001, 3000));
}

#[test]
fn turns_of_no_bytes_are_left_out() {
    let (client, _, _) = run(&alternate(5000, 0, 700), 0, 64);
    assert_eq!(client.moved(), (0, 5000));
    let (client, _, _) = run(&alternate(5000, 0, 0), 0, 64);
    assert_eq!(client.moved(), (0, 0));
}

#[test]
fn half_of_an_odd_number_is_rounded_up_at_both_ends() {
    let duplex = life(&[LifeStep::Duplex { bytes: Size::Fixed(3_000_001) }]);
    let (client, server, _) = run(&duplex, 0, 1 << 16);
    assert_eq!((client.moved(), server.moved()), ((1_500_001, 1_500_001), (1_500_001, 1_500_001)));
}

#[test]
fn both_ends_draw_the_same_sizes_and_each_connection_others() {
    let range = Size::Range { low_bytes: 10, high_bytes: 5000 };
    let steps = [LifeStep::Send { bytes: range }, LifeStep::Receive { bytes: range }];
    let drawn = Life { draws: Draws::Seed { seed: 7 }, unit_bytes: Some(range), ..life(&steps) };
    assert!(drawn.is_numbered() && !drawn.is_plain());
    let mut all = Vec::new();
    for number in 0..50 {
        let (client, server, _) = run(&drawn, number, 1 << 16);
        let (sent, received) = client.moved();
        assert_eq!(server.moved(), (received, sent));
        assert!((10..=5000).contains(&sent) && (10..=5000).contains(&received));
        all.push((sent, received));
    }
    assert_eq!(all[3], run(&drawn, 3, 77).0.moved(), "the same again");
    all.sort_unstable();
    all.dedup();
    assert!(all.len() > 45, "{all:?}");
}

#[test]
fn one_call_makes_several_receives_and_takes_no_more_than_is_left() {
    let steps = [LifeStep::Receive { bytes: Size::Fixed(1000) }];
    for (receives_at_once, unit, expected) in [(1, 300, 300), (3, 300, 900), (4, 300, 1000)] {
        let unit_bytes = Some(Size::Fixed(unit));
        let life = Life { unit_bytes, receives_at_once, ..life(&steps) };
        let Move::Transfer { receive_bytes, .. } = Course::new(&life, 0, 0).poll_move(&life, 0)
        else {
            panic!("a transfer");
        };
        assert_eq!(receive_bytes, expected);
    }
}

#[test]
fn each_end_draws_its_own_sizes_where_it_is_told_to() {
    let range = Size::Range { low_bytes: 1, high_bytes: 1 << 40 };
    let own = Life { draws: Draws::Each, ..life(&[LifeStep::Send { bytes: range }]) };
    let left = |seed| match Course::new(&own, 0, seed).poll_move(&own, 0) {
        Move::Transfer { send_bytes, .. } => send_bytes,
        other => panic!("{other:?}"),
    };
    assert_ne!(left(1), left(2));
    assert!(!own.is_numbered());
}

#[test]
fn a_draw_reaches_both_bounds() {
    let mut state = 0;
    let mut seen = [0_u32; 3];
    for _ in 0..3000 {
        seen[Size::Range { low_bytes: 5, high_bytes: 7 }.draw(&mut state) as usize - 5] += 1;
    }
    assert!(seen.iter().all(|times| (900..1100).contains(times)), "{seen:?}");
    let all = Size::Range { low_bytes: 0, high_bytes: u64::MAX };
    assert_ne!(all.draw(&mut state), all.draw(&mut state));
}

#[test]
fn a_difference_has_its_offset_and_its_extent() {
    let expected: Vec<u8> = (0..=255).cycle().take(1000).collect();
    assert_eq!(Difference::find(7, &expected, &expected), None);
    for place in 0..1000 {
        let mut came = expected.clone();
        came[place] ^= 1 << (place % 8);
        let wrong = Difference::find(7, &came, &expected).unwrap();
        assert_eq!((wrong.offset, wrong.extent_bytes, wrong.wrong_bytes), (7 + place as u64, 1, 1));
        assert_eq!((wrong.found, wrong.expected), (came[place], expected[place]));
    }
    let mut came = expected.clone();
    (came[500], came[503]) = (!came[500], !came[503]);
    let wrong = Difference::find(7, &came, &expected).unwrap();
    assert_eq!((wrong.offset, wrong.extent_bytes, wrong.wrong_bytes), (507, 4, 2));
    assert_eq!(wrong.received_bytes, 1000);
}

#[test]
fn texts_are_whole_and_no_payload() {
    let done = Text::Fixed { bytes: "DONE" };
    let server = life(&[
        LifeStep::SendText { text: Text::Id },
        LifeStep::Receive { bytes: Size::Fixed(3) },
        LifeStep::SendText { text: done },
    ]);
    let client = server.mirrored(Close::Graceful);
    let [mut here, mut there] = [Course::new(&server, 0, 5), Course::new(&client, 0, 6)];
    let id = here.text_to_send(&server).to_vec();
    assert_eq!((id.len(), id[14], id[36]), (37, b'4', 0), "{id:?}");
    assert!([8, 13, 18, 23].into_iter().all(|place| id[place] == b'-'));
    assert_ne!(id, Course::new(&server, 0, 99).text_to_send(&server));
    // The receiver is given it in pieces.
    for piece in [&id[..1], &id[1..30], &id[30..]] {
        let Move::ReceiveText(most) = there.poll_move(&client, 0) else { panic!() };
        assert!(piece.len() <= most);
        there.record_text_received(&client, piece).unwrap();
        here.record_text_sent(&server, piece.len());
    }
    assert_eq!((there.id(), there.moved()), (&id[..].try_into().unwrap(), (0, 0)));
    there.record_sent(&client, 3);
    here.record_received(&server, 3);
    assert!(here.has_transferred(&server) && !here.is_over(&server));
    assert_eq!(here.text_to_send(&server), b"DONE");
    here.record_text_sent(&server, 4);
    assert!(here.is_over(&server));
    assert_eq!(there.poll_move(&client, 0), Move::ReceiveText(4));
    assert_eq!(there.clone().record_text_received(&client, b"DONT"), Err(LifeFault::WrongText));
    assert_eq!(there.record_text_received(&client, b"DONE"), Ok(()));
    assert_eq!(there.poll_move(&client, 0), Move::Over);
}

/// When sends of `unit` bytes leave, at a rate or in bursts, where none takes any time.
fn times(pace: LifePace, unit: u64, bytes: u64) -> Vec<u64> {
    let steps = [LifeStep::Send { bytes: Size::Fixed(bytes) }];
    let paced = Life { pace: Some(pace), unit_bytes: Some(Size::Fixed(unit)), ..life(&steps) };
    assert!(paced.is_timed());
    let mut course = Course::new(&paced, 0, 0);
    let (mut now_ns, mut times) = (SECOND_NS, Vec::new());
    loop {
        match course.poll_move(&paced, now_ns) {
            Move::Transfer { resumes_ns: Some(due_ns), send_bytes: 0, .. } => now_ns = due_ns,
            Move::Transfer { send_bytes, .. } => {
                course.record_sent(&paced, send_bytes);
                times.push((now_ns - SECOND_NS) / 1_000_000);
            }
            Move::Over => return times,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_rate_lets_a_slice_leave_at_once_and_a_long_send_takes_from_the_next() {
    let pace = LifePace::Rate { bytes_per_s: Size::Fixed(100_000), slice_ns: 100_000_000 };
    let small = times(pace, 1000, 200_000);
    assert_eq!((small[9], small[10], small.last()), (0, 100, Some(&1900)));
    let large = times(pace, 30_000, 200_000);
    assert_eq!(large, [0, 300, 600, 900, 1200, 1500, 1800]);
}

#[test]
fn bursts_begin_with_one_send_less() {
    let pace = LifePace::Bursts { sends: 4, delay_ns: 200_000_000 };
    assert_eq!(times(pace, 10, 120), [0, 0, 0, 200, 200, 200, 200, 400, 400, 400, 400, 600]);
}

#[test]
fn a_connection_is_held_for_its_time() {
    let held = life(&[LifeStep::Send { bytes: Size::Fixed(1) }, LifeStep::Hold { time_ns: 50 }]);
    let mut course = Course::new(&held, 0, 0);
    course.record_sent(&held, 1);
    assert!(course.has_transferred(&held) && !course.is_over(&held));
    assert_eq!(course.poll_move(&held, 1000), Move::Hold(1050));
    assert_eq!(course.poll_move(&held, 1049), Move::Hold(1050));
    assert_eq!(course.poll_move(&held, 1050), Move::Over);
    assert!(held.mirrored(Close::AfterPeer).is_plain());
}

#[test]
fn a_life_of_a_request_and_a_response_is_plain() {
    let exchange = Life::exchange(100, 0, Close::AtOnce);
    assert!(exchange.is_plain() && !exchange.is_numbered());
    assert_eq!((exchange.steps.len(), exchange.amounts()), (1, (100, 0)));
    assert_eq!(exchange.mirrored(Close::AfterPeer).amounts(), (0, 100));
}

#[test]
fn each_way_has_its_own_place_in_the_pattern() {
    let content = LifeContent::Pattern {
        pattern: BytePattern::Native,
        send_offset: 0,
        receive_offset: 7,
        stride: 100,
        verify: true,
    };
    let client = Life { content, ..alternate(1000, 10, 10) };
    let (there, here, _) = run(&client, 3, 4);
    assert_eq!((there.send_position(), there.receive_position()), (800, 807));
    assert_eq!((here.send_position(), here.receive_position()), (807, 800));
}

/// Bytes of a slice of a tenth of a second, in milliseconds.
const SLICE_BYTES: u64 = 1000;
const SLICE_MS: u64 = 100;

/// A connection with a rate of 1,000 bytes in each slice, by a clock that a test sets.
struct Paced {
    life: Life,
    course: Course,
}

impl Paced {
    fn new(unit: Size) -> Self {
        let slice_ns = SLICE_MS * 1_000_000;
        let pace = LifePace::Rate { bytes_per_s: Size::Fixed(10 * SLICE_BYTES), slice_ns };
        let steps = [LifeStep::Send { bytes: Size::Fixed(u64::MAX) }];
        let life = Life { pace: Some(pace), unit_bytes: Some(unit), ..life(&steps) };
        Self { course: Course::new(&life, 0, 3), life }
    }

    /// Asks for a send at this time, in milliseconds from the first: when it leaves, and its bytes.
    fn send(&mut self, asked_ms: u64) -> (u64, u64) {
        let mut now_ns = SECOND_NS + asked_ms * 1_000_000;
        loop {
            match self.course.poll_move(&self.life, now_ns) {
                Move::Transfer { send_bytes: 0, resumes_ns: Some(due_ns), .. } => {
                    assert!(due_ns > now_ns, "the clock goes forward");
                    now_ns = due_ns;
                }
                Move::Transfer { send_bytes, resumes_ns: None, .. } => {
                    self.course.record_sent(&self.life, send_bytes);
                    return ((now_ns - SECOND_NS) / 1_000_000, send_bytes);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// When sends of so many bytes leave that are asked for at these times.
fn leave(unit: u64, asked_ms: &[u64]) -> Vec<u64> {
    let (mut paced, mut left_ms) = (Paced::new(Size::Fixed(unit)), 0);
    let times = asked_ms.iter().map(|asked_ms| {
        // None is asked for before the one before it has left.
        left_ms = paced.send(left_ms.max(*asked_ms)).0;
        left_ms
    });
    times.collect()
}

#[test]
fn a_send_of_a_whole_slice_waits_for_the_next_slice_and_not_longer() {
    // Before, on, and a slice after its time.
    assert_eq!(leave(1000, &[0, 50, 199]), [0, 100, 200]);
    assert_eq!(leave(1000, &[0, 99, 200, 300]), [0, 100, 200, 300]);
    assert_eq!(leave(1000, &[0, 250, 260, 350]), [0, 250, 300, 400]);
    // Slices in which nothing was sent are lost.
    assert_eq!(leave(1000, &[0, 950, 950, 950]), [0, 950, 1000, 1100]);
}

#[test]
fn sends_of_a_part_of_a_slice_leave_at_once_until_it_is_used_up() {
    assert_eq!(leave(500, &[0, 0, 0, 100, 100]), [0, 0, 100, 100, 200]);
    assert_eq!(leave(500, &[0, 99, 99, 199, 199]), [0, 99, 100, 199, 200]);
    // The last send may go beyond its slice, and what is beyond is taken from the next one.
    assert_eq!(leave(400, &[0; 8]), [0, 0, 0, 100, 100, 200, 200, 200]);
    assert_eq!(
        leave(400, &[0, 0, 0, 150, 150, 150, 500, 500, 500, 500])[3..],
        [150, 150, 200, 500, 500, 500, 600]
    );
}

#[test]
fn sends_longer_than_a_slice_take_from_the_slices_after_it() {
    assert_eq!(leave(2000, &[0, 0, 0]), [0, 200, 400]);
    assert_eq!(leave(3000, &[0, 0, 0]), [0, 300, 600]);
    assert_eq!(leave(1500, &[0; 5]), [0, 100, 300, 400, 600]);
    // A slice before its time, on it, and a slice after it.
    assert_eq!(leave(3000, &[0, 200, 600]), [0, 300, 600]);
    assert_eq!(leave(3000, &[0, 300, 700, 700]), [0, 300, 700, 1000]);
    assert_eq!(leave(3000, &[0, 400, 400]), [0, 400, 700]);
}

#[test]
fn late_requests_never_have_more_leave_than_the_rate_lets() {
    let mut state = 9;
    for _ in 0..200 {
        let high_bytes = 1 + next_word(&mut state) % (4 * SLICE_BYTES);
        let mut paced = Paced::new(Size::Range { low_bytes: 1, high_bytes });
        let latest_ms = next_word(&mut state) % (8 * SLICE_MS);
        let (mut left_ms, mut before_bytes) = (0, 0);
        for number in 0..500 {
            let late_ms = if number == 0 { 0 } else { next_word(&mut state) % (latest_ms + 1) };
            let (now_ms, bytes) = paced.send(left_ms + late_ms);
            // What left before fits in the slices that were begun by now.
            let slices = now_ms / SLICE_MS + 1;
            assert!(before_bytes < slices * SLICE_BYTES, "{before_bytes} until {now_ms} ms");
            (left_ms, before_bytes) = (now_ms, before_bytes + bytes);
        }
    }
}

#[test]
fn sends_leave_when_the_originals_do_where_none_is_late() {
    let mut state = 5;
    for _ in 0..100 {
        let unit = 1 + next_word(&mut state) % (4 * SLICE_BYTES);
        let mut paced = Paced::new(Size::Fixed(unit));
        // The original's rule: what is used of a slice, and when that slice began.
        let (mut used, mut began_ms, mut now_ms) = (0, 0, 0);
        for _ in 0..200 {
            let asked_ms = now_ms;
            if used >= SLICE_BYTES {
                let slices = used / SLICE_BYTES;
                used -= slices * SLICE_BYTES;
                now_ms = (began_ms + SLICE_MS).max(now_ms) + (slices - 1) * SLICE_MS;
                began_ms += slices * SLICE_MS;
            }
            used += unit;
            assert_eq!(paced.send(asked_ms).0, now_ms, "{unit} bytes");
        }
    }
}

#[test]
fn receives_and_a_life_without_a_pace_never_wait() {
    let receives = life(&[LifeStep::Receive { bytes: Size::Fixed(10_000) }]);
    let slice_ns = SLICE_MS * 1_000_000;
    let pace = Some(LifePace::Rate { bytes_per_s: Size::Fixed(1), slice_ns });
    let sends = life(&[LifeStep::Send { bytes: Size::Fixed(10_000) }]);
    for life in [Life { pace, ..receives }, Life { unit_bytes: Some(Size::Fixed(10)), ..sends }] {
        let mut course = Course::new(&life, 0, 0);
        for _ in 0..100 {
            let Move::Transfer { send_bytes, receive_bytes, resumes_ns } =
                course.poll_move(&life, SECOND_NS)
            else {
                panic!()
            };
            assert!(send_bytes + receive_bytes > 0 && resumes_ns.is_none());
            course.record_sent(&life, send_bytes.min(10));
            course.record_received(&life, receive_bytes.min(10));
        }
    }
}
