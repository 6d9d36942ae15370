//! The lab: plans of many measurements over many hosts, and what carries them out.

pub mod agent;
pub mod barrier;
pub mod collect;
pub mod host;
mod hunting;
pub mod judge;
pub mod plan;
pub mod schedule;
