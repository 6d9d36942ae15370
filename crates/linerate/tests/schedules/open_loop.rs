//! Requests that keep to a schedule, and many on their way at once: nothing waits for ever, nothing
//! is left out, and a server that stands still shows in full.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::delayed;
use crate::document::Document;
use crate::ends::Server;
use crate::run_delay::RunDelays;

/// How long a load goes on before a test does anything to it.
const UNDER_WAY: Duration = Duration::from_millis(700);
/// A shared machine may stand still itself, for as long as the server of these tests does, and nothing in
/// a result tells the two apart: one attempt may fail.
const ATTEMPTS: u32 = 2;
/// A load that catches up after a freeze takes a processor for a while, so two freezes don't run at once.
static FREEZES: Mutex<()> = Mutex::new(());

/// A count of the summary, 0 where the load doesn't have it.
fn count_or_none(document: &Document, field: &str) -> u64 {
    document.json()["summary"][field].as_u64().unwrap_or(0)
}

/// All requests that were due in the measured part.
fn due(document: &Document) -> u64 {
    document.count("transactions")
        + count_or_none(document, "transactions_lost")
        + document.count("transactions_unsent")
}

/// As many were due as the rate makes in the measured time: 2 % more or less evenly, and at random four standard
/// deviations of a Poisson process. That time ends with the last response, which was due as long before as it took at
/// most.
#[track_caller]
fn assert_keeps_to(document: &Document, per_s: f64, flags: &str) {
    let (due, elapsed_s) = (due(document) as f64, document.figure("elapsed_s"));
    let last_took_s = document.figure("latency_ns/max") / 1e9;
    let off = |expected: f64| match flags.contains("poisson") {
        true => 4.0 * expected.sqrt(),
        false => 0.02 * expected,
    };
    let (least, most) = (per_s * (elapsed_s - last_took_s), per_s * elapsed_s);
    let within = (least - off(least)..=most + off(most)).contains(&due);
    assert!(
        within,
        "{flags}: {due} in {elapsed_s} s, of which the last took {last_took_s} s at most"
    );
    assert!(elapsed_s > 0.95, "{flags}: {elapsed_s} s");
}

#[test]
fn requests_keep_to_their_schedule() {
    let server = Server::start("");
    for flags in [
        "",
        "--flows 3",
        "--flows 5 --threads 2 --omit 300ms",
        "--tls",
        "--udp",
        "--udp --flows 3",
        "--arrivals poisson",
        "--udp --arrivals poisson --outstanding 100",
        "--busy-poll",
        "--busy-poll --udp --flows 2",
    ] {
        let document = server.measure(&format!("rr --rate 1000 --time 1s {flags}")).document(0);
        assert_keeps_to(&document, 1_000.0, flags);
        let summary = &document.json()["summary"];
        assert_eq!(summary["latency_from"], "open_loop", "{flags}");
        assert_eq!(document.count("service_ns/count"), document.count("latency_ns/count"));
        assert!(document.figure("service_ns/mean") <= document.figure("latency_ns/mean"));
        assert!(document.count("transactions") >= due(&document) / 2, "{flags}: {summary}");
    }
    let document = server.measure("rr --time 200ms").document(0);
    let summary = &document.json()["summary"];
    assert_eq!(summary["latency_from"], "closed_loop");
    assert!(summary["service_ns"].is_null() && summary["transactions_unsent"].is_null());
}

/// However late a flow hears that the load has begun or is over.
#[test]
fn all_that_was_due_in_the_time_asked_for_counts_and_nothing_else() {
    let server = Server::start("");
    for flags in [
        "rr --flows 3000",
        "rr --flows 3000 --outstanding 1 --threads 1",
        "rr --udp --flows 500",
        "connect --flows 100",
    ] {
        let words = format!("{flags} --rate 6000 --time 500ms");
        let due = due(&server.measure(&words).document(0));
        assert!((2_999..=3_001).contains(&due), "{flags}: {due}");
    }
}

#[test]
fn a_slow_schedule_is_kept_to_the_millisecond() {
    let server = Server::start("");
    // Waits of more than 20 ms, of which the kernel's poll sets know whole milliseconds only.
    let client = server.start_client("rr --udp --rate 25 --time 1s");
    let late = median_lateness(Duration::from_millis(40), 30);
    let p50_ns = client.finish().document(0).count("latency_ns/p50");
    // A request and its response wake up threads several times; each time a busy machine is late.
    let most = Duration::from_micros(900).max(10 * late);
    assert!(u128::from(p50_ns) < most.as_nanos(), "{p50_ns} ns where a sleep is {late:?} late");
}

/// How late the machine wakes up a thread that sleeps so long again and again: the median.
fn median_lateness(sleep: Duration, times: usize) -> Duration {
    let mut late: Vec<Duration> = Vec::new();
    for _ in 0..times {
        let began = Instant::now();
        std::thread::sleep(sleep);
        late.push(began.elapsed().saturating_sub(sleep));
    }
    late.sort();
    late[times / 2]
}

