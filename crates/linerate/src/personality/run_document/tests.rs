use std::fs;
use std::io::Read;

use linerate_measure::record::Record;
use linerate_measure::{Direction, Transport, Workload};

use super::*;

fn plan() -> Plan {
    Plan::new("192.0.2.1", 5201, Workload::stream(Direction::Up, Transport::Tcp))
}

fn open(document: Option<&Path>, records: Option<&Path>) -> Result<Arc<RunOutput>, String> {
    let (document, records) = (document.map(Path::to_owned), records.map(Path::to_owned));
    RunOutput::open(document, records, Role::Client, &Cancel::default()).map(Arc::new)
}

fn begin(output: &Arc<RunOutput>) -> RunRecord {
    output.begin(Dialect::Iperf3, Role::Client, plan(), true)
}

fn read(path: &Path) -> Run {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_test_leaves_its_document_and_its_records() {
    let directory = tempfile::tempdir().unwrap();
    let (document, records) = (directory.path().join("run.json"), directory.path().join("lines"));
    let output = open(Some(&document), Some(&records)).unwrap();
    let mut record = begin(&output);
    record.draft().unwrap().run_id = "7".to_owned();
    record.start(5);
    record.record_sample(&Sample::nothing(Role::Client));
    assert!(!document.exists(), "a document appears whole");
    record.finish(Outcome::Complete, 0, None);
    drop(output);
    let run = read(&document);
    assert_eq!((run.dialect, run.samples.len(), run.run_id.as_str()), (Dialect::Iperf3, 1, "7"));
    assert_eq!(run.environment.started_utc_ns, Some(5));
    assert!(!run.environment.client.kernel.is_empty());
    let lines = fs::read_to_string(&records).unwrap();
    let lines: Vec<Record> =
        lines.lines().map(|line| Record::parse(line).unwrap().unwrap()).collect();
    let [Record::Started { .. }, Record::Sample { run_id, .. }, Record::Finished { run: last, .. }] =
        lines.as_slice()
    else {
        panic!("{lines:?}")
    };
    assert_eq!((run_id.as_str(), &**last), ("7", &run));
}

#[test]
fn a_test_that_is_given_up_leaves_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let (document, records) = (directory.path().join("run.json"), directory.path().join("lines"));
    let output = open(Some(&document), Some(&records)).unwrap();
    drop(begin(&output));
    drop(output);
    let status = read(&document).status;
    assert_eq!((status.outcome, status.exit_code), (Outcome::Failed, 1));
    let line = fs::read_to_string(&records).unwrap();
    assert!(matches!(Record::parse(&line), Ok(Some(Record::Error { exit_code: 1, .. }))), "{line}");
}

#[test]
fn a_directory_has_a_document_for_each_test() {
    let directory = tempfile::tempdir().unwrap();
    let output = open(Some(directory.path()), None).unwrap();
    for run_id in ["1", "2"] {
        let mut record = begin(&output);
        record.draft().unwrap().run_id = run_id.to_owned();
        record.finish(Outcome::Interrupted, 1, None);
    }
    for run_id in ["1", "2"] {
        assert_eq!(read(&directory.path().join(format!("{run_id}.json"))).run_id, run_id);
    }
}

#[test]
fn both_ends_of_a_test_may_share_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let output = open(Some(directory.path()), None).unwrap();
    for role in [Role::Client, Role::Server] {
        let mut record = output.begin(Dialect::Iperf3, role, plan(), false);
        record.draft().unwrap().run_id = "1".to_owned();
        record.finish(Outcome::Complete, 0, None);
    }
    for (name, role) in [("1.json", Role::Client), ("1.server.json", Role::Server)] {
        assert_eq!(read(&directory.path().join(name)).written_by, role);
    }
}

fn make_fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
}

#[test]
fn a_server_takes_no_fifo_or_device_for_its_documents() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    make_fifo(&fifo);
    for path in [&fifo, Path::new("/dev/null")] {
        let cancel = Cancel::default();
        let why = RunOutput::open(Some(path.to_owned()), None, Role::Server, &cancel).unwrap_err();
        assert!(why.contains("is a FIFO or a device"), "{why}");
        assert!(open(Some(path), None).is_ok());
    }
}

#[test]
fn a_request_to_stop_ends_the_wait_for_readers() {
    let directory = tempfile::tempdir().unwrap();
    let (document, records) = (directory.path().join("document"), directory.path().join("records"));
    make_fifo(&document);
    make_fifo(&records);
    // It is opened, and never read.
    let reading = thread::spawn({
        let records = records.clone();
        move || fs::File::open(records).unwrap()
    });
    let cancel = Cancel::default();
    let output = RunOutput::open(Some(document), Some(records), Role::Client, &cancel);
    let output = output.map(Arc::new).unwrap();
    let _unread = reading.join().unwrap();
    let mut record = begin(&output);
    record.start(0);
    for _ in 0..2 * RECORDS_WAITING_MAX {
        record.record_sample(&Sample::nothing(Role::Client));
    }
    cancel.request();
    record.finish(Outcome::Interrupted, 1, None);
    drop(output);
}

#[test]
fn a_path_that_cant_be_written_is_told_with_its_variable() {
    let missing = Path::new("/no/such/directory/run.json");
    for (document, records, variable) in
        [(Some(missing), None, DOCUMENT), (None, Some(missing), RECORDS)]
    {
        let why = open(document, records).unwrap_err();
        assert!(why.starts_with(&format!("{variable}: can't write ")), "{why}");
        assert!(why.contains("/no/such/directory/run.json: No such file"), "{why}");
    }
    for wrong in ["fd:x", "fd:60000"] {
        let why = open(None, Some(Path::new(wrong))).unwrap_err();
        assert!(why.contains(wrong), "{why}");
    }
}

#[test]
fn a_slow_reader_loses_records_and_is_told_how_many() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    make_fifo(&fifo);
    let (begun, may_read) = std::sync::mpsc::channel();
    let reading = thread::spawn({
        let fifo = fifo.clone();
        move || {
            let mut file = fs::File::open(fifo).unwrap();
            let _begun: () = may_read.recv().unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            text
        }
    });
    let output = open(None, Some(&fifo)).unwrap();
    let mut record = begin(&output);
    record.start(0);
    for _ in 0..2 * RECORDS_WAITING_MAX {
        record.record_sample(&Sample::nothing(Role::Client));
    }
    begun.send(()).unwrap();
    record.finish(Outcome::Complete, 0, None);
    drop(output);
    let text = reading.join().unwrap();
    let last = Record::parse(text.lines().next_back().unwrap()).unwrap();
    let Some(Record::Finished { dropped_records, run, .. }) = last else { panic!("{last:?}") };
    assert!(dropped_records > 0);
    assert_eq!(run.samples.len(), 2 * RECORDS_WAITING_MAX);
}

#[test]
fn nothing_is_kept_where_nothing_is_asked_for() {
    let mut record = begin(&open(None, None).unwrap());
    record.start(0);
    record.record_sample(&Sample::nothing(Role::Client));
    assert!(record.draft().is_none() && record.kept == 0);
}

#[test]
fn options_have_their_long_names() {
    let words = ["-c", "h", "-P", "2", "--parallel=4", "-R"].map(str::to_owned);
    let options = options_of("iperf3", &words, linerate_personality::iperf3::flags::TABLE);
    assert_eq!(options.command_line.len(), 7);
    let named = serde_json::to_value(&options.by_name).unwrap();
    assert_eq!(named, serde_json::json!({ "client": "h", "parallel": "4", "reverse": true }));
}
