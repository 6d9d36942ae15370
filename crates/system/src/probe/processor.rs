//! Processor time of the machine and of threads.

use std::fs;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use linerate_measure::report::ThreadDemand;
use linerate_measure::sample::{CpuSeconds, MachineCpu};

use crate::socket::thread_usage;

/// The kernel counts in these units in /proc on every architecture it runs on (USER_HZ, proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// The machine's processor times and interrupts at one moment, since it started.
#[derive(Clone, Debug, Default)]
pub struct MachineTimes {
    cpus: Vec<MachineCpu>,
    interrupts: Option<u64>,
}

impl MachineTimes {
    /// Reads /proc/stat (proc(5)).
    pub fn now() -> Self {
        fs::read_to_string("/proc/stat").map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut times = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(name) = words.next() else { continue };
            if name == "intr" {
                times.interrupts = words.next().and_then(|word| word.parse().ok());
            } else if let Some(cpu) = name.strip_prefix("cpu").and_then(|n| n.parse().ok()) {
                times.cpus.push(parse_cpu(cpu, words));
            }
        }
        times
    }

    /// What each processor did since an earlier moment.
    pub fn cpus_since(&self, earlier: &Self) -> Vec<MachineCpu> {
        let zero = |cpu| MachineCpu { cpu, ..MachineCpu::default() };
        self.cpus
            .iter()
            .map(|now| {
                let before = earlier.cpus.iter().find(|before| before.cpu == now.cpu);
                difference(now, &before.copied().unwrap_or_else(|| zero(now.cpu)))
            })
            .collect()
    }

    /// Interrupts served since an earlier moment.
    pub fn interrupts_since(&self, earlier: &Self) -> Option<u64> {
        self.interrupts?.checked_sub(earlier.interrupts?)
    }
}

/// user nice system idle iowait irq softirq steal
fn parse_cpu<'a>(cpu: u32, words: impl Iterator<Item = &'a str>) -> MachineCpu {
    let mut ticks = [0_f64; 8];
    for (tick, word) in ticks.iter_mut().zip(words) {
        *tick = word.parse().unwrap_or(0.0) / TICKS_PER_SECOND;
    }
    let [user, nice, system_s, idle, wait, irq_s, softirq_s, steal_s] = ticks;
    MachineCpu {
        cpu,
        user_s: user + nice,
        system_s,
        irq_s,
        softirq_s,
        steal_s,
        idle_s: idle + wait,
    }
}

fn difference(now: &MachineCpu, before: &MachineCpu) -> MachineCpu {
    // Hundredths, so that no difference shows the noise of floating point. The kernel's idle
    // count may step back a tick.
    let less = |now: f64, before: f64| ((now - before).max(0.0) * 100.0).round() / 100.0;
    MachineCpu {
        cpu: now.cpu,
        user_s: less(now.user_s, before.user_s),
        system_s: less(now.system_s, before.system_s),
        irq_s: less(now.irq_s, before.irq_s),
        softirq_s: less(now.softirq_s, before.softirq_s),
        steal_s: less(now.steal_s, before.steal_s),
        idle_s: less(now.idle_s, before.idle_s),
    }
}

/// Processor time of a thread as others read it: from /proc while it runs, and afterwards what it left. The thread
/// writes, others read.
#[derive(Debug, Default)]
pub struct ThreadTime {
    /// The thread's number in /proc; 0: it has not begun.
    thread_id: AtomicI32,
    /// What it used until it ended, in user and in system mode, plus one; 0: it has not ended.
    user_us: AtomicU64,
    system_us: AtomicU64,
    /// For how long it ran and waited for a processor until it ended, plus one; 0: it has not ended, or the kernel
    /// doesn't tell.
    ran_ns: AtomicU64,
    waited_ns: AtomicU64,
}

impl ThreadTime {
    /// The calling thread is the one whose time this is.
    pub fn begin(&self) {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread_id.store(id, Ordering::Relaxed);
    }

    /// The calling thread is about to end; /proc forgets it then.
    pub fn end(&self) {
        let cpu = thread_usage().cpu;
        let whole_us = |seconds: f64| (seconds * 1e6).round() as u64 + 1;
        if let Some((ran_ns, waited_ns)) = schedule_of(self.thread_id.load(Ordering::Relaxed)) {
            self.ran_ns.store(ran_ns.saturating_add(1), Ordering::Relaxed);
            self.waited_ns.store(waited_ns.saturating_add(1), Ordering::Release);
        }
        self.user_us.store(whole_us(cpu.user_s), Ordering::Relaxed);
        self.system_us.store(whole_us(cpu.system_s), Ordering::Release);
    }

