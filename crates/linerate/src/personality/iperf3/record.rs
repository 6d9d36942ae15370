//! A test as a run of the uniform documents.

use std::time::Duration;

use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{Control, Event, Report, Start, TestPlan};
use linerate_measure::plan::LocalAddress;
use linerate_measure::run::Draft;
use linerate_measure::{
    Dialect, Direction, End, Kind, Outcome, Plan, Rate, Role, Sample, Transport, Workload,
};
use linerate_personality::iperf3::flags::TABLE;
use linerate_personality::iperf3::options::Options;
use linerate_personality::iperf3::parameters::parameters;
use linerate_personality::iperf3::release::Release;
use linerate_wire::iperf3::{Cookie, Parameters, Protocol};
use linerate_wire::visible::visible;

use super::plan::file_bytes;
use crate::personality::recorder::{Recorder, ServedDialect, ServerRecorder};
use crate::personality::run_document::{RunRecord, options_of};

/// Turns what happens in a test into its run document and records.
pub(super) struct TestRecord {
    record: RunRecord,
    interval: Option<Duration>,
}

/// What an end's tests are recorded with.
///
/// # Errors
/// What the environment asks for can't be written.
pub(super) fn recorder(role: Role, words: &[String], cancel: &Cancel) -> Result<Recorder, String> {
    let typed = options_of("iperf3", words, TABLE);
    Recorder::of_environment(Dialect::Iperf3, role, typed, cancel)
}

/// What the tests of a server are as runs.
#[derive(Debug)]
pub(super) struct Iperf3Server {
    /// `-i`.
    pub(super) interval: Option<Duration>,
}

impl ServedDialect for Iperf3Server {
    type Asked = (Control, Parameters);
    type Report = Report;

    fn plan(&self, (control, parameters): &Self::Asked) -> Plan {
        let host = control.local.ip().to_canonical().to_string();
        Plan::new(host, control.local.port(), workload(parameters, self.interval))
    }

    fn describe(&self, (control, parameters): &Self::Asked, draft: &mut Draft) {
        draft.run_id = run_id(&control.cookie);
        draft.plan.title = parameters.title.as_deref().map(visible);
        draft.environment.client.version = visible(&parameters.client_version);
    }

    fn conclude(draft: &mut Draft, report: Report) {
        draft.record_report(report.own);
        report.peer.into_iter().for_each(|peer| draft.record_report(peer));
    }
}

impl TestRecord {
    /// Of a client's test.
    pub(super) fn of_client(recorder: &Recorder, test: &TestPlan) -> Self {
        let workload = workload(&test.parameters, test.interval);
        let mut plan = Plan::new(test.host.clone(), test.port, workload);
        plan.family = test.family;
        plan.title.clone_from(&test.parameters.title);
        plan.local.cpus = test.affinity.into_iter().collect();
        plan.local.binds = test.bind.iter().map(|bind| LocalAddress::from(bind.ip())).collect();
        plan.local.bind_device.clone_from(&test.bind_device);
        Self { record: recorder.begin(plan), interval: test.interval }
    }

    /// Of a client's test at this server.
    pub(super) fn of_server(
        recorder: &ServerRecorder<Iperf3Server>,
        asked: &(Control, Parameters),
    ) -> Self {
        let interval = recorder.dialect().interval;
        Self { record: recorder.begin_test(asked), interval }
    }

    /// Takes what happened.
    pub(super) fn record_event(&mut self, event: &Event) {
        match event {
            Event::Connected(control) => {
                if let Some(draft) = self.record.draft() {
                    draft.run_id = run_id(&control.cookie);
                }
            }
            Event::Started(start) => self.record_start(start),
            Event::Sample(sample) => self.record_sample(sample),
            Event::Ended(report) => {
                if let Some(draft) = self.record.draft() {
                    Iperf3Server::conclude(draft, (**report).clone());
                }
            }
            Event::Warning(text) => {
                if let Some(draft) = self.record.draft() {
                    draft.notes.push(visible(text));
                }
            }
            Event::Asked(_) | Event::OmitEnded => {}
        }
    }

    fn record_start(&mut self, start: &Start) {
        let workload = workload(&start.parameters, self.interval);
        if let Some(draft) = self.record.draft() {
            draft.plan.workload = workload;
            if let Some(options) = &mut draft.options {
                options.has_bursts = start.parameters.burst_blocks > 1;
            }
            self.record.start(start.utc_ns);
        }
    }

    /// A document lists fewer flows than the original's lines have streams.
    fn record_sample(&mut self, sample: &Sample) {
        if sample.flows.len() <= Sample::MAX_FLOWS {
            return self.record.record_sample(sample);
        }
        if self.record.draft().is_some() {
            let mut listed = sample.clone();
            listed.flows.truncate(Sample::MAX_FLOWS);
            self.record.record_sample(&listed);
        }
    }

