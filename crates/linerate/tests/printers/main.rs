//! Every printer against runs built by hand. `SNAPSHOTS=overwrite` writes the snapshots anew.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod fixture;

use fixture::{events_of, rr_run, tcp_run, udp_run};
use linerate::output::{
    CsvPrinter, Expected, JsonPrinter, NdjsonPrinter, OwnMachineTable, Printer, ServerLog, Style,
    TextPrinter,
};
use linerate_engine::event::Event;
use linerate_measure::media::FrameCounts;
use linerate_measure::quantile::QuantileInterval;
use linerate_measure::record::TestFigures;
use linerate_measure::repeats::{Asked, RepeatedRun, Repeats};
use linerate_measure::summary::Latency;
use linerate_measure::trust::{Reason, Severity, Trust};
use linerate_measure::{Direction, Outcome, Run, Workload};
use serde_json::Value;

fn matches(text: &str, name: &str) {
    let path = format!("tests/printers/snapshots/{name}");
    let snapshot = snapbox::Data::read_from(path.as_ref(), Some(snapbox::data::DataFormat::Text));
    snapbox::Assert::new()
        .action_env("SNAPSHOTS")
        .normalize_paths(false)
        .eq(text.to_owned(), snapshot);
}

/// All that a printer makes of these runs and what happens in them.
fn printed(printer: &mut dyn Printer, runs: &[Run]) -> String {
    let mut text = String::new();
    for run in runs {
        for event in events_of(run) {
            text.push_str(&printer.render_event(&event));
        }
        text.push_str(&printer.render_run(run, 0));
    }
    text.push_str(&printer.render_end());
    text
}

fn text_printer(runs: usize, live: bool) -> TextPrinter {
    TextPrinter::new(Style::Plain, runs, live, false)
}

#[test]
fn text_of_a_tcp_stream() {
    matches(&printed(&mut text_printer(1, true), &[tcp_run()]), "tcp.txt");
}

#[test]
fn text_of_a_udp_stream() {
    matches(&printed(&mut text_printer(1, true), &[udp_run()]), "udp.txt");
}

#[test]
fn the_answer_is_on_a_screen_of_80_by_24_after_a_long_run() {
    for (mut run, answer) in [
        (tcp_run(), vec!["goodput   ", "8.00 Gbit/s   2.00 GB"]),
        (rr_run(), vec!["transactions     20.0k/s", "p50 ", "p99.9 ", "max "]),
        (udp_run(), vec!["goodput   ", "  lost ", "jitter"]),
    ] {
        run.status.notes = vec!["the clock jumped".to_owned(); 3];
        let text = printed(&mut text_printer(1, true), &[run]);
        let lines: Vec<&str> = text.lines().collect();
        let wide = lines.iter().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None);
        // The shell's prompt takes the last row.
        let screen = lines[lines.len().saturating_sub(23)..].join("\n");
        for words in answer {
            assert!(screen.contains(words), "no {words:?} in:\n{screen}");
        }
    }
}

#[test]
fn a_wide_screen_has_the_latencies_in_a_row_and_verbose_has_the_environment() {
    let printer = || text_printer(1, true).with_columns(120);
    let text = printed(&mut printer(), &[rr_run()]);
    let head = text.lines().find(|line| line.starts_with("latency")).unwrap();
    assert!(head.contains("p50       p90       p99    p99.9       max"), "{head}");
    assert!(!text.contains("kernel"), "{text}");
    let text = printed(&mut printer().verbose(true), &[tcp_run()]);
    for row in ["CPU user", "send buffer", "congestion control", "kernel", "load before"] {
        assert!(text.contains(row), "no {row:?} in {text}");
    }
}

