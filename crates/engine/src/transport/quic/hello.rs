//! As much of a client's first words as a server must know before it answers: which transport
//! parameters stand there, and which application protocols are offered.

/// What the bytes of a ClientHello (RFC 8446, section 4.1.2) say so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hello {
    /// More is to come.
    Part,
    /// What stands in it.
    Whole(Offer),
    /// It isn't one.
    Wrong,
}

/// What a client offers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Offer {
    /// The numbers of its transport parameters.
    pub(super) parameters: Vec<u64>,
    /// The application protocols (RFC 7301), the one that it likes best first.
    pub(super) protocols: Vec<Vec<u8>>,
}

const CLIENT_HELLO: u8 = 1;
/// The extension that has the application protocols.
const PROTOCOLS: u16 = 16;
/// The extension that has the transport parameters (RFC 9001, section 8.2), and its number in drafts.
const TRANSPORT_PARAMETERS: [u16; 2] = [0x39, 0xffa5];
/// No client's first words are longer; what is longer is TLS's matter.
const LONGEST: usize = 64 << 10;

impl Hello {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        Self::parse_within(bytes, LONGEST)
    }

    /// The same, where one whose body is longer than `most_bytes` counts as wrong as soon as it says so.
    pub(super) fn parse_within(bytes: &[u8], most_bytes: usize) -> Self {
        let Some((&[kind, a, b, c], body)) = bytes.split_first_chunk() else { return Self::Part };
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        if kind != CLIENT_HELLO || length > most_bytes {
            return Self::Wrong;
        }
        match body.get(..length) {
            None => Self::Part,
            Some(body) => parse_body(body).map_or(Self::Wrong, Self::Whole),
        }
    }
}

fn parse_body(body: &[u8]) -> Option<Offer> {
    // Version and random.
    let mut rest = body.get(34..)?;
    take_short(&mut rest)?;
    take_long(&mut rest)?;
    take_short(&mut rest)?;
    let mut extensions = take_long(&mut rest)?;
    let mut offer = Offer::default();
    while !extensions.is_empty() {
        let (kind, after) = extensions.split_first_chunk()?;
        extensions = after;
        let data = take_long(&mut extensions)?;
        match u16::from_be_bytes(*kind) {
            PROTOCOLS => offer.protocols = parse_protocols(data)?,
            kind if TRANSPORT_PARAMETERS.contains(&kind) => offer.parameters = parameter_ids(data),
            _ => {}
        }
    }
    Some(offer)
}

/// The application protocols that stand in their extension; `None` where there is none, or one without a name.
fn parse_protocols(mut data: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut names, mut protocols) = (take_long(&mut data)?, Vec::new());
    while !names.is_empty() {
        protocols.push(take_short(&mut names).filter(|name| !name.is_empty())?.to_vec());
    }
    (!protocols.is_empty()).then_some(protocols)
}

/// Takes what follows a length of one byte.
fn take_short<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first()?;
    let (taken, after) = after.split_at_checked(usize::from(*length))?;
    *rest = after;
    Some(taken)
}

/// Takes what follows a length of two bytes.
fn take_long<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    let (taken, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    *rest = after;
    Some(taken)
}

/// The parameters that stand in their extension, number and value; of what is cut, those before.
pub(super) fn parameters(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let id = take_varint(&mut rest)?;
        let length = take_varint(&mut rest)?;
        let (value, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        rest = after;
        Some((id, value))
    })
}

/// The numbers of the parameters that stand in their extension.
pub(super) fn parameter_ids(bytes: &[u8]) -> Vec<u64> {
    parameters(bytes).map(|(id, _)| id).collect()
}

/// The value of one of them.
pub(super) fn parameter(bytes: &[u8], id: u64) -> Option<&[u8]> {
    parameters(bytes).find(|(one, _)| *one == id).map(|(_, value)| value)
}

