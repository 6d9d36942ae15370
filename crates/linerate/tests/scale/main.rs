//! Loads of more flows than a process may have open files.
//!
//! Apart from the other tests of processes, so that these don't take the machine from those that
//! look at times; and one after the other.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::string_slice,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first surprise and say what it saw"
)]

mod ctstraffic;
#[allow(dead_code, reason = "the tests of lifecycles use all of it")]
#[path = "../lifecycle/document.rs"]
mod document;
#[allow(dead_code, reason = "the tests of lifecycles use all of it")]
#[path = "../lifecycle/ends.rs"]
mod ends;
mod held;
mod low_limit;
mod many;
#[allow(dead_code, reason = "the tests of secnetperf use all of it")]
#[path = "../secnetperf/fixture.rs"]
mod perf;
mod proxied;
#[allow(dead_code, reason = "the tests of the proxy use all of it")]
#[path = "../proxy/fixture.rs"]
mod proxy;

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// linerate, as cargo has built it for these tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
/// The most open files of every process here.
const OPEN_FILES: u64 = 20_000;

/// Lets one test go on at a time, and no process have more open files.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX).min(OPEN_FILES);
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: Some(most) }).unwrap();
    guard
}
