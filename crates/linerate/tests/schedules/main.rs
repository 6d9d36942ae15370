//! Loads that keep to a time, a rate or a schedule, judged by the milliseconds.
//!
//! Apart from the other tests of processes, so that no more of these run at once than there are processors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first surprise and say what it saw"
)]

mod delayed;
#[allow(dead_code, reason = "the tests of lifecycles use all of it")]
#[path = "../lifecycle/document.rs"]
mod document;
#[allow(dead_code, reason = "the tests of lifecycles use all of it")]
#[path = "../lifecycle/ends.rs"]
mod ends;
mod many_flows;
mod open_loop;
mod pace;
#[path = "../run_delay/mod.rs"]
mod run_delay;
mod timing;
