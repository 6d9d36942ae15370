//! `linerate results` and `--store`: runs that are kept, found, drawn, copied and removed.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use linerate_measure::window::{Span, Timeline};
use linerate_results::{
    Aggregation, CellEnd, CellStatus, NewCell, NewIteration, NewParam, NewRun, NewSeries, RunEnd,
    RunStatus, Writer,
};

use super::{Ended, command, run_in};

const T0: i64 = 1_700_000_000_000;

/// A store of one run of two cells, with a series each.
pub(crate) fn keep_matrix(path: &Path) {
    keep_matrix_of(path, "0a1b2c3d", T0, None);
}

/// Likewise, of a run of this name (the store gives one where it is empty) and begin, which goes to this index.
pub(crate) fn keep_matrix_of(path: &Path, name: &str, began_ms: i64, index: Option<&str>) {
    let writer = Writer::open(path).unwrap();
    let iteration = |rate: &str| NewIteration {
        params: vec![NewParam { arg: "rate".into(), value: rate.into(), ..NewParam::default() }],
        primary_metric: "linerate::rx-Gbps".into(),
    };
    let run = NewRun {
        uuid: name.into(),
        title: "nightly\u{1b}[2J".into(),
        tags: vec![("mtu".into(), "1500".into())],
        began_ms,
        iterations: vec![iteration("1G"), iteration("5G")],
        cells: (0..2).map(|iteration| NewCell { iteration, sample: 1 }).collect(),
        ..NewRun::default()
    };
    let (id, _) = writer.begin_run(run).unwrap();
    if let Some(index) = index {
        writer.index_to(id, index, None).unwrap();
    }
    for position in 0..2 {
        let attempt = writer.begin_cell(id, position, began_ms).unwrap();
        let begin = |second: i64| began_ms + i64::from(position) * 10_000 + second * 1000;
        let spans = (0..10).map(|second| Span::new(begin(second), begin(second) + 999).unwrap());
        let timeline = Timeline::new(spans.collect()).unwrap();
        let series = NewSeries {
            in_period: true,
            source: "linerate".into(),
            metric: "rx-Gbps".into(),
            class: "throughput".into(),
            unit: "Gbit/s".into(),
            aggregation: Aggregation::Sum,
            labels: vec![("cstype".into(), "server, \"a\"".into())],
            timeline: 0,
            values: (0..10).map(|value| f64::from(value + position as i32)).collect(),
        };
        let end = CellEnd {
            period: timeline.range(),
            timelines: vec![timeline],
            series: vec![series],
            ..CellEnd::without_result(CellStatus::Done, "", began_ms)
        };
        writer.end_cell(attempt, end).unwrap();
    }
    let status = RunStatus::Complete;
    let end =
        RunEnd { status, partial: false, ended_ms: began_ms + 20_000, iterations: Vec::new() };
    writer.end_run(id, end).unwrap();
}

fn succeed(home: &Path, words: &str) -> Ended {
    let ended = run_in(home, words);
    assert_eq!(ended.exit_code, 0, "{words}: {}{}", ended.stdout, ended.stderr);
    ended
}

