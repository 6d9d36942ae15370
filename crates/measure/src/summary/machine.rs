//! What else went on at the ends' machines, and whether they had time left.

use crate::report::EndReport;
use crate::sample::MachineCpu;

/// /proc/stat counts in hundredths of a second: a shorter time says too little.
const SHORTEST_S: f64 = 0.5;
/// The share of a flow's processor that others may use without a word.
const OTHERS: f64 = 0.1;
/// The share of the machine's time that the hypervisor may take without a word.
const STEAL: f64 = 0.01;
/// A machine that was busy for such a share of its time had none left.
const BUSY: f64 = 0.95;

/// What a reader must know of the machines that a run took place on: that others used the
/// processors of its flows, that the hypervisor took time, that no time was left.
pub fn machine_notes(client: Option<&EndReport>, server: Option<&EndReport>) -> Vec<String> {
    let shared = client.zip(server).is_some_and(|(client, server)| {
        !client.host.hostname.is_empty() && client.host.hostname == server.host.hostname
    });
    let both = client.zip(server).map(|(client, server)| own_s(client) + own_s(server));
    let mut notes = Vec::new();
    for report in [client, server].into_iter().flatten() {
        let used_s = both.filter(|_| shared).unwrap_or(own_s(report));
        let told = machine_of(report, used_s);
        let end = report.role.name();
        notes.extend(told.into_iter().map(|note| format!("{end}: {note}")));
        if shared && !notes.is_empty() {
            break;
        }
    }
    notes
}

/// The share of its machine's processors that other programs than the two ends used; `None` where it isn't known, or
/// the time is too short to say.
pub(crate) fn others_share(report: &EndReport, other_end: Option<&EndReport>) -> Option<f64> {
    let shared = other_end.filter(|other| {
        !report.host.hostname.is_empty() && report.host.hostname == other.host.hostname
    });
    let machine = &report.machine_cpu;
    let wall_s = machine.iter().map(MachineCpu::all_s).fold(0.0, f64::max);
    let all_s: f64 = machine.iter().map(MachineCpu::all_s).sum();
    if !(wall_s >= SHORTEST_S && all_s.is_finite()) {
        return None;
    }
    let used_s: f64 = machine.iter().map(|cpu| cpu.user_s + cpu.system_s).sum();
    let own_s = own_s(report) + shared.map_or(0.0, own_s);
    Some(((used_s - own_s) / all_s).max(0.0))
}

/// The share of its machine's time that the hypervisor took; likewise.
pub(crate) fn steal_share(report: &EndReport) -> Option<f64> {
    let machine = &report.machine_cpu;
    let wall_s = machine.iter().map(MachineCpu::all_s).fold(0.0, f64::max);
    let all_s: f64 = machine.iter().map(MachineCpu::all_s).sum();
    let steal_s: f64 = machine.iter().map(|cpu| cpu.steal_s).sum();
    (wall_s >= SHORTEST_S && all_s.is_finite()).then(|| steal_s / all_s)
}

fn machine_of(report: &EndReport, own_s: f64) -> Vec<String> {
    let mut notes = Vec::new();
    let machine = &report.machine_cpu;
    let wall_s = machine.iter().map(MachineCpu::all_s).fold(0.0, f64::max);
    let all_s: f64 = machine.iter().map(MachineCpu::all_s).sum();
    // A peer may say anything.
    if !(wall_s >= SHORTEST_S && all_s.is_finite()) {
        return notes;
    }
    let of_flows = |cpu: &&MachineCpu| report.host.ran_on_cpus.contains(&cpu.cpu);
    let processors = machine.iter().filter(of_flows).count() as f64;
    let used_s: f64 = machine.iter().filter(of_flows).map(|cpu| cpu.user_s + cpu.system_s).sum();
    let others_s = used_s - own_s;
    if processors > 0.0 && others_s > OTHERS * wall_s * processors {
        notes.push(format!(
            "other programs used at least {others_s:.2} of {:.2} s of the processors that the flows \
             ran on",
            wall_s * processors,
        ));
    }
    let steal_s: f64 = machine.iter().map(|cpu| cpu.steal_s).sum();
    if steal_s > STEAL * all_s {
        notes.push(format!("the hypervisor took {steal_s:.2} of {all_s:.2} s (steal)"));
    }
    let idle_s: f64 = machine.iter().map(|cpu| cpu.idle_s).sum();
    let busy_s = all_s - idle_s;
    if busy_s > BUSY * all_s {
        notes.push(format!(
            "machine busy {busy_s:.2} of {all_s:.2} s: the figures are those of its processors, \
             not of the network alone",
        ));
    }
    notes
}

/// CPU seconds of an end's own threads; 0 where nobody tells them, so that what they used counts as others'.
fn own_s(report: &EndReport) -> f64 {
    report.cpu.map_or(0.0, |cpu| cpu.user_s + cpu.system_s)
}
