use linerate_measure::histogram::IntervalHistogram;
use linerate_measure::sample::{DatagramCounts, FlowSample, TcpStatus, Traffic};
use linerate_measure::{Direction, End, Plan, Role, Sample, Transport, Workload};
use proptest::prelude::*;
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

/// What stands on a terminal of this size, without trailing blanks.
fn drawn(screen: &Screen, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| screen.draw(frame.buffer_mut(), 4 * SECOND_NS)).unwrap();
    let cells = terminal.backend().buffer().content();
    let rows = cells.chunks(usize::from(columns.max(1)));
    let text = |row: &[ratatui_core::buffer::Cell]| row.iter().map(|cell| cell.symbol()).collect();
    rows.map(|row| {
        let row: String = text(row);
        row.trim_end().to_owned()
    })
    .collect()
}

fn begun(workload: Workload) -> Screen {
    let end = End::Time { duration_ns: 10 * SECOND_NS };
    let plan = Plan::new("h", 5250, Workload { end, ..workload });
    let mut screen = Screen::new(false);
    screen.begin("a title of the user\nTCP stream to h:5250", "run 3 of 8, ");
    screen.handle_started(&plan, 0);
    screen
}

fn sample(role: Role, index: u32) -> Sample {
    let from_ns = u64::from(index) * SECOND_NS;
    Sample { index, from_ns, to_ns: from_ns + SECOND_NS, ..Sample::nothing(role) }
}

/// An upload of two flows, of which the second is the faster one; the receive window holds it up.
fn upload() -> Screen {
    let mut screen =
        begun(Workload { flows: 2, ..Workload::stream(Direction::Up, Transport::Tcp) });
    for index in 0..4 {
        let us = 1_000_000 * (u64::from(index) + 1);
        let bytes = [250_000_000, 500_000_000, 1_000_000_000, 1_000_000_000][index as usize];
        let flow = |flow: u32| FlowSample {
            flow,
            sent_bytes: Some(bytes * u64::from(flow + 1) / 3),
            tcp: Some(TcpStatus {
                rtt_us: 1_000 * (flow + 1),
                min_rtt_us: Some(1_000),
                mss_bytes: 1_448,
                busy_us: Some(us),
                rwnd_limited_us: Some(us),
                sndbuf_limited_us: Some(0),
                notsent_bytes: Some(1 << 20),
                ..TcpStatus::default()
            }),
            ..FlowSample::default()
        };
        let read = |flow: u32| FlowSample {
            flow,
            received_bytes: Some(bytes * u64::from(flow + 1) / 3),
            ..FlowSample::default()
        };
        let flows = [0, 1];
        screen.handle_sample(&Sample {
            flows: flows.map(flow).to_vec(),
            ..sample(Role::Client, index)
        });
        screen.handle_sample(&Sample {
            received: Some(Traffic { bytes, calls: None }),
            flows: flows.map(read).to_vec(),
            ..sample(Role::Server, index)
        });
    }
    screen.handle_note("the send buffer is small");
    screen
}

#[test]
fn before_the_load_a_screen_says_what_is_awaited() {
    let mut screen = Screen::new(false);
    screen.begin("TCP stream to h:5250", "");
    assert_eq!(drawn(&screen, 30, 4)[..2], ["TCP stream to h:5250", "connecting"]);
    assert!(drawn(&screen, 0, 0).is_empty());
}

#[test]
fn the_first_screen_has_rate_rtt_and_limit() {
    let shown = drawn(&upload(), 80, 24);
    assert_eq!(shown[0], "TCP stream to h:5250");
    assert!(
        shown[1].starts_with("run 3 of 8, 4 of 10 s, 5.50 Gbit/s so far, limited by"),
        "{shown:#?}"
    );
    assert_eq!(shown[3], "up 8.00 Gbit/s, greatest 8.00 Gbit/s");
    // A quarter, a half, and twice the whole of the height.
    let foot = shown.iter().position(|row| row.starts_with("RTT 1.50 ms")).unwrap() - 1;
    assert!(shown[foot].ends_with("████"), "{shown:#?}");
    assert!(shown[4].ends_with("  ██"), "{shown:#?}");
    assert!(
        shown.iter().any(|row| row.starts_with("up limited by the server's receive window")),
        "{shown:#?}"
    );
    assert!(shown.iter().any(|row| row == "note: the send buffer is small"), "{shown:#?}");
    assert_eq!(shown[23], "1 rates  2 flows  3 times  p pause  q end");
}

#[test]
fn a_small_terminal_has_what_matters_most() {
    let shown = drawn(&upload(), 40, 10);
    assert_eq!(shown[1], "run 3 of 8, 4 of 10 s, 5.50 Gbit/s so fa");
    assert_eq!(shown[3], "up 8.00 Gbit/s, greatest 8.00 Gbit/s");
    assert!(shown[4].ends_with("██"), "{shown:#?}");
    assert_eq!(shown[9], "1 rates  2 flows  3 times  p pause  q en");
}

#[test]
fn the_second_screen_has_flows_by_rate() {
    let mut screen = upload();
    assert_eq!(screen.handle_key(b'2'), Asked::Nothing);
    let shown = drawn(&screen, 80, 24);
    assert_eq!(shown[3], "flow  way          rate         RTT  limited by");
    assert_eq!(shown[4], "   1  up    5.33 Gbit/s     2.00 ms  the server's receive window");
    assert_eq!(shown[5], "   0  up    2.67 Gbit/s     1.00 ms  the server's receive window");
    let small = drawn(&screen, 40, 6);
    assert_eq!(small[4], "2 more flows", "{small:#?}");
}

