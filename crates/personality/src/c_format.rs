//! Numbers as C's `printf` writes them.

/// `%.*g`: so many significant digits, without zeros at the end, with an exponent where it is shorter.
pub fn render_general(value: f64, digits: usize) -> String {
    let (mantissa, exponent) = scientific(value, digits);
    if (-4..places(digits)).contains(&exponent) {
        return fixed(value, digits, exponent);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(&mantissa), exponent.abs())
}

/// The same without an exponent whatever the value.
pub fn render_digits(value: f64, digits: usize) -> String {
    let (_, exponent) = scientific(value, digits);
    fixed(value, digits, exponent)
}

/// The mantissa with its digits, and the exponent of 10.
fn scientific(value: f64, digits: usize) -> (String, i32) {
    let text = format!("{value:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or(0))
}

fn fixed(value: f64, digits: usize, exponent: i32) -> String {
    let decimals = usize::try_from(places(digits) - 1 - exponent).unwrap_or(0);
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn places(digits: usize) -> i32 {
    i32::try_from(digits).unwrap_or(i32::MAX)
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_are_enough_for_a_loss() {
        for (value, text) in [(0.0, "0"), (0.0131, "0.013"), (12.34, "12"), (100.0, "1e+02")] {
            assert_eq!(render_general(value, 2), text);
        }
    }

    #[test]
    fn digits_alone_have_no_exponent() {
        for (value, text) in
            [(0.0, "0"), (0.000_012_34, "0.000012"), (12.0, "12"), (8_640_000.0, "8640000")]
        {
            assert_eq!(render_digits(value, 2), text);
        }
    }
}
