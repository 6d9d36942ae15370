//! What a run has beyond the uniform documents: whose test it was, how it was asked for there, and the figures
//! that only this dialect has.
//!
//! A dialect maps its test to the nearest [`Plan`](crate::Plan), and its counts to [`Sample`](crate::Sample) and
//! [`EndReport`](crate::EndReport), so that any reader compares runs of all dialects. What has no place there goes
//! to an extension: one struct of the dialect's own, in an enum with a variant for each dialect.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub mod ctstraffic;
pub mod iperf3;
pub mod netperf;
pub mod perf;

/// Whose test a run is: the program whose command line and protocol it had.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// linerate's own.
    #[default]
    Native,
    /// iperf3.
    Iperf3,
    /// netperf 2.
    Netperf,
    /// QUIC's perf protocol, with the command line of MsQuic's secnetperf.
    Perf,
    /// Microsoft's ctsTraffic.
    Ctstraffic,
    /// qperf, over QUIC.
    Qperf,
}

impl Dialect {
    /// All dialects, in the order in which documents list them.
    pub const ALL: [Self; 6] =
        [Self::Native, Self::Iperf3, Self::Netperf, Self::Perf, Self::Ctstraffic, Self::Qperf];

    /// The name that documents have for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Iperf3 => "iperf3",
            Self::Netperf => "netperf",
            Self::Perf => "perf",
            Self::Ctstraffic => "ctstraffic",
            Self::Qperf => "qperf",
        }
    }
}

/// What was asked, in the words of the dialect's original.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DialectOptions {
    /// The command line, a word an item, the program's name first. Words that are secret are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command_line: Vec<String>,
    /// What was asked for, by the original's long names without their dashes; `true` for an option without a
    /// value. Secrets are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_name: BTreeMap<String, Value>,
    /// Whether a stream sends bursts with pauses between them that the plan doesn't tell: iperf3's `-b RATE/BURST`.
    #[serde(skip)]
    pub has_bursts: bool,
}

/// A dialect's own figures of one flow in one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowSampleExtension {
    /// iperf3's.
    Iperf3(iperf3::FlowInterval),
}

/// A dialect's own figures of one end in one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SampleExtension {
    /// perf's.
    Perf(perf::Interval),
    /// ctsTraffic's.
    Ctstraffic(ctstraffic::Interval),
}

/// A dialect's own figures of one flow in all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowExtension {
    /// iperf3's.
    Iperf3(iperf3::FlowTotals),
    /// netperf's.
    Netperf(netperf::FlowTotals),
}

/// A dialect's own figures of one end in all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndExtension {
    /// iperf3's.
    Iperf3(iperf3::EndTotals),
    /// netperf's.
    Netperf(Box<netperf::EndTotals>),
    /// perf's.
    Perf(perf::EndTotals),
    /// ctsTraffic's.
    Ctstraffic(ctstraffic::EndTotals),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_serialised_one() {
        for dialect in Dialect::ALL {
            assert_eq!(serde_json::to_value(dialect).unwrap(), dialect.name());
        }
    }

    #[test]
    fn an_extension_stands_under_its_dialects_name() {
        let figures = iperf3::FlowInterval { retransmits: Some(2), ..Default::default() };
        let written = serde_json::to_value(FlowSampleExtension::Iperf3(figures)).unwrap();
        assert_eq!(written, serde_json::json!({ "iperf3": { "retransmits": 2 } }));
    }
}
