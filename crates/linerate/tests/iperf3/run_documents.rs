//! The run document beside what is printed: it is of the schema, and says the same.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use linerate_measure::record::Record;
use linerate_measure::sample::{DatagramCounts, MachineCpu};
use linerate_measure::schema::{self, unknown_fields::unknown_fields};
use linerate_measure::{Dialect, EndReport, Outcome, Role, Run, Transport};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::cli::{document, for_all};
use super::deaths::await_interval;
use super::programs::{Process, Program, has_original, serve};
use crate::quiet::free_port;

/// The document in this file, once it fits its schema.
fn read(path: &Path) -> Run {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}: {path:?}"));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(unknown_fields(&schema::run(), &value), []);
    let run: Run = serde_json::from_value(value).unwrap();
    assert_eq!(run.schema, Run::SCHEMA);
    assert_eq!(run.dialect, Dialect::Iperf3);
    run
}

fn ours(words: &str, document: &Path) -> Command {
    let mut command = Program::OursAs("3.12").command(words);
    command.env("LINERATE_RUN_DOCUMENT", document);
    command
}

fn figure(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {value}"))
}

fn report(run: &Run, role: Role) -> &EndReport {
    run.reports.iter().find(|report| report.role == role).unwrap()
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= other.abs() * 1e-9
}

/// The samples of the end that wrote the document, interval by interval as printed.
fn assert_samples_agree(run: &Run, printed: &Value, words: &str) {
    let intervals = printed["intervals"].as_array().unwrap();
    assert_eq!(run.samples.len(), intervals.len(), "{words}");
    for (sample, interval) in run.samples.iter().zip(intervals) {
        assert_eq!(sample.role, run.written_by);
        let streams = interval["streams"].as_array().unwrap();
        assert_eq!(sample.flows.len(), streams.len(), "{words}");
        for stream in streams {
            let number = (stream["socket"].as_u64().unwrap() - 5) / 2;
            let flow = sample.flows.iter().find(|flow| u64::from(flow.flow) == number).unwrap();
            let sends = stream["sender"] == true;
            let bytes = if sends { flow.sent_bytes } else { flow.received_bytes };
            assert_eq!(bytes, stream["bytes"].as_u64(), "{words}");
            assert_eq!(sample.warm_up, stream["omitted"] == true, "{words}");
        }
        let length_s = (sample.to_ns - sample.from_ns) as f64 / 1e9;
        assert!(is_near(length_s, figure(&streams[0], "/seconds")), "{words}");
    }
}

/// What both ends counted in all, direction by direction.
fn assert_sums_agree(run: &Run, printed: &Value, words: &str) {
    let end = &printed["end"];
    let both = words.contains("--bidir");
    let (first, second) = (("sum_sent", "sum_received"), ("_bidir_reverse", ""));
    let ups = if words.contains("-R") { Role::Server } else { Role::Client };
    for (suffix, sender) in [("", ups), (second.0, Role::Server)].iter().take(1 + usize::from(both))
    {
        let receiver = if *sender == Role::Client { Role::Server } else { Role::Client };
        let (sender, receiver) = (report(run, *sender), report(run, receiver));
        let sent: u64 =
            sender.flows.iter().filter_map(|flow| flow.sent).map(|sent| sent.bytes).sum();
        let received = receiver.flows.iter().filter_map(|flow| flow.received);
        let received: u64 = received.map(|received| received.bytes).sum();
        for (sum, bytes) in [(first.0, sent), (first.1, received)] {
            let told = &end[format!("{sum}{suffix}")];
            assert_eq!(told["bytes"].as_u64(), Some(bytes), "{words} {sum}{suffix}: {end}");
        }
        if run.plan.workload.transport == Transport::Udp {
            let counts = receiver.flows.iter().filter_map(|flow| flow.datagrams);
            let counts = counts.fold(DatagramCounts::default(), DatagramCounts::plus);
            let told = &end[format!("sum_received{suffix}")];
            assert_eq!(told["lost_packets"].as_u64(), counts.lost, "{words}: {told}");
            let all = counts.received.unwrap() + counts.lost.unwrap();
            assert_eq!(told["packets"].as_u64(), Some(all), "{words}: {told}");
        }
    }
    let received = |sum: &str| figure(end, &format!("/{sum}/bytes"));
    let all =
        received("sum_received") + if both { received("sum_received_bidir_reverse") } else { 0.0 };
    assert_eq!(run.summary.received_bytes, Some(all as u64), "{words}");
    if !both {
        // The original's rate is over the longest time of a stream, ours from the first start to the last end.
        let told = figure(end, "/sum_received/bits_per_second");
        let goodput = run.summary.goodput_bps.unwrap();
        assert!((goodput - told).abs() < 0.05 * told, "{words}: {goodput} {told}");
    }
    if let Some(again) = end["sum_sent"]["retransmits"].as_u64().filter(|_| !both) {
        assert_eq!(run.summary.retransmitted_segments, Some(again), "{words}");
    }
    let cpu = run.summary.cpu_s.unwrap();
    assert!(cpu.client.is_some() && cpu.server.is_some(), "{words}");
}

