//! The netperf dialect over sockets: a client that tests against a netserver, and a netserver that
//! many clients test against at once.
//!
//! The conversation is `wire::netperf`'s; the bytes are moved by the same
//! flows that carry native loads. `docs/compat/netperf.md` says what is like the original and what
//! isn't.

mod outcome;
mod plan;

pub use outcome::{
    BufferFigures, Calibration, CpuFigures, EndFigures, Outcome, SIZE_UNKNOWN, method_letter,
};
pub use plan::{
    ControlPlan, EndPlan, Pacing, TestEnd, TestKind, TestOptions, TestPlan, TestTransport,
};
