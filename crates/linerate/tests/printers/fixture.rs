//! Runs with every figure that a printer shows, built by hand.

use linerate_engine::event::Event;
use linerate_measure::report::{HostFacts, SocketFacts, Waiting};
use linerate_measure::sample::{
    CpuSample, CpuSeconds, DatagramCounts, FlowSample, MachineCpu, TcpStatus, Traffic,
};
use linerate_measure::summary::{CpuOfEnds, Latency, LatencyFrom};
use linerate_measure::trust::Trust;
use linerate_measure::{
    Dialect, Direction, End, EndReport, Environment, FlowReport, Outcome, Plan, Role, Run, Sample,
    Status, Summary, Transport, Workload,
};

const SECOND_NS: u64 = 1_000_000_000;

pub(crate) fn listening() -> Event {
    Event::Listening { address: "127.0.0.1:5250".parse().unwrap(), fingerprint: "ab".to_owned() }
}

/// What happened while a run was made: its start, then every sample.
pub(crate) fn events_of(run: &Run) -> Vec<Event> {
    let started = Event::Started {
        run_id: run.run_id.clone(),
        plan: Box::new(run.plan.clone()),
        utc_ns: SECOND_NS as i64,
    };
    let samples = run.samples.iter().map(|sample| Event::Sample(Box::new(sample.clone())));
    std::iter::once(started).chain(samples).collect()
}

/// 2 s of TCP up at 8 Gbit/s: 10^9 bytes in each second.
pub(crate) fn tcp_run() -> Run {
    let traffic = Traffic { bytes: 1_000_000_000, calls: Some(8_000) };
    let mut samples = Vec::new();
    for index in 0..2 {
        let tcp = tcp_status(index + 1);
        let flow =
            FlowSample { sent_bytes: Some(traffic.bytes), tcp: Some(tcp), ..FlowSample::default() };
        samples.push(Sample {
            sent: Some(traffic),
            flows: vec![flow],
            cpu: Some(CpuSample { load: cpu(0.25, 0.5), ..CpuSample::default() }),
            ..sample(Role::Client, index)
        });
        samples.push(Sample { received: Some(traffic), ..sample(Role::Server, index) });
    }
    let total = Traffic { bytes: 2_000_000_000, calls: Some(16_000) };
    let client = FlowReport {
        sent: Some(total),
        tcp: Some(tcp_status(2)),
        socket: Some(socket()),
        ..FlowReport::default()
    };
    let server =
        FlowReport { received: Some(total), socket: Some(socket()), ..FlowReport::default() };
    let summary = Summary {
        goodput_bps: Some(8e9),
        sent_bps: Some(8e9),
        received_bytes: Some(total.bytes),
        sent_bytes: Some(total.bytes),
        elapsed_s: Some(2.0),
        retransmitted_segments: Some(6),
        cpu_s: Some(CpuOfEnds { client: Some(cpu(0.5, 1.0)), server: Some(cpu(0.25, 1.5)) }),
        cpu_s_per_gb: Some(1.625),
        verified_bytes: Some(total.bytes),
        wrong_bytes: Some(0),
        ..Summary::default()
    };
    let workload = Workload::stream(Direction::Up, Transport::Tcp);
    run(
        workload,
        samples,
        summary,
        vec![report(Role::Client, client), report(Role::Server, server)],
    )
}

/// 2 s of UDP up with losses, most of them in the receiver's socket.
pub(crate) fn udp_run() -> Run {
    let counts = DatagramCounts {
        received: Some(99_000),
        lost: Some(1_000),
        duplicated: Some(0),
        reordered: Some(3),
        dropped_by_socket: Some(900),
        ..DatagramCounts::default()
    };
    let traffic = Traffic { bytes: 99_000 * 1448, calls: Some(2_000) };
    let samples = (0..2)
        .map(|index| Sample {
            received: Some(traffic),
            datagrams: Some(counts),
            ..sample(Role::Server, index)
        })
        .collect();
    let summary = Summary {
        goodput_bps: Some(99_000.0 * 1448.0 * 8.0),
        received_bytes: Some(2 * traffic.bytes),
        elapsed_s: Some(2.0),
        datagrams: Some(DatagramCounts {
            sent: Some(200_000),
            refused: Some(7),
            received: Some(198_000),
            lost: Some(2_000),
            duplicated: Some(0),
            reordered: Some(6),
            late: Some(0),
            dropped_by_socket: Some(1_800),
            ..DatagramCounts::default()
        }),
        datagrams_per_s: Some(99_000.0),
        loss_ratio: Some(0.01),
        jitter_ns: Some(1_234.5),
        cpu_s_per_gb: Some(2.0),
        ..Summary::default()
    };
    let flow = FlowReport {
        received: Some(traffic),
        socket: Some(SocketFacts {
            gso: Some(true),
            gro: Some(false),
            congestion: None,
            mss_bytes: None,
            ..socket()
        }),
        ..FlowReport::default()
    };
    let workload = Workload::stream(Direction::Up, Transport::Udp);
    run(workload, samples, summary, vec![report(Role::Server, flow)])
}

