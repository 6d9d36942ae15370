//! Latency under load beside the queue that the kernel says was standing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::alone_in_network;
use crate::document::Document;
use crate::ends::Server;
use crate::network::{CLIENT_DEVICE, Network, SERVER_DEVICE, run};

const LINK_BPS: f64 = 20e6;
/// 52 ms of it.
const LIMIT_BYTES: &str = "131072";
/// How often it is measured at most: a busy machine is seldom that busy thrice.
const ATTEMPTS: usize = 3;
/// The fewest looks at a queue that tell what stood there.
const LOOKS: usize = 10;

/// The bytes in a device's queue.
fn backlog_bytes(namespace: &str, device: &str) -> f64 {
    let text = run(&["tc", "-n", namespace, "-s", "-j", "qdisc", "show", "dev", device]).unwrap();
    let queues: Value = serde_json::from_str(&text).unwrap();
    queues[0]["backlog"].as_f64().unwrap()
}

/// A look at both queues: when (UTC, nanoseconds since 1970), and the delay of each in ms.
struct Look {
    utc_ns: u128,
    delay_ms: [f64; 2],
}

/// Looks at the queues until told to stop.
fn watch(network: &Network, stop: &AtomicBool) -> Vec<Look> {
    let mut looks = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let utc_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let queues = [(&network.client, CLIENT_DEVICE), (&network.server, SERVER_DEVICE)];
        let ms = |(namespace, device): (&String, &str)| {
            backlog_bytes(namespace, device) * 8.0 / LINK_BPS * 1e3
        };
        looks.push(Look { utc_ns, delay_ms: queues.map(ms) });
        std::thread::sleep(Duration::from_millis(10));
    }
    looks
}

/// The median delay of both queues together while a phase was measured; `None`: nobody looked often enough.
fn standing_ms(phase: &Value, looks: &[Look]) -> Option<f64> {
    let run = &phase["runs"][0]["run"];
    let began_ns = u128::from(run["environment"]["started_utc_ns"].as_u64()?);
    let warm_up_ns = u128::from(run["plan"]["workload"]["omit_ns"].as_u64()?);
    let samples = run["samples"].as_array()?;
    let end_ns = samples.iter().filter_map(|sample| sample["to_ns"].as_u64()).max()?;
    let span = began_ns + warm_up_ns..began_ns + u128::from(end_ns);
    let within = looks.iter().filter(|look| span.contains(&look.utc_ns));
    let mut delays: Vec<f64> = within.map(|look| look.delay_ms.iter().sum()).collect();
    delays.sort_by(f64::total_cmp);
    delays.get(delays.len() / 2).copied().filter(|_| delays.len() >= LOOKS)
}

fn p50_ms(latency: &Value) -> f64 {
    latency["p50"].as_f64().map_or(0.0, |ns| ns / 1e6)
}

/// What a measurement whose machine had time for it says wrongly; empty: nothing, or the machine was too busy to tell.
fn faults(document: &Document, looks: &[Look]) -> Vec<String> {
    let mut faults = Vec::new();
    let phases = document.json()["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().filter_map(|phase| phase["name"].as_str()).collect();
    assert_eq!(names, ["idle", "up", "down", "both"]);
    for phase in phases.iter().filter(|phase| phase["verdict"] == "valid") {
        let name = phase["name"].as_str().unwrap();
        let seen = match name {
            "idle" => [&phase["sparse"], &phase["udp"]],
            _ => [&phase["self"], &phase["udp"]],
        };
        let Some(standing_ms) = standing_ms(phase, looks) else { continue };
        for latency in seen {
            let p50_ms = p50_ms(latency);
            // The longest that the processors of a valid run are waited for at the median.
            let range = 0.75 * standing_ms - 1.0..1.25 * standing_ms + 10.0;
            if !range.contains(&p50_ms) {
                faults.push(format!("{name}: {p50_ms} ms of {range:?}, {latency}"));
            }
        }
    }
    faults
}

#[test]
fn a_loads_latency_is_that_of_the_queue_that_stands() {
    alone_in_network(|network| {
        let server = Server::start(network);
        for (namespace, device) in
            [(&network.client, CLIENT_DEVICE), (&network.server, SERVER_DEVICE)]
        {
            let queue = ["tbf", "rate", "20mbit", "burst", "5kb", "limit", LIMIT_BYTES];
            let add = ["tc", "-n", namespace, "qdisc", "add", "dev", device, "root"];
            run(&[&add[..], &queue[..]].concat()).unwrap();
        }
        let flags = ["loaded", "--time", "600ms", "--idle-time", "300ms", "--omit", "600ms"];
        let mut found = Vec::new();
        for _ in 0..ATTEMPTS {
            let stop = AtomicBool::new(false);
            let (finished, looks) = std::thread::scope(|scope| {
                let watching = scope.spawn(|| watch(network, &stop));
                let finished = server.start_client(&flags).finish();
                stop.store(true, Ordering::Relaxed);
                (finished, watching.join().unwrap())
            });
            assert!(
                matches!(finished.exit_code, 0 | 6),
                "{:?}",
                finished.document.json()["status"]
            );
            found = faults(&finished.document, &looks);
            if found.is_empty() {
                return;
            }
        }
        panic!("in each of {ATTEMPTS} measurements: {found:?}");
    });
}
