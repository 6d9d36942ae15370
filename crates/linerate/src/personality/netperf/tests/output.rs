//! Tables, selected figures, interim results.

use linerate_engine::netperf::Outcome;
use linerate_measure::Sample;
use linerate_measure::sample::{DatagramCounts, Role, Traffic};

use super::super::confidence::render_warning;
use super::super::figures::Iterations;
use super::super::interim::Interim;
use super::super::selector;
use super::super::table::{render_result, render_segment_size};
use super::fixture::{figures, outcome, printed, request};

/// Compares with a file of command lines, each with what it prints.
fn assert_printed(snapshot: &str, lines: &[&str]) {
    let mut text = String::new();
    for line in lines {
        // An end of line that can be seen: blanks before it are part of the shape.
        let shown = printed(line).replace('\n', "|\n");
        text += &format!("$ netperf {line}\n{shown}\n");
    }
    let path = format!("src/personality/netperf/snapshots/{snapshot}.txt");
    let expected = snapbox::Data::read_from(path.as_ref(), None);
    snapbox::Assert::new().action_env("SNAPSHOTS").eq(text, expected);
}

#[test]
fn bulk_over_tcp() {
    assert_printed(
        "stream",
        &[
            "-t TCP_STREAM",
            "-P 0 -t TCP_STREAM",
            "-v 0 -t TCP_STREAM",
            "-v 2 -t TCP_STREAM",
            "-c -C -t TCP_STREAM",
            "-c -v 0 -P 0 -t TCP_STREAM",
            "-C -P 0 -B brand -t TCP_STREAM",
            "-P 0 -B brand -t TCP_STREAM",
            "-f g -t TCP_STREAM -- -D",
            "-f u -t TCP_STREAM",
            "-f x -P 0 -t TCP_STREAM",
            "-t TCP_MAERTS",
            "-v 2 -t TCP_MAERTS",
            "-c -C -t TCP_MAERTS",
            "-t TCP_SENDFILE -F name",
            "-b 10 -w 5m -T 0,1 -t TCP_STREAM -- -V",
            "-6 -t TCP_STREAM",
        ],
    );
}

#[test]
fn requests_and_connections() {
    assert_printed(
        "request_response",
        &[
            "-t TCP_RR",
            "-P 0 -B brand -t TCP_RR",
            "-v 0 -t TCP_RR",
            "-v 2 -t TCP_RR -- -r 100 -b 4",
            "-c -C -t TCP_RR",
            "-c -C -v 0 -P 0 -t TCP_RR",
            "-f m -t TCP_RR",
            "-f m -c -C -t TCP_RR",
            "-t UDP_RR",
            "-v 2 -t UDP_RR",
            "-c -C -t UDP_RR",
            "-t TCP_CRR",
            "-v 0 -t TCP_CRR",
            "-v 2 -t TCP_CRR",
            "-c -C -t TCP_CRR",
            "-c -v 0 -P 0 -t TCP_CRR",
            "-P 0 -B brand -t TCP_CC",
            "-t TCP_CC",
            "-f k -t TCP_CC",
            "-f K -c -C -t TCP_CC",
        ],
    );
}

#[test]
fn the_buffers_of_each_direction_are_shown_where_they_are_used() {
    let ends = "-a 16,32 -A 64,128 -o 1,2 -O 3,4";
    for (test, row) in [
        ("TCP_STREAM", "   16     128      1       4 "),
        ("TCP_MAERTS", "   32      64      2       3 "),
        ("TCP_RR", "   16    128       1      4   "),
        ("TCP_CRR", "   16    128       1      4\n"),
    ] {
        let text = printed(&format!("-v 2 {ends} -t {test}"));
        assert!(text.contains(row), "{test}: {text}");
    }
    let text = printed(&format!("{ends} -t TCP_RR -- -k all"));
    for (name, value) in [
        ("LOCAL_SEND_ALIGN", 16),
        ("LOCAL_RECV_ALIGN", 32),
        ("REMOTE_SEND_ALIGN", 64),
        ("REMOTE_RECV_ALIGN", 128),
        ("LOCAL_SEND_OFFSET", 1),
        ("LOCAL_RECV_OFFSET", 2),
        ("REMOTE_SEND_OFFSET", 3),
        ("REMOTE_RECV_OFFSET", 4),
    ] {
        assert!(text.contains(&format!("\n{name}={value}\n")), "{name}: {text}");
    }
}

#[test]
fn bulk_over_udp() {
    assert_printed(
        "udp_stream",
        &[
            "-t UDP_STREAM",
            "-P 0 -B brand -t UDP_STREAM",
            "-v 0 -t UDP_STREAM",
            "-c -C -t UDP_STREAM",
            "-c -C -v 0 -P 0 -t UDP_STREAM",
        ],
    );
}

