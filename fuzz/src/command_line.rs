//! The lexers of other tools' options. Each function takes any bytes and panics only when the lexer is
//! wrong. Whoever includes this file has the lexers beside it.

use crate::colon_options::{ColonOptions, means, parse_leading, parse_quantity, parse_u32};

/// Options of the form `-name:value`: words are separated by line breaks.
pub fn colon_options(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let options = ColonOptions::new(&words);
    for name in ["up", "target", "?", ""] {
        let value = options.value(name);
        assert!(value.is_none_or(|value| !value.is_empty()));
        assert_eq!(options.value_of_first(&[name]), options.value_of_last(&[name]));
        let _ = options.flag(name);
        for text in value.iter().chain(&[text]) {
            let number = parse_leading(text);
            assert_eq!(
                u64::from(parse_u32(text)),
                u64::try_from(number).unwrap_or(0).min(u32::MAX.into())
            );
            let quantity = parse_quantity(text, 4);
            assert!(number > 0 || quantity.value == 0);
            let _ = means(text, "maxtput");
        }
    }
}
