use serde_json::{Value, json};

use super::*;

/// A test as 3.12 tells it: an omitted second, a measured one, and a tail without length.
fn document() -> Value {
    let sent = |socket: u32, start: f64, end: f64, omitted: bool| {
        json!({"socket": socket, "start": start, "end": end, "seconds": end - start, "bytes": 3000,
            "bits_per_second": 24000.5, "packets": 3, "omitted": omitted, "sender": true})
    };
    let received = |socket: u32, lost: i64, omitted: bool| {
        json!({"socket": socket, "start": 0, "end": 1.001, "bytes": 2000, "jitter_ms": 0.5,
            "lost_packets": lost, "packets": 3, "lost_percent": 1, "omitted": omitted, "sender": false})
    };
    let cpu = json!({"host_total": 2.5, "host_user": 0, "host_system": 2.5, "remote_total": 1});
    json!({
        "start": {"connected": [{"socket": 5}, {"socket": 7}], "version": "iperf 3.12",
            "sock_bufsize": 0, "test_start": {"protocol": "UDP"}},
        "intervals": [
            {"streams": [sent(5, 0.0, 1.0, true), sent(7, 0.0, 1.0, true)]},
            {"streams": [sent(5, 0.0, 1.5, false), sent(7, 0.0, 1.5, false)], "sum": {}},
            {"streams": [sent(5, 1.5, 1.5, false), sent(7, 1.5, 1.5, false)]},
        ],
        "end": {"streams": [], "cpu_utilization_percent": cpu},
        "server_output_json": {
            "start": {"connected": [{"socket": 5}, {"socket": 6}]},
            "intervals": [
                {"streams": [received(5, 0, true), received(6, 0, true)]},
                {"streams": [received(5, 1, false), received(6, -1, false)]},
            ],
        },
    })
}

fn read(document: &Value) -> Result<Document, String> {
    read_document(&document.to_string(), 1_000_000_000)
}

#[test]
fn both_ends_are_read_interval_by_interval() {
    let read = read(&document()).unwrap();
    assert_eq!((read.version.as_str(), read.has_server), ("iperf 3.12", true));
    let spans: Vec<_> = read
        .samples
        .iter()
        .map(|sample| (sample.role, sample.from_ns, sample.to_ns, sample.warm_up))
        .collect();
    // What is measured begins behind the omitted time.
    let expected = [
        (Role::Client, 0, 1_000_000_000, true),
        (Role::Client, 1_000_000_000, 2_500_000_000, false),
        (Role::Server, 0, 1_001_000_000, true),
        (Role::Server, 1_001_000_000, 2_002_000_000, false),
    ];
    assert_eq!(spans, expected);
    assert_eq!(read.samples[1].utc_ns, 3_500_000_000);
    assert_eq!(read.samples[1].sent.unwrap().bytes, 6000);
    assert_eq!(read.samples[3].received.unwrap().bytes, 4000);
    let [client, server] = read.reports.as_slice() else { panic!("{:?}", read.reports) };
    // The tail counts, and the omitted time doesn't.
    assert_eq!(client.flows[1].sent.unwrap().bytes, 6000);
    assert_eq!(client.flows[1].datagrams.unwrap().sent, Some(6));
    assert_eq!((client.flows[0].from_ns, client.elapsed_ns), (Some(1_000_000_000), 1_500_000_000));
    let lost: Vec<_> = server.flows.iter().map(|flow| flow.datagrams.unwrap().lost).collect();
    assert_eq!(lost, [Some(1), Some(0)]);
    assert_eq!(server.flows[0].datagrams.unwrap().received, Some(2));
}

#[test]
fn what_no_test_has_is_refused_with_its_name() {
    let with = |pointer: &str, value: Value| {
        let mut changed = document();
        *changed.pointer_mut(pointer).unwrap() = value;
        read(&changed).unwrap_err()
    };
    let stream = "/intervals/1/streams/0";
    let wrong = [
        (with(&format!("{stream}/bytes"), json!(-1)), "bytes -1"),
        (with(&format!("{stream}/packets"), json!(1.8446744073709552e19)), "packets 18446"),
        (with(&format!("{stream}/end"), json!(1e300)), "the time 1"),
        (with(&format!("{stream}/socket"), json!(99)), "stream 99"),
        (with(&format!("{stream}/sender"), json!(null)), "use iperf 3.7 or later"),
        (with("/start/connected/1/socket", json!(5)), "two streams of one number"),
        (with("/start/connected", json!(vec![json!({"socket": 1}); 257])), "257 streams"),
        (with("/intervals", json!([])), "no interval"),
        (with("/intervals", json!(7)), "no JSON document"),
    ];
    for (why, part) in wrong {
        assert!(why.contains(part), "{part}: {why}");
    }
    let failed = json!({"start": {}, "intervals": [], "end": {}, "error": "unable to connect\n"});
    assert!(read(&failed).unwrap_err().starts_with("iperf3: unable to connect"));
    assert!(read_document("", 0).unwrap_err().contains("no JSON document"));
}

#[test]
fn version_is_that_of_iperf3_and_new_enough() {
    assert_eq!(read_version("iperf 3.12 (cJSON 1.7.15)\nLinux"), Ok("iperf 3.12".to_owned()));
    assert_eq!(read_version("iperf 3.20+ (cJSON)").unwrap(), "iperf 3.20+");
    assert!(read_version("iperf 3.1.3").unwrap_err().contains("3.7 is the oldest"));
    assert!(read_version("iperf version 2.1.8").is_err());
    assert!(read_version("").unwrap_err().contains("isn't iperf3"));
}
