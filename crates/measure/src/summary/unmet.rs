//! What was asked for and not got.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tally::{Lane, flows_of, lanes};
use crate::plan::{Arrivals, Direction, End, Kind, Rate, Transport, Workload};
use crate::report::{EndReport, SocketFacts};
use crate::sample::{Role, Sample};
use crate::units::{render_bytes, render_count, render_rate};

mod silence;

/// A figure that differs from what was asked by less than this share is what was asked.
const TOLERANCE: f64 = 0.02;
/// A measured time may besides differ by this much.
const TIME_TOLERANCE_S: f64 = 0.05;
/// What a rate comes to in so much time may be missing besides: threads begin and end late.
const RATE_TOLERANCE_S: f64 = 0.01;
/// The least that a paced stream sends at once, a segment: so much of a flow may be missing or
/// be too much.
const SEGMENT_BYTES: u32 = 1500;
/// Departures of a Poisson process vary by the root of their number; so many times that is chance.
const DEVIATIONS: f64 = 4.0;

/// Something that was asked for and not got.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unmet {
    /// What was asked for, with its unit.
    pub what: Quantity,
    /// The end that didn't give it: the sender of a rate or of datagrams, the owner of a socket.
    pub role: Role,
    /// What was asked.
    pub asked: f64,
    /// What was got.
    pub got: f64,
}

/// What can be asked for, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// The rate of a stream's payload. Over TCP, TLS and streams of QUIC it must arrive, too.
    RateBps,
    /// Requests or connections by a schedule, completed per second.
    TransactionsPerS,
    /// Requests or connections that were due by the schedule, and those that were begun.
    Transactions,
    /// SO_SNDBUF, as asked: half of what the kernel says.
    SendBufferBytes,
    /// SO_RCVBUF, likewise.
    ReceiveBufferBytes,
    /// The payload of a UDP datagram, and the most that leaves in one packet.
    UnfragmentedBytes,
    /// Measured time.
    TimeS,
    /// Time of the samples, and the part of it in which anything arrived.
    ArrivingS,
}

impl Unmet {
    /// A sentence with both figures.
    pub fn note(&self) -> String {
        let (asked, got, end) = (self.asked, self.got, self.role.name());
        let bytes = |bytes: f64| render_bytes(bytes as u64);
        match self.what {
            Quantity::RateBps => format!(
                "the rate from the {end} was {}, and {} was asked for",
                render_rate(got),
                render_rate(asked)
            ),
            Quantity::TransactionsPerS => format!(
                "{} transactions per second were completed, and {} were asked for",
                render_count(got),
                render_count(asked)
            ),
            Quantity::Transactions => format!(
                "{} of {asked} transactions that were due were never begun",
                (asked - got).max(0.0)
            ),
            Quantity::SendBufferBytes => format!(
                "the {end}'s kernel granted a send buffer of {}, and {} was asked for",
                bytes(got),
                bytes(asked)
            ),
            Quantity::ReceiveBufferBytes => format!(
                "the {end}'s kernel granted a receive buffer of {}, and {} was asked for",
                bytes(got),
                bytes(asked)
            ),
            Quantity::UnfragmentedBytes => format!(
                "datagrams of {asked} bytes left the {end} in fragments: the path's MTU takes {got} \
                 bytes a packet, and one lost fragment loses the datagram"
            ),
            Quantity::TimeS => {
                format!("the measured time was {got:.2} s, and {asked:.2} s was asked for")
            }
            Quantity::ArrivingS => format!(
                "nothing arrived from the {end} for {:.2} s of {asked:.2} s: rates are over the \
                 whole measured time",
                asked - got
            ),
        }
    }
}

/// What of a workload was asked for and not got. Where the run was `interrupted`, its time is what
/// it took.
pub fn unmet(
    workload: &Workload,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
    samples: &[Sample],
    interrupted: bool,
) -> Vec<Unmet> {
    let mut all = Vec::new();
    let asked_s = match workload.end {
        // 0: iperf3's test without an end.
        End::Time { duration_ns: duration_ns @ 1.. } if !interrupted => Some(seconds(duration_ns)),
        _ => None,
    };
    for lane in &lanes(workload, client, server) {
        add_rate(workload, lane, asked_s, &mut all);
        let role = role_of_sender(lane.direction);
        add_time(asked_s, role, lane.measured_ns(), &mut all);
        all.extend(silence::silence(workload, lane, samples).map(|(asked, got)| Unmet {
            what: Quantity::ArrivingS,
            role,
            asked,
            got,
        }));
    }
    if let Some(client) = client.filter(|_| workload.has_transactions()) {
        add_schedule(workload, client, asked_s, &mut all);
        let measured_ns = Some(client.elapsed_ns).filter(|ns| *ns > 0);
        add_time(asked_s, Role::Client, measured_ns, &mut all);
    }
    for report in [client, server].into_iter().flatten() {
        add_sockets(workload, report, &mut all);
    }
    all
}

