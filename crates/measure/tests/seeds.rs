//! Replays the seeds of the fuzz targets, and what fuzzing once found, on a stable compiler.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/measure.rs"]
mod targets;

fn replay(target: &str, feed: fn(&[u8])) {
    let seeds = format!("{}/../../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        feed(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "{target} has no seeds");
}

#[test]
fn units() {
    replay("units", targets::units);
}

#[test]
fn histogram() {
    replay("histogram", targets::histogram);
}

#[test]
fn link() {
    replay("link", targets::link);
}
