//! Whole pages: strings and numbers of others, what they ask for, and how long they are.

use linerate_measure::comparison::{Asked, ComparedRun, Comparison, Difference, Figures, Side};
use linerate_measure::histogram::Histogram;
use linerate_measure::limits::{Cause, Limit, LimitEvidence, Place};
use linerate_measure::random::next_word;
use linerate_measure::report::{HostFacts, SocketFacts};
use linerate_measure::sample::{
    CpuSample, CpuSeconds, DatagramCounts, FlowSample, TcpStatus, Traffic,
};
use linerate_measure::summary::Latency;
use linerate_measure::trust::{Reason, Trust};
use linerate_measure::{
    Direction, EndReport, Environment, FlowReport, Outcome, Plan, Role, Run, Sample, Status,
    Summary, Transport, Workload,
};
use serde_json::{Value, json};

use crate::{
    ComparisonText, ListedRun, MatrixPage, MatrixRow, Page, PairValue, RunText, Source, extract,
    render_comparison, render_list, render_matrix, render_run,
};

const SECOND_NS: u64 = 1_000_000_000;
const HOSTILE: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&\u{202e}\u{1b}[2J";

/// A stream to a server with figures that differ from interval to interval.
fn run_of(flows: u32, seconds: u32) -> Run {
    let mut state = 7;
    let indices = (0..seconds).flat_map(|index| [(index, Role::Client), (index, Role::Server)]);
    Run {
        schema: Run::SCHEMA.to_owned(),
        run_id: "0123456789abcdef0123456789abcdef".to_owned(),
        dialect: Default::default(),
        written_by: Role::Client,
        plan: plan(flows),
        options: None,
        environment: Environment::default(),
        samples: indices.map(|(index, role)| sample(&mut state, (role, index), flows)).collect(),
        summary: summary(),
        reports: [Role::Client, Role::Server].map(report).into(),
        earlier_iterations: Vec::new(),
        hunt: None,
        steadiness: Vec::new(),
        status: Status {
            outcome: Outcome::Complete,
            exit_code: 0,
            message: Some("a message".to_owned()),
            unmet: Vec::new(),
            verdict: Some(Trust::Doubtful),
            reasons: vec![reason()],
            notes: vec!["a note".to_owned()],
        },
    }
}

fn reason() -> Reason {
    Reason {
        at_ns: Some(SECOND_NS),
        way_out: Some("a way out".to_owned()),
        ..Reason::contradiction("a reason".to_owned())
    }
}

fn limit() -> Limit {
    Limit {
        place: Place::Path,
        cause: Cause::PathRate,
        direction: Direction::Up,
        flow: Some(1),
        sure: false,
        share: Some(0.94),
        evidence: LimitEvidence::default(),
        advice: Some("an advice".to_owned()),
    }
}

fn sample(state: &mut u64, (role, index): (Role, u32), flows: u32) -> Sample {
    let of_flows = (0..flows).map(|flow| flow_sample(state, (role, index), flow)).collect();
    let mut draw = |most: u64| next_word(state) % most;
    let traffic = Some(Traffic { bytes: 100_000_000 + draw(20_000_000), calls: Some(draw(9_000)) });
    let load = CpuSeconds { user_s: 0.1 + draw(100) as f64 / 1e3, system_s: 0.5 };
    Sample {
        index,
        from_ns: u64::from(index) * SECOND_NS,
        to_ns: u64::from(index + 1) * SECOND_NS,
        utc_ns: 1_700_000_000_000_000_000
            + i64::from(index) * 1_000_000_000
            + draw(1_000_000) as i64,
        warm_up: index == 0,
        sent: traffic.filter(|_| role == Role::Client),
        received: traffic.filter(|_| role == Role::Server),
        transactions: Some(draw(1_000)),
        latency_mean_ns: Some(draw(90_000) as f64),
        datagrams: Some(DatagramCounts { lost: Some(draw(9)), ..DatagramCounts::default() }),
        flows: of_flows,
        cpu: Some(CpuSample { load, ..CpuSample::default() }),
        ..Sample::nothing(role)
    }
}

fn flow_sample(state: &mut u64, (role, index): (Role, u32), flow: u32) -> FlowSample {
    let mut draw = |most: u64| next_word(state) % most;
    let bytes = 100_000_000 + draw(20_000_000);
    let tcp = TcpStatus {
        rtt_us: 200 + draw(100) as u32,
        min_rtt_us: Some(90),
        cwnd_segments: 10 + draw(90) as u32,
        mss_bytes: 1448,
        retransmitted_segments: index * 3,
        delivery_rate_bps: Some(900_000_000 + draw(100_000_000)),
        busy_us: Some(u64::from(index) * 1_000_000 + draw(1_000)),
        ..TcpStatus::default()
    };
    FlowSample {
        flow,
        sent_bytes: (role == Role::Client).then_some(bytes),
        received_bytes: (role == Role::Server).then_some(bytes),
        tcp: Some(tcp),
        ..FlowSample::default()
    }
}

fn plan(flows: u32) -> Plan {
    let mut workload = Workload::stream(Direction::Up, Transport::Tcp);
    workload.flows = flows;
    let mut plan = Plan::new("192.0.2.1", 5250, workload);
    plan.title = Some("a title".to_owned());
    plan.tags = [("name".to_owned(), "value".to_owned())].into();
    plan
}

fn report(role: Role) -> EndReport {
    let mut latencies = Histogram::new();
    (1..5000_u64).for_each(|value| latencies.record_ns(value * value));
    let socket = SocketFacts { local: Some("a".to_owned()), ..SocketFacts::default() };
    let tcp = TcpStatus { rtt_us: 250, min_rtt_us: Some(90), ..TcpStatus::default() };
    let flow = FlowReport {
        sent: Some(Traffic { bytes: 1, calls: None }),
        tcp: Some(tcp),
        socket: Some(socket),
        error: Some("reset".to_owned()),
        ..FlowReport::default()
    };
    EndReport {
        host: HostFacts {
            hostname: "a host".to_owned(),
            kernel: "Linux".to_owned(),
            ..HostFacts::default()
        },
        flows: vec![flow],
        latency_hdr: Some(latencies.to_base64()),
        service_hdr: Some(latencies.to_base64()),
        errors: [("reset".to_owned(), 1)].into(),
        notes: vec!["a note".to_owned()],
        ..EndReport::nothing(role)
    }
}

fn summary() -> Summary {
    Summary {
        goodput_bps: Some(8e9),
        received_bytes: Some(1_000_000_000),
        retransmitted_segments: Some(30),
        latency_ns: Some(Latency { count: 9, min: 1, mean: 2.0, max: 9, ..Latency::default() }),
        loss_ratio: Some(0.01),
        cpu_s_per_gb: Some(0.5),
        limits: vec![limit()],
        ..Summary::default()
    }
}

/// What a caller says of a run, with strings of the document in it.
fn text_of(run: &Run) -> RunText {
    let host = run.reports.first().map(|report| report.host.clone()).unwrap_or_default();
    RunText {
        title: run.plan.title.clone().unwrap_or_default(),
        began: "2026-01-01".to_owned(),
        figures: vec![
            ("goodput".to_owned(), run.status.notes.concat()),
            ("  part".to_owned(), host.kernel.clone()),
        ],
        latencies: vec![
            vec![host.kernel.clone()],
            vec![host.kernel.clone(), host.hostname.clone()],
        ],
        ends: vec![vec![host.hostname.clone(), host.kernel.clone(), run.plan.host.clone()]],
        repeat: vec![run.plan.host.clone()],
        ongoing: None,
    }
}

fn page_of(run: &Run) -> String {
    render_run(run, &text_of(run)).render(None, &[])
}

/// The document with each leaf replaced that may have another value.
fn changed(
    document: &Value,
    new: &dyn Fn(&Value) -> Option<Value>,
    is_valid: &dyn Fn(&Value) -> bool,
) -> Value {
    fn leaves(value: &Value, path: String, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                fields
                    .iter()
                    .for_each(|(name, inner)| leaves(inner, format!("{path}/{name}"), found));
            }
            Value::Array(items) => {
                (0..).zip(items).for_each(|(place, inner): (usize, _)| {
                    leaves(inner, format!("{path}/{place}"), found)
                });
            }
            _ => found.push(path),
        }
    }
    let mut paths = Vec::new();
    leaves(document, String::new(), &mut paths);
    let mut whole = document.clone();
    for path in paths {
        let Some(leaf) = whole.pointer_mut(&path) else { continue };
        let Some(value) = new(leaf) else { continue };
        let before = std::mem::replace(leaf, value);
        if !is_valid(&whole) {
            *whole.pointer_mut(&path).unwrap() = before;
        }
    }
    whole
}

