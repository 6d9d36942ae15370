//! A number, or a range.

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
}
