//! The netperf dialect over sockets: a client that tests against a netserver, and a netserver that
//! many clients test against at once.
//!
//! The conversation is [`wire::netperf`](linerate_wire::netperf)'s; the bytes are moved by the same
//! flows that carry native loads. `docs/compat/netperf.md` says what is like the original and what
//! isn't.

mod client;
mod connections;
mod control;
mod crowd;
mod data;
mod figures;
mod filling;
mod job;
mod outcome;
mod place;
mod plan;
mod processor;
mod request;
mod served;
mod server;
mod session;
mod spinners;
mod timing;
mod trial;
mod watchdog;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::Error;

pub use client::{Client, run, run_alone};
pub use outcome::{
    BufferFigures, Calibration, CpuFigures, EndFigures, Outcome, SIZE_UNKNOWN, method_letter,
};
pub use plan::{
    ControlPlan, Dirt, EndPlan, Pacing, TestEnd, TestKind, TestOptions, TestPlan, TestTransport,
};
pub use processor::local_calibration;
pub use server::{Server, ServerOptions};

/// The number of the error with which the server has refused something, of errno(3), or 998 for a
/// test that it doesn't know; `None` where the error is another one.
pub fn remote_errno(error: &Error) -> Option<i32> {
    let Error::Peer(text) = error else { return None };
    let (_, number) = text.split_once("remote error ")?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The address that stands for all of a machine's.
fn unspecified(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}
