//! Our TCP_INFO, CPU and socket figures against `ss` and /proc, read by others in the same run.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::document::{Document, assert_near, median};
use crate::ends::{Client, Server, process_cpu_s};
use crate::network::{Network, run};
use crate::{alone_in_network, in_network};

/// What `ss -tin` says of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    rtt_us: f64,
    cwnd_segments: f64,
    retransmitted_segments: u64,
    bytes_sent: u64,
}

/// The client's data connection: the one that has sent the most.
fn seen_by_ss(network: &Network) -> Option<Seen> {
    let text = run(&["ip", "netns", "exec", &network.client, "ss", "-tinH"]).unwrap();
    let number = |line: &str, name: &str| -> Option<f64> {
        let value = line.split_whitespace().find_map(|word| word.strip_prefix(name))?;
        value.split('/').next()?.parse().ok()
    };
    let seen = text.lines().filter_map(|line| {
        let retransmitted = line.split_whitespace().find_map(|word| word.strip_prefix("retrans:"));
        let total = retransmitted.and_then(|word| word.rsplit('/').next()?.parse().ok());
        Some(Seen {
            rtt_us: number(line, "rtt:")? * 1000.0,
            cwnd_segments: number(line, "cwnd:")?,
            retransmitted_segments: total.unwrap_or(0),
            bytes_sent: number(line, "bytes_sent:")? as u64,
        })
    });
    seen.max_by_key(|seen| seen.bytes_sent)
}

/// What `ss` says while the client runs; the first half second, when everything still grows, and
/// what comes before the load left out.
fn watch(network: &Network, client: &Client) -> Vec<Seen> {
    let mut all = Vec::new();
    client.sleep_until(Duration::from_millis(1500));
    while client.is_running() {
        all.extend(seen_by_ss(network).filter(|seen| seen.bytes_sent > 100_000));
        std::thread::sleep(Duration::from_millis(40));
    }
    all
}

/// A figure of the client's only flow, in every interval from the second second on.
fn tcp_figures(document: &Document, name: &str) -> Vec<f64> {
    let samples = document.samples("client");
    let late = samples.iter().filter(|sample| sample["to_ns"].as_u64() > Some(1_400_000_000));
    late.filter_map(|sample| sample["flows"][0]["tcp"][name].as_f64()).collect()
}

/// A queue of 20 ms at 50 Mbit/s, so that round trips are long and the window is large.
#[test]
fn tcp_info_agrees_with_ss() {
    alone_in_network(|network| {
        network.limit_rate("50mbit", "20ms");
        let server = Server::start(network);
        let flags = ["stream", "--time", "6s", "--interval", "50ms", "--congestion", "cubic"];
        // Where ss has no processor for long there is little to compare.
        let watched = (0..6).find_map(|_| {
            let client = server.start_client(&flags);
            let seen = watch(network, &client);
            let document = client.finish().document;
            (seen.len() > 20).then_some((seen, document))
        });
        let (seen, document) = watched.expect("ss is asked 20 times in one test of six");
        let theirs: Vec<f64> = seen.iter().map(|seen| seen.rtt_us).collect();
        let ours = tcp_figures(&document, "rtt_us");
        assert_near("median round trip", median(&ours), median(&theirs), 0.15);
        let theirs: Vec<f64> = seen.iter().map(|seen| seen.cwnd_segments).collect();
        let ours = tcp_figures(&document, "cwnd_segments");
        assert_near("median congestion window", median(&ours), median(&theirs), 0.15);
        let last = seen.iter().map(|seen| seen.retransmitted_segments).max().unwrap_or(0);
        let ours = document.count("/reports/0/flows/0/tcp/retransmitted_segments");
        assert_eq!(document.json()["reports"][0]["role"], "client");
        assert!(ours >= last, "{ours} retransmitted, ss saw {last} before the end");
        assert!(ours <= last + 100, "{ours} retransmitted, ss saw {last} just before the end");
    });
}

