//! The table of options is whole, and the documents have all of it.

use linerate_personality::secnetperf::flags::{Effect, FLAGS};

/// Every option that the original reads.
const ORIGINAL: &str = "abortOnFailure af affinitize bind cc cibir cipher comp conns cpu delay delayType \
    down download driverName driverNamePriv dscp ecn encrypt exec extraOutputFile help highpri hystart \
    inctarget incrementtarget io iosize ip maxruntime pacing pconn pconnection pctput peer plat platency \
    pollidle port prate praw pstream ptput qeo rc rconn remote request requests response rs rstream run \
    runtime scenario sendbuf server serverid share stats streams target tcp threads time timed to trimout \
    up upload watchdog workers ?";

#[test]
fn no_option_of_the_original_is_missing() {
    let known: Vec<&str> = FLAGS.iter().flat_map(|flag| flag.names).copied().collect();
    for name in ORIGINAL.split_whitespace() {
        assert!(known.contains(&name), "-{name} is not in the table");
    }
}

#[test]
fn the_page_has_every_option() {
    let page = format!("{}/../../docs/compat/secnetperf.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(page).unwrap();
    for flag in FLAGS {
        for name in flag.names {
            assert!(page.contains(&format!("`-{name}`")), "-{name} is not documented");
        }
        if let Effect::Nothing(why) = flag.effect {
            assert!(page.contains(why), "the page doesn't say why: {why}");
        }
    }
}