/// Takes a number of variable length (RFC 9000, section 16).
pub(super) fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let first = *rest.first()?;
    let (bytes, after) = rest.split_at_checked(1 << (first >> 6))?;
    *rest = after;
    let plain = u64::from(first & 0x3f);
    Some(bytes.iter().skip(1).fold(plain, |value, byte| value << 8 | u64::from(*byte)))
}

/// Writes one, as short as it can be; of a number above 62 bits the lowest 62.
pub(super) fn render_varint(value: u64, into: &mut Vec<u8>) {
    match value {
        0..0x40 => into.push(value as u8),
        0x40..0x4000 => into.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => into.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => into.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Writes one in 1, 2, 4 or 8 bytes, which it must fit into.
pub(super) fn render_varint_in(value: u64, width: usize, into: &mut Vec<u8>) {
    let mark = u64::from(width.trailing_zeros()) << (8 * width - 2);
    into.extend((value | mark).to_be_bytes().iter().skip(8 - width));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 63, 64, 16_383, 16_384, 0xbaad, (1 << 30) - 1, 1 << 30, (1 << 62) - 1] {
            let mut bytes = Vec::new();
            render_varint(value, &mut bytes);
            let mut rest = bytes.as_slice();
            assert_eq!(take_varint(&mut rest), Some(value));
            assert!(rest.is_empty());
            assert_eq!(take_varint(&mut &bytes[..bytes.len() - 1]), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_harm(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let mut hello = vec![CLIENT_HELLO, 0, 0, bytes.len() as u8];
            hello.extend(&bytes);
            assert_ne!(Hello::parse(&hello), Hello::Part);
            assert!(parameter_ids(&bytes).len() <= bytes.len());
        }
    }

    #[test]
    fn a_list_of_protocols_that_tls_refuses_is_wrong() {
        let parse = |list: &[u8]| {
            let mut body = vec![3; 34];
            body.extend([0, 0, 2, 0x13, 1, 1, 0, 0, 4 + list.len() as u8, 0, 16]);
            body.extend([0, list.len() as u8]);
            body.extend(list);
            Hello::parse(&[&[1, 0, 0, body.len() as u8], &body[..]].concat())
        };
        let offer = Offer { parameters: Vec::new(), protocols: vec![b"h3".to_vec()] };
        assert_eq!(parse(b"\x00\x03\x02h3"), Hello::Whole(offer));
        // Nothing, no protocol, one without a name, one that is cut.
        for list in [&b""[..], b"\x00\x00", b"\x00\x04\x02h3\x00", b"\x00\x04\x02h3\x01"] {
            assert_eq!(parse(list), Hello::Wrong, "{list:?}");
        }
    }

    #[test]
    fn parameters_are_found_in_a_hello_that_is_whole_and_in_no_other() {
        let mut parameters = Vec::new();
        for (id, value) in [(4_u64, vec![1, 2]), (0xbaad, vec![])] {
            render_varint(id, &mut parameters);
            render_varint(value.len() as u64, &mut parameters);
            parameters.extend(value);
        }
        let mut body = vec![3; 34];
        body.extend([2, 9, 9, 0, 2, 0x13, 1, 1, 0]);
        let mut extensions = vec![0, 10, 0, 1, 7, 0, 0x39, 0, parameters.len() as u8];
        extensions.extend(&parameters);
        extensions.extend(b"\x00\x10\x00\x09\x00\x07\x02h3\x03abc");
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(&extensions);
        let mut hello = vec![1, 0, 0, body.len() as u8];
        hello.extend(&body);
        for cut in 0..hello.len() {
            assert_eq!(Hello::parse(&hello[..cut]), Hello::Part, "{cut}");
        }
        let protocols = vec![b"h3".to_vec(), b"abc".to_vec()];
        let offer = Offer { parameters: vec![4, 0xbaad], protocols };
        assert_eq!(Hello::parse(&hello), Hello::Whole(offer));
        assert_eq!(Hello::parse(&[2, 0, 0, 0]), Hello::Wrong);
        assert_eq!(Hello::parse(&[1, 0, 0, 1, 0]), Hello::Wrong);
    }
}
