//! Stores on disk: what is written reads back, comes along, and goes away.

mod exposition;
mod otlp;
mod queries;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_measure::window::{Span, Timeline};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::query::SeriesQuery;
use crate::*;

pub(crate) const T0: i64 = 1_700_000_000_000;

pub(crate) fn new_run(cells: u32) -> NewRun {
    let param =
        |value: &str| NewParam { arg: "rate".into(), value: value.into(), ..NewParam::default() };
    NewRun {
        title: "nightly".into(),
        tags: vec![("mtu".into(), "1500".into())],
        plan: "{}".into(),
        plan_hash: "abc".into(),
        seed: Some(u64::MAX),
        began_ms: T0,
        hosts: vec![NewHost { name: "a".into(), ..NewHost::default() }],
        iterations: vec![
            NewIteration { params: vec![param("1G")], primary_metric: "linerate::rx-Gbps".into() },
            NewIteration { params: vec![param("5G")], primary_metric: "linerate::rx-Gbps".into() },
        ],
        cells: (0..cells).map(|i| NewCell { iteration: i % 2, sample: i / 2 + 1 }).collect(),
        ..NewRun::default()
    }
}

fn seconds(from_s: i64, count: i64) -> Timeline {
    let span =
        |i| Span { begin_ms: T0 + (from_s + i) * 1000, end_ms: T0 + (from_s + i) * 1000 + 999 };
    Timeline::new((0..count).map(span).collect()).unwrap()
}

fn series(metric: &str, labels: &[(&str, &str)], values: Vec<f64>) -> NewSeries {
    NewSeries {
        in_period: true,
        source: "linerate".into(),
        metric: metric.into(),
        class: "throughput".into(),
        unit: "Gbit/s".into(),
        aggregation: Aggregation::Sum,
        labels: labels.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect(),
        timeline: 0,
        values,
    }
}

/// A cell of four seconds, and one series of these values for each of two engines.
pub(crate) fn cell(from_s: i64, values: [f64; 4]) -> CellEnd {
    let timeline = seconds(from_s, 4);
    CellEnd {
        period: timeline.range(),
        documents: vec![NewDocument {
            host: "a".into(),
            kind: "x".into(),
            body: "text".repeat(99),
        }],
        series: vec![
            series("rx-Gbps", &[("csid", "1"), ("cstype", "server")], values.to_vec()),
            series(
                "rx-Gbps",
                &[("csid", "2"), ("cstype", "server")],
                values.map(|v| v * 2.0).to_vec(),
            ),
        ],
        timelines: vec![timeline],
        notes: vec!["a note".into()],
        ..CellEnd::without_result(CellStatus::Done, "", T0 + 1)
    }
}

/// A store of one run with two cells done.
fn filled(directory: &TempDir) -> (Store, RunId) {
    let path = directory.path().join("deep/results.db");
    let writer = Writer::open(&path).unwrap();
    let (run, _) = writer.begin_run(new_run(4)).unwrap();
    for (position, values) in [(0, [1.0, 2.0, 3.0, 4.0]), (1, [10.0; 4])] {
        let attempt = writer.begin_cell(run, position, T0).unwrap();
        writer.end_cell(attempt, cell(i64::from(position) * 10, values)).unwrap();
    }
    writer.close().unwrap();
    (Store::open_to_read(&path).unwrap(), run)
}

fn only(store: &Store, query: &SeriesQuery) -> Vec<f64> {
    let answer = store.query(query).unwrap();
    answer.groups[0].windows.iter().map(|window| window.value.unwrap()).collect()
}

