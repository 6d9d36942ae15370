//! What a test costs the processors, where both ends are on this machine.

use std::process::{Command, Stdio};

use super::server_process::{Netserver, value};

/// What the clocks of processes are exact to, each of them read twice, and what else they do than the
/// test: begin, set up and end. In seconds.
const TOLERANCE_S: f64 = 0.06;
/// A comparison of less says nothing.
const LEAST_S: f64 = 0.1;
/// Seconds of a test; the longer ones for a machine on which others leave it little.
const LENGTHS: [u32; 3] = [2, 8, 32];

/// Processor time that a process has used (proc(5)), in seconds.
fn used_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// What a shell's `times` says of its children: `0m1.230000s 0m0.450000s` in its last line.
fn children_s(stdout: &str) -> f64 {
    let seconds = |word: &str| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap();
        60.0 * minutes.parse::<f64>().unwrap() + seconds.parse::<f64>().unwrap()
    };
    stdout.lines().next_back().unwrap().split_whitespace().map(seconds).sum()
}

/// What a client prints of a test of so many seconds, and the processor time that client and server used.
fn run(server: &Netserver, test: &str, seconds: u32) -> (String, [f64; 2]) {
    let before_s = used_s(server.pid());
    let client = Command::new("sh")
        .args(["-c", "\"$0\" \"$@\"; times", env!("CARGO_BIN_EXE_linerate"), "netperf"])
        .args(["-H", "127.0.0.1", "-p", &server.port.to_string()])
        .args(format!("-P 0 -c -C -l {seconds} -t {test} -- -k all").split_whitespace())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let server_s = used_s(server.pid()) - before_s;
    let out = String::from_utf8(client.stdout).unwrap();
    let client_s = children_s(&out);
    (out, [client_s, server_s])
}

#[test]
fn on_one_machine_each_end_tells_its_own_processor_time() {
    let server = Netserver::start("");
    for test in ["TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR", "UDP_STREAM"] {
        let mut runs = LENGTHS.iter().map(|seconds| run(&server, test, *seconds));
        let enough =
            |(_, used_s): &(String, [f64; 2])| used_s.iter().all(|used_s| *used_s > LEAST_S);
        let (out, [client_s, server_s]) =
            runs.find(enough).unwrap_or_else(|| panic!("{test}: less than {LEAST_S} s"));
        let figure = |name: &str| value(&out, name).parse::<f64>().unwrap();
        for (end, used_s) in [("LOCAL", client_s), ("REMOTE", server_s)] {
            let processors = figure("ELAPSED_TIME") * figure(&format!("{end}_CPU_COUNT"));
            let told_s = figure(&format!("{end}_CPU_UTIL")) / 100.0 * processors;
            let apart_s = (told_s - used_s).abs();
            assert!(
                apart_s <= 0.1 * used_s + TOLERANCE_S,
                "{test} {end}: {told_s}, {used_s}: {out}"
            );
            let parts = ["USER", "SYSTEM"].map(|part| figure(&format!("{end}_CPU_PERCENT_{part}")));
            let whole = figure(&format!("{end}_CPU_UTIL"));
            assert!((parts[0] + parts[1] - whole).abs() < 0.02, "{test} {end}: {out}");
            assert_eq!(value(&out, &format!("{end}_CPU_METHOD")), "R");
            for unknown in ["PERCENT_IOWAIT", "PERCENT_IRQ", "PERCENT_SWINTR", "PEAK_UTIL"] {
                assert_eq!(figure(&format!("{end}_CPU_{unknown}")), -1.0, "{test} {end}: {out}");
            }
        }
    }
}