#[test]
fn a_count_is_exact_however_many_are_on_their_way() {
    let server = Server::start("");
    for (flags, count) in [
        ("--rate 5k", 1_001),
        ("--rate 5k --flows 3", 1_001),
        ("--rate 5k --tls --flows 3 --threads 1", 1_001),
        ("--rate 5k --udp --flows 3", 1_001),
        ("--rate 5k --arrivals poisson --outstanding 2", 1_001),
        ("--outstanding 32", 20_011),
        ("--outstanding 32 --tls --flows 3 --threads 2", 20_011),
        ("--outstanding 32 --udp --flows 2 --timeout 10s", 5_003),
        ("--outstanding 65536", 100_003),
        ("--outstanding 8 --busy-poll", 2_003),
        ("--outstanding 8 --request 1M --response 1", 101),
        ("--outstanding 8 --request 1 --response 1M", 101),
        ("--outstanding 8 --size 1M --flows 2 --threads 1", 41),
        ("--outstanding 8 --size 1M --tls", 21),
        ("--rate 50 --size 1M --tls", 21),
    ] {
        let document = server.measure(&format!("rr --count {count} {flags}")).document(0);
        let lost = count_or_none(&document, "transactions_lost");
        assert_eq!(document.count("transactions") + lost, count, "{flags}");
        assert_eq!(document.count("latency_ns/count") + lost, count, "{flags}");
        if flags.contains("--rate") {
            assert_eq!(document.count("transactions_unsent"), 0, "{flags}");
        }
    }
}

#[test]
fn the_time_of_many_large_messages_counts_from_their_first_byte() {
    let server = Server::start("");
    let words = "rr --outstanding 64 --request 1M --response 1 --count 640";
    let document = server.measure(words).document(0);
    // Were all 64 to count from the moment when there was room for them, each would take as long
    // as 64 of them; the system holds far fewer on their way.
    let each_ns = document.figure("elapsed_s") * 1e9 / 640.0;
    let mean_ns = document.figure("latency_ns/mean");
    assert!(mean_ns < 48.0 * each_ns, "{mean_ns} ns, one each {each_ns} ns");
}

#[test]
fn requests_held_back_by_a_stopped_server_count_as_unsent() {
    let server = Server::start("");
    // More than the sockets of both ends hold.
    let words = "rr --rate 1000 --request 256k --response 1 --time 1500ms";
    let client = server.start_test(words);
    std::thread::sleep(UNDER_WAY);
    server.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(1_500));
    server.signal(Signal::CONT);
    let document = client.finish().document(0);
    assert!(document.count("transactions_unsent") > 100, "{}", document.json()["summary"]);
    assert!((1_480..1_900).contains(&due(&document)), "{}", due(&document));
}

#[test]
fn requests_unanswered_by_a_stopped_server_count_as_lost() {
    let server = Server::start("");
    let client = server.start_test("rr --rate 1000 --request 256k --response 1 --time 1500ms");
    std::thread::sleep(UNDER_WAY);
    server.signal(Signal::STOP);
    let document = client.finish().document(1);
    server.signal(Signal::CONT);
    assert!(document.count("transactions_lost") > 0, "{}", document.json()["summary"]);
    assert!(document.count("transactions_unsent") > 100, "{}", document.json()["summary"]);
    assert!((1_480..1_900).contains(&due(&document)), "{}", due(&document));
}

#[test]
fn requests_that_nobody_answers_are_counted() {
    let server = Server::start("");
    let client = server.start_test("rr --udp --rate 1000 --time 1500ms --timeout 50ms");
    std::thread::sleep(UNDER_WAY);
    server.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(1_500));
    server.signal(Signal::CONT);
    let document = client.finish().document(0);
    assert!(document.count("transactions_lost") > 100, "{}", document.json()["summary"]);
    assert!((1_480..1_900).contains(&due(&document)), "{}", due(&document));
}

#[test]
fn a_datagram_that_is_given_up_with_its_flow_is_counted() {
    std::thread::scope(|scope| {
        for (flags, flows) in
            [("--udp", 1), ("--udp --flows 4", 4), ("--quic --datagram --flows 2", 2)]
        {
            scope.spawn(move || {
                let server = Server::start("");
                // It is given up long before it is overdue.
                let words = format!("rr {flags} --timeout 20s --time 1500ms");
                let client = server.start_test(&words);
                std::thread::sleep(UNDER_WAY);
                server.signal(Signal::STOP);
                let document = client.finish().document(1);
                server.signal(Signal::CONT);
                assert_eq!(document.count("transactions_lost"), flows, "{flags}");
            });
        }
    });
}

/// Stops the server for so long while the client measures; says for how long it was.
fn freeze(server: &Server, how_long: Duration) -> Duration {
    server.signal(Signal::STOP);
    let stopped = Instant::now();
    std::thread::sleep(how_long);
    server.signal(Signal::CONT);
    stopped.elapsed()
}

