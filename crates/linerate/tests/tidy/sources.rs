//! Names, sizes and what may not stand in the source.

use std::path::Path;

use crate::assert_tidy;
use crate::source::{functions, has_word, without_comments_and_text};
use crate::workspace::files;

/// A screen.
const MOST_LINES_OF_A_FUNCTION: usize = 70;

/// What a file with one subject may have.
const MOST_LINES_OF_A_FILE: usize = 600;

/// Rooms for whatever fits nowhere: a module is named after its subject.
const BANNED_NAMES: [&str; 12] = [
    "util",
    "utils",
    "common",
    "helper",
    "helpers",
    "misc",
    "manager",
    "core",
    "base",
    "types",
    "shared",
    "lib_internal",
];

/// The only folder that may lift the workspace's denial of unsafe code.
const UNSAFE_FOLDER: &str = "crates/system/src/socket/";

/// How far above its block a SAFETY comment may begin.
const SAFETY_WITHIN_LINES: usize = 6;

#[test]
fn files_and_functions_are_small() {
    let mut offences = Vec::new();
    for (path, text) in files(&[".rs"]) {
        let lines = text.lines().count();
        if lines > MOST_LINES_OF_A_FILE {
            offences.push(format!("{path}: {lines} lines"));
        }
        for function in functions(&without_comments_and_text(&text)) {
            if function.lines > MOST_LINES_OF_A_FUNCTION {
                let (name, line, lines) = (function.name, function.line, function.lines);
                offences.push(format!("{path}:{line}: fn {name} has {lines} lines"));
            }
        }
    }
    assert_tidy("files of at most 600 lines, functions of at most 70:", &offences);
}

#[test]
fn modules_are_named_after_a_subject() {
    let mut offences = Vec::new();
    for (path, text) in files(&[".rs"]) {
        let parts = Path::new(&path).with_extension("");
        for part in parts.components().filter_map(|part| part.as_os_str().to_str()) {
            if BANNED_NAMES.contains(&part) {
                offences.push(path.clone());
            }
        }
        for (number, line) in without_comments_and_text(&text).lines().enumerate() {
            let declared = line.trim_start().trim_start_matches("pub ").strip_prefix("mod ");
            let name = declared.map(|rest| rest.trim_end_matches([';', '{', ' ']));
            if name.is_some_and(|name| BANNED_NAMES.contains(&name)) {
                offences.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_tidy("a module that is named after no subject:", &offences);
}

#[test]
fn unsafe_code_has_its_place_and_its_reason() {
    let mut offences = Vec::new();
    for (path, text) in files(&[".rs"]) {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in without_comments_and_text(&text).lines().enumerate() {
            if !has_word(line, "unsafe") {
                continue;
            }
            let first = number.saturating_sub(SAFETY_WITHIN_LINES);
            let argued = lines[first..=number].iter().any(|line| line.contains("SAFETY:"));
            if !path.starts_with(UNSAFE_FOLDER) || !argued {
                offences.push(format!("{path}:{}: {}", number + 1, lines[number].trim()));
            }
        }
    }
    assert_tidy("unsafe code outside system/src/socket/ or without its SAFETY comment:", &offences);
}

#[test]
fn nothing_is_unfinished_or_switched_off() {
    let mut offences = Vec::new();
    for (path, text) in files(&[".rs"]) {
        for (number, line) in without_comments_and_text(&text).lines().enumerate() {
            let unfinished = ["todo!", "unimplemented!", "dbg!", "#[ignore"];
            if unfinished.iter().any(|word| line.contains(word)) {
                offences.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_tidy("unfinished code or a test that is switched off:", &offences);
}

#[test]
fn accessors_are_nouns() {
    let mut offences = Vec::new();
    for (path, text) in files(&[".rs"]) {
        for function in functions(&without_comments_and_text(&text)) {
            if function.name.starts_with("get_") {
                offences.push(format!("{path}:{}: fn {}", function.line, function.name));
            }
        }
    }
    assert_tidy("a function called get_ (the noun alone is enough):", &offences);
}
