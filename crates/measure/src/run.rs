//! What came out: one document, the same whether the measurement succeeded, failed or was cut off.

mod draft;

pub use draft::Draft;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dialect::{Dialect, DialectOptions};
use crate::hunt::HuntRecord;
use crate::plan::Plan;
use crate::report::{EndReport, HostFacts};
use crate::sample::{Role, Sample};
use crate::steady::Steadiness;
use crate::summary::{Summary, Unmet};
use crate::trust::{Reason, Trust};

/// What came out of one plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The version of this document's format: `linerate.run/1`.
    pub schema: String,
    /// Names this run in the records of both ends (32 hexadecimal digits).
    pub run_id: String,
    /// Whose test it was. Documents without it are linerate's own.
    #[serde(default)]
    pub dialect: Dialect,
    /// The end that wrote this document. Documents without it are the client's.
    #[serde(default = "client", skip_serializing_if = "is_client")]
    pub written_by: Role,
    /// What was asked; of another dialect's test the nearest plan that there is.
    pub plan: Plan,
    /// What was asked in the words of the dialect's original; absent where the dialect is linerate's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<DialectOptions>,
    /// Where it was done.
    pub environment: Environment,
    /// What both ends counted, interval by interval.
    pub samples: Vec<Sample>,
    /// What it comes to.
    pub summary: Summary,
    /// What each end counted in all, flow by flow.
    pub reports: Vec<EndReport>,
    /// Where a test was made several times (netperf `-i`): its iterations before the one of `samples` and `reports`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_iterations: Vec<Iteration>,
    /// Where a highest rate was searched: the trials and what was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunt: Option<Box<HuntRecord>>,
    /// How steady each direction's rate was, where there are at least 40 measured intervals. The summary counts all of
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steadiness: Vec<Steadiness>,
    /// Whether it can be trusted.
    pub status: Status,
}

/// One of several iterations of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Iteration {
    /// When its load began (UTC, nanoseconds since 1970), by the clock of the end that wrote the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_utc_ns: Option<i64>,
    /// What both ends counted, interval by interval, from the beginning of the iteration.
    pub samples: Vec<Sample>,
    /// What each end counted in all.
    pub reports: Vec<EndReport>,
}

impl Run {
    /// The name and version of the run's JSON format.
    pub const SCHEMA: &'static str = "linerate.run/1";
}

fn client() -> Role {
    Role::Client
}

fn is_client(role: &Role) -> bool {
    *role == Role::Client
}

/// Where a run took place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// The client's machine. Of a peer that tells nothing of itself every field is absent.
    #[serde(default)]
    pub client: HostFacts,
    /// The server's machine; absent where none was reached, or it tells nothing of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<HostFacts>,
    /// When the load began (UTC, nanoseconds since 1970), by the clock of the end that
    /// wrote the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_utc_ns: Option<i64>,
    /// The server's clock less the client's, measured on the control connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset: Option<ClockOffset>,
    /// How the same offset changed during the measured part, from all pings. Absent where no constant drift agrees
    /// with all of them: an end's clock was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_track: Option<ClockTrack>,
    /// Round-trip time of the control connection, least of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_rtt_ns: Option<u64>,
}

/// The server's clock less the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockOffset {
    /// The estimate.
    pub offset_ns: i64,
    /// The truth is at most this far away at any time of the test: half a round trip (RFC 5905,
    /// section 8), and 100 parts per million of the time between that round trip and the farther
    /// end of the test, as far as two clocks may drift apart.
    pub bound_ns: u64,
}

/// The server's clock less the client's over the measured part of a run, if the two drift apart at a constant rate of at
/// most 500 parts per million.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockTrack {
    /// The pings that it was found from.
    pub pings: u64,
    /// When the measured part began.
    pub begin: OffsetAt,
    /// When it ended.
    pub end: OffsetAt,
    /// By how much the server's clock runs faster, in parts per million.
    pub drift_ppm: f64,
    /// The truth is at most this far away.
    pub drift_bound_ppm: f64,
}

/// The server's clock less the client's at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffsetAt {
    /// The middle of what all pings allow.
    pub offset_ns: i64,
    /// The truth is at most this far away.
    pub bound_ns: u64,
}

/// Whether the measurement can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// How it ended.
    pub outcome: Outcome,
    /// The exit code of the command: linerate's own ([`exit`]), or the one that the dialect's original returns.
    pub exit_code: u8,
    /// Whether the figures can be believed. Documents without it have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Trust>,
    /// Why they are doubtful or invalid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// What went wrong, and the way out; absent where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What was asked for and not got: the notes say the same in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Unmet>,
    /// What the reader of the result must know: nothing here changes the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Status {
    /// The verdict. A document of an earlier release has none, and its outcome says as much.
    pub fn trust(&self) -> Trust {
        self.verdict.unwrap_or(match self.outcome {
            Outcome::Complete => Trust::Valid,
            Outcome::Interrupted => Trust::Doubtful,
            Outcome::Untrustworthy | Outcome::Failed => Trust::Invalid,
        })
    }

    /// Takes doubt for failure: a doubtful run has the exit code of an invalid one.
    pub fn be_strict(&mut self) {
        if self.verdict == Some(Trust::Doubtful) && self.exit_code == exit::VALID {
            self.exit_code = exit::UNTRUSTWORTHY;
        }
    }
}

/// How a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As planned.
    Complete,
    /// Cut off by the user; the figures hold for the part that was done.
    Interrupted,
    /// Measured, but not to be trusted; the message says why.
    Untrustworthy,
    /// Not measured; the message says why.
    Failed,
}

/// The exit codes of the native commands.
pub mod exit {
    /// Measured and valid.
    pub const VALID: u8 = 0;
    /// The measurement failed.
    pub const FAILED: u8 = 1;
    /// The request makes no sense.
    pub const USAGE: u8 = 2;
    /// The server can't be reached.
    pub const UNREACHABLE: u8 = 3;
    /// The server or the client refused the other's key.
    pub const REFUSED: u8 = 4;
    /// The server has no room for this test.
    pub const BUSY: u8 = 5;
    /// Measured, but not to be trusted.
    pub const UNTRUSTWORTHY: u8 = 6;
    /// Measured, and a threshold was not met.
    pub const THRESHOLD: u8 = 7;
    /// Interrupted; the partial result was printed.
    pub const INTERRUPTED: u8 = 130;
    /// The reader of the output closed the pipe before it had all: as a shell shows a program that SIGPIPE ended.
    pub const READER_GONE: u8 = 141;
}