/// Of a load that goes on for T and a server that stands still for F of it, a share (F - x) / T
/// waits longer than x: the quantile p is F - (1 - p) T.
///
/// Threads that have to wait for a processor are late by as much at most.
fn freeze_shows(
    document: &Document,
    frozen: Duration,
    delayed_s: f64,
    quantiles: &[f64],
) -> Result<(), String> {
    let (frozen_ns, elapsed_ns) = (frozen.as_nanos() as f64, document.figure("elapsed_s") * 1e9);
    for percent in quantiles {
        let expected_ns = frozen_ns - (1.0 - percent / 100.0) * elapsed_ns;
        let seen_ns = document.figure(&format!("latency_ns/p{percent}"));
        if (seen_ns - expected_ns).abs() > 0.05 * expected_ns + 1e9 * delayed_s {
            return Err(format!(
                "p{percent}: {seen_ns} ns, not {expected_ns} ns, delayed {delayed_s} s"
            ));
        }
    }
    Ok(())
}

/// Makes this load against a server that stands still in between until that shows in these
/// quantiles, in percent; its document.
fn frozen(load: &str, under_way: Duration, how_long: Duration, quantiles: &[f64]) -> Document {
    let server = Server::start("");
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let mut delays = RunDelays::since_now(server.pid());
        let client = server.start_test(load);
        std::thread::sleep(under_way);
        let frozen = freeze(&server, how_long);
        let ended = delayed::finish(client, &server, &mut delays);
        // A busy machine, and the freeze itself, may make a run of 10 s invalid.
        let exit_code = if ended.exit_code == Some(6) { 6 } else { 0 };
        let document = ended.document(exit_code);
        assert_eq!(count_or_none(&document, "transactions_lost"), 0, "{load}");
        assert!(document.json()["summary"]["errors"].is_null(), "{load}");
        match freeze_shows(&document, frozen, delays.total_s(), quantiles) {
            Ok(()) => return document,
            Err(difference) => seen.push(difference),
        }
    }
    panic!("{load}: {seen:?}");
}

#[test]
fn a_server_that_stands_still_shows_in_full() {
    let _alone = FREEZES.lock().unwrap_or_else(PoisonError::into_inner);
    // One request on its way at a time, the others wait behind it: what a closed loop would hide,
    // and the service time does.
    // There each waits for those before it to be served, too, when the server goes on: the longer it stood
    // still, the smaller a part that is.
    let loads = [
        ("--rate 1000", 200, [99.0, 99.9].as_slice()),
        ("--rate 1000 --udp --timeout 2s", 200, &[99.0, 99.9]),
        ("--rate 1000 --outstanding 1", 600, &[99.0, 99.9]),
        // No window and no probe time-out adds to what the freeze took. Sealed requests take the processor longer.
        ("--rate 300 --tls", 1000, &[99.0]),
        ("--rate 300 --quic", 1000, &[99.0]),
    ];
    std::thread::scope(|scope| {
        for (flags, frozen_ms, quantiles) in loads {
            scope.spawn(move || {
                let load = format!("rr --time 10s {flags}");
                let how_long = Duration::from_millis(frozen_ms);
                let document = frozen(&load, 4 * UNDER_WAY, how_long, quantiles);
                if flags.contains("--outstanding 1") {
                    let service_ns = document.count("service_ns/p99");
                    assert!(service_ns < 50_000_000, "{service_ns}");
                }
            });
        }
    });
}

/// At random times the number of requests in a part of the freeze deviates, by its root: the share
/// of 4,000 that p99 leaves is 40, so that p99 of 800 ms is known to 6 ms (0.8 %); the share that
/// p90 leaves deviates by 20 ms of 400, as much as is allowed, and isn't judged.
///
/// Connections that waited are made one after the other when the server goes on, which takes as long
/// as the processor needs for so many: p90 is judged at a rate that makes few of them, and with a freeze of twice
/// the length, of which they, and the time between two of them, are a small part.
#[test]
fn a_server_that_stands_still_shows_with_random_times_and_with_connections_too() {
    let _alone = FREEZES.lock().unwrap_or_else(PoisonError::into_inner);
    let loads = [
        ("rr --arrivals poisson", 1_000, 4, [99.0, 99.9]),
        ("rr --arrivals poisson --udp --timeout 3s", 1_000, 4, [99.0, 99.9]),
        ("connect --flows 8", 1_000, 4, [99.0, 99.9]),
        ("connect --flows 8 --arrivals poisson", 1_000, 4, [99.0, 99.9]),
        ("connect --flows 2", 60, 8, [90.0, 99.0]),
    ];
    std::thread::scope(|scope| {
        for ((load, rate, time_s, quantiles), turn) in loads.into_iter().zip(0..) {
            scope.spawn(move || {
                let words = format!("{load} --rate {rate} --time {time_s}s");
                // Not all catch up at once.
                let under_way = UNDER_WAY + turn * Duration::from_millis(400);
                let how_long = Duration::from_millis(200 * time_s);
                let document = frozen(&words, under_way, how_long, &quantiles);
                let (least, most) = (rate * time_s * 37 / 40, rate * time_s * 43 / 40);
                assert!((least..most).contains(&due(&document)), "{load}: {}", due(&document));
                if load.starts_with("connect") {
                    // As many as flows, fewer than p99 leaves, had begun and stood still.
                    let service_ns = document.count("service_ns/p99");
                    assert!(service_ns < 100_000_000, "{load}: {service_ns}");
                }
            });
        }
    });
}
