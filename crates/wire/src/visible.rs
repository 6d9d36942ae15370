//! A peer's text on a terminal: what could move the cursor, change the terminal or turn the direction of the text.

use std::borrow::Cow;
use std::str::CharIndices;

/// Stands in the place of a character that is not visible.
const PLACEHOLDER: char = '.';

/// Whether a terminal shows a character as itself. Control characters (C0, C1) do not; nor do those of Unicode that have
/// no width and change how others are shown: marks of direction, joiners, tags.
pub fn is_visible(letter: char) -> bool {
    let is_format = matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !letter.is_control() && !is_format
}

/// The text with a point for each character that is not visible; lines and tabs stay.
pub fn visible(text: &str) -> String {
    let stays = |letter: char| matches!(letter, '\n' | '\t') || is_visible(letter);
    text.chars().map(|letter| if stays(letter) { letter } else { PLACEHOLDER }).collect()
}

/// Likewise, with a point for the end of a line and for a tab too: what stands in a line of ours begins none of its own.
pub fn visible_line(text: &str) -> String {
    text.chars().map(|letter| if is_visible(letter) { letter } else { PLACEHOLDER }).collect()
}

/// A JSON document (RFC 8259) whose texts are as [`visible_line`] makes them, escaped characters included. What is no
/// JSON stays none.
pub fn visible_json(document: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = document;
    while let Some((before, behind)) = split_at_hidden(rest) {
        shown.push_str(before);
        shown.push(PLACEHOLDER);
        rest = behind;
    }
    if shown.is_empty() {
        return Cow::Borrowed(document);
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// What stands before and behind the first character of a text that is not visible, however it is written. Control
/// characters below a blank are white space between the parts of a document, or an error.
fn split_at_hidden(document: &str) -> Option<(&str, &str)> {
    let mut letters = document.char_indices();
    while let Some((at, letter)) = letters.next() {
        let is_hidden = match letter {
            '\\' => match letters.next() {
                Some((_, 'b' | 'f' | 'n' | 'r' | 't')) => true,
                Some((_, 'u')) => take_escaped(&mut letters).is_some_and(|c| !is_visible(c)),
                _ => false,
            },
            letter => letter >= ' ' && !is_visible(letter),
        };
        if is_hidden {
            return Some((document.get(..at)?, letters.as_str()));
        }
    }
    None
}

/// The character whose digits follow `\u`: one unit of UTF-16, or two of which the second is escaped too.
fn take_escaped(letters: &mut CharIndices<'_>) -> Option<char> {
    let unit = |digits: &str| u16::from_str_radix(digits.get(..4)?, 16).ok();
    let first = unit(letters.as_str())?;
    letters.nth(3);
    let second = letters.as_str().strip_prefix("\\u").and_then(unit);
    if (0xd800..0xdc00).contains(&first)
        && let Some(second) = second
    {
        letters.nth(5);
        return char::decode_utf16([first, second]).next()?.ok();
    }
    char::from_u32(first.into())
}

/// Adds text of a JSON document to another, with what is not visible as `\u....`: it means the same to a program.
pub fn push_json(document: &mut String, text: &str) {
    for letter in text.chars() {
        if is_visible(letter) {
            document.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            document.push_str(&format!("\\u{unit:04x}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOSTILE: &str = "a\u{1b}[2J\u{9b}2J\u{202e}b\u{2066}c\u{200b}\u{e0041}\u{feff}\r\u{7f}";

    /// A text as JSON, every character escaped.
    fn render_escaped(text: &str) -> String {
        let units = text.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
        format!("\"{}\"", units.collect::<String>())
    }

    #[test]
    fn nothing_that_turns_text_or_moves_the_cursor_is_visible() {
        assert_eq!(visible(HOSTILE), "a.[2J.2J.b.c.....");
        assert_eq!(visible("täglich 日本語\n\t🦀"), "täglich 日本語\n\t🦀");
        assert_eq!(visible_line("one\n\ttwo 🦀"), "one..two 🦀");
        let mut document = "\"".to_owned();
        push_json(&mut document, HOSTILE);
        document.push('"');
        assert!(document.chars().all(is_visible), "{document:?}");
        let read: String = serde_json::from_str(&document).unwrap();
        assert_eq!(read, HOSTILE);
    }

    #[test]
    fn a_document_keeps_its_form_and_its_visible_texts() {
        let document = "{\n\t\"a\\\\n\": [\"\\\"\\u00e4\\ud83e\\udd80\\/\", 1.5e3]\r\n}";
        assert!(matches!(visible_json(document), Cow::Borrowed(same) if same == document));
        // Half a pair, digits that are none, an escape that ends with the document: no JSON before, none behind.
        for broken in ["\"\\ud83e\"", "\"\\u00g0\"", "\"\\u00", "\"\\"] {
            assert!(serde_json::from_str::<String>(&visible_json(broken)).is_err(), "{broken}");
        }
    }

    proptest! {
        #[test]
        fn texts_of_a_document_are_made_visible_however_they_are_escaped(
            text in prop_oneof![any::<String>(), "[\\\\u\"n0-9\u{1b}\u{202e}\u{e0041}]{0,20}"],
        ) {
            for document in [serde_json::to_string(&text).unwrap(), render_escaped(&text)] {
                let read: String = serde_json::from_str(&visible_json(&document)).unwrap();
                prop_assert_eq!(read, visible_line(&text));
            }
        }
    }
}
