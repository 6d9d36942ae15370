//! CPU time and place of the calling thread.

use linerate_measure::sample::CpuSeconds;

/// What the calling thread has used so far, and where it runs now.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadUsage {
    /// Processor time.
    pub cpu: CpuSeconds,
    /// The processor that it runs on.
    pub on_cpu: u32,
    /// Times that it slept: its voluntary context switches.
    pub sleeps: u64,
}

/// Asks the kernel (getrusage(2) with RUSAGE_THREAD).
pub fn thread_usage() -> ThreadUsage {
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
        sleeps: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
    }
}

/// What the calling thread has used since it had used so much.
pub fn thread_cpu_since(before: CpuSeconds) -> CpuSeconds {
    let now = thread_usage().cpu;
    // The kernel counts whole microseconds; the rest is the noise of floating point.
    let less = |now: f64, before: f64| ((now - before).max(0.0) * 1e6).round() / 1e6;
    CpuSeconds {
        user_s: less(now.user_s, before.user_s),
        system_s: less(now.system_s, before.system_s),
    }
}
