//! The clocks of both ends, compared by the pings of the control connection.

use linerate_measure::clock_offset::{ClockHulls, OffsetEstimator, RoundTrip};
use linerate_measure::one_way::{OneWayEvidence, PingDelays, Transit};
use linerate_measure::report::EndReport;
use linerate_measure::run::Draft;
use linerate_wire::native::client::ClockSample;

use super::record::Record;

/// What the pings say of the clocks.
#[derive(Default)]
pub(super) struct Clocks {
    pub(super) offset: OffsetEstimator,
    /// Of the wall clocks, over the client's monotonic time.
    wall: ClockHulls,
    /// Of the monotonic clocks, which stamp the load's datagrams.
    monotonic: ClockHulls,
    pings: PingDelays,
}

impl Clocks {
    /// Takes an answered ping into account.
    pub(super) fn record(&mut self, sample: &ClockSample, draft: &mut Draft) {
        let (sent_ns, received_ns) = sample.client_monotonic_ns;
        let wall = RoundTrip {
            client_sent_ns: sample.client_sent_utc_ns,
            server_received_ns: sample.server_received_utc_ns,
            server_sent_ns: sample.server_replied_utc_ns,
            client_received_ns: sample.client_received_utc_ns,
        };
        self.offset.record(wall);
        self.wall.record(sent_ns, received_ns, wall);
        draft.environment.clock_offset = self.offset.estimate();
        draft.environment.control_rtt_ns = self.offset.rtt_ns();
        if let Some(monotonic) = monotonic(sample) {
            self.monotonic.record(sent_ns, received_ns, monotonic);
            self.pings.record(monotonic);
        }
    }

    /// What they say of the measured part, by the client's monotonic clock, once both ends have reported.
    pub(super) fn conclude(&self, measured_ns: (u64, u64), record: &mut Record) {
        let draft = &mut record.draft;
        let (from_ns, to_ns) = measured_ns;
        draft.environment.clock_track = self.wall.solve().map(|lines| lines.track(from_ns, to_ns));
        let Some(lines) = self.monotonic.solve() else { return };
        let (server, client) = (longest_queue(&draft.server), longest_queue(&draft.client));
        let (lines, pings) = (&lines, &self.pings);
        record.one_way = OneWayEvidence { lines, pings, measured_ns, server, client }.delays();
    }
}

/// The ping's stamps by the monotonic clocks. Older servers don't tell theirs.
fn monotonic(sample: &ClockSample) -> Option<RoundTrip> {
    let (sent_ns, received_ns) = sample.client_monotonic_ns;
    let server_ns = i64::try_from(sample.server_monotonic_ns?).ok()?;
    Some(RoundTrip {
        client_sent_ns: i64::try_from(sent_ns).ok()?,
        server_received_ns: server_ns,
        server_sent_ns: server_ns,
        client_received_ns: i64::try_from(received_ns).ok()?,
    })
}

/// Of an end's flows of datagrams the one that waited the longest.
fn longest_queue(report: &Option<EndReport>) -> Option<&Transit> {
    let flows = report.iter().flat_map(|report| &report.flows);
    flows.filter_map(|flow| flow.transit.as_deref()).max_by_key(|transit| {
        let above = transit.above_least_ns;
        above.p99.unwrap_or(above.max)
    })
}
