use clap::Parser;
use linerate_engine::error::Error;
use linerate_measure::plan::Family;
use linerate_measure::{Direction, End, Kind, Plan, Rate, Transport};

use super::{plans_from_rr, plans_from_stream};
use crate::args::{Cli, Command, values};

fn planned(line: &str) -> Result<Vec<Plan>, Error> {
    let words = ["linerate"].into_iter().chain(line.split_whitespace());
    match Cli::try_parse_from(words).unwrap().command {
        Command::Stream(args) => plans_from_stream(&args),
        Command::Rr(args) => plans_from_rr(&args),
        other => panic!("{other:?} has no plan"),
    }
}

fn plan(line: &str) -> Plan {
    let mut plans = planned(line).unwrap();
    assert_eq!(plans.len(), 1, "{line}");
    plans.remove(0)
}

fn refusal(line: &str) -> String {
    let error = planned(line).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{line}: {error}");
    error.to_string()
}

#[test]
fn defaults_are_tcp_up_for_ten_seconds() {
    let plan = plan("stream example.net");
    assert_eq!((plan.host.as_str(), plan.port), ("example.net", 5250));
    assert_eq!(plan.workload.direction(), Some(Direction::Up));
    assert_eq!(plan.workload.transport, Transport::Tcp);
    assert_eq!(plan.workload.end, End::Time { duration_ns: 10_000_000_000 });
    assert_eq!(
        (plan.workload.flows, plan.workload.threading.threads, plan.workload.rate),
        (1, None, None)
    );
    assert_eq!((plan.family, plan.start_at_utc_ns), (None, None));
}

#[test]
fn every_flag_of_the_load_arrives() {
    let plan = plan(
        "stream [::1]:5251 --both --flows 4 --threads 2 --rate 2.5Gbit/s --size 64Ki --time 1m \
         --omit 500ms --interval 100ms --verify --no-delay --busy-poll --congestion cubic \
         --window 1Mi --mss 1400 --dscp 46 --exclusive --title t --tag a=b=c --tag d=",
    );
    let workload = &plan.workload;
    assert_eq!((plan.host.as_str(), plan.port), ("::1", 5251));
    assert_eq!(
        workload.kind,
        Kind::Stream { direction: Direction::Both, send_bytes: 65_536, media: None }
    );
    assert_eq!((workload.flows, workload.threading.threads), (4, Some(2)));
    assert_eq!(workload.rate, Some(Rate::AllFlows { bps: 2_500_000_000 }));
    assert_eq!(workload.end, End::Time { duration_ns: 60_000_000_000 });
    assert_eq!((workload.omit_ns, workload.interval_ns), (500_000_000, 100_000_000));
    assert!(workload.payload.verify && workload.threading.busy_poll && workload.socket.no_delay);
    assert_eq!(workload.socket.congestion.as_deref(), Some("cubic"));
    assert_eq!(workload.socket.window_bytes, Some(1 << 20));
    assert_eq!((workload.socket.mss_bytes, workload.socket.dscp), (Some(1400), Some(46)));
    assert!(plan.exclusive);
    assert_eq!(plan.title.as_deref(), Some("t"));
    let tags: Vec<_> =
        plan.tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(tags, [("a", "b=c"), ("d", "")]);
    assert_eq!(
        self::plan("stream a --bytes 10G").workload.end,
        End::Bytes { bytes: 10_000_000_000 }
    );
}

#[test]
fn local_binding_is_not_part_of_the_peers_plan() {
    let plan = plan("stream a --cpu 0,2-3 --bind 192.0.2.7 --bind-device eth0 --udp --no-offload");
    assert_eq!(plan.local.cpus, [0, 2, 3]);
    assert_eq!(plan.local.binds, ["192.0.2.7".parse().unwrap()]);
    assert_eq!(plan.local.bind_device.as_deref(), Some("eth0"));
    assert_eq!(plan.family, Some(Family::Ipv4));
    assert!(plan.workload.socket.no_offload);
}

