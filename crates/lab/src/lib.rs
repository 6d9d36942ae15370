//! The lab: plans of many measurements over many hosts, and what carries them out.

pub mod collect;
pub mod plan;
pub mod schedule;
