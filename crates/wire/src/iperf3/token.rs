//! What a token says, before it is encrypted.

/// The client's user, and the time of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Token {
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: String,
    /// When the token was made, seconds since 1970.
    pub seconds: i64,
}

impl Token {
    /// The text that is encrypted.
    pub fn render(&self) -> String {
        format!("user: {}\npwd:  {}\nts:   {}", self.user, self.password, self.seconds)
    }

    /// Reads the text; `None` where it is none.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut lines = text.trim_end_matches('\0').splitn(3, '\n');
        let mut field = |name: &str| lines.next()?.strip_prefix(name).map(str::trim_start);
        Some(Self {
            user: field("user:")?.to_owned(),
            password: field("pwd:")?.to_owned(),
            seconds: field("ts:")?.trim_end().parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_as_it_is_written() {
        let token =
            Token { user: "mario".into(), password: "p:w d".into(), seconds: 1_700_000_000 };
        assert_eq!(token.render(), "user: mario\npwd:  p:w d\nts:   1700000000");
        assert_eq!(Token::parse(token.render().as_bytes()), Some(token));
        for wrong in ["", "user: a", "user: a\npwd:  b\nts:   x", "\u{1}\u{2}\n\n"] {
            assert_eq!(Token::parse(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
