//! qperf's command line and the text of its output.
//!
//! Two programs have the name and the wire protocol: the original, and a fork that has a proxy. The
//! options are the fork's; where the original's differ, both are taken. [`flags`] is the table,
//! [`options`] what was typed, [`command_line`] how it is read, and [`output`] the lines that are
//! printed.

pub mod command_line;
pub mod flags;
pub mod options;
pub mod output;
pub mod values;
