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
pub(super) struct Reserved(u64);

impl Reserved {
    /// Those for a test, where others leave so many. The client hears the system's error, since sentences
    /// don't cross the wire.
    pub(super) fn of(parameters: &Parameters, has_file: bool) -> Result<Self, Failure> {
        let limit = raise_open_files_limit();
        let most = limit - OTHERS_AT_SERVER.min(limit / 2);
        let needed = needed(parameters, has_file);
        let with_these = |taken: u64| taken.checked_add(needed).filter(|all| *all <= most);
        match RESERVED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_these) {
            Ok(_) => Ok(Self(needed)),
            Err(taken) => {
                let failure = Failure::of(Code::NUM_STREAMS).because(format!(
                    "{needed} open files for the streams where other tests have {taken} of {most}"
                ));
                Err(Failure { system_error: Some(libc::EMFILE), ..failure })
            }
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        RESERVED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

fn needed(parameters: &Parameters, has_file: bool) -> u64 {
    (parameters.total_streams() as u64).saturating_mul(if has_file { 2 } else { 1 })
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
        let limit = raise_open_files_limit();
        let most = limit - OTHERS_AT_SERVER.min(limit / 2);
        let third = Parameters {
            parallel: u32::try_from(most / 6 + 1).unwrap(),
            bidirectional: true,
            ..Parameters::default()
        };
        let first = Reserved::of(&third, false).unwrap();
        let _second = Reserved::of(&third, false).unwrap();
        let refused = Reserved::of(&third, false).unwrap_err();
        assert_eq!((refused.code, refused.system_error), (Code::NUM_STREAMS, Some(libc::EMFILE)));
        drop(first);
        assert!(Reserved::of(&third, false).is_ok());
    }
}
