//! What names a connection or stream in the logs of both ends.

/// Bytes of an id on the wire: 36 characters and a zero.
pub const CONNECTION_ID_BYTES: usize = 37;

/// Characters of an id.
const TEXT_BYTES: usize = CONNECTION_ID_BYTES - 1;

/// Where a UUID has its hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// The id of a connection or stream: a UUID in lower case, drawn by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId([u8; CONNECTION_ID_BYTES]);

impl ConnectionId {
    /// What stands in logs before a TCP connection has its id.
    pub const NONE: Self = Self(*b"00000000-0000-0000-0000-000000000000\0");

    /// A version 4 UUID (RFC 9562) of random bytes.
    pub fn of_random(mut random: [u8; 16]) -> Self {
        random[6] = random[6] & 0x0f | 0x40;
        random[8] = random[8] & 0x3f | 0x80;
        let mut digits = random.into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let mut id = Self::NONE;
        for (at, place) in id.0.iter_mut().take(TEXT_BYTES).enumerate() {
            if HYPHENS.contains(&at) {
                continue;
            }
            let digit = digits.next().unwrap_or_default();
            *place = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        }
        id
    }

    /// An id as it came. Any bytes will do, as they do for the original.
    pub fn of_wire(bytes: [u8; CONNECTION_ID_BYTES]) -> Self {
        Self(bytes)
    }

    /// The id on the wire.
    pub fn wire(&self) -> &[u8; CONNECTION_ID_BYTES] {
        &self.0
    }

    /// The characters up to the zero. A dot stands for each that is neither a letter, a digit nor a
    /// hyphen, so that an id neither moves a cursor nor splits a row of a csv file.
    pub fn text(&self) -> String {
        let characters = self.0.iter().take(TEXT_BYTES).take_while(|byte| **byte != 0);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        characters.map(|byte| if is_plain(*byte) { char::from(*byte) } else { '.' }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_of_version_4() {
        let id = ConnectionId::of_random([0xff; 16]);
        assert_eq!(id.text(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(id.wire().last(), Some(&0));
        let id = ConnectionId::of_random([0x1a; 16]);
        assert_eq!(id.text(), "1a1a1a1a-1a1a-4a1a-9a1a-1a1a1a1a1a1a");
        assert_eq!(ConnectionId::of_wire(*id.wire()), id);
    }

    #[test]
    fn a_foreign_id_is_shown_without_harm() {
        let mut bytes = *b"b060598b-3bdb-4b90-9b3b-cfc0a15e636b\0";
        assert_eq!(ConnectionId::of_wire(bytes).text(), "b060598b-3bdb-4b90-9b3b-cfc0a15e636b");
        bytes[..4].copy_from_slice(b"\x1b,\"\n");
        assert_eq!(ConnectionId::of_wire(bytes).text(), "....598b-3bdb-4b90-9b3b-cfc0a15e636b");
        assert_eq!(ConnectionId::of_wire([0; CONNECTION_ID_BYTES]).text(), "");
        assert_eq!(ConnectionId::of_wire([b'a'; CONNECTION_ID_BYTES]).text().len(), 36);
    }
}
