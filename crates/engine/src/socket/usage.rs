//! CPU time and place of the calling thread.

use linerate_measure::sample::CpuSeconds;

/// What the calling thread has used so far, and where it runs now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadUsage {
    pub(crate) cpu: CpuSeconds,
    pub(crate) on_cpu: u32,
}

/// Asks the kernel (getrusage(2) with RUSAGE_THREAD).
pub(crate) fn thread_usage() -> ThreadUsage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a rusage that outlives the call, and all-zero bytes are a valid
    // rusage, so it is initialised even where the call fails.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    ThreadUsage {
        cpu: CpuSeconds { user_s: seconds(usage.ru_utime), system_s: seconds(usage.ru_stime) },
        on_cpu: u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0),
    }
}
