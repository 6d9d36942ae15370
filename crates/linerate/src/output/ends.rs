//! Both ends side by side: what each counted and what it cost; if asked, all of that and what it ran on.

use linerate_measure::report::{EndReport, FlowReport, FlowSum, Handshakes, SocketFacts, Waiting};
use linerate_measure::sample::{CpuSeconds, MachineCpu, Traffic};
use linerate_measure::units::{render_bytes, render_duration_ns};
use linerate_measure::{Role, Run};

use super::text::render_number;
use super::{Style, Table};

/// A table with a column for each end; empty where neither has reported. Without `verbose` it has what a reader needs to
/// judge the figures.
pub(crate) fn render_ends(run: &Run, style: Style, verbose: bool) -> String {
    if run.reports.is_empty() {
        return String::new();
    }
    let mut table = Table::with_head(&["", "client", "server"]);
    rows_of_ends(run, verbose).into_iter().for_each(|row| table.push(row));
    table.render(style)
}

/// The table's rows: a name, the client's figure, the server's.
pub(crate) fn rows_of_ends(run: &Run, verbose: bool) -> Vec<Vec<String>> {
    let of = |role: Role| run.reports.iter().find(|report| report.role == role);
    let ends = [of(Role::Client), of(Role::Server)];
    let shown = ROWS.iter().filter(|(name, _)| verbose || ALWAYS.contains(name));
    let rows = shown.filter_map(|(name, figure)| {
        let cells = ends.map(|end| end.and_then(figure));
        if cells.iter().all(Option::is_none) {
            return None;
        }
        let [client, server] = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        Some(vec![(*name).to_owned(), client, server])
    });
    rows.collect()
}

type Figure = fn(&EndReport) -> Option<String>;

/// What is shown in any case: whether both ends counted the same, for as long, and had the time for it.
const ALWAYS: [&str; 7] = [
    "sent",
    "received",
    "transactions",
    "measured time",
    "CPU of flows' threads",
    "machine busy",
    "flows ended early",
];

/// The rows, in their order; a row that neither end can fill is left out.
const ROWS: &[(&str, Figure)] = &[
    ("sent", |end| Some(render_bytes(sent(end)?.bytes))),
    ("  per call", |end| per_call(sent(end)?)),
    ("received", |end| Some(render_bytes(received(end)?.bytes))),
    ("  per call", |end| per_call(received(end)?)),
    ("transactions", |end| {
        let flows = end.flows.iter().map(|flow| flow.transactions);
        let others = unlisted(end).map(|sum| sum.transactions);
        flows.chain(others).flatten().reduce(u64::saturating_add).map(render_number)
    }),
    ("measured time", |end| Some(render_duration_ns(end.elapsed_ns))),
    ("CPU user", |end| end.cpu.map(|cpu| render_cpu(cpu.user_s))),
    ("CPU system", |end| end.cpu.map(|cpu| render_cpu(cpu.system_s))),
    ("CPU of flows' threads", |end| share(end, &end.cpu?)),
    ("slept", |end| end.waiting.map(render_sleeps)),
    ("polled instead", |end| {
        end.waiting.and_then(|waiting| render_waits(waiting.looks, Some(waiting.looked_ns)))
    }),
    ("paused between reads", |end| {
        end.waiting.and_then(|waiting| render_waits(waiting.rests, Some(waiting.rested_ns)))
    }),
    ("yielded the processor", |end| {
        end.waiting.and_then(|waiting| render_waits(waiting.yields, None))
    }),
    ("machine softirq", |end| machine(end, |cpu| cpu.softirq_s)),
    ("machine busy", |end| {
        machine(end, |cpu| cpu.user_s + cpu.system_s + cpu.irq_s + cpu.softirq_s)
    }),
    ("flows ended early", |end| {
        let others: u64 = unlisted(end).flat_map(|sum| sum.errors.values()).sum();
        let early = end.flows.iter().filter(|flow| flow.error.is_some()).count() as u64 + others;
        (early > 0).then(|| early.to_string())
    }),
    ("smoothed RTT", |end| {
        rtt(end, |flow| flow.tcp.map(|tcp| tcp.rtt_us).or(flow.quic.map(|quic| quic.rtt_us)))
    }),
    ("minimum RTT", |end| {
        let of_quic = |flow: &FlowReport| flow.quic.map(|quic| quic.min_rtt_us);
        rtt(end, |flow| flow.tcp.and_then(|tcp| tcp.min_rtt_us).or(of_quic(flow)))
    }),
    ("congestion control", |end| socket(end, |facts| facts.congestion.clone())),
    ("packet (MTU)", |end| {
        let quic = end.flows.iter().find_map(|flow| flow.quic)?;
        Some(format!("{} B", quic.mtu_bytes))
    }),
    ("handshakes", |end| end.handshakes.map(render_handshakes)),
    ("segment (MSS)", |end| socket(end, |facts| facts.mss_bytes.map(|mss| format!("{mss} B")))),
    ("send buffer", |end| socket(end, |facts| facts.send_buffer_bytes.map(render_buffer))),
    ("receive buffer", |end| socket(end, |facts| facts.receive_buffer_bytes.map(render_buffer))),
    ("offload (GSO, GRO)", |end| socket(end, render_offload)),
    ("ran on processors", |end| render_list(&end.host.ran_on_cpus)),
    ("processor", |end| end.host.cpu_model.clone()),
    ("kernel", |end| Some(end.host.kernel.clone()).filter(|kernel| !kernel.is_empty())),
    ("load before", |end| end.host.load_average_1m.map(|load| format!("{load:.2}"))),
];