fn with_strings(document: &Value, text: &str, is_valid: &dyn Fn(&Value) -> bool) -> Value {
    changed(document, &|leaf| leaf.is_string().then(|| text.into()), is_valid)
}

fn is_run(value: &Value) -> bool {
    serde_json::from_value::<Run>(value.clone()).is_ok()
}

/// Pages of documents that differ in their strings have the same elements.
#[track_caller]
fn assert_same_markup(hostile: &str, tame: &str) {
    for mark in ["<", ">", "\"", "<script", "<img"] {
        assert_eq!(hostile.matches(mark).count(), tame.matches(mark).count(), "{mark}");
    }
    assert!(
        hostile.contains("&lt;script&gt;alert(1)") && !hostile.contains(['\u{202e}', '\u{1b}'])
    );
}

#[test]
fn no_string_of_a_run_is_markup() {
    let document = serde_json::to_value(run_of(2, 2)).unwrap();
    let page = |text: &str| {
        let run: Run = serde_json::from_value(with_strings(&document, text, &is_run)).unwrap();
        assert_eq!(run.reports[1].host.hostname, text);
        page_of(&run)
    };
    assert_same_markup(&page(HOSTILE), &page("x"));
}

#[test]
fn no_number_of_a_run_is_a_panic() {
    let document = serde_json::to_value(run_of(3, 3)).unwrap();
    for extreme in [
        Value::from(u64::MAX),
        u32::MAX.into(),
        0.into(),
        (-1e308).into(),
        1e308.into(),
        i64::MIN.into(),
    ] {
        let new = |leaf: &Value| leaf.is_number().then(|| extreme.clone());
        let run: Run = serde_json::from_value(changed(&document, &new, &is_run)).unwrap();
        let page = page_of(&run);
        assert!(!page.contains("NaN") || page.contains("<svg"), "{extreme}");
    }
    let page = page_of(&run_of(1, 2));
    assert!(
        page.contains("the rate of the slowest link, on the path, 94 % of the time, not for sure")
    );
    assert!(page.contains("class=\"alert\"") && page.contains("DOUBTFUL"));
    let mut empty = run_of(0, 0);
    empty.reports.clear();
    empty.summary = Summary::default();
    assert!(page_of(&empty).contains("</html>"));
}

