//! Which of two comes first in each pair.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::random::next_word;

/// One of the two that are compared.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Side {
    /// The first: what the other is measured by.
    A,
    /// The second.
    B,
}

impl Side {
    /// Both, A first.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// 0 for A, 1 for B.
    pub fn index(self) -> usize {
        usize::from(self == Self::B)
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

/// The order of each pair, drawn from a seed: with a fixed order, or one that alternates, noise with a period of its
/// own looks like a difference.
pub fn draw_order(seed: u64, pairs: usize) -> Vec<[Side; 2]> {
    let mut state = seed;
    let pair = |_| match next_word(&mut state) >> 63 {
        0 => [Side::A, Side::B],
        _ => [Side::B, Side::A],
    };
    (0..pairs).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_order_again_and_both_sides_come_first_about_as_often() {
        assert_eq!(draw_order(7, 15), draw_order(7, 15));
        assert_ne!(draw_order(7, 15), draw_order(8, 15));
        let first_a = draw_order(1, 1_000).iter().filter(|pair| pair[0] == Side::A).count();
        assert!((430..570).contains(&first_a), "{first_a}");
    }
}
