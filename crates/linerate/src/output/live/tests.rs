use linerate_measure::sample::{FlowSample, QuicStatus, TcpStatus, Traffic};

use super::*;

/// Lines of an upload whose intervals have these flows at the sender, each with its number and whether
/// it sent: what each interval has lost, and its round-trip time.
fn shown(workload: &Workload, intervals: &[&[FlowSample]]) -> Vec<[String; 2]> {
    let mut lines = LiveLines::new(Style::Plain);
    lines.workload = Some(workload.clone());
    let traffic = Some(Traffic { bytes: 1_000, calls: Some(1) });
    let shown = intervals.iter().enumerate().map(|(index, flows)| {
        let of = |role, flows: &[FlowSample]| Sample {
            index: index as u32,
            from_ns: index as u64 * 1_000_000_000,
            to_ns: (index as u64 + 1) * 1_000_000_000,
            sent: traffic,
            received: traffic,
            flows: flows.to_vec(),
            ..Sample::nothing(role)
        };
        let mut text = String::new();
        for sample in [of(Role::Client, flows), of(Role::Server, &[])] {
            text.push_str(&lines.render_event(&Event::Sample(Box::new(sample))));
        }
        let cells: Vec<&str> = text.trim().split("  ").map(str::trim).collect();
        let cells: Vec<&&str> = cells.iter().filter(|cell| !cell.is_empty()).collect();
        let [.., lost, rtt] = &cells[..] else { panic!("{text}") };
        [lost.to_string(), rtt.to_string()]
    });
    shown.collect()
}

fn upload(flows: u32, transport: Transport) -> Workload {
    Workload { flows, ..Workload::stream(Direction::Up, transport) }
}

fn tcp(flow: u32, sends: bool, lost: u32) -> FlowSample {
    let status = TcpStatus {
        retransmitted_segments: lost,
        rtt_us: 1_000 * (flow + 1),
        ..TcpStatus::default()
    };
    let sent_bytes = sends.then_some(500);
    FlowSample { flow, sent_bytes, tcp: Some(status), ..FlowSample::default() }
}

fn quic(flow: u32, sends: bool, lost: u64) -> FlowSample {
    let status = QuicStatus { lost_packets: lost, rtt_us: 1_000, ..QuicStatus::default() };
    let sent_bytes = sends.then_some(500);
    FlowSample { flow, sent_bytes, quic: Some(Box::new(status)), ..FlowSample::default() }
}

#[test]
fn a_flow_that_is_silent_for_a_while_loses_nothing_again() {
    let intervals: [&[FlowSample]; 5] = [
        &[tcp(0, true, 10), tcp(1, true, 100)],
        // The second one stalls, and sends again what it has sent;
        &[tcp(0, true, 12), tcp(1, false, 101)],
        &[tcp(0, true, 12), tcp(1, true, 101)],
        // ends, and isn't heard of;
        &[tcp(0, true, 15)],
        &[tcp(0, false, 15), tcp(1, true, 103)],
    ];
    let expected = [
        ["110", "1.50 ms"],
        ["3", "1.00 ms"],
        ["0", "1.50 ms"],
        ["3", "1.00 ms"],
        ["2", "2.00 ms"],
    ];
    assert_eq!(shown(&upload(2, Transport::Tcp), &intervals), expected);
}

#[test]
fn flows_of_one_connection_lose_its_packets_once() {
    let mut workload = upload(4, Transport::Quic);
    workload.quic.streams = 2;
    let intervals: [&[FlowSample]; 3] = [
        &[quic(0, true, 5), quic(1, true, 5), quic(2, true, 50), quic(3, true, 50)],
        &[quic(0, true, 6), quic(1, true, 6), quic(2, false, 50), quic(3, false, 50)],
        &[quic(0, false, 7), quic(1, true, 7), quic(2, true, 52), quic(3, false, 52)],
    ];
    let expected = ["55", "1", "3"];
    assert!(shown(&workload, &intervals).iter().map(|[lost, _]| lost).eq(&expected));
}

#[test]
fn times_of_short_intervals_differ() {
    let sample = |from_ns: u64, to_ns: u64| {
        let text = format!(
            r#"{{"schema":"","role":"client","index":0,"from_ns":{from_ns},"to_ns":{to_ns},"utc_ns":0}}"#
        );
        render_time(&serde_json::from_str(&text).unwrap())
    };
    assert_eq!(sample(1_000_000_000, 2_000_120_000), "1.0-2.0 s");
    assert_eq!(sample(100_080_000, 200_020_000), "0.1-0.2 s");
    assert_eq!(sample(10_020_000, 20_050_000), "0.01-0.02 s");
    assert_eq!(sample(10_000_000_000, 10_004_000_000), "10.000-10.004 s");
}
