//! The names of differentiated services (RFC 4594) that `--dscp` knows.

use super::amount::parse_any_base;
use crate::service_class::{parse_service_class, parse_type_of_service};

/// The type of service octet that a name or a number from 0 to 63 stands for.
pub(super) fn parse_dscp(text: &str) -> Option<u8> {
    let number = || u8::try_from(parse_any_base(text)?).ok().filter(|point| *point < 64);
    let named = parse_service_class(text).or_else(|| parse_type_of_service(text));
    Some(named.or_else(number)? << 2)
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
