//! A peer's text on a terminal: what could move the cursor, change the terminal or turn the direction of the text.

/// Whether a terminal shows a character as itself. Control characters (C0, C1) do not; nor do those of Unicode that have
/// no width and change how others are shown: marks of direction, joiners, tags.
pub(super) fn is_visible(letter: char) -> bool {
    let is_format = matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !letter.is_control() && !is_format
}

/// The text with a point for each character that is not visible; lines and tabs stay.
pub(super) fn visible(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' | '\t' => letter,
        letter if is_visible(letter) => letter,
        _ => '.',
    };
    text.chars().map(shown).collect()
}

/// Adds text of a JSON document to another, with what is not visible as `\u....`: it means the same to a program.
pub(super) fn push_json(document: &mut String, text: &str) {
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
    use super::*;

    #[test]
    fn nothing_that_turns_text_or_moves_the_cursor_is_visible() {
        let hostile = "a\u{1b}[2J\u{9b}2J\u{202e}b\u{2066}c\u{200b}\u{e0041}\u{feff}\r\u{7f}";
        assert_eq!(visible(hostile), "a.[2J.2J.b.c.....");
        assert_eq!(visible("täglich 日本語\n\t🦀"), "täglich 日本語\n\t🦀");
        let mut document = "\"".to_owned();
        push_json(&mut document, hostile);
        document.push('"');
        assert!(document.chars().all(is_visible), "{document:?}");
        let read: String = serde_json::from_str(&document).unwrap();
        assert_eq!(read, hostile);
    }
}
