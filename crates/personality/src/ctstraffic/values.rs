//! Values of options: numbers, ranges and keywords.

use linerate_wire::ctstraffic::Span;

use super::Refusal;

/// What a range that is none is refused with.
const NOT_A_RANGE: &str = "range value [###,###]";

/// A number of 64 bits, as C++'s `stoull` reads it: decimal, or hexadecimal where there is an `x`. A
/// negative number wraps, so that -1 is the greatest.
pub(super) fn parse_number(text: &str) -> Result<u64, Refusal> {
    let is_hexadecimal = text.contains(['x', 'X']);
    let radix = if is_hexadecimal { 16 } else { 10 };
    let trimmed = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let (is_negative, digits) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let bare = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let digits = bare.filter(|_| is_hexadecimal).unwrap_or(digits);
    if !digits.starts_with(|digit: char| digit.is_digit(radix)) {
        return Err(Refusal::new("invalid stoull argument"));
    }
    // A suffix, or a number that is too long.
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(Refusal::new(text));
    }
    let number = u64::from_str_radix(digits, radix);
    let number = number.map_err(|_| Refusal::new("stoull argument out of range"))?;
    Ok(if is_negative { number.wrapping_neg() } else { number })
}

/// A number that fits the type.
pub(super) fn number<T: TryFrom<u64>>(text: &str) -> Result<T, Refusal> {
    T::try_from(parse_number(text)?).map_err(|_| Refusal::new(text))
}

/// A number of at least 1, which is refused with this text.
pub(super) fn positive<T: TryFrom<u64>>(text: &str, refusal: &str) -> Result<T, Refusal> {
    match parse_number(text)? {
        0 => Err(Refusal::new(refusal)),
        number => T::try_from(number).map_err(|_| Refusal::new(text)),
    }
}

/// A number or a range, `[low,high]`, of at least 1 and at most `most`.
pub(super) fn span(text: &str, most: u64, refusal: &str) -> Result<Span, Refusal> {
    let bounded = |text: &str| match parse_number(text)? {
        0 => Err(Refusal::new(refusal)),
        number if number > most => Err(Refusal::new(text)),
        number => Ok(number),
    };
    if !text.starts_with('[') && !text.ends_with(']') {
        return bounded(text).map(Span::of);
    }
    let inside = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let halves = inside.and_then(|inside| inside.split_once(','));
    let halves = halves.filter(|(low, high)| !low.is_empty() && !high.is_empty());
    let (low, high) = halves.ok_or_else(|| Refusal::new(NOT_A_RANGE))?;
    let (low, high) = (bounded(low)?, bounded(high)?);
    if high < low { Err(Refusal::new(NOT_A_RANGE)) } else { Ok(Span { low, high }) }
}

/// One of these words, in any case.
pub(super) fn keyword<T: Copy>(
    text: &str,
    words: &[(&str, T)],
    refusal: &str,
) -> Result<T, Refusal> {
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| Refusal::new(refusal))
}

/// `on` or `off`.
pub(super) fn switch(text: &str, refusal: &str) -> Result<bool, Refusal> {
    keyword(text, &[("on", true), ("off", false)], refusal)
}

/// Whether a name is that of a csv file.
pub fn is_csv(name: &str) -> bool {
    let ending = name.len().checked_sub(4).and_then(|at| name.get(at..));
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case(".csv"))
}

/// A name of a csv file.
pub(super) fn csv_name(text: &str, refusal: &str) -> Result<String, Refusal> {
    if is_csv(text) { Ok(text.to_owned()) } else { Err(Refusal::new(refusal)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<T>(result: Result<T, Refusal>) -> String {
        result.err().map(|refusal| refusal.text).unwrap_or_default()
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        for (text, expected) in [
            ("10", 10),
            ("0x10000", 65_536),
            ("0XfF", 255),
            ("+7", 7),
            (" 7", 7),
            ("010", 10),
            ("-1", u64::MAX),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_number(text), Ok(expected), "{text}");
        }
        for (number, expected) in [
            ("1k", "1k"),
            ("10x", "10x"),
            ("1 ", "1 "),
            ("abc", "invalid stoull argument"),
            ("", "invalid stoull argument"),
            ("x", "invalid stoull argument"),
            ("ff", "invalid stoull argument"),
            ("18446744073709551616", "stoull argument out of range"),
        ] {
            assert_eq!(text(parse_number(number)), expected, "{number}");
        }
        assert_eq!(text(number::<u16>("70000")), "70000");
        assert_eq!(text(number::<u32>("-1")), "-1");
    }

    #[test]
    fn ranges_have_two_halves_in_order() {
        let range = |text| span(text, 1000, "-x");
        assert_eq!(range("[5,5]"), Ok(Span::of(5)));
        assert_eq!(range("[0x10,32]"), Ok(Span { low: 16, high: 32 }));
        assert_eq!(range("7"), Ok(Span::of(7)));
        for broken in ["[5,3]", "[5,]", "[,5]", "[5]", "[5,6", "5,6]", "[]", "[", "]"] {
            assert_eq!(text(range(broken)), NOT_A_RANGE, "{broken}");
        }
        assert_eq!((text(range("0")), text(range("[0,5]"))), ("-x".to_owned(), "-x".to_owned()));
        assert_eq!(
            (text(range("1001")), text(range("[1, 5]"))),
            ("1001".to_owned(), String::new())
        );
        assert_eq!(text(range("[1,5 ]")), "5 ");
    }

    #[test]
    fn csv_names_end_so_in_any_case() {
        assert!(is_csv("a.csv") && is_csv("a.CSV") && is_csv(".csv"));
        assert!(!is_csv("csv") && !is_csv("a.csv.txt") && !is_csv("é"));
    }
}