fn add_rate(workload: &Workload, lane: &Lane, asked_s: Option<f64>, all: &mut Vec<Unmet>) {
    let asked = match workload.rate {
        Some(Rate::AllFlows { bps }) => bps as f64,
        Some(Rate::EachFlow { bps }) => bps as f64 * f64::from(workload.flows),
        None => return,
    };
    let unit_bytes = match workload.frame_datagrams() {
        Some((datagrams, bytes)) => datagrams as f64 * f64::from(bytes),
        None => f64::from(match workload.kind {
            Kind::Stream { send_bytes, .. } if workload.has_datagrams() => send_bytes,
            _ => SEGMENT_BYTES,
        }),
    };
    let spare_bits = unit_bytes * 8.0 * f64::from(workload.flows);
    // The rate, where so much in such a time isn't what was asked.
    let missed = |bytes: u64, time_s: f64, either_way: bool| -> Option<f64> {
        let (bits, due_bits) = (bytes as f64 * 8.0, asked * time_s);
        let spare = due_bits * TOLERANCE + asked * RATE_TOLERANCE_S + spare_bits;
        let differs = bits + spare < due_bits || (either_way && bits > due_bits + spare);
        (differs && time_s > 0.0).then(|| bits / time_s)
    };
    let mut got: Vec<f64> = Vec::new();
    if let (Some(sent), Some(sent_ns)) = (lane.sent(), lane.send_time_ns()) {
        got.extend(missed(sent.bytes, asked_s.unwrap_or(seconds(sent_ns)), true));
    }
    if let Some((bytes, time_ns)) = lane.measured().filter(|_| !workload.has_datagrams()) {
        // What a slow path still carries when the time is up came at another rate.
        let time_s = seconds(time_ns).max(asked_s.unwrap_or(0.0));
        got.extend(missed(bytes, time_s, false));
    }
    if let Some(got) = got.into_iter().reduce(f64::min) {
        all.push(Unmet {
            what: Quantity::RateBps,
            role: role_of_sender(lane.direction),
            asked,
            got,
        });
    }
}

/// Time from the first to the last send of an end, where it sends a stream and its report tells.
pub(crate) fn send_time_s(
    workload: &Workload,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
    sender: Role,
) -> Option<f64> {
    let lanes = lanes(workload, client, server);
    let lane = lanes.iter().find(|lane| role_of_sender(lane.direction) == sender)?;
    lane.send_time_ns().map(seconds)
}

/// Whether a measured time is not what was asked.
pub(crate) fn differs_in_time(asked_s: f64, measured_s: f64) -> bool {
    (asked_s - measured_s).abs() > (asked_s * TOLERANCE).max(TIME_TOLERANCE_S)
}

fn add_time(asked_s: Option<f64>, role: Role, measured_ns: Option<u64>, all: &mut Vec<Unmet>) {
    let (Some(asked), Some(got)) = (asked_s, measured_ns.map(seconds)) else {
        return;
    };
    let told = all.iter().any(|unmet| unmet.what == Quantity::TimeS);
    if differs_in_time(asked, got) && !told {
        all.push(Unmet { what: Quantity::TimeS, role, asked, got });
    }
}