#[test]
fn an_interval_stands_beside_its_quantile() {
    let interval = |name: &str, low_ns, high_ns| QuantileInterval {
        name: name.to_owned(),
        value_ns: low_ns,
        low_ns,
        high_ns,
        overdispersion: 1.0,
        blocks: 20,
        confidence: 0.95,
    };
    let mut run = rr_run();
    run.summary.latency_intervals =
        vec![interval("p50", 47_900, 48_100), interval("p99.9", 199_000, 1_400_000)];
    let text = printed(&mut text_printer(1, true), std::slice::from_ref(&run));
    let narrow: Vec<&str> = text.lines().map(str::trim_end).collect();
    for row in [
        "latency (closed loop)             95 % interval",
        "p50                     48.0 µs  [47.9..48.1 µs]",
        "p99                     90.0 µs",
        "p99.9                    200 µs  [199 µs..1.40 ms]",
    ] {
        assert!(narrow.iter().any(|line| squeezed(line) == squeezed(row)), "{row}\n{text}");
    }
    assert!(narrow.iter().all(|line| line.chars().count() <= 80), "{text}");
    let text = printed(&mut text_printer(1, true).with_columns(140), &[run]);
    let row = text.lines().find(|line| line.starts_with("95 % interval")).unwrap();
    assert_eq!(squeezed(row), "95 % interval [47.9..48.1 µs] [199 µs..1.40 ms]");
}

/// The words of a line with a space between them.
fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn absent_percentiles_say_how_many_observations_they_take() {
    let mut run = rr_run();
    if let Some(latency) = &mut run.summary.latency_ns {
        latency.count = 500;
        (latency.p99_9, latency.p99_99, latency.p99_999) = (None, None, None);
    }
    let text = printed(&mut text_printer(1, true), &[run]);
    let line =
        "500 observations: p99.9 takes 3688, p99.99 takes 36887, p99.999 takes 368887\nVALID\n";
    assert!(text.ends_with(line), "{text}");
}

#[test]
fn text_of_rr() {
    matches(&printed(&mut text_printer(1, true), &[rr_run()]), "rr.txt");
}

#[test]
fn text_without_live_lines_has_a_title() {
    let text = printed(&mut text_printer(1, false), &[rr_run()]);
    assert!(
        text.starts_with("TCP rr with [::1]:5250, 1 flow, 1 B out, 1 B back, 2.00 s\n\n"),
        "{text}"
    );
}

/// All that a printer makes of several runs of one plan.
fn printed_repeats(printer: &mut dyn Printer, runs: &[Run], asked: &Asked) -> String {
    let mut text: String = runs.iter().map(|run| printer.render_run(run, 0)).collect();
    text +=
        &printer.render_repeats(&Repeats::of(asked, runs.iter().map(RepeatedRun::of).collect()));
    text + &printer.render_end()
}

#[test]
fn json_of_several_runs_of_one_plan_is_one_document_however_many_were_made() {
    let asked = Asked { most_runs: 3, precision: None };
    let run = tcp_run();
    for made in 0..=3 {
        let mut printer = JsonPrinter::for_runs(Expected::Repeats);
        let text = printed_repeats(&mut printer, &vec![run.clone(); made], &asked);
        let repeats: Repeats = serde_json::from_str(&text).unwrap();
        assert_eq!((repeats.documents.len(), repeats.runs.len()), (made, made), "{text}");
    }
}

#[test]
fn text_of_several_runs_of_one_plan_is_a_table_of_runs_and_one_of_figures() {
    let asked = Asked { most_runs: 3, precision: Some(0.02) };
    let mut slower = rr_run();
    slower.summary.transactions_per_s = slower.summary.transactions_per_s.map(|rate| rate * 0.8);
    let runs = [rr_run(), slower, rr_run()];
    let mut printer = TextPrinter::for_runs(Style::Plain, Expected::Repeats, false, false);
    matches(&printed_repeats(&mut printer, &runs, &asked), "repeats.txt");
}

#[test]
fn text_of_several_sizes_is_one_table() {
    let mut large = tcp_run();
    if let linerate_measure::Kind::Stream { send_bytes, .. } = &mut large.plan.workload.kind {
        *send_bytes = 65_536;
    }
    large.status.outcome = Outcome::Untrustworthy;
    large.status.exit_code = 6;
    large.status.verdict = Some(Trust::Invalid);
    large.status.message = Some("7 bytes were wrong".to_owned());
    matches(&printed(&mut text_printer(2, false), &[tcp_run(), large]), "sizes.txt");
}

