//! A test, or a part of one, that can't run where it is.

use std::io::Write as _;

/// Says that the running test, or a part of it, is skipped, and why. Fails where `CI` is set: there everything runs.
///
/// The message bypasses the test runner's capture, so that it shows. It names the test, so that `.ci/run` can run just
/// that test as root.
#[track_caller]
pub(crate) fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "can't be skipped here: {why}");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // In one piece, which no other line can come between. A standard error that nobody reads is no reason to fail.
    let line = format!("SKIPPED {test}: {}\n", why.trim_end());
    let _written = std::io::stderr().write_all(line.as_bytes());
}