#[test]
fn trials_of_a_hunt_are_dots() {
    let trial = |number: u32, rate: u64, verdict: Value| {
        json!({
            "number": number, "rate": rate, "purpose": "search", "verdict": verdict, "span_ns": 1,
            "offered": rate, "arrived": rate, "items": { "sent": 1, "arrived": 1, "lost": 0, "loss_events": 0 },
        })
    };
    let trials = [
        trial(1, 1_000_000_000, json!({ "is": "fail", "why": "loss" })),
        trial(2, 500_000_000, json!({ "is": "pass" })),
        trial(3, u64::MAX, json!({ "is": "invalid", "why": "short" })),
    ];
    let hunt = json!({
        "goal": {
            "unit": "bits_per_second", "low": 1, "high": 1_000_000_000, "per_item": 8, "trial_ns": 1,
            "limits": { "loss_ratio": 0.0 },
        },
        "trials": trials,
        "outcome": { "is": "found", "rate": 500_000_000, "failing_rate": 1_000_000_000 },
        "reported_trial": 2,
    });
    let mut run = run_of(1, 2);
    run.hunt = Some(serde_json::from_value(hunt).unwrap());
    let page = page_of(&run);
    assert!(page.contains("those of trial 2.") && page.contains("<b>500 Mbit/s</b>"), "{page}");
    assert_eq!(page.matches("h0").count(), 3);
}

fn comparison() -> Comparison {
    let run = |side: Side, pair: usize, factor: f64| ComparedRun {
        side,
        pair,
        run_id: None,
        exit_code: 0,
        figures: Figures::from([
            ("goodput_bps".to_owned(), 95.4e6 * factor),
            ("latency_p50_ns".to_owned(), 123_456.0 * factor),
            ("latency_p99_ns".to_owned(), 999_456.0 / factor),
        ]),
        message: Some("why".to_owned()),
    };
    let runs = (1..=15)
        .flat_map(|pair| [run(Side::A, pair, 1.0), run(Side::B, pair, 0.9 + pair as f64 / 1e3)]);
    let asked = Asked { commands: ["a".to_owned(), "b".to_owned()], conditions: Vec::new() };
    let mut whole = Comparison::of_pairs(&asked, (7, 16), runs.collect(), false);
    whole.differences =
        vec![Difference { field: "field".to_owned(), a: Some("a".to_owned()), b: None }];
    whole
}

