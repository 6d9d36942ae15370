//! As much of Rust's lexis as counting lines needs.

/// A function's name, its first line (from 1), and its length from the line of `fn` to the line of
/// its last brace.
#[derive(Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// The source with comments and the contents of text and character literals blanked; every line
/// keeps its number.
pub(crate) fn without_comments_and_text(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = end_of_token(bytes, at);
        if end == at + 1 {
            code.push(bytes[at]);
        } else {
            code.extend(bytes[at..end].iter().map(|&b| if b == b'\n' { b'\n' } else { b' ' }));
        }
        at = end;
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Where the comment or literal that starts here ends; one further where none starts here.
fn end_of_token(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return end_of_block_comment(bytes, at);
    }
    if rest[0] == b'"' {
        return end_of_text(bytes, at);
    }
    let in_word = at > 0 && is_word(bytes[at - 1]);
    if rest[0] == b'r' && (!in_word || bytes[at - 1] == b'b') {
        let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
        if rest.get(1 + hashes) == Some(&b'"') {
            return end_of_raw_text(bytes, at + 2 + hashes, hashes);
        }
    }
    if rest[0] == b'\'' {
        return end_of_character(rest).map_or(at + 1, |length| at + length);
    }
    at + 1
}

fn end_of_block_comment(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0usize;
    let mut at = at;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn end_of_text(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_raw_text(bytes: &[u8], from: usize, hashes: usize) -> usize {
    let closing = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let rest = &bytes[from..];
    rest.windows(closing.len())
        .position(|window| window == closing)
        .map_or(bytes.len(), |position| from + position + closing.len())
}

/// The length of a character literal; None for a lifetime.
fn end_of_character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return rest[3..].iter().position(|&b| b == b'\'').map(|position| position + 4);
    }
    let text = std::str::from_utf8(rest).ok()?;
    let length = text[1..].chars().next()?.len_utf8();
    (rest.get(1 + length) == Some(&b'\'')).then_some(length + 2)
}

/// Every function with a body, nested ones too; `code` is without comments and text.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if at > 0 && is_word(bytes[at - 1]) {
            continue;
        }
        let name: String =
            code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if let Some((open, close)) = body(bytes, at).filter(|_| !name.is_empty()) {
            let line = 1 + count_lines(&bytes[..at]);
            let lines = 1 + count_lines(&bytes[at..open]) + count_lines(&bytes[open..close]);
            found.push(Function { name, line, lines });
        }
    }
    found
}

/// The opening and the closing brace of the function at `at`; None of one without a body. A brace
/// between brackets (a constant generic) opens no body.
fn body(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut brackets = 0i32;
    let open = bytes[at..].iter().position(|&b| {
        match b {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            _ => {}
        }
        brackets == 0 && (b == b'{' || b == b';')
    })? + at;
    if bytes[open] == b';' {
        return None;
    }
    let mut depth = 0i32;
    let length = bytes[open..].iter().position(|&b| {
        match b {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    Some((open, open + length))
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&b| b == b'\n').count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether the line has the word, not as part of a longer one.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = at.checked_sub(1).map(|at| line.as_bytes()[at]);
        let after = line.as_bytes().get(at + word.len()).copied();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[test]
fn literals_and_comments_are_blanked() {
    let source =
        "a(\"}\\\"{\") /* { /* } */ */ r#\"{\"# '{' '\\'' b'}' 'a x: &'static str // {\nlast";
    let code = without_comments_and_text(source);
    assert!(!code.contains(['{', '}']), "{code}");
    assert!(code.contains("'a x: &'static str"), "{code}");
    assert!(code.ends_with("\nlast"), "{code}");
}

#[test]
fn functions_are_measured() {
    let source = "trait T { fn none(&self); }\nfn one() { 1 }\nfn three(\n    a: [u8; 4],\n) {}\n\nfn outer() {\n    fn inner() {}\n}\n";
    let found: Vec<(String, usize, usize)> =
        functions(source).into_iter().map(|f| (f.name, f.line, f.lines)).collect();
    let expected = [("one", 2, 1), ("three", 3, 3), ("outer", 7, 3), ("inner", 8, 1)];
    assert_eq!(found, expected.map(|(name, line, lines)| (name.to_owned(), line, lines)));
}

#[test]
fn words_are_whole() {
    assert!(has_word("x = unsafe { 1 }", "unsafe"));
    assert!(!has_word("#![deny(unsafe_code)]", "unsafe"));
}
