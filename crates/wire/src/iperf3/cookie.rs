//! What names a test on each of its connections.

/// Bytes of a cookie on the wire: 36 characters and a zero.
pub const COOKIE_BYTES: usize = 37;

/// The alphabet that clients draw from.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What names a test: the first bytes of its control connection and of each TCP stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cookie([u8; COOKIE_BYTES]);

impl Cookie {
    /// A cookie of random bytes.
    pub fn of_random(random: [u8; COOKIE_BYTES - 1]) -> Self {
        let mut bytes = [0; COOKIE_BYTES];
        for (byte, random) in bytes.iter_mut().zip(random) {
            *byte = ALPHABET[usize::from(random % 32)];
        }
        Self(bytes)
    }

    /// A cookie as it came. Any bytes will do, as they do for the original.
    pub fn of_wire(bytes: [u8; COOKIE_BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes on the wire.
    pub fn wire(&self) -> &[u8; COOKIE_BYTES] {
        &self.0
    }

    /// Its characters, up to the zero; what can't be shown is a dot.
    pub fn text(&self) -> String {
        let shown = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' };
        self.0.iter().take_while(|byte| **byte != 0).map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_has_36_characters_and_a_zero() {
        let mut random = [0; 36];
        for (byte, n) in random.iter_mut().zip(7..) {
            *byte = n;
        }
        let cookie = Cookie::of_random(random);
        assert_eq!(cookie.wire().last(), Some(&0));
        assert_eq!(cookie.text().len(), 36);
        assert!(cookie.text().bytes().all(|byte| ALPHABET.contains(&byte)));
        assert_eq!(Cookie::of_wire(*cookie.wire()), cookie);
    }
}
