use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn numbers_are_told_apart_as_a_list_of_all_of_them_tells(
        steps in prop::collection::vec(-140_i64..20, 0..400)
    ) {
        let (numbers, mut came, mut at) = (Numbers::default(), BTreeSet::new(), 200_i64);
        for step in steps {
            let greatest = came.last().copied();
            // Forward often, and back from the greatest.
            at = greatest.map_or(at, |greatest: u64| greatest as i64).saturating_add(step).max(0);
            let number = at as u64;
            let expected = match greatest {
                Some(greatest) if number <= greatest => match came.contains(&number) {
                    _ if greatest - number > 128 => Arrival::TooLate,
                    true => Arrival::Again,
                    false => Arrival::Late,
                },
                _ => Arrival::New,
            };
            prop_assert_eq!(numbers.record(number), expected);
            if expected != Arrival::TooLate {
                came.insert(number);
            }
        }
    }
}

#[test]
fn bytes_of_streams_are_those_of_all_their_frames() {
    let ack = [0x02, 9, 1, 0, 3];
    let first = [0x0e, 0x00, 0x44, 0x00, 0x03, 1, 2, 3];
    let last = [0x0c, 0x04, 0x05, 7, 7, 7, 7];
    let payload = [&ack[..], &[0, 0, 1], &first, &last].concat();
    assert_eq!(stream_bytes(&payload), 7);
    assert_eq!((stream_bytes(&[]), stream_bytes(&[0x0e, 0x00, 0x44])), (0, 0));
    assert_eq!(stream_bytes(&[0x0a, 0x00, 0x09, 1]), 0, "a length that is a lie counts nothing");
}
