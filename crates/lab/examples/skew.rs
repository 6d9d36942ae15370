//! How late clients in network namespaces start that are armed and then told one time: what `benches/skew` runs.
//!
//! `skew LINERATE SHA256 ROUNDS NAMESPACE...`: in each namespace a server and, each round, a client against it.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_lab::agent::{Moment, StartTask};
use linerate_lab::barrier::{Lateness, lateness, on_host, render_start, skew, start_time};
use linerate_lab::host::{
    ChildEventKind, Executable, HostClock, HostEventKind, NamedHost, NetnsHost, OpenOptions,
    Session,
};
use serde_json::Value;

/// Everything that is waited for comes within this time.
const PATIENCE: Duration = Duration::from_secs(120);

const SERVER: &str = "serve --port 5250 --bind 127.0.0.1 --ndjson";
const CLIENT: &str = "stream 127.0.0.1 --udp --rate 1M --size 1000 --time 1s --ndjson --insecure \
                      --start-at -";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, linerate, sha256, rounds, namespaces @ ..] = &words[..] else {
        return Err("usage: skew LINERATE SHA256 ROUNDS NAMESPACE...".into());
    };
    let executable =
        Executable { path: linerate.into(), sha256: sha256.clone(), arch: String::new() };
    let hosts: Vec<NamedHost> = namespaces
        .iter()
        .map(|name| {
            let host = Arc::new(NetnsHost::new(name, executable.clone()));
            NamedHost { name: name.clone(), host }
        })
        .collect();
    let mut session = Session::open(&hosts, &OpenOptions::default())?;
    let mut clocks = vec![None; hosts.len()];
    await_all(&session, hosts.len(), |host, kind| match kind {
        HostEventKind::Opened { clock, .. } => {
            clocks[host] = Some(*clock);
            true
        }
        _ => false,
    })?;
    let clocks: Vec<HostClock> = clocks.into_iter().flatten().collect();
    for host in 0..hosts.len() {
        session.start(host, order(SERVER, false));
    }
    await_all(&session, hosts.len(), |_, kind| has_record(kind, "listening").is_some())?;
    let mut all = Vec::new();
    for round in 1..=rounds.parse::<u32>()? {
        let late = measure(&mut session, &clocks)?;
        show(&format!("round {round}"), &late)?;
        all.extend(late);
    }
    show("all rounds", &all)?;
    Ok(())
}

/// One start of all clients.
fn measure(session: &mut Session, clocks: &[HostClock]) -> Result<Vec<Lateness>, Box<dyn Error>> {
    let tasks: Vec<u32> =
        (0..clocks.len()).map(|host| session.start(host, order(CLIENT, true))).collect();
    await_all(session, clocks.len(), |_, kind| has_record(kind, "armed").is_some())?;
    let start_ns = start_time(Moment::now().utc_ns, clocks.iter().map(|clock| clock.round_trip_ns));
    for (host, (&task, clock)) in tasks.iter().zip(clocks).enumerate() {
        session.write(host, task, &(render_start(on_host(start_ns, clock.offset)) + "\n"), true);
    }
    let mut late = Vec::new();
    await_all(session, clocks.len(), |host, kind| {
        let started_ns = has_record(kind, "started").and_then(|record| record["utc_ns"].as_i64());
        late.extend(started_ns.map(|started_ns| lateness(start_ns, started_ns, clocks[host])));
        started_ns.is_some()
    })?;
    await_all(session, clocks.len(), |_, kind| match kind {
        HostEventKind::Child(child) => matches!(child.kind, ChildEventKind::Ended(_)),
        _ => false,
    })?;
    Ok(late)
}

/// Waits until something has happened so many times.
fn await_all(
    session: &Session,
    times: usize,
    mut happened: impl FnMut(usize, &HostEventKind) -> bool,
) -> Result<(), Box<dyn Error>> {
    let (mut left, until) = (times, Instant::now() + PATIENCE);
    while left > 0 {
        if Instant::now() > until {
            return Err(format!("{left} of {times} did not come").into());
        }
        let Some(event) = session.next_event(Duration::from_millis(100)) else { continue };
        if let HostEventKind::Lost { error, .. } = &event.kind {
            return Err(format!("host {}: {error}", event.host).into());
        }
        left -= usize::from(happened(event.host, &event.kind));
    }
    Ok(())
}

/// The record, if a child has printed one of this kind.
fn has_record(kind: &HostEventKind, name: &str) -> Option<Value> {
    let HostEventKind::Child(child) = kind else { return None };
    let ChildEventKind::Line { json, .. } = &child.kind else { return None };
    let record: Value = serde_json::from_str(json.get()).ok()?;
    (record["record"] == name).then_some(record)
}

fn order(words: &str, keep_stdin: bool) -> StartTask {
    let argv = words.split_whitespace().map(str::to_owned).collect();
    StartTask { argv, keep_stdin, ..StartTask::default() }
}

fn show(what: &str, late: &[Lateness]) -> io::Result<()> {
    let Some(skew) = skew(late) else { return Ok(()) };
    let ms = |ns: i64| ns as f64 / 1e6;
    let bound_ms = skew.bound_ns as f64 / 1e6;
    let (p50_ms, p99_ms, max_ms) = (ms(skew.p50_ns), ms(skew.p99_ns), ms(skew.max_ns));
    writeln!(
        io::stdout(),
        "{what}: {} starts late by p50 {p50_ms:.3} ms, p99 {p99_ms:.3} ms, max {max_ms:.3} ms (clocks +-{bound_ms:.3} ms)",
        late.len()
    )
}
