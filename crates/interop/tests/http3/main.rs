//! HTTP/3 (RFC 9114) through `linerate proxy`: client and server are hyperium's, over quinn.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice,
    reason = "a test may stop at the first surprise"
)]

mod ends;
mod through;

#[path = "../../../linerate/tests/lifecycle/any_certificate.rs"]
mod any_certificate;
#[allow(dead_code, reason = "shared with the tests of the proxy, which need more of it")]
#[path = "../../../linerate/tests/proxy/fixture.rs"]
mod fixture;

/// linerate, as cargo has built it for these tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate-interop");