/// 2 s of TCP rr at 20 thousand transactions a second.
pub(crate) fn rr_run() -> Run {
    let mut samples = Vec::new();
    for index in 0..2 {
        samples.push(Sample {
            transactions: Some(20_000),
            latency_mean_ns: Some(49_500.0),
            ..sample(Role::Client, index)
        });
        samples.push(sample(Role::Server, index));
    }
    let summary = Summary {
        elapsed_s: Some(2.0),
        transactions: Some(40_000),
        transactions_per_s: Some(20_000.0),
        latency_ns: Some(Latency {
            count: 40_000,
            min: 30_000,
            mean: 49_500.0,
            p50: Some(48_000),
            p90: Some(60_000),
            p99: Some(90_000),
            p99_9: Some(200_000),
            max: 1_500_000,
            ..Latency::default()
        }),
        latency_from: Some(LatencyFrom::ClosedLoop),
        cpu_s_per_transaction: Some(2.5e-5),
        ..Summary::default()
    };
    let client = FlowReport { transactions: Some(40_000), ..FlowReport::default() };
    let mut run = run(
        Workload::rr(Transport::Tcp),
        samples,
        summary,
        vec![report(Role::Client, client), report(Role::Server, FlowReport::default())],
    );
    run.plan.host = "::1".to_owned();
    run
}

fn run(workload: Workload, samples: Vec<Sample>, summary: Summary, reports: Vec<EndReport>) -> Run {
    let end = End::Time { duration_ns: 2 * SECOND_NS };
    Run {
        schema: Run::SCHEMA.to_owned(),
        run_id: "0123456789abcdef0123456789abcdef".to_owned(),
        dialect: Dialect::Native,
        written_by: Role::Client,
        plan: Plan::new("127.0.0.1", 5250, Workload { end, ..workload }),
        options: None,
        environment: Environment { client: host(), server: Some(host()), ..Environment::default() },
        samples,
        summary,
        reports,
        earlier_iterations: Vec::new(),
        hunt: None,
        steadiness: Vec::new(),
        status: Status {
            outcome: Outcome::Complete,
            exit_code: 0,
            verdict: Some(Trust::Valid),
            reasons: Vec::new(),
            message: None,
            unmet: Vec::new(),
            notes: Vec::new(),
        },
    }
}

fn report(role: Role, flow: FlowReport) -> EndReport {
    EndReport {
        host: host(),
        flows: vec![flow],
        elapsed_ns: 2 * SECOND_NS,
        cpu: Some(cpu(0.5, 1.0)),
        waiting: Some(Waiting {
            sleeps: 12_345,
            looks: 6_789,
            looked_ns: 135_780_000,
            yields: 3,
            ..Waiting::default()
        }),
        machine_cpu: vec![MachineCpu {
            user_s: 0.5,
            system_s: 1.0,
            softirq_s: 0.25,
            ..MachineCpu::default()
        }],
        ..EndReport::nothing(role)
    }
}

fn sample(role: Role, index: u32) -> Sample {
    let from_ns = u64::from(index) * SECOND_NS;
    Sample { index, from_ns, to_ns: from_ns + SECOND_NS, ..Sample::nothing(role) }
}

fn host() -> HostFacts {
    HostFacts {
        version: "0.1.0".to_owned(),
        hostname: "h".to_owned(),
        kernel: "Linux 6.12".to_owned(),
        architecture: "x86_64".to_owned(),
        cpu_model: Some("A processor".to_owned()),
        cpus_online: 2,
        ran_on_cpus: vec![0],
        load_average_1m: Some(0.5),
    }
}

fn socket() -> SocketFacts {
    SocketFacts {
        local: Some("127.0.0.1:40000".to_owned()),
        peer: Some("127.0.0.1:5250".to_owned()),
        congestion: Some("cubic".to_owned()),
        send_buffer_bytes: Some(2_626_560),
        receive_buffer_bytes: Some(131_072),
        mss_bytes: Some(32_768),
        path_mtu_bytes: None,
        gso: None,
        gro: None,
        cipher: None,
    }
}

fn tcp_status(seconds: u32) -> TcpStatus {
    TcpStatus {
        rtt_us: 52,
        min_rtt_us: Some(12),
        retransmitted_segments: 3 * seconds,
        ..TcpStatus::default()
    }
}

fn cpu(user_s: f64, system_s: f64) -> CpuSeconds {
    CpuSeconds { user_s, system_s }
}
