//! Loads that end after bytes or counts: both ends count the same, and it is what was asked.

use linerate_measure::histogram::IntervalHistogram;
use serde_json::Value;

use crate::ends::Server;

#[test]
fn as_many_bytes_as_were_asked_for() {
    let server = Server::start("");
    std::thread::scope(|scope| {
        for transport in ["--tcp", "--tls"] {
            let server = &server;
            scope.spawn(move || {
                for (bytes, flags, ways) in [
                    (1_u64, "--up", 1),
                    (1, "--down", 1),
                    (1_000, "--up --flows 7", 1),
                    (3, "--both --flows 3 --threads 1", 2),
                    (10_000_007, "--up --flows 3", 1),
                    (10_000_007, "--down --flows 3 --threads 2", 1),
                    (1_000_001, "--both --rate 400M", 2),
                    (131_073, "--down --size 1000", 1),
                ] {
                    let words = format!("stream {transport} {flags} --bytes {bytes}");
                    let document = server.measure(&words).document(0);
                    let total = |place: &str| {
                        document.sum_of_flows("client", place)
                            + document.sum_of_flows("server", place)
                    };
                    assert_eq!(total("sent/bytes"), bytes * ways, "{words}");
                    assert_eq!(total("received/bytes"), bytes * ways, "{words}");
                    assert_eq!(document.count("received_bytes"), bytes * ways, "{words}");
                    assert_eq!(document.count("sent_bytes"), bytes * ways, "{words}");
                }
            });
        }
    });
}

#[test]
fn as_many_datagrams_as_the_bytes_need() {
    let server = Server::start("");
    for (words, datagrams, bytes) in [
        ("--up --bytes 1 --size 100", 1_u64, 100_u64),
        ("--down --bytes 100k --size 1000", 100, 100_000),
        ("--up --bytes 100001 --size 1000 --no-offload", 101, 101_000),
        ("--down --count 1000 --flows 3 --size 64", 1_000, 64_000),
    ] {
        let document = server.measure(&format!("stream --udp --rate 20M {words}")).document(0);
        assert_eq!(document.count("datagrams/sent"), datagrams, "{words}");
        assert_eq!(document.count("datagrams/received"), datagrams, "{words}");
        assert_eq!(document.count("datagrams/lost"), 0, "{words}");
        assert_eq!(document.count("received_bytes"), bytes, "{words}");
    }
}

#[test]
fn as_many_sends_and_transactions_as_were_asked_for() {
    let server = Server::start("");
    for (words, count) in [
        ("--count 1", 1),
        ("--count 1000", 1_000),
        ("--count 1001 --flows 4", 1_001),
        ("--count 100 --flows 100 --threads 2", 100),
        ("--tls --count 77 --flows 3 --threads 1", 77),
        ("--count 1600 --flows 100 --active 3", 1_600),
        ("--tls --count 701 --flows 20 --active 2", 701),
        ("--busy-poll --count 660 --flows 20 --active 1", 660),
        ("--udp --count 500", 500),
        ("--udp --count 501 --flows 3 --size 64", 501),
    ] {
        let document = server.measure(&format!("rr {words}")).document(0);
        assert_eq!(document.count("transactions"), count, "{words}");
        assert_eq!(document.count("latency_ns/count"), count, "{words}");
        assert_eq!(document.sum_of_flows("client", "transactions"), count, "{words}");
        if words.contains("--count 1600") {
            // In turns, but all the same.
            assert_eq!(document.figure("fairness"), 1.0);
        }
    }
    for (words, count, bytes) in [
        ("--count 10 --size 1000", 10, 10_000),
        ("--down --count 101 --flows 4 --size 100", 101, 10_100),
        ("--tls --count 20 --size 5000", 20, 100_000),
    ] {
        let document = server.measure(&format!("stream {words}")).document(0);
        assert_eq!(document.count("received_bytes"), bytes, "{words}");
        let sender = if words.contains("--down") { "server" } else { "client" };
        assert_eq!(document.sum_of_flows(sender, "sent/calls"), count, "{words}");
    }
}

#[test]
fn samples_have_the_latencies_of_their_intervals() {
    let server = Server::start("");
    for words in [
        "rr --time 600ms --omit 200ms",
        "rr --time 400ms --flows 3 --rate 2000",
        "rr --time 400ms --udp",
        "rr --time 400ms --quic",
        "connect --time 400ms --flows 2",
    ] {
        let document = server.measure(&format!("{words} --interval 20ms")).document(0);
        let samples = document.samples("client");
        let counted = samples.iter().filter_map(|sample| sample["latency_hdr"].as_str());
        let counted = counted.map(|text| IntervalHistogram::from_base64(text).unwrap().len());
        let (sum, all) = (counted.sum::<u64>(), document.count("latency_ns/count"));
        // A rest shorter than a twentieth of an interval has no sample.
        assert!((1..=all).contains(&sum), "{words}: {sum} of {all}");
        let measured = samples.iter().filter(|sample| sample["warm_up"] != true);
        let done = measured.filter_map(|sample| sample["transactions"].as_u64()).sum::<u64>();
        // A meter reads the counts of transactions, then those of latencies, while the load goes on: where the measured
        // part begins and ends, what is done between the two readings makes a difference.
        let between = 3 + done / 10;
        assert!(sum.abs_diff(done) <= between, "{words}: {sum} latencies of {done} transactions");
        for sample in samples.iter().filter(|sample| sample["warm_up"] == true) {
            assert_eq!(sample["latency_hdr"], Value::Null, "{words}");
        }
        let servers = document.samples("server");
        assert!(servers.iter().all(|sample| sample["latency_hdr"] == Value::Null), "{words}");
        let interval = &document.json()["summary"]["latency_intervals"][0];
        if interval.is_object() {
            let ends = ["low_ns", "value_ns", "high_ns"].map(|end| interval[end].as_u64().unwrap());
            assert_eq!(
                (&interval["name"], interval["value_ns"].as_u64()),
                (&Value::from("p50"), Some(document.count("latency_ns/p50"))),
                "{words}"
            );
            assert!(ends.is_sorted(), "{words}: {ends:?}");
        }
    }
}