fn add_schedule(
    workload: &Workload,
    client: &EndReport,
    asked_s: Option<f64>,
    all: &mut Vec<Unmet>,
) {
    let Some(schedule) = workload.schedule() else {
        return;
    };
    let flows = flows_of(workload, Direction::Up, client);
    let done = flows.transactions.unwrap_or(0);
    let failed = match workload.kind {
        Kind::Connect { .. } => client.errors.values().fold(0, |a: u64, b| a.saturating_add(*b)),
        _ => flows.transactions_lost.unwrap_or(0),
    };
    let time_s = asked_s.unwrap_or(seconds(client.elapsed_ns));
    let due = schedule.per_s * time_s;
    let chance = match schedule.arrivals {
        Arrivals::Even => 0.0,
        Arrivals::Poisson => DEVIATIONS * due.sqrt(),
    };
    let spare = due * TOLERANCE + schedule.per_s * RATE_TOLERANCE_S + 1.0 + chance;
    let role = Role::Client;
    if done as f64 + spare < due {
        let (asked, got) = (schedule.per_s, done as f64 / time_s);
        all.push(Unmet { what: Quantity::TransactionsPerS, role, asked, got });
    }
    let unsent = flows.transactions_unsent.unwrap_or(0);
    if unsent > 0 {
        let got = done.saturating_add(failed);
        let (asked, got) = (got.saturating_add(unsent) as f64, got as f64);
        all.push(Unmet { what: Quantity::Transactions, role, asked, got });
    }
}

type BufferOf = fn(&SocketFacts) -> Option<u32>;

fn add_sockets(workload: &Workload, report: &EndReport, all: &mut Vec<Unmet>) {
    let role = report.role;
    let sockets = || {
        let own = report.flows.iter().filter_map(|flow| Some((flow.flow, flow.socket.as_ref()?)));
        own.filter(|(flow, _)| *flow < workload.total_flows())
    };
    if let Some(asked) = workload.socket.window_bytes {
        let asked = f64::from(asked);
        let buffers: [(Quantity, BufferOf); 2] = [
            (Quantity::SendBufferBytes, |socket| socket.send_buffer_bytes),
            (Quantity::ReceiveBufferBytes, |socket| socket.receive_buffer_bytes),
        ];
        for (what, size) in buffers {
            let granted = sockets().filter_map(|(_, socket)| Some(size(socket)? / 2));
            let granted = granted.filter(|bytes| *bytes > 0);
            let got = granted.min().map_or(asked, f64::from);
            if (got - asked).abs() > asked * TOLERANCE {
                all.push(Unmet { what, role, asked, got });
            }
        }
    }
    if workload.transport == Transport::Udp {
        let fits = |(flow, socket): (u32, &SocketFacts)| {
            let asked = sent_bytes(workload, role, flow)?;
            let most = unfragmented_bytes(socket)?;
            (asked > most).then_some((asked, most))
        };
        if let Some((asked, got)) = sockets().filter_map(fits).min_by_key(|(_, most)| *most) {
            let (asked, got) = (f64::from(asked), f64::from(got));
            all.push(Unmet { what: Quantity::UnfragmentedBytes, role, asked, got });
        }
    }
}

/// The length of the datagrams that an end sends on a flow; `None` where it sends none at length.
fn sent_bytes(workload: &Workload, role: Role, flow: u32) -> Option<u32> {
    match workload.kind {
        Kind::Stream { .. } => {
            workload.unit_bytes().filter(|_| role_of_sender(workload.flow_direction(flow)) == role)
        }
        Kind::Rr { request_bytes, response_bytes, .. } => {
            Some(if role == Role::Client { request_bytes } else { response_bytes })
        }
        Kind::Connect { .. } => None,
    }
}

/// The least MTU that IPv4 allows (RFC 791). Linux reports this value for a route whose link is down.
const IPV4_LEAST_MTU_BYTES: u32 = 68;
/// The least MTU that IPv6 allows (RFC 8200, section 5).
const IPV6_LEAST_MTU_BYTES: u32 = 1280;

/// The most payload that fits one packet: the IP header (RFC 791, RFC 8200) and UDP's 8 bytes go off.
fn unfragmented_bytes(socket: &SocketFacts) -> Option<u32> {
    let peer: std::net::SocketAddr = socket.peer.as_deref()?.parse().ok()?;
    let (headers_bytes, least_bytes) =
        if peer.is_ipv6() { (48, IPV6_LEAST_MTU_BYTES) } else { (28, IPV4_LEAST_MTU_BYTES + 1) };
    let mtu_bytes = socket.path_mtu_bytes.filter(|bytes| *bytes >= least_bytes)?;
    Some(mtu_bytes - headers_bytes)
}

fn role_of_sender(direction: Direction) -> Role {
    if direction == Direction::Down { Role::Server } else { Role::Client }
}

fn seconds(time_ns: u64) -> f64 {
    time_ns as f64 / 1e9
}
