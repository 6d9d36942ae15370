//! What the calling thread has used since a moment.

use linerate_measure::report::Waiting;
use linerate_measure::sample::CpuSeconds;

use super::counts;
use crate::socket::{ThreadUsage, thread_cpu_since, thread_usage};

/// What threads used, and where they ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) cpu: CpuSeconds,
    pub(crate) waiting: Waiting,
    pub(crate) ran_on_cpus: Vec<u32>,
}

impl Cost {
    /// That of the calling thread since it began.
    pub(crate) fn of_thread() -> Self {
        CostMark::default().cost()
    }

    /// With that of another thread.
    pub(crate) fn add(&mut self, other: Self) {
        self.cpu = self.cpu.plus(other.cpu);
        self.waiting.add(&other.waiting);
        self.ran_on_cpus.extend(other.ran_on_cpus);
    }
}

/// What the calling thread had used at a moment: by default when it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CostMark {
    usage: ThreadUsage,
    waits: Waiting,
}

impl CostMark {
    /// The moment is now.
    pub(crate) fn now() -> Self {
        Self { usage: thread_usage(), waits: counts() }
    }

    /// CPU time of the thread since then.
    pub(crate) fn cpu(&self) -> CpuSeconds {
        thread_cpu_since(self.usage.cpu)
    }

    /// How the thread waited since then.
    pub(crate) fn waits(&self) -> Waiting {
        let sleeps = thread_usage().sleeps.saturating_sub(self.usage.sleeps);
        Waiting { sleeps, ..counts().since(&self.waits) }
    }

    /// All that the thread used since then.
    pub(crate) fn cost(&self) -> Cost {
        let ran_on_cpus = vec![thread_usage().on_cpu];
        Cost { cpu: self.cpu(), waiting: self.waits(), ran_on_cpus }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::waiting::record_yield;

    #[test]
    fn what_came_before_the_mark_is_no_part_of_the_cost() {
        let seconds = |cpu: CpuSeconds| cpu.user_s + cpu.system_s;
        let work = move || {
            let begun = thread_usage().cpu;
            while seconds(thread_cpu_since(begun)) < 0.05 {}
            thread::sleep(Duration::from_millis(1));
            record_yield();
        };
        thread::spawn(move || {
            work();
            let mark = CostMark::now();
            assert!(seconds(mark.cpu()) < 0.05);
            assert_eq!(mark.waits().yields, 0);
            work();
            let (cost, all) = (mark.cost(), Cost::of_thread());
            assert!(seconds(cost.cpu) >= 0.05 && seconds(all.cpu) >= 0.1);
            assert_eq!((cost.waiting.yields, all.waiting.yields), (1, 2));
            assert!(cost.waiting.sleeps >= 1 && all.waiting.sleeps >= 2);
        })
        .join()
        .unwrap();
    }
}
