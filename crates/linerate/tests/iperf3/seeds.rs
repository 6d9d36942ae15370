//! Replays the seeds of the fuzz target, and what fuzzing once found, on a stable compiler.

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../../fuzz/src/personality.rs"]
mod targets;

#[test]
fn options() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/iperf3_options");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        targets::iperf3_options(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "there are no seeds");
}
