//! Options of the form `-name:value`.
//!
//! The first character of an option may be any; its name is read without regard to case, and the first
//! option of a name wins. What isn't such an option is passed over without a word: that is the
//! form's own rule, and scripts rely on it. [`strict`] reads the form of a tool that passes over
//! nothing.

pub mod strict;

/// The words of a command line.
#[derive(Clone, Copy, Debug)]
pub struct ColonOptions<'a> {
    words: &'a [String],
}

/// A number with its unit read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The number, in microseconds where it is a time.
    pub value: u64,
    /// Whether it is a time.
    pub is_time: bool,
}

/// Units, in the order in which they are tried, and whether each is a time.
const UNITS: [(&str, u64, bool); 8] = [
    ("m", 60_000_000, true),
    ("ms", 1000, true),
    ("us", 1, true),
    ("s", 1_000_000, true),
    ("gb", 1_000_000_000, false),
    ("mb", 1_000_000, false),
    ("kb", 1000, false),
    ("b", 1, false),
];

impl<'a> ColonOptions<'a> {
    /// Reads these words.
    pub fn new(words: &'a [String]) -> Self {
        Self { words }
    }

    /// What follows the first character of each word.
    fn options(self) -> impl Iterator<Item = &'a str> {
        self.words.iter().filter_map(|word| {
            let mut rest = word.chars();
            rest.next().map(|_| rest.as_str())
        })
    }

    /// Whether the option is there, alone.
    pub fn flag(self, name: &str) -> bool {
        self.options().any(|option| option.eq_ignore_ascii_case(name))
    }

    /// The value of the option, at least one character.
    pub fn value(self, name: &str) -> Option<&'a str> {
        self.options().find_map(|option| {
            let (head, value) = option.split_once(':')?;
            (head.eq_ignore_ascii_case(name) && !value.is_empty()).then_some(value)
        })
    }

    /// The value of the first of these names that is there.
    pub fn value_of_first(self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| self.value(name))
    }

    /// The value of the last of these names that is there.
    pub fn value_of_last(self, names: &[&str]) -> Option<&'a str> {
        names.iter().rev().find_map(|name| self.value(name))
    }
}

/// Whether a value means one of the enumerated: it begins with it.
pub fn means(value: &str, word: &str) -> bool {
    value.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
}

/// The number at the start of a value, as C's `strtol` reads it, with 64 bits; 0 without one.
pub fn parse_leading(value: &str) -> i64 {
    let text = value.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut number = 0_i64;
    for digit in digits.chars().map_while(|digit| digit.to_digit(10)) {
        number = number.saturating_mul(10).saturating_add(i64::from(digit));
    }
    if negative { -number } else { number }
}

/// A number of 8 bits: what is above is cut off, as C's conversion does.
pub fn parse_u8(value: &str) -> u8 {
    parse_leading(value) as u8
}

/// A number of 16 bits, likewise.
pub fn parse_u16(value: &str) -> u16 {
    parse_leading(value) as u16
}

/// A number of 32 bits without a unit. Numbers beyond and below 0 are held to the nearest.
pub fn parse_u32(value: &str) -> u32 {
    u32::try_from(parse_leading(value).max(0)).unwrap_or(u32::MAX)
}

/// A number with an optional unit: `m`, `ms`, `us`, `s`; `gb`, `mb`, `kb`, `b`; `cpu`, which is as many
/// as there are processors. A negative number is 0, and one that is too large the largest.
pub fn parse_quantity(value: &str, processors: u64) -> Quantity {
    let with_unit = |unit: &str| {
        let at = value.len().checked_sub(unit.len()).filter(|at| *at > 0)?;
        let (number, tail) = value.split_at_checked(at)?;
        tail.eq_ignore_ascii_case(unit).then_some(number)
    };
    let scaled = |number: &str, factor: u64| {
        u64::try_from(parse_leading(number)).unwrap_or(0).saturating_mul(factor)
    };
    let units = UNITS.into_iter().chain([("cpu", processors, false)]);
    for (unit, factor, is_time) in units {
        if let Some(number) = with_unit(unit) {
            return Quantity { value: scaled(number, factor), is_time };
        }
    }
    Quantity { value: scaled(value, 1), is_time: false }
}

#[cfg(test)]
mod tests;
