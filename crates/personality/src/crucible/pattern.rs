//! Patterns in Python's dialect, which match at the start of a value.

use regex::{Captures, Regex, RegexBuilder};

/// The most that a compiled pattern may take, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// A pattern that matches at the start of a value.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    start: Regex,
    whole: Regex,
}

impl Pattern {
    /// Compiles a pattern of Python's.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let pattern = translate(pattern);
        // Alternatives without a group would bind weaker than the anchor.
        let start = compile(&format!(r"\A(?:{pattern})"))?;
        let whole = compile(&format!(r"\A(?:{pattern})\z"))?;
        Ok(Self { start, whole })
    }

    /// Whether a value begins with a match, as the original asks.
    pub(super) fn matches_start(&self, value: &str) -> bool {
        self.start.is_match(value)
    }

    /// Whether a value as a whole is a match.
    pub(super) fn matches_whole(&self, value: &str) -> bool {
        self.whole.is_match(value)
    }
}

/// A search and replacement of all occurrences.
#[derive(Clone, Debug)]
pub(super) struct Transform {
    search: Regex,
    replace: Vec<Piece>,
}

/// A piece of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Number(usize),
    Name(String),
}

impl Transform {
    /// Compiles a search and a replacement in Python's dialect.
    pub(super) fn new(search: &str, replace: &str) -> Result<Self, String> {
        let search = compile(&translate(search))?;
        let replace = parse_replacement(replace)?;
        for piece in &replace {
            let is_known = match piece {
                Piece::Text(_) => true,
                Piece::Number(number) => *number < search.captures_len(),
                Piece::Name(name) => search.capture_names().flatten().any(|known| known == name),
            };
            if !is_known {
                return Err(format!("{piece:?} refers to a group that the search doesn't have"));
            }
        }
        Ok(Self { search, replace })
    }

    /// The value with all matches replaced; one without a match stays.
    pub(super) fn apply(&self, value: &str) -> String {
        let expand = |found: &Captures<'_>| {
            let mut text = String::new();
            for piece in &self.replace {
                let group = match piece {
                    Piece::Text(own) => {
                        text.push_str(own);
                        continue;
                    }
                    Piece::Number(number) => found.get(*number),
                    Piece::Name(name) => found.name(name),
                };
                // A group that took no part is empty.
                text.push_str(group.map_or("", |group| group.as_str()));
            }
            text
        };
        self.search.replace_all(value, expand).into_owned()
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(MOST_BYTES)
        .build()
        .map_err(|error| error.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Python's `\Z` is `\z` here.
fn translate(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        text.push(character);
        if character == '\\' {
            match characters.next() {
                Some('Z') => text.push('z'),
                Some(other) => text.push(other),
                None => {}
            }
        }
    }
    text
}

/// Takes a replacement apart: `\1`, `\g<1>`, `\g<name>`, `\\` and the usual escapes.
fn parse_replacement(replace: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut characters = replace.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        let piece = match characters.next() {
            Some('\\') => {
                text.push('\\');
                continue;
            }
            Some('n') => {
                text.push('\n');
                continue;
            }
            Some('t') => {
                text.push('\t');
                continue;
            }
            Some(digit @ '1'..='9') => {
                let mut number = digit.to_string();
                if let Some(next) = characters.next_if(char::is_ascii_digit) {
                    number.push(next);
                }
                Piece::Number(number.parse().unwrap_or(usize::MAX))
            }
            Some('g') => {
                let name: String = characters.by_ref().take_while(|next| *next != '>').collect();
                let name = name.strip_prefix('<').ok_or("\\g lacks a name in <>")?;
                name.parse().map_or_else(|_| Piece::Name(name.to_owned()), Piece::Number)
            }
            other => {
                let other = other.map(String::from).unwrap_or_default();
                return Err(format!("a replacement has no escape \\{other}"));
            }
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(piece);
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_bound_to_the_start() {
        let protocol = Pattern::new("^tcp$|^udp$").unwrap();
        assert!(protocol.matches_start("udp"));
        assert!(!protocol.matches_start("xudp"));
        let bare = Pattern::new("tcp|udp").unwrap();
        assert!(!bare.matches_start("xudp"));
        assert!(bare.matches_start("udpx"));
        assert!(!bare.matches_whole("udpx"));
    }

    #[test]
    fn whole_match_may_take_a_later_alternative() {
        let pattern = Pattern::new("[0-9]+|[0-9]+ms").unwrap();
        assert!(pattern.matches_whole("10ms"));
    }

    #[test]
    fn transform_puts_groups_in_and_leaves_values_without_a_match() {
        let transform = Transform::new("^([1-9][0-9]*).$", r"\1KiB").unwrap();
        assert_eq!(transform.apply("4K"), "4KiB");
        assert_eq!(transform.apply("2.9296875K"), "2.9296875K");
        assert_eq!(Transform::new("([a-z])", r"\g<1>\\$1").unwrap().apply("ab"), r"a\$1b\$1");
        assert_eq!(Transform::new("a", "b").unwrap().apply("aXa"), "bXb");
    }

    #[test]
    fn unknown_groups_and_escapes_are_refused() {
        assert!(Transform::new("(a)", r"\2").is_err());
        assert!(Transform::new("(a)", r"\q").is_err());
        assert!(Transform::new("(?P<n>a)", r"\g<m>").is_err());
        assert!(Pattern::new("(?=a)").is_err());
    }
}
