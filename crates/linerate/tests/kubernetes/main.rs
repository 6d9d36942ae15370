//! `kubernetes`, `image`, and plans with pods, against an API server that the tests play. Its pods are agents on this
//! machine.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod cluster;
mod commands;
mod plans;
#[path = "../ports/quiet.rs"]
mod quiet;
#[allow(dead_code, reason = "lab's tests use the rest")]
#[path = "../../../lab/src/host/kubernetes/stand_in.rs"]
mod stand_in;
