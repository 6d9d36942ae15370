//! Replays the seeds of the fuzz targets of command lines, and what fuzzing once found, on a stable
//! compiler.

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../../fuzz/src/command_line.rs"]
mod targets;

fn replay(target: &str, run: fn(&[u8])) {
    let seeds = format!("{}/../../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        run(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "there are no seeds");
}

#[test]
fn colon_options() {
    replay("colon_options", targets::colon_options);
}

#[test]
fn iperf3_options() {
    replay("iperf3_options", targets::iperf3_options);
}

#[test]
fn netperf_options() {
    replay("netperf_options", targets::netperf_options);
}
