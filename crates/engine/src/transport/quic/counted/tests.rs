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