    /// What the thread has used so far: to a hundredth of a second while it runs. `None`: it has not begun, or ended
    /// without a word.
    pub fn cpu(&self) -> Option<CpuSeconds> {
        if let Some(cpu) = self.left() {
            return Some(cpu);
        }
        let id = Some(self.thread_id.load(Ordering::Relaxed)).filter(|id| *id > 0)?;
        // It may have ended in between.
        thread_cpu(id).or_else(|| self.left())
    }

    /// For how long the thread has run and has waited for a processor so far. `None`: it has not begun, or the kernel
    /// doesn't tell.
    pub fn demand(&self) -> Option<ThreadDemand> {
        let id = Some(self.thread_id.load(Ordering::Relaxed)).filter(|id| *id > 0)?;
        let left = || {
            let waited_ns = self.waited_ns.load(Ordering::Acquire).checked_sub(1)?;
            Some((self.ran_ns.load(Ordering::Relaxed).checked_sub(1)?, waited_ns))
        };
        let (ran_ns, waited_ns) = left().or_else(|| schedule_of(id)).or_else(left)?;
        Some(ThreadDemand { run_s: ran_ns as f64 / 1e9, wait_s: waited_ns as f64 / 1e9 })
    }

    fn left(&self) -> Option<CpuSeconds> {
        let system_us = self.system_us.load(Ordering::Acquire).checked_sub(1)?;
        let user_us = self.user_us.load(Ordering::Relaxed).checked_sub(1)?;
        Some(CpuSeconds { user_s: user_us as f64 / 1e6, system_s: system_us as f64 / 1e6 })
    }
}

/// Processor time that one thread of this process has used, to a hundredth of a second.
fn thread_cpu(thread_id: i32) -> Option<CpuSeconds> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread_id}/stat")).ok()?;
    // The second field is the name in parentheses, and may itself contain any of them.
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    Some(CpuSeconds { user_s: seconds()?, system_s: seconds()? })
}

/// For how long one thread of this process has run, and has been ready to run and had no processor, in nanoseconds
/// (Documentation/scheduler/sched-stats.rst).
fn schedule_of(thread_id: i32) -> Option<(u64, u64)> {
    parse_schedule(&fs::read_to_string(format!("/proc/self/task/{thread_id}/schedstat")).ok()?)
}

fn parse_schedule(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_ascii_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_lines_read_as_proc_writes_them() {
        let before =
            MachineTimes::parse("cpu  1 2 3\ncpu0 10 5 20 100 50 1 2 3 0 0\nintr 100 1 2\n");
        let now = MachineTimes::parse("cpu0 110 5 40 200 50 1 12 3 0 0\nintr 150 1 2\n");
        let spent = now.cpus_since(&before);
        assert_eq!(spent.len(), 1);
        assert_eq!((spent[0].user_s, spent[0].system_s, spent[0].softirq_s), (1.0, 0.2, 0.1));
        assert_eq!(now.interrupts_since(&before), Some(50));
    }

    #[test]
    fn schedules_read_as_proc_writes_them() {
        assert_eq!(parse_schedule("1234 567 8\n"), Some((1234, 567)));
        for wrong in ["", "1", "1 x", "-1 2"] {
            assert_eq!(parse_schedule(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_time_of_a_thread_outlives_it() {
        let time = ThreadTime::default();
        assert!(time.cpu().is_none() && time.demand().is_none(), "it has not begun");
        let at_its_end = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                time.begin();
                assert!(time.cpu().is_some());
                while thread_usage().cpu.user_s + thread_usage().cpu.system_s < 0.02 {}
                time.end();
                thread_usage().cpu
            });
            thread.join().unwrap()
        });
        let left = time.cpu().unwrap();
        assert!(left.user_s + left.system_s >= 0.02, "{left:?}");
        assert!(left.user_s <= at_its_end.user_s && left.system_s <= at_its_end.system_s);
        // A kernel without schedstat tells nothing.
        if let Some(demand) = time.demand() {
            assert!(demand.run_s >= 0.01 && demand.wait_s >= 0.0, "{demand:?}");
        }
    }
}