#[test]
fn what_is_written_reads_back() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = filled(&directory);
    store.check().unwrap();
    let page: i64 = store.connection.query_row("PRAGMA page_size", [], |r| r.get(0)).unwrap();
    assert_eq!(page, 16384);
    let details = store.details(run).unwrap();
    assert_eq!((details.row.done, details.row.cells), (2, 4));
    assert_eq!(details.tags, [("mtu".to_owned(), "1500".to_owned())]);
    assert_eq!(details.notes, [(Some(0), "a note".to_owned()), (Some(1), "a note".to_owned())]);
    let [one, two] = &details.iterations[..] else { panic!("{details:?}") };
    assert_eq!(one.params[0].value, "1G");
    assert_eq!(two.samples[0].period.as_ref().unwrap().span.begin_ms, T0 + 10_000);
    assert_eq!(two.samples[1].period, None);
    let mut documents = Vec::new();
    let read: Result<(), StoreError> = store.each_document(run, |document| {
        documents.push((document.position, document.body));
        Ok(())
    });
    read.unwrap();
    assert_eq!(documents, [(0, "text".repeat(99)), (1, "text".repeat(99))]);
    let order: Vec<_> = store.cells(run).unwrap().iter().map(|c| (c.iteration, c.sample)).collect();
    assert_eq!(order, [(0, 1), (1, 1), (0, 2), (1, 2)]);
}

#[test]
fn runs_are_found_by_name_beginning_title_and_last() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let writer = Writer::open(&path).unwrap();
    for (uuid, began_ms) in [("abc1", 1), ("abc2", 3), ("abc", 2)] {
        let title = format!("title of {uuid}");
        let run = NewRun { uuid: uuid.into(), began_ms, title, ..new_run(1) };
        writer.begin_run(run).unwrap();
    }
    let store = Store::open_to_read(&path).unwrap();
    let find = |word: &str| store.find(word).map(|row| row.run);
    assert_eq!(find("last").unwrap(), "abc2");
    assert_eq!(find("abc").unwrap(), "abc");
    assert_eq!(find("abc1").unwrap(), "abc1");
    assert_eq!(find("title of abc1").unwrap(), "abc1");
    let several = find("ab").unwrap_err().to_string();
    assert!(several.contains("3 runs") && several.contains("abc1"), "{several}");
    assert!(find("x").is_err() && find("").is_err());
    assert!(store.find_exactly("ab").is_err());
}

#[test]
fn a_run_goes_on_where_its_controller_died() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let writer = Writer::open(&path).unwrap();
    let (run, name) = writer.begin_run(new_run(3)).unwrap();
    let attempt = writer.begin_cell(run, 0, T0).unwrap();
    writer.end_cell(attempt, cell(0, [1.0; 4])).unwrap();
    writer.begin_cell(run, 1, T0).unwrap();
    let other = Writer::open(&path).unwrap();
    let held = other.resume_run(&name, "abc").unwrap_err();
    assert!(held.to_string().contains(&format!("process {}", std::process::id())), "{held}");
    drop(writer);
    let (_, refused) = other.resume_run(&name, "of another plan").unwrap();
    assert!(refused.cells.is_empty());
    let store = Store::open_to_read(&path).unwrap();
    assert_eq!(store.cells(run).unwrap()[1].status, CellStatus::Running, "nothing was changed");
    drop(other);
    let other = Writer::open(&path).unwrap();
    let (again, resumed) = other.resume_run(&name, "abc").unwrap();
    assert_eq!((again, resumed.seed, resumed.plan_hash.as_str()), (run, Some(u64::MAX), "abc"));
    let states: Vec<_> = resumed.cells.iter().map(|cell| (cell.status, cell.attempts)).collect();
    use CellStatus::{Done, Waiting};
    assert_eq!(states, [(Done, 1), (Waiting, 1), (Waiting, 0)]);
    let attempt = other.begin_cell(run, 1, T0).unwrap();
    other.end_cell(attempt, CellEnd::without_result(CellStatus::Failed, "why", T0)).unwrap();
    let end = RunEnd {
        status: RunStatus::Failed,
        partial: true,
        ended_ms: T0,
        iterations: vec![(1, "fail".into())],
    };
    other.end_run(run, end).unwrap();
    other.close().unwrap();
    let store = Store::open_to_read(&path).unwrap();
    let details = store.details(run).unwrap();
    assert_eq!(details.iterations[1].status, "fail");
    assert_eq!(details.iterations[1].samples[0].reason, "why");
    assert_eq!(
        (details.row.done, store.extent().unwrap().ended_cells, details.row.cells),
        (1, 2, 3)
    );
    assert!(details.row.partial);
    let locks = fs::read_dir(directory.path()).unwrap();
    let locks =
        locks.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "lock"));
    assert_eq!(locks.count(), 0);
    assert!(Writer::open(&path).unwrap().resume_run("none", "abc").is_err());
}

