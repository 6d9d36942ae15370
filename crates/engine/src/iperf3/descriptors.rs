//! Whether this process may have the descriptors that a test's streams take.

use linerate_wire::iperf3::{Code, Parameters};

use super::Failure;
use crate::probe::raise_open_files_limit;

/// What an end has open beside its streams: the standard ones, sockets that listen, control
/// connections, and what wakes threads.
const OTHERS: u64 = 32;

/// Raises the limit as far as it goes, and refuses a test that is beyond it. `has_file`: each stream
/// has a file beside its socket.
pub(super) fn check(parameters: &Parameters, has_file: bool) -> Result<(), Failure> {
    refuse_beyond(raise_open_files_limit(), parameters, has_file)
}

fn refuse_beyond(limit: u64, parameters: &Parameters, has_file: bool) -> Result<(), Failure> {
    let streams = parameters.total_streams() as u64;
    let needed = streams.saturating_mul(if has_file { 2 } else { 1 }).saturating_add(OTHERS);
    if needed <= limit {
        return Ok(());
    }
    Err(Failure::of(Code::NUM_STREAMS).because(format!(
        "{streams} streams need {needed} open files where this process may have {limit}: ask for \
         fewer with -P, or raise the limit (ulimit -n)"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_streams_are_taken_as_there_are_descriptors_for() {
        let parameters = Parameters { parallel: 500, ..Parameters::default() };
        let both = Parameters { bidirectional: true, ..parameters.clone() };
        let is_taken = |limit, parameters, file| refuse_beyond(limit, parameters, file).is_ok();
        assert!(is_taken(1024, &parameters, false) && !is_taken(1024, &parameters, true));
        assert!(!is_taken(1024, &both, false) && is_taken(2048, &both, false));
        let told = refuse_beyond(1024, &both, false).unwrap_err().to_string();
        assert!(told.contains("1000 streams need 1032 open files"), "{told}");
        assert!(told.contains("may have 1024"), "{told}");
    }
}
