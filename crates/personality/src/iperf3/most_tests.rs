//! How many tests a server has at once.

use linerate_wire::iperf3::Code;
use linerate_wire::iperf3::Failure;

/// The variable that says so where `--max-tests` doesn't.
pub const VARIABLE: &str = "LINERATE_IPERF3_TESTS";

/// The number that the value of [`VARIABLE`] names; `None`: as many as the server takes unasked.
///
/// # Errors
/// A sentence about a value that is no such number.
pub fn parse(value: Option<&str>) -> Result<Option<usize>, String> {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(None) };
    number(value).map(Some).ok_or_else(|| refusal(VARIABLE, value))
}

/// The value of `--max-tests`.
///
/// # Errors
/// A sentence about a value that is no such number.
pub(super) fn parse_most_tests(value: &str) -> Result<usize, Failure> {
    number(value).ok_or_else(|| Failure::of(Code::UNIT).because(refusal("--max-tests", value)))
}

fn number(value: &str) -> Option<usize> {
    value.parse().ok().filter(|tests| (1..=1024).contains(tests))
}

fn refusal(name: &str, value: &str) -> String {
    format!("{name} is '{value}': write a number of tests from 1 to 1024")
}

#[test]
fn a_number_of_tests_is_taken_or_refused() {
    assert_eq!((parse(None), parse(Some(""))), (Ok(None), Ok(None)));
    assert_eq!((parse(Some("1")), parse(Some("1024"))), (Ok(Some(1)), Ok(Some(1024))));
    for value in ["0", "1025", "-1", "one"] {
        assert!(parse(Some(value)).is_err_and(|text| text.contains(value)), "{value}");
        assert!(parse_most_tests(value).is_err(), "{value}");
    }
}
