//! What was asked for and not got is told, in words and as figures.

use crate::skipped::skip;

use serde_json::Value;

use crate::document::Document;
use crate::ends::Server;

/// What of a kind is unmet, and the note of both figures.
fn unmet<'a>(document: &'a Document, what: &str) -> Option<&'a Value> {
    let all = document.json()["status"]["unmet"].as_array()?;
    all.iter().find(|unmet| unmet["what"] == what)
}

#[track_caller]
fn assert_told(document: &Document, what: &str, words: &str) -> (f64, f64) {
    let status = &document.json()["status"];
    let found = unmet(document, what).unwrap_or_else(|| panic!("no {what} in {status}"));
    let notes = status["notes"].as_array().unwrap();
    let told = notes.iter().filter_map(Value::as_str).any(|note| note.contains(words));
    assert!(told, "no {words:?} in {status}");
    (found["asked"].as_f64().unwrap(), found["got"].as_f64().unwrap())
}

/// No machine answers a billion requests a second, and no loopback carries 10 Tbit/s.
#[test]
fn an_unreachable_rate_is_reported() {
    let server = Server::start("");
    for load in ["stream --rate 10T", "stream --tls --rate 10T", "stream --quic --rate 10T"] {
        let document = server.measure(&format!("{load} --time 500ms")).document(0);
        let (asked, got) = assert_told(&document, "rate_bps", "was asked for");
        assert_eq!(asked, 1e13, "{load}");
        assert!(got > 0.0 && got < 5e12, "{load}: {got}");
    }
    let down = server.measure("stream --udp --down --rate 10T --time 500ms").document(0);
    assert_eq!(unmet(&down, "rate_bps").map(|unmet| &unmet["role"]), Some(&"server".into()));
    for load in ["rr --rate 1G", "connect --rate 1G"] {
        let document = server.measure(&format!("{load} --time 500ms")).document(0);
        let (asked, got) = assert_told(&document, "transactions_per_s", "were asked for");
        assert!(asked == 1e9 && got < 5e8, "{load}: {asked} {got}");
        let (due, begun) = assert_told(&document, "transactions", "were never begun");
        assert!(begun < due, "{load}: {begun} of {due}");
    }
}

#[test]
fn a_window_that_the_kernel_does_not_grant_is_reported() {
    let most = std::fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap();
    let most: u32 = most.trim().parse().unwrap();
    let asked = 256 << 20;
    if most >= asked {
        return skip(&format!("this kernel grants {most} bytes"));
    }
    let server = Server::start("");
    let document = server.measure("stream --window 256M --time 200ms").document(0);
    let (of, got) = assert_told(&document, "send_buffer_bytes", "granted a send buffer of");
    assert!(of > 2e8 && got < of, "{got} of {of}");
    let document = server.measure("stream --window 64K --time 200ms").document(0);
    assert_eq!(unmet(&document, "send_buffer_bytes"), None);
}

/// Empty time after the last byte would show a collapse that never was.
#[test]
fn the_last_sample_ends_with_what_moved() {
    let server = Server::start("");
    for (load, receiver) in [("--up", "server"), ("--down", "client"), ("--quic", "server")] {
        let words = format!("stream {load} --rate 50M --time 700ms --interval 250ms");
        let document = server.measure(&words).document(0);
        let flow_ends_ns = document.report(receiver)["flows"][0]["to_ns"].as_u64().unwrap();
        let samples = document.samples(receiver);
        let last_ns = samples.last().unwrap()["to_ns"].as_u64().unwrap();
        assert!(last_ns <= flow_ends_ns.max(500_000_000), "{load}: {last_ns} {flow_ends_ns}");
    }
}