#[test]
fn a_table_of_sizes_says_what_was_never_sent_and_what_failed() {
    let mut overloaded = rr_run();
    overloaded.summary.transactions_unsent = Some(123_456);
    overloaded.summary.errors = [("reset".to_owned(), 3), ("timed_out".to_owned(), 1)].into();
    overloaded.status.notes = vec!["the clock jumped".to_owned()];
    let mut larger = overloaded.clone();
    if let linerate_measure::Kind::Rr { response_bytes, .. } = &mut larger.plan.workload.kind {
        *response_bytes = 9;
    }
    let text = printed(&mut text_printer(2, false), &[larger, overloaded.clone()]);
    let remarks = |name: &str| {
        format!(
            "{name}: due, but never begun: 123456\n{name}: errors: reset: 3\n{name}: errors: timed_out: 1\n\
             {name}: note: the clock jumped\n"
        )
    };
    assert!(text.ends_with(&(remarks("1/9") + &remarks("1"))), "{text}");
    // Where plans differ in more, that is told.
    let text = printed(&mut text_printer(2, false), &[overloaded, udp_run()]);
    let mixed = remarks("1. TCP rr [::1]:5250 1")
        + "2. UDP stream 127.0.0.1:5250 1448: datagrams refused by own stack: 7\n";
    assert!(text.ends_with(&mixed), "{text}");
}

#[test]
fn plans_with_one_title_are_told_apart_by_their_hosts() {
    let titled = |host: &str, title: &str| {
        let mut run = rr_run();
        run.plan.host = host.to_owned();
        run.plan.title = Some(title.to_owned());
        run
    };
    let runs = [titled("a", "nightly"), titled("::1", "nightly"), titled("a", "other")];
    let text = printed(&mut text_printer(3, false), &runs);
    for name in ["1. nightly, a:5250 ", "2. nightly, [::1]:5250 ", "3. other "] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}: {text}");
    }
    // Of one host, it takes what they do.
    let mut stream = udp_run();
    (stream.plan.host, stream.plan.title) = ("a".to_owned(), Some("nightly".to_owned()));
    let text = printed(&mut text_printer(2, false), &[titled("a", "nightly"), stream]);
    for name in ["1. nightly, TCP rr a:5250 1 ", "2. nightly, UDP stream a:5250 1448 "] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}: {text}");
    }
}

#[test]
fn text_has_colours_only_when_asked() {
    let coloured = printed(&mut TextPrinter::new(Style::Coloured, 1, true, false), &[tcp_run()]);
    assert!(coloured.contains("\x1b[1m") && coloured.contains("\x1b[0m"));
    assert!(!printed(&mut text_printer(1, true), &[tcp_run()]).contains('\x1b'));
}

#[test]
fn a_failure_is_in_a_file_and_not_on_the_screen() {
    let mut run = tcp_run();
    run.samples.clear();
    run.reports.clear();
    run.summary = linerate_measure::Summary::default();
    run.status.outcome = Outcome::Failed;
    run.status.message = Some("can't reach the server".to_owned());
    assert_eq!(text_printer(1, true).render_run(&run, 0), "");
    let in_file = TextPrinter::new(Style::Plain, 1, false, true).render_run(&run, 0);
    assert!(in_file.ends_with("failed: can't reach the server\n"), "{in_file}");
}

#[test]
fn invalid_run_prints_its_reasons() {
    let mut run = tcp_run();
    run.status.outcome = Outcome::Untrustworthy;
    run.status.verdict = Some(Trust::Invalid);
    run.status.message = Some("7 bytes were wrong".to_owned());
    run.status.notes = vec!["the clock jumped".to_owned()];
    let text = text_printer(1, false).render_run(&run, 0);
    assert!(text.contains("note: the clock jumped\n"), "{text}");
    assert!(text.ends_with("\nINVALID: 7 bytes were wrong\n"), "{text}");
    let doubt = |text: &str| Reason {
        severity: Severity::Doubtful,
        ..Reason::contradiction(text.to_owned())
    };
    run.status.reasons = vec![doubt("the client stood still for 301 ms at 0.9 s")];
    run.status.reasons.push(Reason::contradiction("7 bytes were wrong".to_owned()));
    let text = text_printer(1, false).render_run(&run, 0);
    let line = "\nINVALID: 7 bytes were wrong; the client stood still for 301 ms at 0.9 s\n";
    assert!(text.ends_with(line), "{text}");
    (run.status.outcome, run.status.verdict) = (Outcome::Complete, Some(Trust::Doubtful));
    run.status.reasons.truncate(1);
    let text = text_printer(1, false).render_run(&run, 0);
    assert!(text.ends_with("\nDOUBTFUL: the client stood still for 301 ms at 0.9 s\n"), "{text}");
    let text = printed(&mut text_printer(2, false), &[run, tcp_run()]);
    assert!(text.contains(" doubtful\n") && text.contains(" valid\n"), "{text}");
    assert!(!text.contains("VALID\n"), "a table has a column for that: {text}");
}