/// By Little's law as many requests are on their way in the mean as the rate times the mean latency.
#[test]
fn no_more_flows_are_active_than_were_asked_for() {
    let server = Server::start("");
    for active in [1, 4] {
        for end in ["--time 1500ms", "--time 1500ms --omit 200ms"] {
            let words = format!("rr --flows 40 --active {active} {end}");
            let document = server.measure(&words).document(0);
            let mean_s = document.figure("latency_ns/mean") / 1e9;
            let outstanding = document.figure("transactions_per_s") * mean_s;
            assert!(
                (0.1..1.02 * f64::from(active)).contains(&outstanding),
                "{words}: {outstanding}"
            );
            let every_one = |flow: &Value| flow["transactions"].as_u64().unwrap() > 0;
            assert!(document.report("client")["flows"].as_array().unwrap().iter().all(every_one));
        }
    }
}

#[test]
fn a_test_too_short_for_a_turn_of_each_flow_says_so() {
    let server = Server::start("");
    for (words, short) in
        [("--flows 400 --active 1 --time 20ms", true), ("--flows 20 --active 2 --count 640", false)]
    {
        let document = server.measure(&format!("rr {words}")).document(0);
        let notes = document.report("client")["notes"].to_string();
        assert_eq!(notes.contains("flows never sent a request"), short, "{words}: {notes}");
    }
}

#[test]
fn a_run_for_each_size() {
    let server = Server::start("");
    for words in ["rr", "stream --tcp", "stream --tls --down"] {
        let ended = server.measure(&format!("{words} --size 1,64,1448 --time 200ms"));
        assert_eq!(ended.exit_code, Some(0), "{}", ended.stderr);
        let runs: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
        let field = if words == "rr" { "request_bytes" } else { "send_bytes" };
        let sizes = runs.iter().map(|run| run["plan"]["workload"]["kind"][field].as_u64().unwrap());
        assert_eq!(sizes.collect::<Vec<_>>(), [1, 64, 1448], "{words}");
    }
}

#[test]
fn every_transport_works_over_ipv6() {
    let server = Server::start("");
    for host in ["::1", "[::1]"] {
        for transport in ["--tcp", "--tls", "--udp"] {
            let words = format!("stream {transport} --both --rate 10M --verify --time 200ms");
            let document = server.start_client_at(host, &words).finish().document(0);
            assert!(document.count("received_bytes") > 0);
            let peer = document.report("client")["flows"][0]["socket"]["peer"].clone();
            assert!(peer.as_str().unwrap().starts_with("[::1]:"), "{peer}");
        }
    }
    let only_v6 = Server::start("--bind ::1");
    only_v6.start_client_at("::1", "rr --udp --count 5").finish().document(0);
    only_v6.start_client_at("127.0.0.1", "rr --count 5").finish().document(3);
}

#[test]
fn a_server_answers_from_the_address_that_was_asked() {
    // A reply that the kernel addresses comes from 127.0.0.1, which these clients don't listen to.
    let server = Server::start("");
    for words in
        ["rr --udp --count 5", "stream --udp --down --rate 1M --time 200ms", "rr --quic --count 5"]
    {
        server.start_client_at("127.1.2.3", words).finish().document(0);
    }
}

/// Threads have ended when the last interval is cut. /proc, which tells their processor time until then, has forgotten
/// them.
#[test]
fn the_last_interval_has_its_processor_time() {
    let server = Server::start("");
    for words in ["stream --time 800ms --interval 400ms", "rr --time 800ms --interval 400ms"] {
        let document = server.start_client(words).finish().document(0);
        for role in ["client", "server"] {
            let used_s = |of: &Value| {
                of["user_s"].as_f64().unwrap_or(0.0) + of["system_s"].as_f64().unwrap_or(0.0)
            };
            let samples = document.samples(role);
            let of_samples_s: f64 = samples.iter().map(|one| used_s(&one["cpu"]["load"])).sum();
            let of_report_s = used_s(&document.report(role)["cpu"]);
            // A sample has hundredths of a second, rounded for both modes. What comes after the last one is too short
            // to have one on an idle machine.
            let rounding_s = 0.01 * samples.len() as f64;
            assert!(of_report_s > 0.0, "{role} of {words}");
            assert!(
                of_samples_s >= 0.7 * of_report_s - rounding_s,
                "{role} of {words}: {of_samples_s} of {of_report_s} in {} samples",
                samples.len()
            );
        }
    }
}
