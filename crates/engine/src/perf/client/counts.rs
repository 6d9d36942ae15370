//! What each thread of a client has done so far, and the samples that are made of it.

use linerate_measure::dialect::{SampleExtension, perf};
use linerate_measure::sample::{CpuSample, CpuSeconds, MachineCpu, Traffic};
use linerate_measure::{Role, Sample};
use linerate_wire::perf::exchange::Exchange;

use crate::load::{Interval, Intervals};
use crate::probe::{MachineTimes, ThreadTime};
use crate::tally::Counter;

/// What one thread has done so far: the thread writes, the conductor reads. Aligned so that two threads never
/// share a cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct ThreadCounts {
    /// Bytes that reached the server, as far as the transport tells.
    pub(super) uploaded_bytes: Counter,
    /// Bytes that came.
    pub(super) downloaded_bytes: Counter,
    /// Connections that stood.
    pub(super) connections: Counter,
    /// Streams whose exchange was completed.
    pub(super) streams: Counter,
    /// The sum of their latencies.
    pub(super) latency_sum_us: Counter,
    pub(super) time: ThreadTime,
}

impl ThreadCounts {
    /// Lets something happen to a stream, and counts the bytes that it moved.
    #[inline]
    pub(super) fn record<T>(
        &self,
        exchange: &mut Exchange,
        handle: impl FnOnce(&mut Exchange) -> T,
    ) -> T {
        let before = (exchange.delivered_bytes(), exchange.received_bytes());
        let answer = handle(exchange);
        let delivered_bytes = exchange.delivered_bytes() - before.0;
        if delivered_bytes > 0 {
            self.uploaded_bytes.add(delivered_bytes);
        }
        let received_bytes = exchange.received_bytes() - before.1;
        if received_bytes > 0 {
            self.downloaded_bytes.add(received_bytes);
        }
        answer
    }

    /// So many bytes that were counted haven't reached the server.
    pub(super) fn take_back_uploaded(&self, bytes: u64) {
        self.uploaded_bytes.set(self.uploaded_bytes.value().saturating_sub(bytes));
    }

    /// What it has done so far.
    pub(super) fn reading(&self) -> Reading {
        Reading {
            uploaded_bytes: self.uploaded_bytes.value(),
            downloaded_bytes: self.downloaded_bytes.value(),
            connections: self.connections.value(),
            streams: self.streams.value(),
            latency_sum_us: self.latency_sum_us.value(),
        }
    }
}

/// The counts of a thread, or of all, at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    pub(super) uploaded_bytes: u64,
    pub(super) downloaded_bytes: u64,
    pub(super) connections: u64,
    pub(super) streams: u64,
    latency_sum_us: u64,
}

impl Reading {
    fn of(threads: &[ThreadCounts]) -> Self {
        let readings = threads.iter().map(ThreadCounts::reading);
        readings.fold(Self::default(), |sum, reading| sum.plus(&reading))
    }

    /// Both added up.
    pub(super) fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    fn with(&self, other: &Self, join: fn(u64, u64) -> u64) -> Self {
        Self {
            uploaded_bytes: join(self.uploaded_bytes, other.uploaded_bytes),
            downloaded_bytes: join(self.downloaded_bytes, other.downloaded_bytes),
            connections: join(self.connections, other.connections),
            streams: join(self.streams, other.streams),
            latency_sum_us: join(self.latency_sum_us, other.latency_sum_us),
        }
    }

    fn has_moved(&self) -> bool {
        self.uploaded_bytes + self.downloaded_bytes + self.connections + self.streams > 0
    }
}

/// Reads the counts of all threads, interval by interval.
pub(super) struct Meter<'a> {
    threads: &'a [ThreadCounts],
    intervals: Intervals,
    last: Reading,
    last_cpu: CpuSeconds,
    first_machine: MachineTimes,
    last_machine: MachineTimes,
}

impl<'a> Meter<'a> {
    /// The load begins. `interval_ns`: how long a sample is; `None`: there are none.
    pub(super) fn begin(
        threads: &'a [ThreadCounts],
        interval_ns: Option<u64>,
        began_ns: u64,
    ) -> Self {
        let machine = interval_ns.map_or_else(MachineTimes::default, |_| MachineTimes::now());
        let intervals = Intervals::begin(interval_ns.unwrap_or(u64::MAX), began_ns).making_up();
        Self {
            threads,
            intervals,
            last: Reading::default(),
            last_cpu: CpuSeconds::default(),
            first_machine: machine.clone(),
            last_machine: machine,
        }
    }

    /// How long nothing is due.
    pub(super) fn left_ns(&self, now_ns: u64) -> u64 {
        self.intervals.next_ns().saturating_sub(now_ns)
    }

