//! Headers of datagrams, and what a receiver makes of them.

use linerate_wire::iperf3::datagram::{
    ANSWER, Arrivals, GREETING, Header, OLD_ANSWER, Word, answer_again, answer_to, greeting_again,
    is_answer,
};
use proptest::prelude::*;

#[test]
fn a_header_is_as_captured() {
    // The first datagram of a 3.21 client, 32-bit counters.
    let captured = [0, 0, 4, 0x4a, 0, 9, 0x95, 0xf2, 0, 0, 0, 1, 0x46, 0xb6, 0xae, 0x90];
    let header = Header::decode(false, &captured).unwrap();
    assert_eq!(header, Header { sent_ns: 1_098_628_210_000, number: 1 });
    let mut again = captured;
    header.encode(false, &mut again);
    assert_eq!(again, captured, "what follows a narrow number stays");
    assert_eq!(Header::decode(false, &captured[..15]), None);
}

#[test]
fn answers_of_old_and_new_servers_are_answers() {
    assert_eq!(OLD_ANSWER, [0xb1, 0x68, 0xde, 0x3a]);
    assert_eq!(answer_to([0x15, 0xcd, 0x5b, 0x07]), OLD_ANSWER);
    assert_eq!((answer_to(*b"9876"), answer_to([0; 4])), (ANSWER, ANSWER));
    assert!(is_answer(&OLD_ANSWER) && is_answer(b"6789"));
    assert!(!is_answer(b"9876") && !is_answer(b"67890") && !is_answer(b""));
    // Said again it can be read as data with the number 0.
    assert!(is_answer(&answer_again(ANSWER, 1000)) && is_answer(&answer_again(ANSWER, 4)));
    let again = answer_again(ANSWER, 16);
    assert!(!is_answer(&again[..15]));
    assert_eq!(Word::of(&again), Some(Word { word: ANSWER, is_again: true }));
    assert_eq!(Word::of(&GREETING), Some(Word { word: GREETING, is_again: false }));
    let sent = Header::decode(false, &greeting_again(1_000_002_000, 1000)).unwrap();
    assert_eq!(sent, Header { sent_ns: 1_000_002_000, number: 0 });
    assert!(Word::of(&greeting_again(1_000_002_000, 1000)).unwrap().is_again);
    for wide in [false, true] {
        let mut data = again.clone();
        assert_eq!(Header::decode(wide, &data).unwrap().number, 0);
        Header { sent_ns: 0, number: 1 }.encode(wide, &mut data);
        assert_eq!(Word::of(&data), None);
    }
}

/// The same arithmetic, as plainly as it can be said.
#[derive(Default)]
struct Plain {
    highest: i128,
    lost: i128,
    out_of_order: i128,
}

impl Plain {
    fn record(&mut self, number: i128) {
        if number > self.highest {
            self.lost += number - 1 - self.highest;
            self.highest = number;
        } else {
            self.out_of_order += 1;
            if self.lost > 0 {
                self.lost -= 1;
            }
        }
    }
}

proptest! {
    #[test]
    fn headers_come_back(sent_us in 0_u64..(1 << 32) * 1_000_000, number: u64, wide: bool) {
        let number = if wide { number } else { number & 0xffff_ffff };
        let header = Header { sent_ns: sent_us * 1000, number };
        let mut bytes = [7; 20];
        header.encode(wide, &mut bytes);
        prop_assert_eq!(Header::decode(wide, &bytes), Some(header));
        prop_assert_eq!(&bytes[16..], &[7; 4]);
    }

    #[test]
    fn losses_are_counted_as_the_original_does(numbers in prop::collection::vec(0_u64..40, 0..80)) {
        let (mut arrivals, mut plain) = (Arrivals::default(), Plain::default());
        for number in numbers {
            arrivals.record(Header { sent_ns: 5, number }, 9);
            plain.record(number.into());
        }
        prop_assert_eq!(i128::from(arrivals.highest), plain.highest);
        prop_assert_eq!(i128::from(arrivals.lost), plain.lost);
        prop_assert_eq!(i128::from(arrivals.out_of_order), plain.out_of_order);
        prop_assert_eq!(arrivals.jitter_s(), 0.0);
    }

    #[test]
    fn any_numbers_and_times_are_survived(
        steps in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..50),
    ) {
        let mut arrivals = Arrivals::default();
        for (sent_ns, number, now_ns) in steps {
            arrivals.record(Header { sent_ns, number }, now_ns);
            prop_assert!(arrivals.jitter_s() >= 0.0);
        }
    }
}

#[test]
fn jitter_moves_a_sixteenth_of_the_way() {
    let mut arrivals = Arrivals::default();
    arrivals.record(Header { sent_ns: 0, number: 1 }, 1_000_000);
    assert_eq!(arrivals.jitter_s(), 0.0);
    arrivals.record(Header { sent_ns: 10, number: 2 }, 1_000_010 + 160_000);
    assert!((arrivals.jitter_s() - 10e-6).abs() < 1e-12, "{}", arrivals.jitter_s());
    arrivals.end_omitted();
    assert_eq!(arrivals.jitter_s(), 0.0);
}

#[test]
fn late_datagrams_of_the_omitted_time_do_not_reduce_counted_loss() {
    let mut arrivals = Arrivals::default();
    let mut record = |numbers: &[u64]| {
        for number in numbers {
            arrivals.record(Header { sent_ns: 0, number: *number }, 0);
        }
        (arrivals.lost, arrivals.out_of_order)
    };
    assert_eq!(record(&[1, 11]), (9, 0));
    assert_eq!(record(&[2]), (8, 1));
    arrivals.end_omitted();
    let mut record = |numbers: &[u64]| {
        for number in numbers {
            arrivals.record(Header { sent_ns: 0, number: *number }, 0);
        }
        (arrivals.lost, arrivals.out_of_order)
    };
    assert_eq!(record(&[3, 4, 5, 6, 12]), (8, 5));
    assert_eq!(record(&[15]), (10, 5));
    assert_eq!(record(&[13, 13, 13, 13]), (8, 9));
}
