//! The project's rules that a machine can check, as ordinary tests.
//!
//! Each rule is argued in ARCHITECTURE.md or CONTRIBUTING.md; a test here names the file and line
//! that breaks it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::string_slice,
    reason = "a test may stop at the first surprise"
)]

mod arrows;
mod documents;
mod quotations;
mod rooms;
mod source;
mod sources;
mod structure;
mod workspace;

/// Fails with every offence on a line of its own.
#[track_caller]
fn assert_tidy(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}\n  {}\n", offences.join("\n  "));
}
