//! Feeds a fuzz target its seeds: what the ordinary tests of each crate do on a stable compiler.

/// Feeds every seed of the target, of which there is at least one.
pub(crate) fn replay(target: &str, feed: fn(&[u8])) {
    let seeds = format!("{}/../../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        feed(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "{target} has no seeds");
}
