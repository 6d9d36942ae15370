//! Replays the seeds of the lexer's fuzz target.

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../../fuzz/src/command_line.rs"]
mod targets;

#[test]
fn colon_options() {
    let seeds = format!("{}/../../fuzz/seeds/colon_options", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        targets::colon_options(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "there are no seeds");
}