/// How the threads of the end that wrote the document waited, and what the whole machine did meanwhile.
fn assert_waiting_and_machine_are_present(run: &Run, words: &str) {
    let own = report(run, run.written_by);
    let waiting = own.waiting.unwrap_or_else(|| panic!("{words}: no waiting in {own:?}"));
    assert!(waiting.sleeps + waiting.looks > 0, "{words}: {waiting:?}");
    let busy_s = |cpu: &MachineCpu| cpu.user_s + cpu.system_s + cpu.idle_s;
    let machine_s: f64 = own.machine_cpu.iter().map(busy_s).sum();
    // /proc/stat counts in hundredths of a second, and another guest may have the processors.
    let elapsed_s = own.elapsed_ns as f64 / 1e9;
    assert!(machine_s > 0.1 * elapsed_s && !own.machine_cpu.is_empty(), "{words}: {own:?}");
}

const KINDS: [&str; 8] = [
    "-b 20M",
    "-b 20M -R",
    "-b 20M --bidir",
    "-b 20M -P 3 -O 1",
    "-n 2M -b 40M -P 2",
    "-u -b 5M -l 1000",
    "-u -b 5M -l 1000 -R -P 2",
    "-u -b 5M -l 1000 --bidir",
];

#[test]
fn a_clients_document_says_what_it_printed() {
    let folder = tempfile::tempdir().unwrap();
    let mut servers = vec![Program::Ours];
    if has_original() {
        servers.push(Program::Original);
    }
    let cells = servers.into_iter().flat_map(|server| KINDS.map(|words| (server, words)));
    for_all(cells.enumerate().collect(), |(number, (server, words))| {
        let path = folder.path().join(number.to_string());
        let (mut served, port) = serve(server, "");
        let time = if words.contains("-n") { "" } else { "-t 1" };
        let line = format!("-c 127.0.0.1 -p {port} {words} {time} -i 0.5 -J");
        let mut client = Process::start(&mut ours(&line, &path));
        let text = client.text();
        assert_eq!((client.wait(), served.wait()), (0, 0), "{words}: {text}");
        let (run, printed) = (read(&path), document(&text));
        assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Complete, 0), "{words}");
        assert_eq!((run.plan.host.as_str(), run.plan.port), ("127.0.0.1", port));
        let options = run.options.clone().unwrap();
        assert_eq!(
            options.command_line[1..].join(" "),
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        );
        assert_eq!(options.by_name["json"], true);
        assert!(!run.environment.client.kernel.is_empty() && run.environment.server.is_none());
        assert!(run.environment.started_utc_ns.is_some());
        assert_samples_agree(&run, &printed, words);
        assert_sums_agree(&run, &printed, words);
        assert_waiting_and_machine_are_present(&run, words);
    });
}

#[test]
fn both_ends_of_a_test_name_it_alike() {
    let folder = tempfile::tempdir().unwrap();
    let [client_path, server_path] = ["client", "server"].map(|name| folder.path().join(name));
    std::fs::create_dir(&server_path).unwrap();
    let port = free_port();
    let mut server = Process::start(&mut ours(&format!("-s -1 -p {port} -J"), &server_path));
    while !super::programs::listens(server.0.id(), port) {
        assert!(server.0.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let line = format!("-c 127.0.0.1 -p {port} -t 1 -b 20M -T title");
    let mut client = Process::start(&mut ours(&line, &client_path));
    let printed = document(&server.text());
    assert_eq!((client.wait(), server.wait()), (0, 0));
    let run = read(&client_path);
    // A directory has a document for each test.
    let of_server = read(&server_path.join(format!("{}.server.json", run.run_id)));
    assert_eq!((run.written_by, of_server.written_by), (Role::Client, Role::Server));
    assert_eq!(of_server.summary.received_bytes, run.summary.received_bytes);
    assert_eq!(of_server.plan.workload, run.plan.workload);
    assert_eq!(of_server.plan.title.as_deref(), Some("title"));
    let environment = &of_server.environment;
    assert_eq!(environment.client.version, "3.12");
    assert!(!environment.server.as_ref().unwrap().kernel.is_empty());
    assert_samples_agree(&of_server, &printed, "server");
    assert_waiting_and_machine_are_present(&of_server, "server");
}

#[test]
fn a_refused_test_leaves_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let port = free_port();
    let mut client = Process::start(&mut ours(&format!("-c 127.0.0.1 -p {port}"), &path));
    let complaint = client.complaint();
    assert_eq!(client.wait(), 1);
    let run = read(&path);
    assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Failed, 1));
    let message = run.status.message.unwrap();
    assert_eq!(complaint, format!("iperf3: {message}\n"));
    assert!(message.contains("unable to connect to server"), "{message}");
    assert!(run.samples.is_empty() && run.reports.is_empty());
}