#[test]
fn socket_facts_agree_with_ss() {
    in_network(|network| {
        let server = Server::start(network);
        let client = server.start_client(&[
            "stream",
            "--time",
            "2s",
            "--rate",
            "20M",
            "--congestion",
            "reno",
        ]);
        client.sleep_until(Duration::from_millis(1200));
        let text = run(&["ip", "netns", "exec", &network.client, "ss", "-tinH"]).unwrap();
        let document = client.finish().document;
        let socket = &document.report("client")["flows"][0]["socket"];
        let local = socket["local"].as_str().unwrap();
        let mut lines = text.lines().skip_while(|line| !line.contains(local));
        assert!(lines.next().is_some(), "ss lists no {local}:\n{text}");
        let details = lines.next().unwrap();
        assert!(details.contains(" reno "), "{details}");
        assert_eq!(socket["congestion"], "reno");
        let mss = details.split_whitespace().find_map(|word| word.strip_prefix("mss:")).unwrap();
        assert_eq!(socket["mss_bytes"].as_u64(), mss.parse().ok(), "{socket}");
    });
}

/// What the kernel has counted of each processor's time since it started, idle time included.
fn machine_cpus_s() -> HashMap<u64, f64> {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let lines = text.lines().filter_map(|line| {
        let (index, counts) = line.strip_prefix("cpu")?.split_once(' ')?;
        // The line of all processors together has no number.
        let index = index.parse().ok()?;
        let words = counts.split_whitespace().take(8);
        let ticks: f64 = words.map(|word| word.parse::<f64>().unwrap()).sum();
        Some((index, ticks / 100.0))
    });
    lines.collect()
}

/// The threads that carry the flows do nearly all that their processes do: our figures are at most
/// the process's, and not far below.
#[test]
fn cpu_agrees_with_proc() {
    alone_in_network(|network| {
        let server = Server::start(network);
        let before_s = process_cpu_s(server.pid());
        let began = Instant::now();
        let machine_before_s = machine_cpus_s();
        let finished = server.start_client(&["stream", "--time", "3s"]).finish();
        let machine_after_s = machine_cpus_s();
        let around_s = began.elapsed().as_secs_f64();
        let server_s = process_cpu_s(server.pid()) - before_s;
        let document = finished.document;
        for (role, process_s) in [("client", finished.cpu_s), ("server", server_s)] {
            let user_s = document.figure(&format!("/summary/cpu_s/{role}/user_s"));
            let system_s = document.figure(&format!("/summary/cpu_s/{role}/system_s"));
            let ours_s = user_s + system_s;
            let range = process_s * 0.75 - 0.1..=process_s + 0.05;
            assert!(range.contains(&ours_s), "{role}: {ours_s} s of {process_s} s");
        }
        for role in ["client", "server"] {
            let report = document.report(role);
            let elapsed_s = report["elapsed_ns"].as_f64().unwrap() / 1e9;
            for cpu in report["machine_cpu"].as_array().unwrap() {
                let parts = ["user_s", "system_s", "irq_s", "softirq_s", "steal_s", "idle_s"];
                let total_s: f64 = parts.iter().filter_map(|part| cpu[*part].as_f64()).sum();
                let index = cpu["cpu"].as_u64().unwrap();
                let counted_s = machine_after_s[&index] - machine_before_s[&index];
                // A host that takes a virtual processor away without a word leaves a gap in the
                // kernel's own counts, which ours must have as well, and no more.
                let uncounted_s = (around_s - counted_s).max(0.0);
                let range = elapsed_s * 0.9 - uncounted_s..=elapsed_s * 1.1;
                assert!(range.contains(&total_s), "cpu {index}: {total_s} s of {range:?}");
                assert!(total_s <= counted_s + 0.05, "cpu {index}: {total_s} s of {counted_s} s");
            }
        }
    });
}
