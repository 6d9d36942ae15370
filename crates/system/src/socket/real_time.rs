//! The real-time scheduling class, for moments.

use std::fs;
use std::io;
use std::str::FromStr;

/// A thread of this process, by its number.
type ThreadId = libc::pid_t;

/// Threads of this process are in the real-time class (SCHED_FIFO, the lowest priority), until this is dropped:
/// then each has the class again that it had (sched(7)).
#[derive(Debug)]
pub struct RealTime {
    threads: Vec<(ThreadId, libc::c_int)>,
}

impl RealTime {
    /// Puts all threads that there are now into the real-time class. Threads that they start meanwhile are in the
    /// ordinary one.
    ///
    /// # Errors
    /// The kernel's refusal: the user lacks CAP_SYS_NICE, and RLIMIT_RTPRIO is 0. No thread has changed its class.
    pub fn take() -> io::Result<Self> {
        let mut taken = Self { threads: Vec::new() };
        for entry in fs::read_dir("/proc/self/task")? {
            let name = entry?.file_name();
            if let Some(thread) = name.to_str().and_then(|name| ThreadId::from_str(name).ok()) {
                taken.add(thread)?;
            }
        }
        Ok(taken)
    }

    /// Puts the calling thread into the real-time class, for a thread that sleeps most of the time.
    ///
    /// # Errors
    /// As [`RealTime::take`].
    pub fn take_thread() -> io::Result<Self> {
        let mut taken = Self { threads: Vec::new() };
        taken.add(rustix::thread::gettid().as_raw_nonzero().get())?;
        Ok(taken)
    }

    /// Whether the calling thread is in a real-time class, whoever put it there.
    pub fn has_thread() -> bool {
        // SAFETY: the call takes a number, 0 for the caller, and touches no memory.
        let policy = unsafe { libc::sched_getscheduler(0) };
        [libc::SCHED_FIFO, libc::SCHED_RR].contains(&(policy & !libc::SCHED_RESET_ON_FORK))
    }

    fn add(&mut self, thread: ThreadId) -> io::Result<()> {
        // SAFETY: the call takes a number and touches no memory.
        let policy = unsafe { libc::sched_getscheduler(thread) };
        // A thread that has ended, or that is in some class on purpose, stays as it is.
        if policy & !libc::SCHED_RESET_ON_FORK != libc::SCHED_OTHER {
            return Ok(());
        }
        match set(thread, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1) {
            Ok(()) => self.threads.push((thread, policy)),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        for (thread, policy) in self.threads.drain(..) {
            // A thread that has ended has no class. SCHED_RESET_ON_FORK can't be taken back without a privilege.
            let _ended = set(thread, policy | libc::SCHED_RESET_ON_FORK, 0)
                .and_then(|()| set(thread, policy, 0));
        }
    }
}

fn set(thread: ThreadId, policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads the parameter, which lives as long as the call.
    let result = unsafe { libc::sched_setscheduler(thread, policy, &raw const parameter) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scheduling class of the calling thread: field 41 of its stat (proc(5)).
    fn class() -> String {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let rest = stat.rsplit_once(')').unwrap().1.to_owned();
        rest.split_whitespace().nth(41 - 3).unwrap().to_owned()
    }

    #[test]
    fn threads_have_the_class_until_it_is_dropped() {
        for take in [RealTime::take, RealTime::take_thread] {
            match take() {
                Ok(taken) => {
                    assert_eq!((class().as_str(), RealTime::has_thread()), ("1", true));
                    drop(taken);
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
            }
            assert_eq!((class().as_str(), RealTime::has_thread()), ("0", false));
        }
    }
}