#[test]
fn an_interrupted_test_leaves_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    for_all(vec!["-b 20M", "-b 20M -R", "-u -b 5M"], |words| {
        let path = folder.path().join(words.replace(' ', ""));
        let (mut server, port) = serve(Program::Ours, "");
        let line = format!("-c 127.0.0.1 -p {port} -t 60 -i 0.2 --forceflush {words}");
        let mut client = Process::start(&mut ours(&line, &path));
        let _unread = await_interval(&mut client);
        kill_process(Pid::from_child(&client.0), Signal::INT).unwrap();
        assert_eq!(client.wait(), 1, "{words}");
        let _ended = server.wait();
        let run = read(&path);
        assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Interrupted, 1));
        assert_eq!(run.status.message.as_deref(), Some("interrupt - the client has terminated"));
        assert!(!run.samples.is_empty() && run.reports.len() == 1, "{words}");
        assert!(report(&run, Role::Client).elapsed_ns > 0, "{words}");
    });
}

#[test]
fn a_dead_server_leaves_a_failure_with_what_this_end_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let (mut server, port) = serve(Program::Ours, "");
    let line = format!("-c 127.0.0.1 -p {port} -t 60 -b 20M -i 0.2 --forceflush");
    let mut client = Process::start(&mut ours(&line, &path));
    let _unread = await_interval(&mut client);
    server.0.kill().unwrap();
    assert_eq!(client.wait(), 1);
    let run = read(&path);
    assert_eq!((run.status.outcome, run.status.exit_code), (Outcome::Failed, 1));
    assert_eq!(
        run.status.message.as_deref(),
        Some("error - control socket has closed unexpectedly")
    );
    assert!(report(&run, Role::Client).flows[0].sent.unwrap().bytes > 0);
}

#[test]
fn records_come_as_the_test_goes_on() {
    let (mut server, port) = serve(Program::Ours, "");
    let script = format!(
        "exec {} iperf3 -c 127.0.0.1 -p {port} -t 1 -b 20M -i 0.5 3>&1 >/dev/null",
        env!("CARGO_BIN_EXE_linerate")
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("LINERATE_RUN_RECORDS", "fd:3");
    let mut client = Process::start(&mut shell);
    let lines = BufReader::new(client.0.stdout.take().unwrap()).lines();
    let records: Vec<Record> =
        lines.map(|line| Record::parse(&line.unwrap()).unwrap().unwrap()).collect();
    assert_eq!((client.wait(), server.wait()), (0, 0));
    assert!(matches!(records.first(), Some(Record::Started { .. })), "{records:?}");
    let samples = records.iter().filter(|record| matches!(record, Record::Sample { .. })).count();
    let Some(Record::Finished { run, dropped_records: 0, .. }) = records.last() else {
        panic!("{records:?}")
    };
    assert_eq!((samples, run.samples.len()), (2, 2));
}

#[test]
fn unwritable_path_is_an_error_before_the_test() {
    for variable in ["LINERATE_RUN_DOCUMENT", "LINERATE_RUN_RECORDS"] {
        // Nobody is there: a client that began a test would say so.
        for words in ["-c 127.0.0.1 -p 1", "-s -1 -p 2"] {
            let mut command = Program::Ours.command(words);
            command.env(variable, "/no/such/directory/file");
            let mut process = Process::start(&mut command);
            let complaint = process.complaint();
            assert_eq!(process.wait(), 1, "{words}");
            let said = format!("iperf3: error - {variable}: can't write ");
            assert!(complaint.starts_with(&said), "{complaint}");
            assert!(complaint.contains("/no/such/directory/file: No such file"), "{complaint}");
        }
    }
}
