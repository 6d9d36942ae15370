//! Where threads run, and how urgent they are.

use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How urgent threads are (setpriority(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// As the program was started.
    #[default]
    Usual,
    /// Before all others: nice -20, which needs CAP_SYS_NICE.
    High,
    /// After all others: nice 19.
    Low,
}

/// How the threads run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Whether each thread stays on one processor.
    pub pinned: bool,
    /// The processors that threads run on; empty: all that the program may have.
    pub processors: Vec<u32>,
    /// How urgent they are.
    pub urgency: Urgency,
    /// How long a thread tries again and again before it sleeps.
    pub busy: Duration,
}

impl Placement {
    /// The calling thread, which is the n-th, takes its place; says what the machine refuses.
    pub(super) fn settle(&self, number: u32) -> Option<String> {
        let refused = self.stay(number).err();
        let nice = match self.urgency {
            Urgency::Usual => return refused,
            Urgency::High => -20,
            Urgency::Low => 19,
        };
        // On Linux the priority is each thread's own, and no process means the calling thread.
        let urgency = setpriority_process(None, nice).err().map(|error| {
            format!("threads keep their priority: nice {nice} needs CAP_SYS_NICE ({error})")
        });
        refused.or(urgency)
    }

    /// Keeps the calling thread to its processors.
    fn stay(&self, number: u32) -> Result<(), String> {
        if !self.pinned && self.processors.is_empty() {
            return Ok(());
        }
        let allowed = sched_getaffinity(None).map_err(|error| {
            format!(
                "threads run on any processor: can't read the allowed processors \
                 ({error})"
            )
        })?;
        let places: Vec<usize> = if self.processors.is_empty() {
            (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
        } else {
            let named = self.processors.iter().map(|cpu| *cpu as usize);
            named.filter(|cpu| *cpu < CpuSet::MAX_CPU).collect()
        };
        let mut set = CpuSet::new();
        let own = places.iter().cycle().nth(number as usize % places.len().max(1));
        for cpu in places.iter().filter(|cpu| !self.pinned || Some(*cpu) == own) {
            set.set(*cpu);
        }
        sched_setaffinity(None, &set).map_err(|error| {
            let list: Vec<String> = places.iter().map(usize::to_string).collect();
            format!(
                "threads run on any processor: can't use processor {} ({error})",
                list.join(",")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(placement: Placement, number: u32) -> (Option<String>, Vec<usize>) {
        let settle = move || {
            let refused = placement.settle(number);
            let now = sched_getaffinity(None).expect("a thread may ask");
            (refused, (0..CpuSet::MAX_CPU).filter(|cpu| now.is_set(*cpu)).collect())
        };
        std::thread::spawn(settle).join().expect("a thread ends")
    }

    #[test]
    fn a_thread_stays_where_it_is_put() {
        let (refused, everywhere) = settled(Placement::default(), 0);
        assert_eq!(refused, None);
        let pinned = Placement { pinned: true, ..Placement::default() };
        for number in 0..4 {
            let expected = everywhere[number as usize % everywhere.len()];
            assert_eq!(settled(pinned.clone(), number), (None, vec![expected]));
        }
        let last = everywhere[everywhere.len() - 1];
        let processors = vec![everywhere[0] as u32, last as u32];
        let listed = Placement { processors, ..Placement::default() };
        let (refused, places) = settled(listed.clone(), 0);
        assert_eq!((refused, places.last()), (None, Some(&last)));
        assert_eq!(settled(Placement { pinned: true, ..listed }, 1), (None, vec![last]));
    }

    #[test]
    fn a_processor_that_is_not_there_is_told() {
        let far = Placement { processors: vec![1023], ..Placement::default() };
        let (refused, _) = settled(far, 0);
        assert!(refused.is_some_and(|text| text.contains("processor 1023")));
    }

    #[test]
    fn a_thread_can_always_step_back() {
        let low = Placement { urgency: Urgency::Low, ..Placement::default() };
        assert_eq!(settled(low, 0).0, None);
    }
}
