//! iperf3's command line: [`flags`] is the table, [`options`] what was typed, [`command_line`] what
//! may stand together, [`parameters`] what a client asks its server for. [`fault`] words a refusal as the chosen [`release`] does.
//! [`document`] reads the JSON that the original prints.

pub mod amount;
pub mod command_line;
pub mod document;
mod dscp;
pub mod fault;
pub mod flags;
pub mod help;
pub mod most_tests;
pub mod options;
pub mod parameters;
pub mod release;
mod values;
