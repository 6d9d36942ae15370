//! The run documents that both ends leave, against what they print.

use std::path::Path;

use linerate_measure::{Dialect, Outcome, Role, Run};

use super::fixture::{Running, Server, command, folder};

fn read(path: &Path) -> Run {
    let text = std::fs::read_to_string(path).unwrap();
    let run: Run = serde_json::from_str(&text).unwrap();
    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(&run).unwrap(), written);
    assert_eq!(run.dialect, Dialect::Qperf);
    assert_eq!(run.options.as_ref().unwrap().command_line[0], "qperf");
    run
}

fn number_behind(text: &str, name: &str) -> u64 {
    let (_, rest) = text.rsplit_once(name).unwrap_or_else(|| panic!("{text}"));
    rest.split([',', '\n']).next().unwrap().parse().unwrap()
}

#[test]
fn both_ends_leave_documents_that_say_what_was_printed() {
    let folder = folder();
    let (ours, theirs) = (folder.path().join("client.json"), folder.path().join("server"));
    std::fs::create_dir(&theirs).unwrap();
    let server = Server::start_in(folder, "-i 0.5", |command| {
        command.env("LINERATE_RUN_DOCUMENT", "server");
    });
    let words = format!("-c 127.0.0.1 -p {} -t 2 -i 0.5", server.port);
    let mut client = command(&words, server.folder.path());
    client.env("LINERATE_RUN_DOCUMENT", &ours);
    let ended = Running::start(client).wait();
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    let run = read(&ours);
    assert_eq!(
        (run.written_by, run.status.outcome),
        (Role::Client, Outcome::Complete),
        "{:?}",
        run.status
    );
    let received = run.reports[0].flows[0].received.unwrap().bytes;
    assert_eq!(received, number_behind(&ended.stdout, "total: bytes received: "));
    assert!(run.summary.goodput_bps.is_some_and(|bps| bps > 0.0), "{:?}", run.summary);
    let intervals = ended.stdout.lines().filter(|line| line.starts_with("second "));
    let shown: Vec<u64> = intervals.map(|line| number_behind(line, "bytes received: ")).collect();
    let told: Vec<u64> = run.samples.iter().map(|one| one.received.unwrap().bytes).collect();
    assert_eq!(told, shown);
    assert_eq!(run.options.unwrap().by_name["report-interval"], "0.5");
    let (served, _folder) = server.stop();
    let document = std::fs::read_dir(&theirs).unwrap().next().unwrap().unwrap().path();
    let run = read(&document);
    assert_eq!(
        (run.written_by, run.status.outcome),
        (Role::Server, Outcome::Complete),
        "{:?}",
        run.status
    );
    let sent = run.reports[0].flows[0].sent.unwrap().bytes;
    assert_eq!(sent, number_behind(&served.stdout, "total: bytes sent: "));
}

#[test]
fn a_client_without_a_server_leaves_a_document_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let mut client = command("-c nowhere.invalid", folder.path());
    client.env("LINERATE_RUN_DOCUMENT", &path);
    let ended = Running::start(client).wait();
    let status = read(&path).status;
    assert_eq!((ended.exit_code, status.outcome), (1, Outcome::Failed));
    assert_eq!(ended.stderr, format!("qperf: {}\n", status.message.unwrap()));
}

#[test]
fn a_document_has_the_exit_code_of_a_client_whose_file_could_not_be_written() {
    let server = Server::start("");
    let path = server.folder.path().join("run.json");
    let words = format!("-c 127.0.0.1 -p {} -t 1 --events /dev/full", server.port);
    let mut client = command(&words, server.folder.path());
    client.env("LINERATE_RUN_DOCUMENT", &path);
    let ended = Running::start(client).wait();
    let status = read(&path).status;
    assert_eq!((ended.exit_code, status.exit_code), (1, 1));
    assert_eq!(status.outcome, Outcome::Complete);
}