    /// The test is over. `exit_code` is the original's.
    pub(super) fn finish(self, outcome: Outcome, exit_code: u8, message: Option<&str>) {
        self.record.finish(outcome, exit_code, message.map(visible));
    }
}

/// The nearest plan of ours to a client's options.
pub(in crate::personality) fn plan_of(options: &Options) -> Plan {
    let (host, _) = options.host_and_device();
    let parameters = parameters(options, Release::default(), file_bytes);
    Plan::new(host, options.port(), workload(&parameters, options.interval()))
}

/// The nearest load of ours. A default that only the connection tells is 0.
fn workload(parameters: &Parameters, interval: Option<Duration>) -> Workload {
    let direction = match (parameters.bidirectional, parameters.reverse) {
        (true, _) => Direction::Both,
        (false, true) => Direction::Down,
        (false, false) => Direction::Up,
    };
    let udp = parameters.protocol == Protocol::Udp;
    let transport = if udp { Transport::Udp } else { Transport::Tcp };
    let mut workload = Workload::stream(direction, transport);
    workload.kind = Kind::Stream { direction, send_bytes: parameters.block_bytes, media: None };
    let duration_ns = u64::from(parameters.time_s) * 1_000_000_000;
    workload.end = match (parameters.num_bytes, parameters.block_count) {
        (0, 0) => End::Time { duration_ns },
        (0, count) => End::Count { count },
        (bytes, _) => End::Bytes { bytes },
    };
    workload.omit_ns = u64::from(parameters.omit_s) * 1_000_000_000;
    workload.flows = parameters.parallel;
    let rates = [parameters.bandwidth_bps, parameters.fq_rate_bps];
    let rate_bps = rates.into_iter().filter(|bps| *bps > 0).min();
    workload.rate = rate_bps.map(|bps| Rate::EachFlow { bps });
    // Without intervals the whole test is one. A test that ends by bytes has no duration.
    workload.interval_ns = interval.map_or(duration_ns.max(1_000_000_000), |interval| {
        u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)
    });
    workload.payload.variant.splice = parameters.zero_copy && !udp;
    workload.payload.variant.discard = parameters.skip_rx_copy && !udp;
    workload.socket.no_delay = parameters.no_delay;
    workload.socket.congestion = parameters.congestion.as_deref().map(visible);
    workload.socket.window_bytes = parameters.window_bytes.filter(|bytes| *bytes > 0);
    workload.socket.mss_bytes = parameters.mss_bytes;
    // The two low bits of the byte are of congestion notification.
    workload.socket.dscp = (parameters.tos > 0).then_some(parameters.tos >> 2);
    workload
}

/// The name of the run at both ends: the first 128 bits that the cookie's letters stand for.
fn run_id(cookie: &Cookie) -> String {
    let bits = |letter: u8| match letter {
        b'a'..=b'z' => letter - b'a',
        b'2'..=b'7' => letter - b'2' + 26,
        other => other & 31,
    };
    let mut letters = cookie.wire().iter().take(26);
    // The last two of the 130 bits fall out.
    let first =
        letters.by_ref().take(25).fold(0_u128, |sum, letter| sum << 5 | bits(*letter) as u128);
    let rest = letters.next().map_or(0, |letter| bits(*letter) >> 2);
    format!("{:032x}", first << 3 | u128::from(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_has_one_name_at_both_ends() {
        let cookie = Cookie::of_random([31; 36]);
        assert_eq!(run_id(&cookie), "f".repeat(32));
        let other = Cookie::of_wire(*Cookie::of_random([1; 36]).wire());
        assert_eq!(run_id(&other), "08421084210842108421084210842108");
    }

    #[test]
    fn a_test_is_mapped_to_the_nearest_load() {
        let parameters = Parameters {
            protocol: Protocol::Udp,
            block_bytes: 1000,
            parallel: 3,
            bidirectional: true,
            bandwidth_bps: 5_000_000,
            num_bytes: 30_000,
            omit_s: 2,
            tos: 0xb8,
            ..Parameters::default()
        };
        let load = workload(&parameters, Some(Duration::from_millis(500)));
        let direction = Direction::Both;
        assert_eq!(load.kind, Kind::Stream { direction, send_bytes: 1000, media: None });
        assert_eq!((load.transport, load.flows, load.total_flows()), (Transport::Udp, 3, 6));
        assert_eq!(load.end, End::Bytes { bytes: 30_000 });
        assert_eq!(load.rate, Some(Rate::EachFlow { bps: 5_000_000 }));
        assert_eq!((load.omit_ns, load.interval_ns), (2_000_000_000, 500_000_000));
        assert_eq!(load.socket.dscp, Some(46));
        let parameters = Parameters { time_s: 0, ..parameters };
        assert_eq!(workload(&parameters, None).interval_ns, 1_000_000_000);
    }
}
