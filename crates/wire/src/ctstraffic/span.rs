//! A number, or a range from which one is drawn.

/// The numbers from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The least.
    pub low: u64,
    /// The greatest, not below `low`.
    pub high: u64,
}

impl Span {
    /// This number alone.
    pub fn of(number: u64) -> Self {
        Self { low: number, high: number }
    }

    /// A number of the span. Equal random words give equal numbers.
    pub fn draw(self, word: u64) -> u64 {
        let count = u128::from(self.high.saturating_sub(self.low)) + 1;
        // The upper half of the product is even over the span to one part in 2^64.
        let drawn = (u128::from(word) * count) >> 64;
        self.low.saturating_add(drawn as u64)
    }

    /// Whether the span has one number only.
    pub fn is_fixed(self) -> bool {
        self.low == self.high
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_of_a_span_are_drawn() {
        let span = Span { low: 32, high: 96 };
        assert_eq!((span.draw(0), span.draw(u64::MAX)), (32, 96));
        let all = Span { low: 0, high: u64::MAX };
        assert_eq!((all.draw(0), all.draw(u64::MAX)), (0, u64::MAX));
        assert_eq!(Span::of(7).draw(12_345), 7);
    }

    proptest! {
        #[test]
        fn what_is_drawn_is_within_the_span(low: u64, high: u64, word: u64) {
            let span = Span { low: low.min(high), high: low.max(high) };
            prop_assert!((span.low..=span.high).contains(&span.draw(word)));
        }
    }
}