fn names(home: &Path, words: &str) -> Vec<String> {
    let listed = succeed(home, &format!("results list --json {words}")).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let rows = listed.as_array().unwrap().iter();
    rows.map(|row| row["run"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_matrix_is_shown_drawn_and_exported() {
    let home = tempfile::tempdir().unwrap();
    keep_matrix(&home.path().join("s.db"));
    let show = succeed(home.path(), "results show 0a --store s.db").stdout;
    assert!(show.contains("iteration 2: rate=5G   linerate::rx-Gbps 5.500"), "{show}");
    assert!(!show.contains('\u{1b}'), "{show}");
    let show = succeed(home.path(), "results --store s.db show last --json").stdout;
    let show: serde_json::Value = serde_json::from_str(&show).unwrap();
    assert_eq!(show["iterations"][0]["samples"][0]["value"], 4.5);
    assert_eq!(show["iterations"][0]["unit"], "Gbit/s");
    assert_eq!(show["tags"]["mtu"], "1500");
    assert_eq!(names(home.path(), "--store s.db --tag mtu=1500"), ["0a1b2c3d"]);
    assert!(names(home.path(), "--store s.db --tag mtu=9000").is_empty());
    let picture = succeed(home.path(), "results plot last --store s.db").stdout;
    assert!(picture.contains("linerate::rx-Gbps"), "{picture}");
    assert!(picture.lines().all(|line| line.chars().count() <= 80), "{picture}");
    succeed(home.path(), "results plot last --store s.db --breakout cstype --svg p.svg");
    let svg = fs::read_to_string(home.path().join("p.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("<polyline"), "{svg}");
    let answer =
        succeed(home.path(), "results plot last --store s.db --json --resolution 2").stdout;
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["groups"][0]["windows"][0]["value"], 4.5);
    assert_eq!(answer["groups"][0]["windows"][1]["coverage"], 1.0);
    assert_eq!(answer["unit"], "Gbit/s");
    let csv = succeed(home.path(), "results export last --csv --store s.db").stdout;
    assert_eq!(csv.lines().count(), 21);
    let last = csv.lines().last().unwrap();
    let labels = "\"cstype=server, \"\"a\"\"\"";
    let expected = format!("throughput,Gbit/s,{labels},{},{},10", T0 + 19_000, T0 + 19_999);
    assert!(
        last.starts_with("0a1b2c3d,2,1,linerate,rx-Gbps,") && last.ends_with(&expected),
        "{last}"
    );
    let lines = succeed(home.path(), "results export last --store s.db").stdout;
    let records: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["record"].to_string())
        .collect();
    assert_eq!(records, ["\"run\"", "\"series\"", "\"series\""]);
}

#[test]
fn bundles_merge_and_runs_are_removed_by_whole_names() {
    let home = tempfile::tempdir().unwrap();
    keep_matrix(&home.path().join("s.db"));
    succeed(home.path(), "results export 0a --bundle b.db --store s.db");
    assert_eq!(run_in(home.path(), "results export 0a --bundle b.db --store s.db").exit_code, 1);
    let merged = succeed(home.path(), "results merge b.db s.db").stdout;
    assert_eq!(merged, "b.db: 1 runs copied, 0 were there\ns.db: 0 runs copied, 1 were there\n");
    let usual = home.path().join(".local/share/linerate/results.db");
    assert!(usual.exists());
    let part = run_in(home.path(), "results rm 0a");
    assert_eq!(part.exit_code, 2);
    assert!(part.stderr.contains("exactly the name '0a'"), "{}", part.stderr);
    let same = succeed(home.path(), "results diff 0a last").stdout;
    assert!(same.contains("rate=1G"), "{same}");
    succeed(home.path(), "results rm 0a1b2c3d");
    assert!(names(home.path(), "").is_empty());
    assert_eq!(names(home.path(), "--store b.db"), ["0a1b2c3d"]);
}

#[test]
fn a_run_that_failed_is_kept_too() {
    let home = tempfile::tempdir().unwrap();
    let ended = run_in(home.path(), "stream 127.0.0.1 --port 1 --time 1s --store=k.db --title t");
    assert_eq!(ended.exit_code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("kept in k.db"), "{}", ended.stderr);
    let show = succeed(home.path(), "results show t --store k.db").stdout;
    assert!(show.contains("status   failed"), "{show}");
    let plot = run_in(home.path(), "results plot t --store k.db");
    assert_eq!((plot.exit_code, plot.stderr.contains("no series")), (2, true), "{}", plot.stderr);
    // By the environment, native and another tool's.
    for words in ["rr 127.0.0.1 --port 1 --time 1s", "iperf3 -c 127.0.0.1 -p 1 -t 1"] {
        let output = command(home.path(), words).env("LINERATE_STORE", "default").output().unwrap();
        assert!(!output.status.success());
    }
    assert_eq!(names(home.path(), "").len(), 2);
    // Nothing asks: nothing is kept.
    run_in(home.path(), "rr 127.0.0.1 --port 1 --time 1s");
    assert_eq!(names(home.path(), "").len(), 2);
}

#[test]
fn stores_that_cant_be_used_are_told_before_anything_is_measured() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("text"), "no store, but a text of some length".repeat(9)).unwrap();
    for (words, part) in [
        ("stream 127.0.0.1 --port 1 --store=text", "text is not a store of results"),
        ("stream 127.0.0.1 --port 1 --store=/dev/null/x", "can't use the store /dev/null/x"),
        ("results list --store text", "text is not a store of results"),
        ("results merge none.db", "there is no such file"),
    ] {
        let ended = run_in(home.path(), words);
        assert_eq!((ended.exit_code, ended.stdout.as_str()), (1, ""), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{words}: {}", ended.stderr);
    }
    let absent = run_in(home.path(), "results show last");
    assert_eq!(absent.exit_code, 2);
    assert!(absent.stderr.contains("LINERATE_STORE"), "{}", absent.stderr);
    let mut wrong = command(home.path(), "iperf3 -c 127.0.0.1 -p 1");
    let wrong = wrong.env("LINERATE_STORE", "text").output().unwrap();
    let told = String::from_utf8(wrong.stderr).unwrap();
    assert!(told.contains("is not a store of results"), "{told}");
    keep_matrix(&home.path().join("s.db"));
    for (words, part) in [
        ("results plot last --metric rx-Gbps", "SOURCE::TYPE"),
        ("results plot last --metric linerate::x", "rx-Gbps"),
        ("results plot last --breakout cpu", "cstype"),
        ("results plot last --breakout cstype=r/(/", "can't be read"),
        ("results show none", "results list"),
    ] {
        let ended = run_in(home.path(), &format!("{words} --store s.db"));
        assert_eq!(ended.exit_code, 2, "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{words}: {}", ended.stderr);
    }
    assert_eq!(succeed(home.path(), "results list").stdout.lines().count(), 1);
    for name in ["list", "show", "diff", "plot", "export", "merge", "rm"] {
        let help = succeed(home.path(), &format!("results {name} --help")).stdout;
        assert!(help.contains(&format!("linerate results {name}")), "{help}");
    }
}

/// What a page of HTTP answers, head and body.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_server_tells_monitoring_systems_of_the_last_runs() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("kept.db");
    let words = "serve --port 0 --bind 127.0.0.1 --metrics 127.0.0.1:0 --store kept.db";
    let mut server =
        command(home.path(), words).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(server.stderr.take().unwrap()).lines();
    let address = loop {
        let line = said.next().unwrap().unwrap();
        let Some((_, url)) = line.split_once("metrics at http://") else { continue };
        break url.strip_suffix("/metrics").unwrap().to_owned();
    };
    // Clients that send nothing, more of them than there is room for, keep nobody out.
    let idle: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let nothing_yet = get(&address, "/metrics");
    assert!(nothing_yet.starts_with("HTTP/1.1 200 OK\r\n"), "{nothing_yet}");
    assert!(!nothing_yet.contains("linerate_run_info{"), "{nothing_yet}");
    assert!(get(&address, "/").starts_with("HTTP/1.1 404 Not Found\r\n"));
    keep_matrix(&path);
    // The page is made at most once a second.
    let told = loop {
        let told = get(&address, "/metrics");
        if told.contains("linerate_run_info{") {
            break told;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(told.contains("linerate_run_cells_done{title=\"nightly?[2J\"} 2\n"), "{told}");
    assert!(told.ends_with("# EOF\n"), "{told}");
    drop(idle);
    server.kill().unwrap();
    server.wait().unwrap();
    let printed = succeed(home.path(), "results metrics --store kept.db").stdout;
    assert!(
        printed.contains("linerate_run_result{title=\"nightly?[2J\",iteration=\"1\""),
        "{printed}"
    );
    let refused = run_in(home.path(), "serve --port 0 --store kept.db");
    assert_eq!(refused.exit_code, 2, "{}", refused.stderr);
}
