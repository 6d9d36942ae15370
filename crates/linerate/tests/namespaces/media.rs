//! Media streams over paths that lose, repeat, reorder and delay packets.

use crate::emulator::Emulator;
use crate::ends::Server;
use crate::in_network;
use crate::skipped::skip;

/// Drops the first three of every ten datagrams with data as they arrive.
const BURSTS: &str = "table inet linerate {
    counter dropped { }
    counter passed { }
    chain arriving {
        type filter hook input priority 0; policy accept;
        meta l4proto udp @th,64,8 == 0x25 numgen inc mod 10 < 3 counter name dropped drop
        meta l4proto udp @th,64,8 == 0x25 counter name passed accept
    }
}
";

#[test]
fn bursts_of_losses_are_counted_exactly() {
    in_network(|network| {
        network.filter(BURSTS);
        let server = Server::start(network);
        // Frames of two datagrams: of five in a row three are complete.
        let flags = ["media", "--rate", "500k", "--fps", "50", "--size", "700", "--no-offload"];
        let run = server.measure(&[&flags[..], &["--time", "2s", "--buffer-depth", "1s"]].concat());
        let (dropped, passed) = (network.counted("dropped"), network.counted("passed"));
        let count = |name: &str| run.count(&format!("/summary/datagrams/{name}"));
        assert_eq!((count("sent"), count("lost")), (dropped + passed, dropped));
        assert_eq!(count("sent"), 200);
        let bursts = (count("loss_bursts"), count("longest_loss_burst"));
        assert_eq!(bursts, (20, 3));
        let frames = |kind: &str| count(&format!("frames/{kind}"));
        assert_eq!(frames("sent"), 100);
        assert_eq!(frames("completed") + frames("late"), 60);
        assert_eq!(frames("dropped"), 40);
    });
}

#[test]
fn repeated_and_reordered_datagrams_complete_their_frames() {
    let description = "
        [to_left]
        delay = '5ms'
        duplicate = '10%'
        reorder = { share = '5%', by = '3ms' }
    ";
    let emulator = match Emulator::start(description) {
        Ok(emulator) => emulator,
        Err(why) => return skip(&why),
    };
    let flags = ["media", "--down", "--rate", "2M", "--no-offload", "--verify", "--time", "3s"];
    let run = Server::start(&emulator.network).measure(&flags);
    let count = |name: &str| run.count(&format!("/summary/datagrams/{name}"));
    assert!(count("duplicated") > 10 && count("reordered") > 5, "{}", run.json()["summary"]);
    let frames = |kind: &str| count(&format!("frames/{kind}"));
    assert_eq!(frames("completed") + frames("late"), frames("sent"));
    assert_eq!((count("lost"), count("loss_bursts")), (0, 0));
    assert_eq!(run.json()["summary"]["wrong_bytes"].as_u64().unwrap_or(0), 0);
}

#[test]
fn frames_are_late_when_the_path_becomes_longer_than_the_buffer() {
    let description = "
        [both]
        delay = '5ms'
        [[change]]
        at = '4s'
        [change.to_right]
        delay = '405ms'
    ";
    let emulator = match Emulator::start(description) {
        Ok(emulator) => emulator,
        Err(why) => return skip(&why),
    };
    let flags = ["media", "--rate", "1M", "--buffer-depth", "200ms", "--time", "7s"];
    let run = Server::start(&emulator.network).measure(&flags);
    let frames = |kind: &str| run.count(&format!("/summary/datagrams/frames/{kind}"));
    assert!(frames("completed") > 30 && frames("late") > 60, "{}", run.json()["summary"]);
    assert_eq!(frames("completed") + frames("late") + frames("dropped"), frames("sent"));
    let longest_ns = run.figure("/summary/delay_variation_ns/max");
    assert!(longest_ns >= 399e6, "{longest_ns}");
}
