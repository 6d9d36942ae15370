//! Collectors of the host that an agent runs on.

use rustix::time::{ClockId, clock_gettime};
use serde_json::value::RawValue;

use super::{Clock, Collector, Reader, Request, Source};
use crate::agent::{Collectors, Moment, Readings};

/// Opens readers of these sources. Interrupts and drivers' counters are those of the interfaces; where none is named, of
/// all that have hardware behind them.
pub type OpenReaders = fn(&[Source], &[String]) -> Vec<Box<dyn Reader>>;

/// What an agent reads beside its other work, in its one thread.
pub struct HostCollectors {
    open: OpenReaders,
    collector: Option<Collector>,
    clock: WorkClock,
}

impl HostCollectors {
    /// Collectors that read nothing yet.
    pub fn new(open: OpenReaders) -> Self {
        Self { open, collector: None, clock: WorkClock::default() }
    }
}

impl Collectors for HostCollectors {
    fn begin(&mut self, request: Option<Request>, _: Moment) {
        self.clock = WorkClock::default();
        self.clock.begin_work();
        self.collector = request.map(|request| {
            let readers = (self.open)(&request.sources, &request.interfaces);
            Collector::new(readers, request.hz, &mut self.clock)
        });
        self.clock.end_work();
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.collector.as_ref().map(Collector::next_at_ns)
    }

    fn collect(&mut self, now: Moment) -> Vec<Readings> {
        let Some(collector) = &mut self.collector else { return Vec::new() };
        if now.monotonic_ns < collector.next_at_ns() {
            return Vec::new();
        }
        self.clock.begin_work();
        let ticks = collector.tick(&mut self.clock);
        let readings = ticks.iter().filter_map(|ticks| {
            let data = serde_json::to_string(ticks)
                .ok()
                .and_then(|text| RawValue::from_string(text).ok())?;
            let from_ns = ticks.rows.first().map_or(now.utc_ns, |row| row.utc_ns);
            Some(Readings { collector: ticks.source.name().to_owned(), from_ns, data })
        });
        let readings = readings.collect();
        self.clock.end_work();
        readings
    }
}

/// The host's clocks, and the processor time that the thread used between beginnings and ends of work
/// (CLOCK_THREAD_CPUTIME_ID, clock_gettime(2)).
#[derive(Default)]
struct WorkClock {
    used_ns: u64,
    began_at_ns: u64,
}

impl WorkClock {
    fn begin_work(&mut self) {
        self.began_at_ns = thread_cpu_ns();
    }

    fn end_work(&mut self) {
        self.used_ns = self.cpu_ns();
        self.began_at_ns = thread_cpu_ns();
    }
}

impl Clock for WorkClock {
    fn now(&mut self) -> Moment {
        Moment::now()
    }

    fn cpu_ns(&mut self) -> u64 {
        self.used_ns + thread_cpu_ns().saturating_sub(self.began_at_ns)
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let ns = time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec);
    u64::try_from(ns).unwrap_or(0)
}
