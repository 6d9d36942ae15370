//! Reads the tallies of all flows at one moment, interval by interval.

use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::datagram::LossIntervals;
use linerate_measure::histogram::IntervalHistogram;
use linerate_measure::media::FrameCounts;
use linerate_measure::report::HostFacts;
use linerate_measure::sample::{
    CpuSample, CpuSeconds, DatagramCounts, FlowSample, MachineCpu, Role, Sample, Traffic,
};

use super::shared_time::TotalsMeter;
use super::watch::Watch;
use super::{Interval, Intervals};
use crate::flow::FlowShared;
use crate::probe::MachineTimes;
use crate::shard::Shard;
use crate::socket::{send_buffer_ratio, tcp_status};
use crate::tally::Counts;

type Flows = [Option<Arc<FlowShared>>];

/// What has been read so far.
pub(super) struct Meter {
    role: Role,
    pub(super) host: HostFacts,
    /// Absent: the load hasn't been opened.
    intervals: Option<Intervals>,
    /// What was read for the last sample.
    last: Reading,
    /// The lost datagrams that samples have told of.
    lost: LossIntervals,
    machine: MachineReadings,
    /// What the threads had run, and the seconds that they had waited for a processor, all together.
    last_cpu: (CpuSeconds, f64),
    /// The end of the warm-up, or the opening where there is none.
    pub(super) measuring_ns: u64,
    /// What each flow had done by the end of a warm-up; empty where there is none.
    pub(super) base: Vec<Counts>,
    /// Whether what moves now is in the warm-up.
    warming: bool,
    pub(super) watch: Watch,
    pub(super) totals: TotalsMeter,
}

/// What the machine had done at some moments.
#[derive(Default)]
struct MachineReadings {
    /// When the last sample was taken.
    last: MachineTimes,
    /// When the measured part began.
    base: MachineTimes,
    /// When the load's last flow had moved its last byte.
    end: Option<MachineTimes>,
}

impl Meter {
    pub(super) fn new(role: Role, host: HostFacts) -> Self {
        Self {
            role,
            host,
            intervals: None,
            last: Reading::default(),
            lost: LossIntervals::default(),
            machine: MachineReadings::default(),
            last_cpu: (CpuSeconds::default(), 0.0),
            measuring_ns: 0,
            base: Vec::new(),
            warming: false,
            watch: Watch::default(),
            totals: TotalsMeter::default(),
        }
    }

    pub(super) fn opened_ns(&self) -> Option<u64> {
        self.intervals.as_ref().map(Intervals::began_ns)
    }

    pub(super) fn open(&mut self, now_ns: u64, interval_ns: u64, warming: bool) {
        self.intervals = Some(Intervals::begin(interval_ns, now_ns));
        self.warming = warming;
        self.machine.last = MachineTimes::now();
        self.measuring_ns = now_ns;
        self.machine.base = self.machine.last.clone();
    }

