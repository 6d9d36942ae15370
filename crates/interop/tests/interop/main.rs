//! The perf dialect against ends that share no line with ours: over QUIC on s2n-quic, another stack than
//! the one that linerate has, and over TCP with framing and keys written down once more from the
//! specification (docs/compat/secnetperf.md). Both roles, over loopback.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice,
    reason = "a test may stop at the first surprise"
)]

mod framed_client;
mod framed_server;
mod quic;
mod quic_client;
mod quic_server;

#[path = "../../../linerate/tests/lifecycle/any_certificate.rs"]
mod any_certificate;
#[allow(dead_code, reason = "shared with the tests of the command line, which need more of it")]
#[path = "../../../linerate/tests/secnetperf/fixture.rs"]
mod fixture;
#[path = "../../../linerate/tests/hostile/framed.rs"]
mod framed;
#[path = "../../../linerate/tests/hostile/request.rs"]
mod request;
#[path = "../../../linerate/tests/hostile/trust.rs"]
mod trust;

/// linerate, as cargo has built it for these tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate-interop");
