//! Media streams: what is due is sent, what is sent is accounted for by datagram and by frame.

use linerate_wire::native::datagram::DATA_HEADER_BYTES;
use serde_json::Value;

use crate::document::Document;
use crate::ends::Server;

fn frames(document: &Document, kind: &str) -> u64 {
    document.count(&format!("datagrams/frames/{kind}"))
}

/// Frames of a kind in all samples of an end.
fn in_samples(document: &Document, role: &str, kind: &str) -> u64 {
    let of = |sample: &&Value| sample["datagrams"]["frames"][kind].as_u64();
    document.samples(role).iter().filter_map(of).sum()
}

#[test]
fn every_frame_and_datagram_is_accounted_for() {
    let server = Server::start("");
    for (flags, flows, per_s, datagrams) in [
        ("--up --fps 50 --rate 1M --size 1000", 1, 50, 3),
        ("--down --fps 30 --rate 400k --flows 5 --verify", 5, 30, 2),
        ("--both --fps 100 --rate 2M --flows 2 --threads 1", 4, 100, 2),
        ("--down --fps 25 --rate 200k --omit 300ms --no-offload", 1, 25, 1),
        ("--up --fps 50 --rate 3M --size 100 --busy-poll", 1, 50, 75),
    ] {
        let words = format!("media {flags} --buffer-depth 2s --time 1s --interval 200ms");
        let document = server.measure(&words).document(0);
        let sent = frames(&document, "sent");
        // Of each flow those that were due, unless the machine was busy at the end of the warm-up.
        let due = flows * per_s;
        assert!((due - flows..=due).contains(&sent), "{words}: {sent} of {due} frames");
        let came = frames(&document, "completed") + frames(&document, "late");
        assert_eq!(came + frames(&document, "dropped"), sent, "{words}");
        assert!(came * 2 > sent, "{words}: {came} of {sent} came");
        let counted = |name: &str| document.count(&format!("datagrams/{name}"));
        assert_eq!(counted("sent"), sent * datagrams, "{words}");
        assert_eq!(counted("received") + counted("lost"), sent * datagrams, "{words}");
        assert_eq!(document.count("send_delay_ns/count"), sent, "{words}");
        let received = counted("received") + counted("duplicated");
        assert_eq!(document.count("delay_variation_ns/count"), received, "{words}");
        let of_both =
            |kind| in_samples(&document, "client", kind) + in_samples(&document, "server", kind);
        assert!(of_both("sent") <= sent && of_both("completed") <= came, "{words}");
        assert!(of_both("sent") * 2 > sent && of_both("completed") * 2 > came, "{words}");
        if flags.contains("--verify") {
            let header = DATA_HEADER_BYTES as u64;
            let payload = document.count("received_bytes") - received * header;
            assert_eq!(document.count("verified_bytes"), payload, "{words}");
        }
    }
}

#[test]
fn a_media_stream_keeps_its_rate() {
    let server = Server::start("");
    let document = server.measure("media --rate 5M --fps 60 --time 2s").document(0);
    // A frame has a byte less for each datagram at most.
    let sent_bps = document.count("sent_bytes") as f64 * 8.0 / 2.0;
    assert!((4.95e6..=5e6).contains(&sent_bps), "{sent_bps}");
}

#[test]
fn invalid_media_streams_are_refused_with_a_sentence() {
    let server = Server::start("");
    for (words, text) in [
        ("media --tcp", "media streams go over UDP"),
        ("media --quic", "media streams go over UDP"),
        ("media --count 5", "give a time"),
        ("media --fps 0", "--fps: frame rate 0"),
        ("media --fps 10001", "--fps: frame rate 10001"),
        ("media --rate 1k --fps 60", "--rate or --fps: size of a frame 2 bytes"),
        ("media --buffer-depth 61s", "--buffer-depth: buffer depth"),
        ("media --size 47", "--size: datagram size 47"),
        ("media --flows 1000000", "number of buffered frames"),
        ("media --rate 0", "--rate"),
    ] {
        let ended = server.measure(words);
        assert_eq!(ended.exit_code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{words}: {}", ended.stderr);
    }
}
