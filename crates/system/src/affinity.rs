//! Where threads run.

/// Pins the calling thread to one processor.
///
/// # Errors
/// A sentence about a processor that the thread can't have.
pub fn pin(cpu: u32) -> Result<(), String> {
    let mut set = rustix::thread::CpuSet::new();
    if cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
        return Err(format!("CPU {cpu} is beyond the kernel's limit"));
    }
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| {
        format!("a thread could not be pinned to CPU {cpu} ({error}): it ran on any CPU")
    })
}