#[test]
fn ticks_wait_for_the_end_of_their_cell() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let writer = Writer::open(&path).unwrap();
    let (run, _) = writer.begin_run(new_run(2)).unwrap();
    let attempt = writer.begin_cell(run, 0, T0).unwrap();
    let tick = Tick { host: "a".into(), collector: "cpu".into(), at_ms: T0, data: vec![1, 2] };
    writer.tick(attempt, tick.clone()).unwrap();
    // Any transaction takes along the ticks before it.
    writer.note(run, None, "x").unwrap();
    let count = |path: &Path| -> i64 {
        let store = Store::open_to_read(path).unwrap();
        store.connection.query_row("SELECT count(*) FROM tick", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count(&path), 1);
    writer.end_cell(attempt, cell(0, [1.0; 4])).unwrap();
    assert_eq!(count(&path), 0);
    writer.tick(attempt, tick).unwrap();
    writer.close().unwrap();
    assert_eq!(count(&path), 1, "the end of the writer commits what waits");
}

#[test]
fn a_second_attempt_replaces_the_series_of_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let writer = Writer::open(&path).unwrap();
    let (run, _) = writer.begin_run(new_run(1)).unwrap();
    for value in [1.0, 7.0] {
        let attempt = writer.begin_cell(run, 0, T0).unwrap();
        writer.end_cell(attempt, cell(0, [value; 4])).unwrap();
    }
    let store = Store::open_to_read(&path).unwrap();
    let answer = store.query(&SeriesQuery::new(run, "linerate", "rx-Gbps")).unwrap();
    assert_eq!(answer.groups[0].windows[0].value, Some(21.0));
    for (table, rows) in
        [("chunk", 2), ("series", 2), ("timeline", 1), ("label", 4), ("attempt", 2)]
    {
        let sql = format!("SELECT count(*) FROM {table}");
        let found: i64 = store.connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(found, rows, "{table}");
    }
}

#[test]
fn what_breaks_a_limit_is_refused_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let writer = Writer::open(&path).unwrap();
    for uuid in ["../x", "a b", &"x".repeat(101)] {
        assert!(writer.begin_run(NewRun { uuid: uuid.into(), ..new_run(1) }).is_err(), "{uuid}");
    }
    let (run, _) = writer.begin_run(new_run(1)).unwrap();
    let attempt = writer.begin_cell(run, 0, T0).unwrap();
    let wrong = [vec![1.0; 3], vec![1.0, 2.0, f64::NAN, 4.0], vec![1.0, 2.0, f64::INFINITY, 4.0]];
    for values in wrong {
        let mut end = cell(0, [1.0; 4]);
        end.series[1].values = values;
        assert!(matches!(writer.end_cell(attempt, end), Err(StoreError::Unfit(_))));
    }
    let mut end = cell(0, [1.0; 4]);
    end.series[0].timeline = 1;
    assert!(writer.end_cell(attempt, end).is_err());
    let store = Store::open_to_read(&path).unwrap();
    let found: i64 =
        store.connection.query_row("SELECT count(*) FROM document", [], |row| row.get(0)).unwrap();
    assert_eq!(found, 0);
}