fn page_of_comparison(comparison: &Comparison) -> String {
    let words =
        |name: &str| [name, "1", "2", "+1 %", "..", "none seen"].map(str::to_owned).to_vec();
    let text = ComparisonText {
        origin: "15 pairs".to_owned(),
        figures: comparison.metrics.iter().map(|one| words(&one.name)).collect(),
        repeat: comparison.commands.to_vec(),
    };
    render_comparison(comparison, &text).render(None, &[])
}

#[test]
fn no_string_or_number_of_a_comparison_breaks_its_page() {
    let document = serde_json::to_value(comparison()).unwrap();
    let is_valid = |value: &Value| serde_json::from_value::<Comparison>(value.clone()).is_ok();
    let page = |text: &str| {
        let strings = with_strings(&document, text, &is_valid);
        page_of_comparison(&serde_json::from_value(strings).unwrap())
    };
    assert_same_markup(&page(HOSTILE), &page("x"));
    for extreme in [Value::from(0), (-1e308).into(), 1e308.into(), u32::MAX.into()] {
        let new = |leaf: &Value| leaf.is_number().then(|| extreme.clone());
        let changed: Comparison =
            serde_json::from_value(changed(&document, &new, &is_valid)).unwrap();
        assert!(page_of_comparison(&changed).contains("</html>"));
    }
    let whole = page_of_comparison(&comparison());
    assert_eq!(whole.matches("class=\"range\"").count(), 3);
    assert_eq!(whole.matches("h0").count(), 3 + 30, "a dot for each figure and each run");
    assert!(whole.contains("15 of 16 pairs are complete"));
}

#[test]
fn no_string_of_a_matrix_or_a_list_is_markup() {
    let pages = |text: &str| {
        let own = || text.to_owned();
        let row = MatrixRow {
            parameters: vec![own()],
            metric: own(),
            value: Some(1.0),
            value_text: own(),
            status: own(),
            course: vec![Some(1.0), None, Some(f64::NAN)],
            unit: own(),
            position: Some(0),
            pairs: vec![
                PairValue { client: own(), server: "b".to_owned(), ..PairValue::default() },
                PairValue { client: "b".to_owned(), server: own(), ..PairValue::default() },
            ],
            ..MatrixRow::default()
        };
        let matrix = MatrixPage {
            title: own(),
            facts: vec![(own(), own())],
            parameters: vec![own()],
            rows: vec![row],
            notes: vec![own()],
            repeat: vec![own()],
            served_at: Some(own()),
        };
        let listed = ListedRun {
            name: own(),
            link: own(),
            began: own(),
            command: own(),
            title: own(),
            cells: own(),
            status: own(),
            compare: Some(own()),
            ..ListedRun::default()
        };
        let links = [("Runs", own())];
        render_matrix(&matrix).render(Some(Source { name: text, text: "{}" }), &links)
            + &Page { live: Some((own(), own())), ..render_list(text, &[listed]) }
                .render(None, &links)
    };
    assert_same_markup(&pages(HOSTILE), &pages("x"));
}

#[test]
fn a_page_asks_nobody_and_is_short() {
    let page = Page { title: "nothing".to_owned(), ..Page::default() }.render(None, &[]);
    assert!(page.len() <= 40_000, "{} bytes without data", page.len());
    for word in [
        "://",
        "src=",
        "url(",
        "@import",
        "<link",
        "<iframe",
        "fetch(",
        "XMLHttpRequest",
        "import(",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'") && !page.contains("connect-src"));
    // Script and style must not end their elements early.
    assert_eq!(page.matches("</script").count(), 1);
    assert_eq!(page.matches("</style").count(), 1);
}

/// A page of 64 flows and an hour of samples of a second is short, apart from its document.
#[test]
fn flows_of_a_long_run_keep_their_budget() {
    let run = run_of(64, 3600);
    let page = page_of(&run);
    assert_eq!(page.matches("<span>flow ").count(), 64);
    assert!(page.len() <= 1_000_000, "{} bytes", page.len());
}

/// Pages keep their budgets: 150 kB for 64 flows and 10 s, 1 MB for an hour of samples of a second.
#[test]
fn pages_with_their_documents_keep_their_budgets() {
    for (flows, seconds, most) in [(64, 10, 150_000), (1, 3600, 1_000_000)] {
        let run = run_of(flows, seconds);
        let document = serde_json::to_string_pretty(&run).unwrap();
        let source = Source { name: "run.json", text: &document };
        let page = render_run(&run, &text_of(&run)).render(Some(source), &[]);
        assert!(
            page.len() <= most,
            "{flows} flows, {seconds} s: {} bytes of {}",
            page.len(),
            document.len()
        );
        assert_eq!(extract(&page).as_deref(), Ok(document.as_str()));
    }
}
