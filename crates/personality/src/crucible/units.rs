//! Conversion of values between units, with the factors of a requirements file.

/// The factors of a conversion: the unit of a value, and the expression that it is multiplied with.
#[derive(Clone, Debug)]
pub(super) struct Conversion {
    /// The unit that comes out.
    pub(super) target: String,
    /// Source unit and factor.
    pub(super) factors: Vec<(String, Vec<Term>)>,
}

/// A step of a factor: a whole number to multiply with or to divide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// Multiply.
    Times(i64),
    /// Divide.
    Over(i64),
}

/// A number as Python counts: whole as long as nothing is divided.
#[derive(Clone, Copy, Debug)]
enum Number {
    Whole(i128),
    Real(f64),
}

/// Reads a factor, such as `1024*1024` or `1/1024`.
pub(super) fn parse_factor(text: &str) -> Result<Vec<Term>, String> {
    let wrong = || format!("the factor {text:?} isn't whole numbers with * and /");
    let mut terms = Vec::new();
    let mut divides = false;
    for piece in text.split_inclusive(['*', '/']) {
        let digits = piece.trim_end_matches(['*', '/']).trim();
        let number: i64 = digits.parse().map_err(|_| wrong())?;
        if number < 1 {
            return Err(wrong());
        }
        terms.push(if divides { Term::Over(number) } else { Term::Times(number) });
        divides = piece.ends_with('/');
    }
    match text.trim_end().ends_with(['*', '/']) || terms.is_empty() {
        true => Err(wrong()),
        false => Ok(terms),
    }
}

/// What a conversion did with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Converted {
    /// The value in the target's unit. `dropped` is the first part that was left out, as its unit isn't known.
    Value {
        /// The value; the old one where no part could be converted.
        value: String,
        /// The first part that was left out.
        dropped: Option<String>,
    },
    /// A part has no number that can be converted.
    NoNumber(String),
}

impl Conversion {
    /// Converts a value, or both ends of a range. Parts after the second are left out, as the original does.
    pub(super) fn convert(&self, value: &str) -> Converted {
        let mut parts = Vec::new();
        let mut dropped = None;
        for part in value.split('-') {
            let unit = unit_of(part);
            let Some((_, factor)) = self.factors.iter().find(|(known, _)| known == unit) else {
                dropped.get_or_insert_with(|| part.to_owned());
                continue;
            };
            match number_of(part).and_then(|number| multiply(number, factor)) {
                Some(number) => parts.push(format!("{}{}", render(number), self.target)),
                None => return Converted::NoNumber(part.to_owned()),
            }
        }
        let value = match parts.as_slice() {
            [] => value.to_owned(),
            [only] => only.clone(),
            [first, second, ..] => format!("{first}-{second}"),
        };
        Converted::Value { value, dropped }
    }
}

/// The letters after the last digit; the whole part where it doesn't end with a digit and letters.
fn unit_of(part: &str) -> &str {
    let rest = part.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    match rest.chars().next_back() {
        Some(last) if last.is_ascii_digit() => part.get(rest.len()..).unwrap_or_default(),
        _ => part,
    }
}

/// The decimal number that a part begins with. A part that begins otherwise has to be zeros.
fn number_of(part: &str) -> Option<Number> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(part);
    let has_lead = matches!(part.bytes().next(), Some(b'1'..=b'9'));
    let rest = part.get(whole..)?;
    if has_lead {
        let Some(fraction) = rest.strip_prefix('.') else {
            return part.get(..whole)?.parse().ok().map(Number::Whole);
        };
        let length = whole + 1 + digits(fraction);
        return part.get(..length)?.parse().ok().map(Number::Real);
    }
    if let Some(fraction) = part.strip_prefix('0').unwrap_or(part).strip_prefix('.') {
        let decimals = digits(fraction);
        if decimals > 0 {
            let length = part.len() - fraction.len() + decimals;
            return part.get(..length)?.parse().ok().map(Number::Real);
        }
    }
    // The original can't read zero with a unit.
    let zeros = part.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    (!zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0')).then_some(Number::Whole(0))
}

/// Multiplies from the left to the right.
#[expect(clippy::cast_precision_loss, reason = "Python divides whole numbers as reals, too")]
fn multiply(number: Number, factor: &[Term]) -> Option<Number> {
    factor.iter().try_fold(number, |number, term| {
        Some(match (number, *term) {
            (Number::Whole(whole), Term::Times(factor)) => {
                Number::Whole(whole.checked_mul(i128::from(factor))?)
            }
            (Number::Whole(whole), Term::Over(divisor)) => {
                Number::Real(whole as f64 / divisor as f64)
            }
            (Number::Real(real), Term::Times(factor)) => Number::Real(real * factor as f64),
            (Number::Real(real), Term::Over(divisor)) => Number::Real(real / divisor as f64),
        })
    })
}

/// A number as Python prints it, and whole where it has no fraction.
fn render(number: Number) -> String {
    match number {
        Number::Whole(whole) => whole.to_string(),
        Number::Real(real) if real.fract() == 0.0 => format!("{real:.0}"),
        Number::Real(real) if real.abs() < 1e-4 => {
            let text = format!("{real:e}");
            match text.split_once("e-") {
                Some((digits, exponent)) => format!("{digits}e-{exponent:0>2}"),
                None => text,
            }
        }
        Number::Real(real) => real.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kibi() -> Conversion {
        let factor = |unit: &str, text: &str| (unit.to_owned(), parse_factor(text).unwrap());
        Conversion {
            target: "K".to_owned(),
            factors: vec![
                factor("", "1/1024"),
                factor("B", "1/1024"),
                factor("K", "1"),
                factor("M", "1024"),
                factor("G", "1024 * 1024"),
            ],
        }
    }

    fn convert(value: &str) -> String {
        match kibi().convert(value) {
            Converted::Value { value, dropped: None } => value,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn values_get_the_unit_of_the_target() {
        assert_eq!(convert("2048B"), "2K");
        assert_eq!(convert("1M"), "1024K");
        assert_eq!(convert("3000"), "2.9296875K");
        assert_eq!(convert("1024-2048"), "1K-2K");
        assert_eq!(convert("0.5M"), "512K");
        assert_eq!(convert(".5M-1.25G"), "512K-1310720K");
        assert_eq!(convert("1B"), "0.0009765625K");
        assert_eq!(convert("0.01B"), "9.765625e-06K");
        assert_eq!(convert("0"), "0K");
        assert_eq!(convert("0M"), "0K");
    }

    #[test]
    fn parts_without_a_known_unit_are_told() {
        let dropped = |value: &str| match kibi().convert(value) {
            Converted::Value { value, dropped } => (value, dropped),
            Converted::NoNumber(part) => (String::new(), Some(part)),
        };
        assert_eq!(dropped("5X"), ("5X".to_owned(), Some("5X".to_owned())));
        assert_eq!(dropped("5X-2M"), ("2048K".to_owned(), Some("5X".to_owned())));
        assert_eq!(dropped("x5M"), (String::new(), Some("x5M".to_owned())));
        assert_eq!(dropped("1M-2M-3M"), ("1024K-2048K".to_owned(), None));
    }

    #[test]
    fn factors_are_whole_numbers() {
        for wrong in ["", "1*", "x", "1+1", "0", "1/0", "-1", "1//2", "2**3"] {
            assert!(parse_factor(wrong).is_err(), "{wrong}");
        }
    }
}