#[test]
fn merge_copies_once_and_refuses_other_content() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = filled(&directory);
    let name = store.details(run).unwrap().row.run;
    let path = directory.path().join("other.db");
    let writer = Writer::open(&path).unwrap();
    let (own, _) = writer.begin_run(new_run(1)).unwrap();
    let attempt = writer.begin_cell(own, 0, T0).unwrap();
    writer.end_cell(attempt, cell(0, [5.0; 4])).unwrap();
    writer.close().unwrap();
    let mut other = Store::open(&path).unwrap();
    assert_eq!(other.merge(&store).unwrap().copied, [name.as_str()]);
    assert_eq!(other.merge(&store).unwrap().present, [name.as_str()]);
    let copied = other.find(&name).unwrap().id;
    assert_eq!(other.details(copied).unwrap().iterations, store.details(run).unwrap().iterations);
    for resolution in [1, 5] {
        let ask = |run| SeriesQuery { resolution, ..SeriesQuery::new(run, "linerate", "rx-Gbps") };
        assert_eq!(other.query(&ask(copied)).unwrap(), store.query(&ask(run)).unwrap());
    }
    assert_eq!(only(&other, &SeriesQuery::new(own, "linerate", "rx-Gbps")), [15.0]);
    for change in [
        "UPDATE chunk SET data = zeroblob(9) WHERE id = (SELECT max(id) FROM chunk)",
        "UPDATE param SET value = 'other' WHERE value = '1G'",
    ] {
        let changed = directory.path().join("changed.db");
        let _before = fs::remove_file(&changed);
        store.bundle(&[run], &changed).unwrap();
        Connection::open(&changed).unwrap().execute(change, []).unwrap();
        let error = other.merge(&Store::open_to_read(&changed).unwrap()).unwrap_err();
        assert!(error.to_string().contains("other content"), "{error}");
    }
    let all = other.runs().unwrap();
    for row in all {
        other.remove(row.id).unwrap();
    }
    for table in
        ["run", "sample", "chunk", "timeline", "series", "label", "document", "param", "tag"]
    {
        let sql = format!("SELECT count(*) FROM {table}");
        let left: i64 = other.connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}

#[test]
fn a_bundle_is_one_file_and_opens_where_nothing_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = filled(&directory);
    let path = directory.path().join("b");
    fs::create_dir(&path).unwrap();
    let file = path.join("a ?#%.db");
    store.bundle(&[run], &file).unwrap();
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
    assert!(store.bundle(&[run], &file).is_err(), "a file that is there stays");
    let uri = store::immutable_uri(&file);
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_URI;
    let read = Connection::open_with_flags(uri, flags).unwrap();
    let runs: i64 = read.query_row("SELECT count(*) FROM run", [], |row| row.get(0)).unwrap();
    assert_eq!(runs, 1);
    let bundled = Store::open_to_read(&file).unwrap();
    assert_eq!(bundled.runs().unwrap().len(), 1);
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "reading leaves nothing beside it");
}

#[test]
fn other_files_are_refused_by_what_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let open = || Store::open(&path).err().map(|error| error.to_string()).unwrap_or_default();
    fs::write(
        &path,
        "no database, but a text that is long enough to be read as a header".repeat(9),
    )
    .unwrap();
    assert!(open().contains("not a store"), "{}", open());
    assert!(Store::open_to_read(&path).unwrap_err().to_string().contains("not a store"));
    fs::remove_file(&path).unwrap();
    let change = |sql: &str| Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    change("CREATE TABLE run (id INTEGER)");
    assert!(open().contains("not a store"), "{}", open());
    fs::remove_file(&path).unwrap();
    drop(Store::open(&path).unwrap());
    change("PRAGMA user_version = 9999");
    assert!(open().contains("version 9999") && open().contains("newer linerate"), "{}", open());
    change(&format!(
        "PRAGMA user_version = {}; CREATE TRIGGER t AFTER INSERT ON tag BEGIN DELETE FROM run; END",
        store::VERSION
    ));
    assert!(open().contains("trigger"), "{}", open());
    change(
        "DROP TRIGGER t; DROP TABLE label; CREATE VIEW label AS SELECT 1 series, 2 name, 3 value",
    );
    assert!(open().contains("label"), "{}", open());
    assert!(Store::open_to_read(&directory.path().join("none")).is_err());
    assert!(Store::open(directory.path()).unwrap_err().to_string().contains("directory"));
}

