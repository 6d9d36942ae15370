//! Notes on the machines that a run took place on.

use super::super::machine_notes;
use super::*;
use crate::sample::MachineCpu;

/// A machine of two processors, busy for so long of 20 s together, whose flow ran on number 1.
fn machine(role: Role, hostname: &str, user_s: [f64; 2], steal_s: f64) -> EndReport {
    let cpu = |(number, user_s): (u32, f64)| MachineCpu {
        cpu: number,
        user_s,
        steal_s,
        idle_s: (10.0 - user_s - steal_s).max(0.0),
        ..MachineCpu::default()
    };
    EndReport {
        host: HostFacts {
            hostname: hostname.to_owned(),
            ran_on_cpus: vec![1],
            ..HostFacts::default()
        },
        cpu: Some(CpuSeconds { user_s: 1.0, system_s: 3.0 }),
        machine_cpu: (0..).zip(user_s).map(cpu).collect(),
        ..report(role, Vec::new())
    }
}

#[test]
fn a_quiet_machine_is_not_worth_a_word() {
    let client = machine(Role::Client, "a", [3.0, 4.9], 0.0);
    assert!(machine_notes(Some(&client), None).is_empty());
    let short = EndReport { machine_cpu: Vec::new(), ..client };
    assert!(machine_notes(Some(&short), None).is_empty());
}

#[test]
fn others_on_a_flows_processor_are_told() {
    let client = machine(Role::Client, "a", [0.0, 4.0], 0.0);
    let server = machine(Role::Server, "b", [0.0, 6.5], 0.0);
    let notes = machine_notes(Some(&client), Some(&server));
    assert_one_reason(&notes, &["server: other programs", "2.50 of 10.00 s"]);
    // Both ends on one machine: what the other end used is the run's own.
    let server = machine(Role::Server, "a", [0.0, 8.0], 0.0);
    assert!(machine_notes(Some(&client), Some(&server)).is_empty());
    let server = machine(Role::Server, "a", [0.0, 9.5], 0.0);
    assert_one_reason(&machine_notes(Some(&client), Some(&server)), &["1.50 of 10.00 s"]);
}

#[test]
fn steal_and_a_machine_without_time_left_are_told() {
    let stolen = machine(Role::Client, "a", [1.0, 4.0], 0.5);
    let notes = machine_notes(Some(&stolen), None);
    assert_one_reason(&notes, &["client: the hypervisor took 1.00 of 20.00 s"]);
    let mut full = machine(Role::Client, "a", [10.0, 9.98], 0.0);
    full.cpu = Some(CpuSeconds { user_s: 6.9, system_s: 3.0 });
    let notes = machine_notes(Some(&full), None);
    assert_one_reason(&notes, &["client: machine busy 19.98 of 20.00 s"]);
}
