//! Whether this process may have the descriptors that a test's streams take.

use std::sync::atomic::{AtomicU64, Ordering};

use linerate_wire::iperf3::{Code, Parameters};

use super::Failure;
use crate::probe::raise_open_files_limit;

/// What an end has open beside its streams: the standard ones, sockets that listen, control
/// connections, and what wakes threads.
const OTHERS: u64 = 32;
/// The same of a server, which many others may want something of; at most half of all.
const OTHERS_AT_SERVER: u64 = 600;
/// What a test at a server has before its streams come, and then again and again: one that announces many and opens
/// none takes no more from others.
const STRIDE: u64 = 10_000;

/// Those that the tests at this process's servers have.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// Raises the limit as far as it goes, and refuses a client's test that is beyond it. `has_file`: each
/// stream has a file beside its socket.
pub(super) fn check(parameters: &Parameters, has_file: bool) -> Result<(), Failure> {
    let (needed, limit) = (needed(parameters, has_file) + OTHERS, raise_open_files_limit());
    if needed <= limit {
        return Ok(());
    }
    let streams = parameters.total_streams();
    Err(Failure::of(Code::NUM_STREAMS).because(format!(
        "{streams} streams need {needed} open files where this process may have {limit}: ask for \
         fewer with -P, or raise the limit (ulimit -n)"
    )))
}

/// A test's at a server, for as long as it has them.
#[derive(Debug)]
pub(super) struct Reserved {
    held: u64,
    /// What all its streams take.
    needed: u64,
    /// What a stream takes.
    each: u64,
}

impl Reserved {
    /// Those for a test's first streams, where the process may have enough for all and others leave so many. The
    /// client hears the system's error, since sentences don't cross the wire.
    pub(super) fn of(parameters: &Parameters, has_file: bool) -> Result<Self, Failure> {
        let needed = needed(parameters, has_file);
        let most = most_at_server();
        if needed > most {
            return Err(too_many(format!(
                "{needed} open files for the streams where tests may have {most}: raise the limit (ulimit -n)"
            )));
        }
        let mut reserved = Self { held: 0, needed, each: each(has_file) };
        reserved.take_more()?;
        Ok(reserved)
    }

    /// Those for the next streams, where so many have come.
    pub(super) fn await_more(&mut self, opened: usize) -> Result<(), Failure> {
        let open = (opened as u64).saturating_mul(self.each);
        if self.held == self.needed || open.saturating_add(STRIDE / 2) < self.held {
            return Ok(());
        }
        self.take_more()
    }

    fn take_more(&mut self) -> Result<(), Failure> {
        let more = STRIDE.min(self.needed - self.held);
        let most = most_at_server();
        let with_these = |taken: u64| taken.checked_add(more).filter(|all| *all <= most);
        match RESERVED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_these) {
            Ok(_) => {
                self.held += more;
                Ok(())
            }
            Err(taken) => Err(too_many(format!(
                "{more} more open files for the streams where tests have {taken} of {most}"
            ))),
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        RESERVED.fetch_sub(self.held, Ordering::Relaxed);
    }
}

/// What all tests of a server may have.
fn most_at_server() -> u64 {
    let limit = raise_open_files_limit();
    limit - OTHERS_AT_SERVER.min(limit / 2)
}

fn too_many(why: String) -> Failure {
    let failure = Failure::of(Code::NUM_STREAMS).because(why);
    Failure { system_error: Some(libc::EMFILE), ..failure }
}

fn each(has_file: bool) -> u64 {
    if has_file { 2 } else { 1 }
}

fn needed(parameters: &Parameters, has_file: bool) -> u64 {
    (parameters.total_streams() as u64).saturating_mul(each(has_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limit_is_refused_with_both_numbers() {
        let limit = raise_open_files_limit();
        let parallel = u32::try_from(limit).unwrap_or(u32::MAX);
        let parameters = Parameters { parallel, ..Parameters::default() };
        let told = check(&parameters, false).unwrap_err().to_string();
        assert!(told.contains(&format!("need {} open files", limit + OTHERS)), "{told}");
        assert!(check(&Parameters { parallel: 100, ..parameters }, true).is_ok());
    }

    #[test]
    fn tests_of_a_server_have_what_others_leave() {
        let most = most_at_server();
        let third = Parameters {
            parallel: u32::try_from(most / 6 + 1).unwrap(),
            bidirectional: true,
            ..Parameters::default()
        };
        let whole = || -> Result<Reserved, Failure> {
            let mut reserved = Reserved::of(&third, false)?;
            for opened in 0..third.total_streams() {
                reserved.await_more(opened)?;
            }
            assert_eq!(reserved.held, reserved.needed);
            Ok(reserved)
        };
        let first = whole().unwrap();
        let _second = whole().unwrap();
        let refused = whole().unwrap_err();
        assert_eq!((refused.code, refused.system_error), (Code::NUM_STREAMS, Some(libc::EMFILE)));
        drop(first);
        assert!(whole().is_ok());
        // More than all tests together may have is refused before any comes.
        let parallel = u32::try_from(most + 1).unwrap();
        let refused = Reserved::of(&Parameters { parallel, ..third }, false).unwrap_err();
        assert_eq!((refused.code, refused.system_error), (Code::NUM_STREAMS, Some(libc::EMFILE)));
    }

    #[test]
    fn streams_that_are_only_announced_take_little_from_others() {
        let parallel = u32::try_from(most_at_server()).unwrap();
        let asked = Parameters { parallel, ..Parameters::default() };
        let needed = needed(&asked, false);
        let mut reserved = Reserved { held: 0, needed, each: 1 };
        reserved.await_more(0).unwrap();
        assert_eq!(reserved.held, needed.min(STRIDE));
        reserved.await_more(1).unwrap();
        assert_eq!(reserved.held, needed.min(STRIDE));
    }
}