    /// Whether the load ended before its measured part began.
    pub(super) fn measured_nothing(&self) -> bool {
        self.warming
    }

    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_due()
    }

    pub(super) fn next_due(&self) -> u64 {
        self.intervals.as_ref().map_or(u64::MAX, Intervals::next_ns)
    }

    /// Ends the interval in which the warm-up ends; what comes later counts.
    pub(super) fn end_warm_up(
        &mut self,
        now_ns: u64,
        flows: &Flows,
        shards: &[Shard],
    ) -> Option<Sample> {
        let sample = self.take_sample(now_ns, flows, shards);
        self.intervals.iter_mut().for_each(|intervals| intervals.restart(now_ns));
        self.warming = false;
        let counts = |flow: &Option<Arc<FlowShared>>| flow.as_ref().map(|flow| flow.tally.counts());
        self.base = flows.iter().map(|flow| counts(flow).unwrap_or_default()).collect();
        self.measuring_ns = now_ns;
        self.lost = LossIntervals::from(self.last.total.datagrams.missing());
        self.machine.base = self.machine.last.clone();
        sample
    }

    /// The rest of an interval that the load's end cut off, up to when something last moved: the time
    /// after that has no rate. `None` where it is too short to tell
    /// anything, or nothing moved in it.
    pub(super) fn take_last_sample(
        &mut self,
        now_ns: u64,
        flows: &Flows,
        shards: &[Shard],
    ) -> Option<Sample> {
        let is_long = self.intervals.as_ref()?.is_long(now_ns);
        (is_long && self.has_moved(flows)).then(|| self.take_sample(now_ns, flows, shards))?
    }

    fn has_moved(&self, flows: &Flows) -> bool {
        let since = Reading::of(flows, &[]).total.since(&self.last.total);
        since.send_calls + since.receive_calls > 0
    }

    pub(super) fn take_sample(
        &mut self,
        now_ns: u64,
        flows: &Flows,
        shards: &[Shard],
    ) -> Option<Sample> {
        let Interval { index, from_ns, to_ns, utc_ns } = self.intervals.as_mut()?.cut(now_ns);
        let mut reading = Reading::of(flows, shards);
        if self.warming {
            // Those that are there already were measured: threads begin to count before this sample is cut.
            reading.latencies.clear();
        }
        let machine = MachineTimes::now();
        let load = cpu_of(shards);
        let wait_s = wait_of(shards);
        let (last_load, last_wait_s) = self.last_cpu;
        // Those of the warm-up are not counted.
        let frames = reading.frames_since(&self.last).filter(|_| !self.warming);
        let lost = self.lost.next(reading.total.datagrams.missing());
        let mut cpu = CpuSample {
            load: load.since(last_load),
            wait_s: wait_s.map(|wait_s| (wait_s - last_wait_s).max(0.0)),
            machine: machine.cpus_since(&self.machine.last),
            interrupts: machine.interrupts_since(&self.machine.last),
        };
        cpu.fit(to_ns.saturating_sub(from_ns));
        let sample = Sample {
            role: self.role,
            index,
            from_ns,
            to_ns,
            utc_ns,
            warm_up: self.warming,
            latency_hdr: reading.latencies_since(&self.last),
            flows: flow_samples(flows, &reading, &self.last),
            cpu: Some(cpu),
            ..totals(&reading.total.since(&self.last.total), lost, frames)
        };
        self.last = reading;
        self.machine.last = machine;
        self.last_cpu = (load, wait_s.unwrap_or(last_wait_s));
        Some(sample)
    }

    /// What each of the machine's processors has done since the end of the warm-up.
    pub(super) fn machine_since_measuring(&self) -> Vec<MachineCpu> {
        if self.measured_nothing() {
            return Vec::new();
        }
        let end = self.machine.end.clone().unwrap_or_else(MachineTimes::now);
        end.cpus_since(&self.machine.base)
    }

    pub(super) fn knows_end(&self) -> bool {
        self.machine.end.is_some()
    }

    /// Reads what the machine has done, once: every flow has moved its last byte.
    pub(super) fn note_end(&mut self) {
        self.machine.end.get_or_insert_with(MachineTimes::now);
    }
}

/// The counts of all flows together at one moment, and of those that samples list.
#[derive(Default)]
struct Reading {
    total: Counts,
    /// Media: frames sent, completed, late and dropped.
    frames: Option<[u64; 4]>,
    first: Vec<Counts>,
    /// Transactions by the class of their latency; empty where this end times none.
    latencies: Vec<u64>,
}

impl Reading {
    fn of(flows: &Flows, shards: &[Shard]) -> Self {
        let mut reading = Self::default();
        for flow in flows.iter().flatten() {
            let counts = flow.tally.counts();
            reading.total = reading.total.plus(&counts);
            if let Some(frames) = flow.tally.frame_counts() {
                let before = reading.frames.unwrap_or_default();
                reading.frames = Some(std::array::from_fn(|kind| before[kind] + frames[kind]));
            }
            if reading.first.len() < Sample::MAX_FLOWS {
                reading.first.push(counts);
            }
        }
        for tally in shards.iter().filter_map(Shard::latencies) {
            tally.add_to(&mut reading.latencies);
        }
        reading
    }

