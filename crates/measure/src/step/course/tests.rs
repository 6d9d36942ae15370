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