#[test]
fn json_is_the_document_itself() {
    let run = tcp_run();
    let text = printed(&mut JsonPrinter::new(1), std::slice::from_ref(&run));
    assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
}

#[test]
fn json_of_several_sizes_is_an_array() {
    let runs = [tcp_run(), tcp_run(), tcp_run()];
    for made in 0..=3 {
        let text = printed(&mut JsonPrinter::new(3), &runs[..made]);
        assert_eq!(serde_json::from_str::<Vec<Run>>(&text).unwrap(), runs[..made]);
    }
}

#[test]
fn ndjson_has_a_line_for_each_event() {
    let run = rr_run();
    let text = printed(&mut NdjsonPrinter::default(), std::slice::from_ref(&run));
    let records: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = records.iter().map(|record| record["record"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["started", "sample", "sample", "sample", "sample", "finished"]);
    for record in &records {
        assert_eq!(record["version"], 1);
        assert_eq!(record["run_id"], run.run_id);
    }
    assert_eq!(serde_json::from_value::<Run>(records[5]["run"].clone()).unwrap(), run);
}

#[test]
fn ndjson_of_a_failure_is_an_error_with_the_run() {
    let mut run = tcp_run();
    run.status.outcome = Outcome::Failed;
    run.status.exit_code = 5;
    run.status.message = Some("no room".to_owned());
    let record: Value =
        serde_json::from_str(&NdjsonPrinter::default().render_run(&run, 0)).unwrap();
    assert_eq!(record["record"], "error");
    assert_eq!((&record["exit_code"], &record["message"]), (&5.into(), &"no room".into()));
    assert_eq!(record["run"]["schema"], "linerate.run/1");
}

#[test]
fn ndjson_of_a_server_begins_with_where_it_listens() {
    let mut printer = NdjsonPrinter::default();
    assert_eq!(
        printer.render_event(&fixture::listening()),
        "{\"record\":\"listening\",\"version\":1,\"address\":\"127.0.0.1:5250\",\"fingerprint\":\"ab\"}\n"
    );
}

#[test]
fn csv_has_rows_for_samples_and_summary() {
    let text = printed(&mut CsvPrinter::default(), &[tcp_run(), rr_run()]);
    let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.iter().all(|count| *count == columns[0]), "{columns:?}");
    matches(&text, "runs.csv");
}

