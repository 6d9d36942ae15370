//! Replays the seeds of the fuzz target on a stable compiler.

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../../fuzz/src/netperf.rs"]
mod targets;

#[test]
fn netperf_messages() {
    let seeds = format!("{}/../../fuzz/seeds/netperf_messages", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        targets::netperf_messages(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "there are no seeds");
}
