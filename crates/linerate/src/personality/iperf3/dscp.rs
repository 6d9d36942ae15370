//! The names of differentiated services (RFC 4594) that `--dscp` knows.

use super::amount::parse_any_base;

/// Names and the code points that they stand for. The last three are older than code points: types
/// of service (RFC 1349), here as the six bits that hold them.
const NAMES: [(&str, u8); 25] = [
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("ef", 46),
    ("va", 44),
    ("lowdelay", 4),
    ("throughput", 2),
    ("reliability", 1),
];

/// The type of service octet that a name or a number from 0 to 63 stands for.
pub(super) fn parse_dscp(text: &str) -> Option<u8> {
    let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    let point = match named {
        Some((_, point)) => *point,
        None => u8::try_from(parse_any_base(text)?).ok().filter(|point| *point < 64)?,
    };
    Some(point << 2)
}

#[test]
fn names_and_numbers() {
    assert_eq!(parse_dscp("ef"), Some(0xb8));
    assert_eq!(parse_dscp("EF"), Some(0xb8));
    assert_eq!(parse_dscp("va"), Some(0xb0));
    assert_eq!(parse_dscp("0x2e"), Some(0xb8));
    assert_eq!(parse_dscp("lowdelay"), Some(0x10));
    assert_eq!(parse_dscp("64"), None);
    assert_eq!(parse_dscp("-1"), None);
    assert_eq!(parse_dscp("abc"), None);
}
