//! secnetperf's command line: [`flags`] is the table of options, [`options`] what they mean, in the
//! original's order of reading.

pub mod flags;
pub mod options;

/// The original's statuses on Linux: errno numbers, which the process ends with.
#[allow(missing_docs, reason = "the names say it")]
pub mod status {
    pub const OK: u8 = 0;
    pub const FAILED: u8 = 5;
    pub const INVALID: u8 = 22;
    pub const UNSUPPORTED: u8 = 95;
    pub const IN_USE: u8 = 98;
    pub const REFUSED: u8 = 111;
}
