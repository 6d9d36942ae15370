//! The names of differentiated services, and of the types of service before them, that command lines know.

/// The code point of a name, in any case: class selectors (`cs0` to `cs7`, RFC 2474, section
/// 4.2.2), assured forwarding (`af11` to `af43`, RFC 2597, section 6), `ef` (RFC 3246) and `va`
/// (RFC 5865).
pub fn parse_service_class(name: &str) -> Option<u8> {
    let name = name.to_ascii_lowercase();
    match *name.as_bytes() {
        [b'c', b's', class @ b'0'..=b'7'] => Some((class - b'0') << 3),
        [b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => {
            Some(((class - b'0') << 3) | ((drop - b'0') << 1))
        }
        [b'e', b'f'] => Some(46),
        [b'v', b'a'] => Some(44),
        _ => None,
    }
}

/// The bits of a type of service (RFC 1349), in any case, as the code point that holds them.
pub fn parse_type_of_service(name: &str) -> Option<u8> {
    const TYPES: [(&str, u8); 3] = [("lowdelay", 4), ("throughput", 2), ("reliability", 1)];
    let (_, point) = TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(*point)
}

#[test]
fn names_of_services() {
    let points = ["cs0", "CS7", "af11", "af13", "Af43", "ef", "va"].map(parse_service_class);
    assert_eq!(points, [0, 56, 10, 14, 38, 46, 44].map(Some));
    for unknown in ["", "cs", "cs8", "af10", "af44", "af51", "efg", "le"] {
        assert_eq!(parse_service_class(unknown), None, "{unknown}");
    }
    let points = ["lowdelay", "Throughput", "RELIABILITY"].map(parse_type_of_service);
    assert_eq!(points, [4, 2, 1].map(Some));
    assert_eq!(["ef", "low", ""].map(parse_type_of_service), [None; 3]);
}