#[test]
fn sizes_are_runs_in_their_order() {
    let sizes = |line: &str| -> Vec<Kind> {
        planned(line).unwrap().into_iter().map(|plan| plan.workload.kind).collect()
    };
    let stream = |send_bytes| Kind::Stream { direction: Direction::Up, send_bytes, media: None };
    assert_eq!(
        sizes("stream a --udp --size 64,1400 --size 512"),
        [stream(64), stream(1400), stream(512)]
    );
    let rr = |bytes| Kind::Rr {
        request_bytes: bytes,
        response_bytes: bytes,
        timeout_ns: 200_000_000,
        outstanding: None,
        active_flows: None,
        schedule: None,
    };
    assert_eq!(sizes("rr a --size 1,64"), [rr(1), rr(64)]);
}

#[test]
fn rr_has_its_own_numbers() {
    let plan = plan("rr a --udp --request 100 --response 2k --timeout 50ms --count 10k");
    assert_eq!(
        plan.workload.kind,
        Kind::Rr {
            request_bytes: 100,
            response_bytes: 2000,
            timeout_ns: 50_000_000,
            outstanding: None,
            active_flows: None,
            schedule: None,
        }
    );
    assert_eq!(plan.workload.end, End::Count { count: 10_000 });
    assert_eq!(plan.workload.transport, Transport::Udp);
}

#[test]
fn of_very_many_flows_each_thread_has_a_hundred_active_unless_somebody_says_otherwise() {
    let active = |line: &str| plan(line).workload.active_flows();
    assert_eq!(active("rr a --threads 2 --flows 1000"), None);
    assert_eq!(active("rr a --threads 2 --flows 1001"), Some(200));
    assert_eq!(active("rr a --threads 4 --tls --flows 5k --outstanding 1"), Some(400));
    assert_eq!(active("rr a --threads 50 --flows 5000"), None);
    assert!(active("rr a --flows 1000k").is_some());
    assert_eq!(active("rr a --flows 5000 --active all"), None);
    assert_eq!(active("rr a --flows 5000 --active 100"), Some(100));
    for others in ["--rate 1k", "--outstanding 2", "--udp", "--quic"] {
        assert_eq!(active(&format!("rr a --flows 5000 {others}")), None, "{others}");
    }
    assert!(values::active_flows("some").unwrap_err().ends_with("; or all"));
}

#[test]
fn ports_must_agree() {
    assert_eq!(plan("stream a:7 --port 7").port, 7);
    assert_eq!(plan("stream a --port 7").port, 7);
    assert!(refusal("stream a:7 --port 8").contains("two ports: 7"));
}

#[test]
fn families_must_agree() {
    assert_eq!(plan("stream a -6").family, Some(Family::Ipv6));
    for line in [
        "stream ::1 -4",
        "stream 127.0.0.1 -6",
        "stream a -4 --bind ::1",
        "rr ::1 --bind 127.0.0.1",
    ] {
        assert!(refusal(line).contains("the other family"), "{line}");
    }
}

#[test]
fn a_start_must_be_ahead_and_one() {
    assert_eq!(
        plan("stream a --start-at @4102444800").start_at_utc_ns,
        Some(4_102_444_800_000_000_000)
    );
    assert!(refusal("stream a --start-at @1").contains("in the past"));
    assert!(refusal("stream a --start-at 1999-12-31T23:59:59Z").contains("in the past"));
    assert!(refusal("stream a --start-at @4102444800 --size 1,2").contains("one --size"));
}

#[test]
fn contradictions_are_named() {
    assert!(refusal("rr a --timeout 1s").contains("needs --udp"));
    assert!(refusal("stream a --tag k=1 --tag k=2").contains("given twice"));
    for line in [
        "stream a --flows 0",
        "stream a --size 0",
        "stream a --time 0",
        "stream a --bytes 0",
        "stream a --count 0",
        "stream a --threads 0",
        "stream a --rate 0",
        "stream a --rate 1",
        "stream a --time 99999h",
        "stream a --interval 1ns",
        "stream a --udp --size 1",
        "stream a --udp --size 65508",
        "stream a --size 1G",
        "stream a --mss 1",
        "stream a --congestion a/b",
        "stream a --no-offload",
        "stream a --udp --no-delay",
        "rr a --udp --size 1",
        "rr a --request 0",
        "rr a --flows 1M --threads 2k",
    ] {
        refusal(line);
    }
}