/// Each change breaks a store in one place. Every reader gives a sentence.

#[test]
fn a_damaged_store_gives_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = filled(&directory);
    for change in [
        "UPDATE chunk SET count = -1",
        "UPDATE chunk SET count = 1000000000",
        "UPDATE chunk SET data = x'08'",
        "UPDATE timeline SET data = x''",
        "UPDATE timeline SET count = 3",
        "UPDATE timeline SET part = 9223372036854775807",
        "UPDATE timeline SET part = -1",
        "UPDATE period SET begin_ms = -5",
        "UPDATE document SET body = x'ffffffff'",
        "UPDATE sample SET status = 'odd'",
        "UPDATE chunk SET low = 9e999, high = -9e999",
        "UPDATE run SET uuid = '../../x'",
        "UPDATE series SET timeline = 77",
    ] {
        let path = directory.path().join("damaged.db");
        let _before = fs::remove_file(&path);
        store.bundle(&[run], &path).unwrap();
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(change).unwrap();
        let damaged = Store::open_to_read(&path).unwrap();
        let run = damaged.runs().unwrap()[0].id;
        let mut failures = Vec::new();
        let mut note = |error: Option<StoreError>| failures.extend(error.map(|e| e.to_string()));
        note(damaged.details(run).err());
        note(damaged.cells(run).err());
        note(damaged.each_document(run, |_| Ok::<_, StoreError>(())).err());
        for resolution in [1, 7] {
            let query = SeriesQuery { resolution, ..SeriesQuery::new(run, "linerate", "rx-Gbps") };
            note(damaged.query(&query).err());
        }
        let mut target = Store::open(&directory.path().join("target.db")).unwrap();
        note(target.merge(&damaged).err());
        assert!(!failures.is_empty(), "{change}");
    }
}

#[test]
fn a_stored_file_of_each_version_opens() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let directory = tempfile::tempdir().unwrap();
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        write_the_file_of_this_version();
    }
    let mut versions = 0;
    for entry in fs::read_dir(files).unwrap() {
        let stored = entry.unwrap().path();
        let path = directory.path().join(stored.file_stem().unwrap());
        let mut file = Vec::new();
        flate2::read::DeflateDecoder::new(File::open(&stored).unwrap())
            .read_to_end(&mut file)
            .unwrap();
        fs::write(&path, file).unwrap();
        let store = Store::open(&path).unwrap();
        store.check().unwrap();
        let row = store.find("last").unwrap();
        assert_eq!((row.title.as_str(), row.done), ("nightly", 2), "{}", stored.display());
        assert_eq!(only(&store, &SeriesQuery::new(row.id, "linerate", "rx-Gbps")).len(), 1);
        versions += 1;
    }
    assert_eq!(versions, store::VERSION);
}

/// The stored file of version 1, under this name.
fn put_version_1(path: &Path) {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/version-1.db.deflate");
    let mut file = Vec::new();
    flate2::read::DeflateDecoder::new(File::open(stored).unwrap()).read_to_end(&mut file).unwrap();
    fs::write(path, file).unwrap();
}

#[test]
fn a_copy_of_an_older_file_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let copy = directory.path().join("s.db.version-1");
    put_version_1(&path);
    // What an earlier try left is no copy.
    fs::write(&copy, &fs::read(&path).unwrap()[..40_000]).unwrap();
    drop(Store::open(&path).unwrap());
    let kept = Connection::open(&copy).unwrap();
    let asked = |sql: &str| -> i64 { kept.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!((asked("PRAGMA user_version"), asked("SELECT count(*) FROM run")), (1, 1));
    let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| name.contains("version")).count(), 1, "{names:?}");
}

