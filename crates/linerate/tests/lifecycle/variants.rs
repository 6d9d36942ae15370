//! Streams whose bytes aren't copied: exactly as many arrive, and the result says what it is.

use crate::ends::Server;

const VARIANTS: [&str; 4] = ["--zero-copy", "--splice", "--discard", "--zero-copy --discard"];

#[test]
fn as_many_bytes_arrive_as_with_copies() {
    let server = Server::start("");
    for variant in VARIANTS {
        for (bytes, flags, ways) in [
            (1_u64, "--up", 1),
            (10_000_007, "--down --flows 3 --threads 2", 1),
            (10_000_007, "--up --size 1000", 1),
            (3_000_001, "--both --rate 400M", 2),
            (100_000_003, "--both --flows 2 --size 1M", 2),
            (50_000_003, "--down --busy-poll", 1),
        ] {
            let words = format!("stream {variant} {flags} --bytes {bytes}");
            let document = server.measure(&words).document(0);
            let total = |place: &str| {
                document.sum_of_flows("client", place) + document.sum_of_flows("server", place)
            };
            assert_eq!(total("sent/bytes"), bytes * ways, "{words}");
            assert_eq!(total("received/bytes"), bytes * ways, "{words}");
            assert_eq!(document.count("received_bytes"), bytes * ways, "{words}");
        }
    }
}

#[test]
fn streams_without_copies_end_by_time() {
    let server = Server::start("");
    for variant in VARIANTS {
        for flags in ["--up", "--down --flows 3", "--both --omit 200ms"] {
            let words = format!("stream {variant} {flags} --time 500ms");
            let document = server.measure(&words).document(0);
            assert!(document.figure("goodput_bps") > 0.0, "{words}");
            assert!(document.figure("elapsed_s") < 2.0, "{words}");
        }
    }
}

#[test]
fn zero_copy_bytes_arrive_unchanged_and_the_kernels_copies_are_reported() {
    let server = Server::start("");
    let words = "stream --zero-copy --verify --both --flows 2 --bytes 50M";
    let document = server.measure(words).document(0);
    assert_eq!(document.count("verified_bytes"), 100_000_000);
    for role in ["client", "server"] {
        let notes = document.report(role)["notes"].to_string();
        // On loopback the kernel always copies.
        assert!(notes.contains("zero copy: the kernel copied the bytes of"), "{notes}");
        assert!(!notes.contains("copied the bytes of 0 "), "{notes}");
    }
}

#[test]
fn a_result_without_copies_says_so() {
    let server = Server::start("");
    for (variant, field, words) in [
        ("--zero-copy", "zero_copy", "without copying what is sent (zero copy)"),
        ("--splice", "splice", "without touching a byte (splice)"),
        ("--discard", "discard", "without reading a byte (discard)"),
    ] {
        let document = server.measure(&format!("stream {variant} --bytes 1M")).document(0);
        assert_eq!(document.json()["plan"]["workload"]["variant"][field], true);
        let flags = format!("stream {variant} --bytes 1M --server-key {}", server.fingerprint);
        let text = server.start_client_of("127.0.0.1", &flags).finish().stdout;
        assert!(text.contains(words), "{text}");
        let dry = server.start_client_of("127.0.0.1", &format!("stream {variant} --dry-run"));
        let movement = format!("\"movement\": \"{field}\"");
        let dry = dry.finish().stdout;
        assert!(dry.replace("\":\"", "\": \"").contains(&movement), "{movement}: {dry}");
    }
}
