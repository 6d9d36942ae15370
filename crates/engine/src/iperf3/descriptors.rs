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

/// Those of this process.
static OWN: Pool = Pool::new(raise_open_files_limit);

/// Raises the limit as far as it goes, and refuses a client's test that is beyond it. `has_file`: each
/// stream has a file beside its socket.
pub(super) fn check(parameters: &Parameters, has_file: bool) -> Result<(), Failure> {
    check_with(raise_open_files_limit(), parameters, has_file)
}

fn check_with(limit: u64, parameters: &Parameters, has_file: bool) -> Result<(), Failure> {
    let needed = needed(parameters, has_file) + OTHERS;
    if needed <= limit {
        return Ok(());
    }
    let streams = parameters.total_streams();
    Err(Failure::of(Code::NUM_STREAMS).because(format!(
        "{streams} streams need {needed} open files where this process may have {limit}: ask for \
         fewer with -P, or raise the limit (ulimit -n)"
    )))
}

/// What the tests at a process's servers share.
#[derive(Debug)]
pub(super) struct Pool {
    /// Those that tests have.
    taken: AtomicU64,
    /// How many the process may have, for everything. Asked again each time, since others may change it.
    limit: fn() -> u64,
}

impl Pool {
    pub(super) const fn new(limit: fn() -> u64) -> Self {
        Self { taken: AtomicU64::new(0), limit }
    }

    /// What all tests may have.
    fn most(&self) -> u64 {
        let limit = (self.limit)();
        limit - OTHERS_AT_SERVER.min(limit / 2)
    }

    /// Takes so many more, where others leave them.
    fn take(&self, more: u64) -> Result<(), Failure> {
        let most = self.most();
        let with_these = |taken: u64| taken.checked_add(more).filter(|all| *all <= most);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_these) {
            Ok(_) => Ok(()),
            Err(taken) => Err(too_many(format!(
                "{more} more open files for the streams where tests have {taken} of {most}"
            ))),
        }
    }
}

/// A test's at a server, for as long as it has them.
#[derive(Debug)]
pub(super) struct Reserved {
    pool: &'static Pool,
    held: u64,
    /// What all its streams take.
    needed: u64,
    /// What a stream takes.
    each: u64,
}

impl Reserved {
    /// Those for a test's first streams, where the process may have enough for all and others leave so many. The
    /// client gets the system's error, since sentences don't cross the wire.
    pub(super) fn of(parameters: &Parameters, has_file: bool) -> Result<Self, Failure> {
        Self::from_pool(&OWN, parameters, has_file)
    }

    pub(super) fn from_pool(
        pool: &'static Pool,
        parameters: &Parameters,
        has_file: bool,
    ) -> Result<Self, Failure> {
        let needed = needed(parameters, has_file);
        let most = pool.most();
        if needed > most {
            return Err(too_many(format!(
                "{needed} open files for the streams where tests may have {most}: raise the limit (ulimit -n)"
            )));
        }
        let mut reserved = Self { pool, held: 0, needed, each: each(has_file) };
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
        self.pool.take(more)?;
        self.held += more;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.pool.taken.fetch_sub(self.held, Ordering::Relaxed);
    }
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

    fn streams(parallel: u32) -> Parameters {
        Parameters { parallel, ..Parameters::default() }
    }

    #[track_caller]
    fn assert_refused(outcome: Result<Reserved, Failure>) {
        let refused = outcome.unwrap_err();
        assert_eq!((refused.code, refused.system_error), (Code::NUM_STREAMS, Some(libc::EMFILE)));
    }

    #[test]
    fn refusal_beyond_the_limit_has_both_numbers() {
        let told = check_with(1000, &streams(969), false).unwrap_err().to_string();
        assert!(told.contains("969 streams need 1001 open files"), "{told}");
        assert!(told.contains("may have 1000:"), "{told}");
        assert!(check_with(1000, &streams(968), false).is_ok());
        assert!(check_with(1000, &streams(484), true).is_ok());
        assert!(check_with(1000, &streams(485), true).is_err());
        assert!(check_with(u64::MAX, &streams(1 << 20), true).is_ok());
    }

    #[test]
    fn tests_of_a_server_have_what_others_leave() {
        static POOL: Pool = Pool::new(|| 60_600);
        let both = |parallel| Parameters { bidirectional: true, ..streams(parallel) };
        let whole = || -> Result<Reserved, Failure> {
            let mut reserved = Reserved::from_pool(&POOL, &both(12_000), false)?;
            for opened in 0..24_000 {
                reserved.await_more(opened)?;
                assert!(reserved.held > opened as u64);
            }
            assert_eq!(reserved.held, 24_000);
            Ok(reserved)
        };
        let first = whole().unwrap();
        let _second = whole().unwrap();
        assert_refused(whole());
        // What was refused on its way has given back what it had.
        assert_eq!(POOL.taken.load(Ordering::Relaxed), 48_000);
        drop(first);
        assert!(whole().is_ok());
        // More than all tests together may have is refused before any comes.
        assert_refused(Reserved::from_pool(&POOL, &streams(60_001), false));
        assert_refused(Reserved::from_pool(&POOL, &streams(30_001), true));
    }

    #[test]
    fn streams_that_are_only_announced_take_little_from_others() {
        static POOL: Pool = Pool::new(|| u64::MAX);
        for (has_file, each) in [(false, 1), (true, 2)] {
            let mut reserved = Reserved::from_pool(&POOL, &streams(1 << 20), has_file).unwrap();
            for opened in [0, 1, 4_999 / each] {
                reserved.await_more(opened).unwrap();
                assert_eq!(reserved.held, 10_000);
            }
            reserved.await_more(5_000 / each).unwrap();
            assert_eq!(reserved.held, 20_000);
        }
        assert_eq!(POOL.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn others_have_half_of_what_is_little() {
        assert_eq!(Pool::new(|| 1000).most(), 500);
        assert_eq!(Pool::new(|| 1200).most(), 600);
        assert_eq!(Pool::new(|| 2000).most(), 1400);
    }
}
