//! ctsTraffic's command line and output.
//!
//! [`flags`] is the table of options, [`options`] what was typed, [`command_line`] a command line as a
//! whole with what may stand together, and [`help`] the pages of `-Help`. [`plan`] makes of options
//! what the dialect needs, [`addresses`] goes on where names are resolved. [`output`] has what is
//! printed and written to files, as text from plain values; [`exit`] has the exit codes.

pub mod addresses;
pub mod command_line;
pub mod exit;
pub mod flags;
pub mod help;
pub mod options;
pub mod output;
pub mod plan;
mod refusal;
mod values;

/// The refusal of a csv file that two options name.
pub const SHARED_CSV: &str = "The same csv filename cannot be used for different loggers";

pub use refusal::Refusal;
pub use values::is_csv;
