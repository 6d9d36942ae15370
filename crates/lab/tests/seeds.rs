//! Replays the seeds of the fuzz targets of the lab, and what fuzzing once found, on a stable compiler.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/collected.rs"]
mod collected;

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/kubeconfig.rs"]
mod kubeconfig;

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/lab.rs"]
mod lab;

#[allow(unreachable_pub, reason = "the fuzz targets' crate exports these functions")]
#[path = "../../../fuzz/src/plans.rs"]
mod plans;

#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn agent_lines() {
    replay("agent_lines", lab::agent_lines);
}

#[test]
fn collected() {
    replay("collected", collected::collected);
}

#[test]
fn kubeconfigs() {
    replay("kubeconfig", kubeconfig::kubeconfig);
}

#[test]
fn matrix_plans() {
    replay("matrix_plan", plans::matrix_plan);
}