#[test]
fn an_older_file_that_can_not_be_changed_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    put_version_1(&path);
    // No copy can have this name, so the file is not changed.
    fs::create_dir(directory.path().join("s.db.version-1")).unwrap();
    assert!(Store::open(&path).unwrap_err().to_string().contains("no copy"));
    let store = Store::open_to_read(&path).unwrap();
    let row = store.find("last").unwrap();
    assert_eq!(only(&store, &SeriesQuery::new(row.id, "linerate", "rx-Gbps")).len(), 1);
    let file = Connection::open(&path).unwrap();
    let version: i64 = file.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 1);
}

/// Says in a process of its own what is committed, until it is killed.
const KILLED: &str = "LINERATE_TEST_KILLED_STORE";

#[test]
fn a_killed_writer_loses_nothing_that_it_was_told_is_committed() {
    if let Some(path) = std::env::var_os(KILLED) {
        let writer = Writer::open(Path::new(&path)).unwrap();
        let (run, _) = writer.begin_run(new_run(4000)).unwrap();
        for position in 0..4000 {
            let attempt = writer.begin_cell(run, position, T0).unwrap();
            let tick =
                Tick { host: "a".into(), collector: "c".into(), at_ms: T0, data: vec![0; 999] };
            writer.tick(attempt, tick).unwrap();
            writer.end_cell(attempt, cell(i64::from(position), [1.0; 4])).unwrap();
            println!("committed {position}");
        }
        return;
    }
    for cells in [1, 5, 17] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.db");
        let name = "tests::a_killed_writer_loses_nothing_that_it_was_told_is_committed";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(KILLED, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut told = 0;
        for line in std::io::BufRead::lines(output) {
            told += u32::from(line.unwrap().starts_with("committed "));
            if told == cells {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let store = Store::open(&path).unwrap();
        store.check().unwrap();
        let row = store.find("last").unwrap();
        assert!(row.done >= told, "{} of {told}", row.done);
        drop(store);
        let writer = Writer::open(&path).unwrap();
        let (_, resumed) = writer.resume_run(&row.run, "abc").unwrap();
        let done = resumed.cells.iter().filter(|cell| cell.status == CellStatus::Done).count();
        assert_eq!(done, row.done as usize);
        assert!(resumed.cells.iter().all(|cell| cell.status != CellStatus::Running));
    }
}

#[test]
fn a_reader_sees_whole_cells_beside_a_writer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let writer = Writer::open(&path).unwrap();
    let (run, _) = writer.begin_run(new_run(30)).unwrap();
    let reading = std::thread::spawn(move || {
        let store = Store::open_to_read(&path).unwrap();
        let mut looks = 0;
        loop {
            let details = store.details(run).unwrap();
            let mut documents = 0;
            let each: Result<(), StoreError> = store.each_document(run, |_| {
                documents += 1;
                Ok(())
            });
            each.unwrap();
            assert!(documents >= details.row.done);
            looks += 1;
            if details.row.done == 30 {
                return looks;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    for position in 0..30 {
        let attempt = writer.begin_cell(run, position, T0).unwrap();
        writer.end_cell(attempt, cell(i64::from(position) * 4, [1.0; 4])).unwrap();
    }
    assert!(reading.join().unwrap() > 0);
}

/// Writes the file that `a_stored_file_of_each_version_opens` reads, for a new version.
fn write_the_file_of_this_version() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = filled(&directory);
    let bundle = directory.path().join("bundle");
    store.bundle(&[run], &bundle).unwrap();
    let name = format!("tests/files/version-{}.db.deflate", store::VERSION);
    let file = File::create(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let mut encoder = flate2::write::DeflateEncoder::new(file, flate2::Compression::best());
    encoder.write_all(&fs::read(bundle).unwrap()).unwrap();
    encoder.finish().unwrap();
}
