//! How busy this machine is, the way netperf counts it: everything but idle is busy.

use std::fs;

use linerate_wire::netperf::test::Cpu;

use super::outcome::{Calibration, CpuFigures};
use crate::probe::cpus_online;

/// netperf's code for /proc/stat.
const METHOD: u32 = 8;
/// Clock ticks of a second: what the original calibrates Linux processors to.
const RATE: f32 = 100.0;
/// Columns of a line of /proc/stat (proc(5)), guests' time included.
const COLUMNS: usize = 10;

const USER: usize = 0;
const NICE: usize = 1;
const SYSTEM: usize = 2;
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const IRQ: usize = 5;
const SOFTIRQ: usize = 6;

/// What this machine's processors are worth.
pub fn local_calibration() -> Calibration {
    Calibration { rate: RATE, cpus: cpus_online() }
}

/// Ticks of every processor at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Ticks(Vec<[u64; COLUMNS]>);

impl Ticks {
    pub(super) fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let is_one =
            |name: &str| name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok());
        let ticks = text.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            words.next().filter(|name| is_one(name))?;
            let mut columns = [0; COLUMNS];
            for (column, word) in columns.iter_mut().zip(words) {
                *column = word.parse().unwrap_or(0);
            }
            Some(columns)
        });
        Self(ticks.collect())
    }

    /// How busy the machine was since an earlier moment; `None` where the system doesn't tell, or
    /// less than a tick has passed.
    pub(super) fn use_since(&self, earlier: &Self) -> Option<CpuFigures> {
        let mut sum = CpuFigures { method: METHOD, peak_cpu: -1, ..CpuFigures::default() };
        let mut counted = 0.0;
        for (index, (now, before)) in self.0.iter().zip(&earlier.0).enumerate() {
            let mut spent = [0.0; COLUMNS];
            for (spent, (now, before)) in spent.iter_mut().zip(now.iter().zip(before)) {
                // Some counters step back a tick at times.
                *spent = now.saturating_sub(*before) as f64;
            }
            let total: f64 = spent.iter().sum();
            if total == 0.0 {
                continue;
            }
            let share = |ticks: f64| 100.0 * ticks / total;
            let busy = 100.0 - share(spent[IDLE]);
            counted += 1.0;
            sum.util_percent += busy;
            sum.user_percent += share(spent[USER] + spent[NICE]);
            sum.system_percent += share(spent[SYSTEM]);
            sum.iowait_percent += share(spent[IOWAIT]);
            sum.irq_percent += share(spent[IRQ]);
            sum.softirq_percent += share(spent[SOFTIRQ]);
            if busy > sum.peak_percent || sum.peak_cpu < 0 {
                sum.peak_percent = busy;
                sum.peak_cpu = i32::try_from(index).unwrap_or(-1);
            }
        }
        if counted == 0.0 {
            return None;
        }
        let mean = |sum: f64| sum / counted;
        Some(CpuFigures {
            util_percent: mean(sum.util_percent),
            user_percent: mean(sum.user_percent),
            system_percent: mean(sum.system_percent),
            iowait_percent: mean(sum.iowait_percent),
            irq_percent: mean(sum.irq_percent),
            softirq_percent: mean(sum.softirq_percent),
            cpus: u32::try_from(self.0.len()).unwrap_or(0),
            ..sum
        })
    }
}

impl CpuFigures {
    pub(super) fn to_wire(self) -> Cpu {
        Cpu {
            util: self.util_percent as f32,
            user: self.user_percent as f32,
            system: self.system_percent as f32,
            iowait: self.iowait_percent as f32,
            irq: self.irq_percent as f32,
            softirq: self.softirq_percent as f32,
            method: self.method,
            peak_cpu: self.peak_cpu,
            peak: self.peak_percent as f32,
        }
    }

    pub(super) fn of_wire(cpu: &Cpu, cpus: u32) -> Self {
        Self {
            util_percent: cpu.util.into(),
            user_percent: cpu.user.into(),
            system_percent: cpu.system.into(),
            iowait_percent: cpu.iowait.into(),
            irq_percent: cpu.irq.into(),
            softirq_percent: cpu.softirq.into(),
            peak_percent: cpu.peak.into(),
            peak_cpu: cpu.peak_cpu,
            cpus,
            method: cpu.method,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_input_counts_as_busy() {
        let before =
            Ticks::parse("cpu 9 9 9\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n");
        let now = Ticks::parse(
            "cpu 9 9 9\ncpu0 10 10 20 40 10 5 5 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\nintr 1\n",
        );
        let used = now.use_since(&before).unwrap();
        assert_eq!((used.util_percent, used.user_percent, used.iowait_percent), (30.0, 10.0, 5.0));
        assert_eq!((used.peak_percent, used.peak_cpu, used.cpus), (60.0, 0, 2));
        assert_eq!(before.use_since(&before), None);
    }
}