#[test]
fn selected_figures() {
    assert_printed(
        "selected",
        &[
            "-t omni",
            "-t omni -- -o",
            "-t omni -- -k",
            "-P 0 -t omni",
            "-P 0 -t omni -- -o",
            "-t omni -c -C",
            "-t omni -- -d rr",
            "-t omni -- -d maerts",
            "-t omni -- -d rr -c",
            "-t omni -- -c",
            "-t omni -- -T udp -m 100",
            "-t omni -- -O THROUGHPUT,THROUGHPUT_UNITS;LSS_SIZE_REQ,LSS_SIZE,LSS_SIZE_END",
            "-t TCP_STREAM -- -o THROUGHPUT,BOGUS,ELAPSED_TIME",
            "-t TCP_RR -j -- -k min_latency,MAX_LATENCY,MEAN_LATENCY,P50_LATENCY,P99_LATENCY,RT_LATENCY",
            "-t TCP_RR -j -- -k P95_LATENCY,p999_latency,P9999_LATENCY",
            "--fine-latency -t TCP_RR -- -k min_latency,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY",
            "-P 0 -B brand -t TCP_STREAM -- -o RESULT_BRAND,COMMAND_LINE",
            "-I 99,4 -t TCP_STREAM -- -o CONFIDENCE_LEVEL,CONFIDENCE_INTERVAL,THROUGHPUT_CONFID",
            "-t UDP_STREAM -- -k THROUGHPUT,LOCAL_SEND_THROUGHPUT,REMOTE_RECV_THROUGHPUT",
            "-t TCP_STREAM -c -C -- -k all",
            "-t TCP_RR -- -o all",
            "-t TCP_STREAM -- -O all",
        ],
    );
}

#[test]
fn every_selector_of_the_original_is_there_once_and_in_order() {
    let names: Vec<String> = selector::all().map(|selector| selector.name()).collect();
    assert_eq!(names.len(), 173);
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), names.len());
    assert_eq!((&*names[0], &*names[172]), ("SOCKET_TYPE", "COMMAND_LINE"));
    assert!(selector::all().all(|selector| (1..=4).contains(&selector.heading_lines().count())));
    assert_eq!(selector::blocks().iter().map(Vec::len).collect::<Vec<_>>(), [24, 29, 58, 62]);
}

#[test]
fn a_demand_that_was_not_met_is_told_before_the_result() {
    let request = request("-I 95,5 -i 3 -P 0 -t TCP_STREAM");
    let uneven = figures(&request, &[1.0, 2.0, 1.0]);
    let text = render_result(&request, &uneven, "");
    assert!(text.starts_with("!!! WARNING\n!!! Desired confidence"), "{text}");
    let even = figures(&request, &[1.0, 1.0, 1.0]);
    assert_eq!(render_warning(&even.agreement, &request.schedule), "");
    assert_eq!(even.agreement.iterations, 3);
}

#[test]
fn means_of_iterations_are_shown() {
    let request = request("-i 3 -P 0 -t TCP_STREAM");
    let figures = figures(&request, &[1.0, 2.0, 3.0]);
    assert!((figures.elapsed_s - 2.0).abs() < 1e-9);
    let rate_mbit = 5_013_504.0 * 8.0 / 1e6;
    let mean = (rate_mbit + rate_mbit / 2.0 + rate_mbit / 3.0) / 3.0;
    assert!((figures.throughput - mean).abs() < 1e-6);
}

#[test]
fn a_row_of_repeated_datagrams_multiplies_out() {
    let request = request("-i 3 -P 0 -t UDP_STREAM");
    let mut iterations = Iterations::new(request.subject());
    for (sent, arrived) in [(300, 30), (600, 90), (900, 60)] {
        let mut outcome = outcome(&request, 2.0);
        let traffic = |calls: u64| Some(Traffic { bytes: calls * 16_384, calls: Some(calls) });
        let sender = outcome.client.flows.first_mut().unwrap();
        sender.sent = traffic(sent);
        sender.datagrams =
            Some(DatagramCounts { refused: Some(sent / 100), ..DatagramCounts::default() });
        outcome.server.flows.first_mut().unwrap().received = traffic(arrived);
        iterations.record(outcome);
    }
    let figures = iterations.figures(&request.schedule).unwrap();
    let text = render_result(&request, &figures, "");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |messages: f64| format!("{:.2}", messages * 16_384.0 * 8.0 / 1e6 / 2.0);
    assert_eq!(
        rows[rows.len() - 3],
        ["212992", "16384", "2.00", "600", "6", &row(600.0)],
        "{text}"
    );
    assert_eq!(rows[rows.len() - 2], ["212992", "2.00", "60", &row(60.0)], "{text}");
}

