//! The lab: plans of many measurements over many hosts, and what carries them out.

pub mod plan;
pub mod schedule;
