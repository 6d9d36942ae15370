//! Bytes that were acknowledged to a sender before they came to its receiver: something between the two ends takes them
//! and acknowledges them, as a proxy that ends TCP connections does.

use super::seen::median_u64;
use crate::sample::{FlowSample, Role, Sample};

/// Fewer bytes are no sign: the two ends are looked at one after the other.
const LEAST_BYTES: u64 = 128 << 10;
/// Bytes that take the receiver this long are a sign.
const LEAST_TIME_S: f64 = 0.2;
/// A look at the receiver that is earlier than that at the sender by this is of the same time.
const SAME_TIME_NS: u64 = 20_000_000;

/// How far the acknowledgements of a flow were ahead of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    pub(super) bytes: u64,
    /// Whether that is far.
    pub(super) is_far: bool,
}

/// How far they were ahead, in the median of the samples. `None` where either end or its kernel told too little.
///
/// What was acknowledged is what was written less what is unsent or in flight. What has come is what was read and what
/// the receiver's socket holds. A later look at the receiver finds more of it, so that the difference is rather too small.
pub(super) fn acknowledged_ahead(samples: &[Sample], sender: Role, flow: u32) -> Option<Ahead> {
    let of = |role: Role| {
        let all = samples.iter().filter(move |sample| sample.role == role);
        all.filter_map(move |sample| {
            Some((sample, sample.flows.iter().find(|listed| listed.flow == flow)?))
        })
    };
    let receiver = if sender == Role::Client { Role::Server } else { Role::Client };
    let mut theirs = of(receiver);
    let (mut sent, mut received) = (0_u64, 0_u64);
    let mut now: Option<(u64, &FlowSample)> = None;
    let mut distances = Vec::new();
    for (sample, listed) in of(sender) {
        sent = sent.saturating_add(listed.sent_bytes.unwrap_or(0));
        let from_ns = sample.to_ns.saturating_sub(SAME_TIME_NS);
        while now.is_none_or(|(to_ns, _)| to_ns < from_ns)
            && let Some((sample, listed)) = theirs.next()
        {
            received = received.saturating_add(listed.received_bytes.unwrap_or(0));
            now = Some((sample.to_ns, listed));
        }
        let Some((_, there)) = now.filter(|(to_ns, _)| *to_ns >= from_ns) else { break };
        let Some(tcp) = listed.tcp.filter(|_| !sample.warm_up) else { continue };
        let (Some(unsent), Some(in_flight)) = (tcp.notsent_bytes, tcp.in_flight_bytes()) else {
            continue;
        };
        let Some(unread) = there.tcp.and_then(|tcp| tcp.receive_queue_bytes) else { continue };
        let acknowledged = sent.saturating_sub(u64::from(unsent)).saturating_sub(in_flight);
        distances.push(acknowledged.saturating_sub(received.saturating_add(u64::from(unread))));
    }
    let (to_ns, _) = now?;
    let received_per_s = received as f64 * 1e9 / to_ns.max(1) as f64;
    let bytes = median_u64(distances)?;
    let is_far = bytes >= LEAST_BYTES && bytes as f64 >= LEAST_TIME_S * received_per_s;
    Some(Ahead { bytes, is_far })
}