/// The most processors that are listed one by one.
const CPUS_SHOWN: usize = 8;

/// The flows that aren't listed one by one, direction by direction.
fn unlisted(end: &EndReport) -> impl Iterator<Item = &FlowSum> {
    end.unlisted.iter().flat_map(|unlisted| [&unlisted.up, &unlisted.down])
}

fn sent(end: &EndReport) -> Option<Traffic> {
    add(end.flows.iter().map(|flow| flow.sent).chain(unlisted(end).map(|sum| sum.sent)))
}

fn received(end: &EndReport) -> Option<Traffic> {
    add(end.flows.iter().map(|flow| flow.received).chain(unlisted(end).map(|sum| sum.received)))
}

fn add(parts: impl Iterator<Item = Option<Traffic>>) -> Option<Traffic> {
    parts.flatten().reduce(Traffic::plus)
}

fn per_call(traffic: Traffic) -> Option<String> {
    traffic.bytes.checked_div(traffic.calls?).map(render_bytes)
}

fn render_cpu(seconds: f64) -> String {
    format!("{seconds:.3} s")
}

/// CPU time as a share of the measured time: 100 % is one processor.
fn share(end: &EndReport, cpu: &CpuSeconds) -> Option<String> {
    let elapsed_s = end.elapsed_ns as f64 / 1e9;
    (elapsed_s > 0.0).then(|| format!("{:.0} %", (cpu.user_s + cpu.system_s) / elapsed_s * 100.0))
}

fn machine(end: &EndReport, of: impl Fn(&MachineCpu) -> f64) -> Option<String> {
    (!end.machine_cpu.is_empty()).then(|| render_cpu(end.machine_cpu.iter().map(of).sum()))
}

fn render_sleeps(waiting: Waiting) -> String {
    if waiting.spins { "never (busy poll)".to_owned() } else { render_number(waiting.sleeps) }
}

/// How often a thread waited in a way, and for how long in all; nothing where it never did.
fn render_waits(count: u64, ns: Option<u64>) -> Option<String> {
    let took = ns.map(|ns| format!(", {}", render_duration_ns(ns))).unwrap_or_default();
    (count > 0).then(|| format!("{}{took}", render_number(count)))
}

fn render_handshakes(count: Handshakes) -> String {
    let Handshakes { full, resumed, early } = count;
    let parts = [(full, "full"), (resumed, "resumed"), (early, "0-RTT")];
    let said = parts.iter().filter(|(count, _)| *count > 0);
    said.map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Mean over the flows that this end sent on: a receiver's round-trip time is a guess.
fn rtt(end: &EndReport, of: impl Fn(&FlowReport) -> Option<u32>) -> Option<String> {
    let sending = end.flows.iter().filter(|flow| flow.sent.is_some());
    let rtts: Vec<u64> = sending.filter_map(of).map(u64::from).collect();
    let mean_us = rtts.iter().sum::<u64>().checked_div(rtts.len() as u64)?;
    Some(render_duration_ns(mean_us * 1000))
}

/// A fact of the first flow's socket, marked where other flows differ.
fn socket(end: &EndReport, of: impl Fn(&SocketFacts) -> Option<String>) -> Option<String> {
    let mut facts = end.flows.iter().filter_map(|flow| flow.socket.as_ref()).map(of);
    let first = facts.next()??;
    let differs = facts.any(|fact| fact.as_ref() != Some(&first));
    Some(if differs { format!("{first} (others differ)") } else { first })
}

/// Buffers are powers of two.
fn render_buffer(bytes: u32) -> String {
    if bytes >= 1024 { format!("{} KiB", bytes / 1024) } else { format!("{bytes} B") }
}

fn render_offload(facts: &SocketFacts) -> Option<String> {
    let say = |on: Option<bool>| match on {
        Some(true) => "on",
        Some(false) => "off",
        None => "-",
    };
    (facts.gso.is_some() || facts.gro.is_some())
        .then(|| format!("{}, {}", say(facts.gso), say(facts.gro)))
}

fn render_list(cpus: &[u32]) -> Option<String> {
    let shown: Vec<String> = cpus.iter().take(CPUS_SHOWN).map(u32::to_string).collect();
    let more = if cpus.len() > CPUS_SHOWN { ",..." } else { "" };
    (!cpus.is_empty()).then(|| format!("{}{more}", shown.join(",")))
}
