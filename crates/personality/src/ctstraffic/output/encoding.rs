//! The bytes of files.

/// How a file's text becomes bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 without a mark, lines ending in LF.
    #[default]
    Utf8,
    /// The original's: UTF-16, little-endian, with a byte order mark, lines ending in CRLF.
    Utf16,
}

impl Encoding {
    /// What a file begins with.
    pub fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8 => b"",
            Self::Utf16 => &[0xff, 0xfe],
        }
    }

    /// Lines of text, each ended: those of a text with several lines too.
    pub fn encode(self, lines: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 * lines.len() + 4);
        for line in lines.strip_suffix('\n').unwrap_or(lines).split('\n') {
            match self {
                Self::Utf8 => {
                    bytes.extend_from_slice(line.as_bytes());
                    bytes.push(b'\n');
                }
                Self::Utf16 => {
                    let units = line.encode_utf16().chain("\r\n".encode_utf16());
                    bytes.extend(units.flat_map(u16::to_le_bytes));
                }
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_the_encoding_wants() {
        assert_eq!(Encoding::Utf8.encode("a,é"), "a,é\n".as_bytes());
        assert_eq!(Encoding::Utf8.encode("a\n\nb\n"), b"a\n\nb\n");
        assert_eq!(Encoding::Utf16.encode("[é"), [b'[', 0, 0xe9, 0, b'\r', 0, b'\n', 0]);
        assert_eq!(Encoding::Utf16.encode("a\nb"), b"a\0\r\0\n\0b\0\r\0\n\0");
        assert_eq!((Encoding::Utf8.mark(), Encoding::Utf16.mark()), (&b""[..], &b"\xff\xfe"[..]));
    }
}
