//! A document that the other end wrote, laid out as ours are.
//!
//! It goes from text to text in pieces: a tree of it would take up to a hundred times its bytes.

use serde::de::IgnoredAny;

use linerate_wire::visible::push_json;

use super::long_object::Layout;

/// Levels of a document. Each adds a tab to a line, so that without a limit a short text would make an endless one.
const MOST_LEVELS: usize = 64;
/// How long a piece is about.
const PIECE_BYTES: usize = 16 << 10;

/// A document in pieces.
#[derive(Clone, Debug)]
pub(super) struct Relayed<'a> {
    rest: &'a str,
    /// The level on which it stands; `None`: on one line, without blanks.
    depth: Option<usize>,
    /// For each level that is open, whether it is an object's.
    open: Vec<bool>,
    /// Whether a text that comes next is a field's name.
    awaits_name: bool,
}

impl<'a> Relayed<'a> {
    /// At so many levels below its reader's; none where it isn't JSON, or nests too deep.
    pub(super) fn new(text: &'a str, layout: Layout, level: usize) -> Option<Self> {
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        let depth = (layout == Layout::Pretty).then_some(level);
        let relayed = Self { rest: text, depth, open: Vec::new(), awaits_name: false };
        relayed.is_flat().then_some(relayed)
    }

    /// Whether it has no more levels than it may.
    fn is_flat(&self) -> bool {
        let mut reader = self.clone();
        while let Some(token) = reader.take_token() {
            match token.as_bytes() {
                b"{" | b"[" if reader.open.len() == MOST_LEVELS => return false,
                b"{" | b"[" => reader.open.push(true),
                b"}" | b"]" => drop(reader.open.pop()),
                _ => {}
            }
        }
        true
    }

    /// The next text, number, word or sign.
    fn take_token(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_ascii_start();
        let bytes = self.rest.as_bytes();
        let is_sign = |byte: &u8| b"{}[],:".contains(byte);
        let length = match bytes.first()? {
            b'"' => length_of_text(bytes),
            sign if is_sign(sign) => 1,
            _ => {
                let ends = |byte: &u8| is_sign(byte) || byte.is_ascii_whitespace();
                bytes.iter().position(ends).unwrap_or(bytes.len())
            }
        };
        let (token, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(token)
    }

    fn write(&mut self, token: &'a str, text: &mut String) {
        match token.as_bytes() {
            [sign @ (b'{' | b'[')] => {
                self.awaits_name = *sign == b'{';
                self.open.push(self.awaits_name);
                text.push_str(token);
            }
            [sign @ (b'}' | b']')] => {
                self.open.pop();
                self.awaits_name = false;
                if *sign == b'}' {
                    self.begin_line(text);
                }
                text.push_str(token);
            }
            b"," => {
                self.awaits_name = self.open.last() == Some(&true);
                let spaced = self.depth.is_some() && !self.awaits_name;
                text.push_str(if spaced { ", " } else { "," });
            }
            b":" => text.push_str(if self.depth.is_some() { ":\t" } else { ":" }),
            _ => {
                if std::mem::take(&mut self.awaits_name) {
                    self.begin_line(text);
                }
                push_json(text, token);
            }
        }
    }

    fn begin_line(&self, text: &mut String) {
        let Some(depth) = self.depth else { return };
        text.push('\n');
        text.extend(std::iter::repeat_n('\t', depth + self.open.len()));
    }
}

/// How long a text at the front is, with its quotes.
fn length_of_text(bytes: &[u8]) -> usize {
    let mut escaped = false;
    let end = bytes.iter().skip(1).position(|byte| {
        let is_end = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        is_end
    });
    end.map_or(bytes.len(), |end| end + 2)
}

impl Iterator for Relayed<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut piece = String::new();
        while piece.len() < PIECE_BYTES {
            let Some(token) = self.take_token() else { break };
            self.write(token, &mut piece);
        }
        (!piece.is_empty()).then_some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::super::json::{Fields, Json};
    use super::*;
    use linerate_wire::visible::is_visible;

    #[test]
    fn a_relayed_document_is_laid_out_as_a_tree_of_it_would_be() {
        for text in [
            "{}",
            " [ ] ",
            "\"a\\\"b\\\\\"",
            "17",
            "null",
            "{\"a\":{},\"b\":[],\"c\":[1,-2.5,true],\"d\":[{\"e\":\"}{][,:\"},{}],\"f\":{\"g\":null}}",
            " {\n\t\"start\":\t{ \"x\" : [ [ 1 , 2 ] , [ { \"y\" : \"\\n \\u00e4\" } ] ] } , \"end\" : { } } ",
        ] {
            let tree = Json::parse(text).unwrap();
            let line: String = Relayed::new(text, Layout::Line, 0).unwrap().collect();
            assert_eq!(line, tree.render_line().replace('ä', "\\u00e4"));
            let pretty: String = Relayed::new(text, Layout::Pretty, 0).unwrap().collect();
            assert_eq!(pretty, tree.render_pretty().replace('ä', "\\u00e4"));
            let within = Json::from(Fields::new().with("field", tree)).render_pretty();
            let below: String = Relayed::new(text, Layout::Pretty, 1).unwrap().collect();
            assert_eq!(format!("{{\n\t\"field\":\t{below}\n}}"), within.replace('ä', "\\u00e4"));
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        let text = "{\"a\u{9b}2J\":[\"\u{202e}b\u{7f}\",\"\u{e0041}\"]}";
        for layout in [Layout::Line, Layout::Pretty] {
            let relayed: String = Relayed::new(text, layout, 0).unwrap().collect();
            let strange = |letter: char| !"\n\t".contains(letter) && !is_visible(letter);
            assert!(!relayed.contains(strange), "{relayed:?}");
            assert_eq!(Json::parse(&relayed), Json::parse(text));
        }
    }

    #[test]
    fn invalid_or_deeply_nested_document_is_not_relayed() {
        for text in ["", "{", "{]", "1 2", "\"a"] {
            assert!(Relayed::new(text, Layout::Line, 0).is_none(), "{text}");
        }
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(Relayed::new(&nested(MOST_LEVELS), Layout::Line, 0).is_some());
        assert!(Relayed::new(&nested(MOST_LEVELS + 1), Layout::Line, 0).is_none());
        assert!(Relayed::new(&nested(1 << 20), Layout::Line, 0).is_none());
    }

    #[test]
    fn a_long_document_comes_in_short_pieces() {
        let text = format!("[{}0]", "{\"\":0},".repeat(100_000));
        let pieces: Vec<String> = Relayed::new(&text, Layout::Line, 0).unwrap().collect();
        assert_eq!(pieces.concat(), text);
        assert!(pieces.iter().all(|piece| piece.len() < 2 * PIECE_BYTES));
    }
}