    /// The interval that is over at this time. Until a connection stands there is none: another address may be
    /// tried, and the first interval then has that time too.
    pub(super) fn tick(&mut self, now_ns: u64) -> Option<Sample> {
        self.intervals.length_ns().filter(|_| now_ns >= self.intervals.next_ns())?;
        let reading = Reading::of(self.threads);
        if reading.connections == 0 {
            self.intervals.prolong(now_ns);
            return None;
        }
        Some(self.take(reading, now_ns))
    }

    /// The rest of an interval that the load's end cut off; none where it is too short to tell anything and nothing
    /// moved in it.
    pub(super) fn end(&mut self, ended_ns: u64) -> Option<Sample> {
        self.intervals.length_ns()?;
        let reading = Reading::of(self.threads);
        let worth_telling =
            self.intervals.is_long(ended_ns) || reading.since(&self.last).has_moved();
        (reading.connections > 0 && worth_telling).then(|| self.take(reading, ended_ns))
    }

    /// What each of the machine's processors has done since the load began; nothing where there are no samples.
    pub(super) fn machine_cpu(&self) -> Vec<MachineCpu> {
        let now = self.intervals.length_ns().map(|_| MachineTimes::now());
        now.map_or_else(Vec::new, |now| now.cpus_since(&self.first_machine))
    }

    fn take(&mut self, reading: Reading, now_ns: u64) -> Sample {
        let Interval { index, from_ns, to_ns, utc_ns } = self.intervals.cut(now_ns);
        let since = reading.since(&self.last);
        let machine = MachineTimes::now();
        let cpu = self.cpu();
        let traffic = |bytes| Some(Traffic { bytes, calls: None });
        let own =
            perf::Interval { connections: Some(since.connections), streams: Some(since.streams) };
        let latency_mean_ns = (since.latency_sum_us > 0 && since.streams > 0)
            .then(|| since.latency_sum_us as f64 * 1e3 / since.streams as f64);
        let sample = Sample {
            index,
            from_ns,
            to_ns,
            utc_ns,
            sent: traffic(since.uploaded_bytes),
            received: traffic(since.downloaded_bytes),
            latency_mean_ns,
            cpu: Some(CpuSample {
                load: cpu.since(self.last_cpu),
                wait_s: None,
                machine: machine.cpus_since(&self.last_machine),
                interrupts: machine.interrupts_since(&self.last_machine),
            }),
            extension: Some(SampleExtension::Perf(own)),
            ..Sample::nothing(Role::Client)
        };
        self.last = reading;
        (self.last_cpu, self.last_machine) = (cpu, machine);
        sample
    }

    /// CPU time of the threads.
    fn cpu(&self) -> CpuSeconds {
        let known = self.threads.iter().filter_map(|thread| thread.time.cpu());
        known.fold(CpuSeconds::default(), CpuSeconds::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_NS: u64 = 1_000_000_000;

    fn streams(sample: &Sample) -> Option<u64> {
        let Some(SampleExtension::Perf(own)) = sample.extension else { return None };
        own.streams
    }

    #[test]
    fn intervals_follow_each_other_once_a_connection_stands_and_add_up() {
        let threads = [ThreadCounts::default(), ThreadCounts::default()];
        let mut meter = Meter::begin(&threads, Some(INTERVAL_NS), 5);
        assert!(meter.tick(5 + INTERVAL_NS).is_none());
        threads[0].connections.add(1);
        threads[0].uploaded_bytes.add(100);
        threads[1].downloaded_bytes.add(7);
        assert!(meter.tick(5 + INTERVAL_NS * 3 / 2).is_none(), "none is due");
        let first = meter.tick(6 + 2 * INTERVAL_NS).unwrap();
        assert_eq!((first.index, first.from_ns, first.to_ns), (0, 0, 1 + 2 * INTERVAL_NS));
        assert_eq!(first.sent.map(|sent| sent.bytes), Some(100));
        assert_eq!(first.received.map(|received| received.bytes), Some(7));
        threads[1].streams.add(3);
        threads[1].latency_sum_us.add(60);
        let last = meter.end(7 + 2 * INTERVAL_NS).unwrap();
        assert_eq!((last.index, last.from_ns), (1, first.to_ns));
        assert_eq!((streams(&last), last.latency_mean_ns), (Some(3), Some(20_000.0)));
        assert_eq!(last.sent.map(|sent| sent.bytes), Some(0));
        assert!(meter.end(8 + 2 * INTERVAL_NS).is_none(), "nothing moved in a moment");
    }

    #[test]
    fn without_an_interval_there_are_no_samples() {
        let threads = [ThreadCounts::default()];
        threads[0].connections.add(1);
        let mut meter = Meter::begin(&threads, None, 0);
        assert!(meter.tick(u64::MAX - 1).is_none() && meter.end(INTERVAL_NS).is_none());
        assert_eq!(meter.left_ns(0), u64::MAX);
    }
}
