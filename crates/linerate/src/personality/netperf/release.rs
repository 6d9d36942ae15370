//! Which netserver is spoken to: the length of messages tells 2.5 and before from later releases,
//! and neither says so by itself.

/// The variable that names its release.
pub(super) const VARIABLE: &str = "LINERATE_NETPERF_VERSION";

/// Whether a netserver of the release that the value of [`VARIABLE`] names has the messages of 256
/// bytes of 2.5 and before; a later one where it is empty.
///
/// # Errors
///
/// A sentence about what is no release that we speak with.
pub(super) fn parse_short_messages(value: &str) -> Result<bool, String> {
    let mut numbers = value.split('.').map(str::parse::<u32>);
    match (value, numbers.next(), numbers.next()) {
        ("", ..) | (_, Some(Ok(2)), Some(Ok(6 | 7))) => Ok(false),
        (_, Some(Ok(2)), Some(Ok(4 | 5))) => Ok(true),
        _ => Err(format!("{VARIABLE} is '{value}': it can be 2.4, 2.5, 2.6 or 2.7")),
    }
}

#[test]
fn messages_are_short_up_to_2_5() {
    for (release, short) in [("2.4.5", true), ("2.5", true), ("2.6", false), ("2.7.1", false)] {
        assert_eq!(parse_short_messages(release), Ok(short), "{release}");
    }
    assert_eq!(parse_short_messages(""), Ok(false));
    for unknown in ["2", "2.x", "3.1", "2.8", "-"] {
        let told = parse_short_messages(unknown);
        assert!(told.is_err_and(|text| text.contains("2.4, 2.5, 2.6 or 2.7")), "{unknown}");
    }
}