#[test]
fn csv_has_what_was_never_sent_what_failed_and_the_parts_of_a_connection() {
    let mut run = rr_run();
    let latency = |p50, p99| Some(Latency { p50: Some(p50), p99: Some(p99), ..Latency::default() });
    run.summary.transactions_lost = Some(4);
    run.summary.transactions_unsent = Some(5);
    run.summary.errors = [("ports_exhausted".to_owned(), 900), ("reset".to_owned(), 9)].into();
    run.summary.establishment_ns = latency(11, 12);
    run.summary.first_byte_ns = latency(21, 22);
    run.plan.title = Some("a \"b\", c".to_owned());
    run.plan.tags = [("one", "1"), ("two", "2")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let text = printed(&mut CsvPrinter::default(), &[run]);
    let (head, summary) = (text.lines().next().unwrap(), text.lines().last().unwrap());
    let names = "outcome,transactions_lost,transactions_unsent,errors,establishment_p50_ns,\
                 establishment_p99_ns,first_byte_p50_ns,first_byte_p99_ns,utc_ns,host,workload,transport,loss_ratio,\
                 lost_packets,rtt_us,cwnd_bytes,title,tags,frames_sent,frames_completed,frames_late,\
                 frames_dropped,loss_bursts,longest_loss_burst,delay_variation_p50_ns,\
                 delay_variation_p99_ns,send_delay_p50_ns,send_delay_p99_ns";
    assert!(head.ends_with(names), "{head}");
    let values = "complete,4,5,909,11,12,21,22,,[::1]:5250,rr,TCP,,,,,\"a \"\"b\"\", c\",one=1 two=2,,,,,,,,,,";
    assert!(summary.ends_with(values), "{summary}");
    // Of a run that nobody has reported on it isn't known.
    let mut failed = tcp_run();
    (failed.samples, failed.reports) = (Vec::new(), Vec::new());
    let text = printed(&mut CsvPrinter::default(), &[failed]);
    assert!(text.contains("complete,,,,,,,,,"), "{text}");
}

#[test]
fn csv_and_text_have_the_figures_of_a_media_stream() {
    let mut run = udp_run();
    let latency = |p50, p99| Some(Latency { p50: Some(p50), p99: Some(p99), ..Latency::default() });
    run.plan.workload = Workload::media(Direction::Up);
    run.summary.delay_variation_ns = latency(31, 32);
    run.summary.send_delay_ns = latency(41, 42);
    let frames =
        FrameCounts { sent: Some(600), completed: Some(590), late: Some(3), dropped: Some(7) };
    let counts = run.summary.datagrams.as_mut().unwrap();
    (counts.frames, counts.loss_bursts, counts.longest_loss_burst) =
        (Some(frames), Some(2), Some(5));
    let text = printed(&mut CsvPrinter::default(), &[run.clone()]);
    let summary = text.lines().last().unwrap();
    assert!(summary.contains(",media,UDP,"), "{summary}");
    assert!(summary.ends_with(",600,590,3,7,2,5,31,32,41,42"), "{summary}");
    let text = printed(&mut text_printer(1, false), &[run]);
    for line in [
        "3 x 1388 B a frame",
        "60 frames/s, played after 200 ms",
        "frames sent               600",
        "  completed               590   98.3 %",
        "  late                    3   0.500 %",
        "  dropped                 7   1.2 %",
        "loss bursts               2   longest 5 datagrams",
        "delay variation           p50 31 ns   p99 32 ns   max 0 ns",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn the_table_of_self() {
    let mut table = OwnMachineTable::new(Style::Plain);
    let mut text = table.render_head();
    for (name, run) in [("TCP up", tcp_run()), ("TCP rr", rr_run()), ("UDP stream", udp_run())] {
        text.push_str(&table.render_row(name, &run));
    }
    text.push_str(&table.render_end(false));
    matches(&text, "self.txt");
}

#[test]
fn the_log_of_a_server() {
    let run = tcp_run();
    let started = Event::TestStarted {
        run_id: run.run_id.clone(),
        utc_ns: 0,
        client: "[::1]:40000".parse().unwrap(),
        workload: Box::new(run.plan.workload),
    };
    let ended = |how: &str, figures| Event::TestEnded {
        run_id: "0123456789abcdef0123456789abcdef".to_owned(),
        utc_ns: 0,
        how: how.to_owned(),
        figures,
    };
    let carried = TestFigures {
        elapsed_ns: 2_000_000_000,
        received_bytes: 250_000_000,
        sent_bytes: 0,
        transactions: 0,
    };
    let answered = TestFigures { sent_bytes: 250_000, transactions: 100, ..carried };
    let mut log = ServerLog::new(false, || 1_896_091_200_900_000_000);
    assert_eq!(
        log.render_event(&fixture::listening()),
        "listening on 127.0.0.1:5250, TCP and UDP\nkey fingerprint ab\n"
    );
    let id = "2030-01-31T12:00:00Z  0123456789abcdef0123456789abcdef";
    for (event, words) in [
        (&started, "started  [::1]:40000  TCP stream up, 1 flow, 2.00 s"),
        (&ended("complete", Some(carried)), "ended    complete, 2.00 s, received 1.00 Gbit/s"),
        (
            &ended("complete", Some(answered)),
            "ended    complete, 2.00 s, 50/s, received 1.00 Gbit/s, sent 1.00 Mbit/s",
        ),
        (&ended("the server was stopped", None), "ended    the server was stopped"),
    ] {
        assert_eq!(log.render_event(event), format!("{id}  {words}\n"));
    }
    assert_eq!(ServerLog::new(true, || 0).render_event(&started), "");
}
