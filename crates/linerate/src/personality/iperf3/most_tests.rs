//! How many tests a server has at once.

/// The variable that says so.
pub(super) const VARIABLE: &str = "LINERATE_IPERF3_TESTS";

/// The number that the value of [`VARIABLE`] names; `None`: as many as the server takes unasked.
///
/// # Errors
/// A sentence about a value that is no such number.
pub(super) fn parse(value: Option<&str>) -> Result<Option<usize>, String> {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.parse() {
        Ok(tests @ 1..=1024) => Ok(Some(tests)),
        _ => Err(format!("{VARIABLE} is '{value}': write a number of tests from 1 to 1024")),
    }
}

#[test]
fn a_number_of_tests_is_taken_or_refused() {
    assert_eq!((parse(None), parse(Some(""))), (Ok(None), Ok(None)));
    assert_eq!((parse(Some("1")), parse(Some("1024"))), (Ok(Some(1)), Ok(Some(1024))));
    for value in ["0", "1025", "-1", "one"] {
        assert!(parse(Some(value)).is_err_and(|text| text.contains(value)), "{value}");
    }
}