#[test]
fn a_round_trip_has_no_part_of_the_pace_and_of_connections_no_burst() {
    // 5,000 transactions in a second, of which five took 12, 14, 14, 19 and 59 microseconds.
    for (line, latency_us) in [
        ("-t TCP_RR", "200.000"),
        ("-t TCP_RR -- -b 4", "1000.000"),
        ("-t TCP_CRR -- -b 4", "200.000"),
        ("-t TCP_RR -b 5 -w 1m", "23.6"),
        ("-t TCP_CRR -b 5 -w 1m", "23.6"),
        ("-t UDP_RR -b 5 -w 1m -- -b 4", "23.6"),
        ("-t TCP_STREAM", "-1.000"),
    ] {
        let separator = if line.contains("--") { "" } else { "--" };
        let text = printed(&format!("-P 0 {line} {separator} -k RT_LATENCY"));
        assert!(text.starts_with(&format!("RT_LATENCY={latency_us}")), "{line}: {text}");
    }
    let text = printed("-v 2 -b 5 -w 1m -t TCP_RR");
    assert!(text.contains(" 0   23.60"), "{text}");
}

#[test]
fn the_histogram_beside_selected_figures_says_what_was_timed() {
    for (line, timed) in [
        ("-t TCP_STREAM -- -k THROUGHPUT", "send"),
        ("-t TCP_MAERTS -- -o THROUGHPUT", "recv"),
        ("-t UDP_RR -- -O THROUGHPUT", "request/response"),
        ("-t omni", "send"),
        ("-t omni -- -d rr -c", "connect/request/response/close"),
        ("-t TCP_CC -- -k THROUGHPUT", "connect/close"),
    ] {
        let text = printed(&format!("-v 2 {line}"));
        assert!(
            text.contains(&format!("\nHistogram of {timed} times\nUNIT_USEC")),
            "{line}: {text}"
        );
    }
}

#[test]
fn interim_results_have_three_forms() {
    let rendered = |line: &str| {
        let mut interim = Interim::new(&request(line));
        interim.render_sample(&sample(1_000_000))
    };
    assert_eq!(
        rendered("-D 1 -t TCP_STREAM"),
        "Interim result:   16.00 10^6bits/s over 0.500 seconds ending at 1795223409.492\n"
    );
    assert_eq!(
        rendered("-D 1 -t TCP_STREAM -- -o THROUGHPUT"),
        "  16.00,10^6bits/s,0.500,1795223409.492\n"
    );
    assert_eq!(
        rendered("-D 1 -t TCP_STREAM -- -k THROUGHPUT"),
        "NETPERF_INTERIM_RESULT[0]=16.00\nNETPERF_UNITS[0]=10^6bits/s\n\
         NETPERF_INTERVAL[0]=0.500\nNETPERF_ENDING[0]=1795223409.492\n"
    );
}

#[test]
fn an_interval_in_which_nothing_came_is_part_of_the_next() {
    let mut interim = Interim::new(&request("-D 1 -t TCP_STREAM"));
    assert_eq!(interim.render_sample(&sample(0)), "");
    let next = Sample { from_ns: 1_000_000_000, to_ns: 1_500_000_000, ..sample(1_000_000) };
    let text = interim.render_sample(&next);
    assert!(text.starts_with("Interim result:    8.00 10^6bits/s over 1.000 seconds"), "{text}");
}

fn sample(bytes: u64) -> Sample {
    Sample {
        from_ns: 500_000_000,
        to_ns: 1_000_000_000,
        utc_ns: 1_795_223_409_492_000_000,
        sent: Some(Traffic { bytes, calls: Some(1) }),
        ..Sample::nothing(Role::Client)
    }
}

#[test]
fn the_segment_size_has_a_table_of_its_own() {
    let text = render_segment_size(&request("-t TCP_RR"), 32_741);
    assert_eq!(text, "Maximum\nSegment\nSize (bytes)\n\n32741 \n");
}

#[test]
fn an_iteration_of_which_the_server_tells_nothing_counts_only_where_there_is_no_other() {
    let request = request("-t UDP_STREAM -l 1 -i 5,3");
    let figures = |told: &[bool]| {
        let mut iterations = Iterations::new(request.subject());
        assert!(iterations.is_empty());
        for server_told in told {
            iterations.record(Outcome { server_told: *server_told, ..outcome(&request, 1.0) });
        }
        iterations.figures(&request.schedule).unwrap()
    };
    let [whole, cut, alone] = [&[true, true][..], &[true, true, false], &[false]].map(figures);
    assert_eq!((cut.rates, cut.throughput), (whole.rates, whole.throughput));
    assert!(cut.last.server_told);
    assert_eq!(alone.rates.remote_received, -1.0);
    assert!(alone.throughput > whole.throughput, "what was sent");
}
