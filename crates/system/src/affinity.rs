//! Where threads run.

use rustix::thread::CpuSet;

/// Pins the calling thread to one processor.
///
/// # Errors
/// A sentence about a processor that the thread can't have.
pub fn pin(cpu: u32) -> Result<(), String> {
    pin_to(&[cpu])
}

/// Lets the calling thread run on these processors only; without any, on those that it has.
///
/// # Errors
/// A sentence about processors that the thread can't have.
pub fn pin_to(cpus: &[u32]) -> Result<(), String> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu as usize >= CpuSet::MAX_CPU {
            return Err(format!("CPU {cpu} is beyond the kernel's limit"));
        }
        set.set(*cpu as usize);
    }
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| {
        let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let cpus = names.join(", ");
        format!("a thread could not be pinned to CPU {cpus} ({error}): it ran on any CPU")
    })
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_getaffinity;

    use super::*;

    #[test]
    fn a_thread_runs_on_the_processors_that_it_is_given() {
        std::thread::spawn(|| {
            let all = sched_getaffinity(None).unwrap();
            pin_to(&[]).unwrap();
            assert_eq!(sched_getaffinity(None).unwrap(), all);
            let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap();
            pin_to(&[first as u32]).unwrap();
            let pinned = sched_getaffinity(None).unwrap();
            assert!(pinned.count() == 1 && pinned.is_set(first));
            assert!(pin_to(&[u32::MAX]).unwrap_err().contains("beyond the kernel's limit"));
        })
        .join()
        .unwrap();
    }
}