    /// The latencies since an earlier reading, as samples have them; `None`: there are none.
    fn latencies_since(&self, earlier: &Reading) -> Option<String> {
        let before = earlier.latencies.iter().copied().chain(std::iter::repeat(0));
        let since =
            self.latencies.iter().zip(before).map(|(now, before)| now.saturating_sub(before));
        let histogram = IntervalHistogram::of_counts(since.collect());
        (!histogram.is_empty()).then(|| histogram.to_base64())
    }

    /// The frames since an earlier reading.
    fn frames_since(&self, earlier: &Reading) -> Option<[u64; 4]> {
        let (now, before) = (self.frames?, earlier.frames.unwrap_or_default());
        Some(std::array::from_fn(|kind| now[kind].saturating_sub(before[kind])))
    }
}

fn cpu_of(shards: &[Shard]) -> CpuSeconds {
    let known = shards.iter().filter_map(Shard::cpu);
    known.fold(CpuSeconds::default(), CpuSeconds::plus)
}

/// What the threads have waited for a processor, all together; `None` where the kernel doesn't tell.
fn wait_of(shards: &[Shard]) -> Option<f64> {
    let waits = shards.iter().filter_map(|shard| Some(shard.demand()?.wait_s));
    waits.reduce(|a, b| a + b)
}

/// The sums over all flows, in a sample whose other fields are still empty.
fn totals(since: &Counts, lost: u64, frames: Option<[u64; 4]>) -> Sample {
    let traffic = |bytes, calls| (calls > 0).then_some(Traffic { bytes, calls: Some(calls) });
    let (transactions, latency_sum_ns) = (since.transactions, since.latency_sum_ns);
    let (sent, received) = (since.datagrams.sent, since.datagrams.received);
    let refused = since.datagrams.refused;
    let expected = since.datagrams.expected;
    Sample {
        sent: traffic(since.sent_bytes, since.send_calls),
        received: traffic(since.received_bytes, since.receive_calls),
        transactions: (transactions > 0).then_some(transactions),
        latency_mean_ns: (latency_sum_ns > 0).then(|| latency_sum_ns as f64 / transactions as f64),
        datagrams: (sent + received + refused > 0).then(|| DatagramCounts {
            sent: (sent > 0).then_some(sent),
            refused: (refused > 0).then_some(refused),
            received: (received > 0).then_some(received),
            // As far as the numbers that have come tell; the report has the exact count.
            lost: (expected > 0).then_some(lost),
            loss_events: (expected > 0).then_some(since.datagrams.loss_events),
            frames: frames.map(|frames| frame_counts(frames, sent > 0, received > 0)),
            ..DatagramCounts::default()
        }),
        ..Sample::nothing(Role::Client)
    }
}

/// Frames sent, completed, late and dropped, as far as this end sends or receives.
fn frame_counts(
    [sent, completed, late, dropped]: [u64; 4],
    sends: bool,
    receives: bool,
) -> FrameCounts {
    FrameCounts {
        sent: sends.then_some(sent),
        completed: receives.then_some(completed),
        late: receives.then_some(late),
        dropped: receives.then_some(dropped),
    }
}

/// The first flows one by one. What the kernel says of a connection is known where its socket is
/// in the conductor's file table.
fn flow_samples(flows: &Flows, now: &Reading, last: &Reading) -> Vec<FlowSample> {
    let before = last.first.iter().copied().chain(std::iter::repeat(Counts::default()));
    let counts = now.first.iter().zip(before).map(|(now, before)| now.since(&before));
    let sample = |(flow, counts): (&Arc<FlowShared>, Counts)| FlowSample {
        flow: flow.number,
        sent_bytes: (counts.send_calls > 0).then_some(counts.sent_bytes),
        received_bytes: (counts.receive_calls > 0).then_some(counts.received_bytes),
        tcp: flow.socket.as_ref().and_then(|socket| tcp_status(socket.as_fd())),
        quic: flow.path().map(Box::new),
        send_buffer_ratio: flow
            .socket
            .as_ref()
            .filter(|_| counts.datagrams.sent > 0)
            .and_then(|socket| send_buffer_ratio(socket.as_fd())),
        ..FlowSample::default()
    };
    flows.iter().flatten().zip(counts).map(sample).collect()
}