#[test]
fn the_third_screen_has_a_distribution() {
    let mut screen = upload();
    screen.handle_key(b'3');
    let shown = drawn(&screen, 80, 24);
    assert_eq!(shown[3], "round-trip times at the ends of intervals");
    assert!(shown[4].starts_with("min 1.00 ms"), "{shown:#?}");
    assert!(shown[5].starts_with("  1.00 ms       4  ███"), "{shown:#?}");
    assert!(shown[6].starts_with("  2.00 ms       4  ███"), "{shown:#?}");
    let small = drawn(&screen, 40, 7);
    assert!(small[5].starts_with("  2.00 ms       8  ███"), "{small:#?}");
}

#[test]
fn transactions_have_their_rate_and_latency() {
    let mut screen = begun(Workload::rr(Transport::Tcp));
    screen.handle_sample(&Sample {
        transactions: Some(9_120),
        latency_mean_ns: Some(105_000.0),
        ..sample(Role::Client, 0)
    });
    let shown = drawn(&screen, 80, 24);
    assert_eq!(shown[3], "transactions 9.12k/s, greatest 9.12k/s");
    assert!(shown.iter().any(|row| row == "mean latency 105 µs, greatest 105 µs"), "{shown:#?}");
}

#[test]
fn transactions_have_the_quantiles_that_they_support() {
    let mut screen = begun(Workload::rr(Transport::Tcp));
    let second = |index, latencies: &[u64]| {
        let mut histogram = IntervalHistogram::default();
        latencies.iter().for_each(|ns| histogram.record_ns(*ns));
        Sample {
            transactions: Some(latencies.len() as u64),
            latency_mean_ns: Some(150_000.0),
            latency_hdr: Some(histogram.to_base64()),
            ..sample(Role::Client, index)
        }
    };
    screen.handle_sample(&second(0, &[100_000; 200]));
    let shown = drawn(&screen, 80, 24);
    assert_eq!(shown[1], "run 3 of 8, 4 of 10 s, 200 transactions/s so far, p50 100 µs");
    screen.handle_sample(&second(1, &[[100_000; 390], [200_000; 390]].concat()));
    let shown = drawn(&screen, 80, 24);
    assert_eq!(
        shown[1],
        "run 3 of 8, 4 of 10 s, 490 transactions/s so far, p50 100 µs, p99 200 µs"
    );
    assert!(shown.iter().any(|row| row == "p99 200 µs, greatest 200 µs"), "{shown:#?}");
    screen.handle_key(b'3');
    let shown = drawn(&screen, 80, 24);
    assert_eq!(
        shown[3..5],
        ["latencies", "min 100 µs  p50 100 µs  p90 200 µs  p99 200 µs  max 200 µs"]
    );
    assert!(shown[5].starts_with("   100 µs     590  ███"), "{shown:#?}");
    assert!(shown[6].starts_with("   200 µs     390  ███"), "{shown:#?}");
}

#[test]
fn keys_pause_and_end() {
    let mut screen = upload();
    assert_eq!((screen.handle_key(b'p'), screen.is_paused()), (Asked::Nothing, true));
    assert!(drawn(&screen, 80, 24)[23].starts_with("paused"));
    assert_eq!((screen.handle_key(b'p'), screen.is_paused()), (Asked::Nothing, false));
    assert_eq!(screen.handle_key(b'x'), Asked::Nothing);
    assert_eq!(screen.handle_key(b'q'), Asked::End);
    assert!(drawn(&screen, 80, 24)[23].starts_with("ending"));
    assert_eq!(upload().handle_key(3), Asked::End);
}

#[test]
fn a_canvas_writes_what_has_changed() {
    let mut screen = Screen::new(true);
    screen.begin("a title", "");
    let mut canvas = Canvas::new(80, 24);
    let first = canvas.draw(&screen, (80, 24), 0);
    assert!(first.contains("\x1b[1;1H\x1b[0;1ma"), "{first:?}");
    let again = canvas.draw(&screen, (80, 24), 0);
    assert!(!again.contains('a'), "{again:?}");
    let wider = canvas.draw(&screen, (90, 24), 0);
    assert!(wider.contains("\x1b[2J") && wider.contains("title"), "{wider:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A peer may send any numbers, and a terminal may have any size.
    #[test]
    fn nothing_is_too_strange_to_draw(
        samples in proptest::collection::vec(any::<[u64; 5]>(), 0..20),
        columns in 0_u16..120,
        rows in 0_u16..40,
        key in 0_u8..4,
        kind in 0_usize..4,
    ) {
        let mut screen = begun([
            Workload::stream(Direction::Both, Transport::Tcp),
            Workload::stream(Direction::Up, Transport::Udp),
            Workload::rr(Transport::Udp),
            Workload::connect(Transport::Tls),
        ][kind].clone());
        screen.handle_key(b'0' + key);
        for [from_ns, to_ns, bytes, flow, bits] in samples {
            let role = if bits & 1 == 0 { Role::Client } else { Role::Server };
            let flow = FlowSample {
                flow: flow as u32,
                sent_bytes: Some(bytes),
                received_bytes: Some(from_ns),
                tcp: Some(TcpStatus { rtt_us: bits as u32, ..TcpStatus::default() }),
                ..FlowSample::default()
            };
            screen.handle_sample(&Sample {
                index: bits as u32 % 7,
                from_ns,
                to_ns,
                received: Some(Traffic { bytes, calls: None }),
                transactions: Some(to_ns),
                latency_mean_ns: Some(bytes as f64),
                datagrams: Some(DatagramCounts { lost: Some(bytes), ..DatagramCounts::default() }),
                flows: vec![flow],
                ..Sample::nothing(role)
            });
            prop_assert_eq!(drawn(&screen, columns, rows).len(), if columns == 0 { 0 } else { usize::from(rows) });
        }
    }
}
