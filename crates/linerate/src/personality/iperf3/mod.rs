//! iperf3: its options, its output, its exit codes, with our engine behind them.
//!
//! What is typed ([`flags`], [`options`], [`command_line`]) becomes a plan of the dialect ([`plan`]);
//! [`client`] and [`server`] run it; [`printer`] turns what happens into text or JSON.
//! docs/compat/iperf3.md says what is the same as in the original and what isn't.

pub mod amount;
pub mod command_line;
pub mod context;
mod document;
mod dscp;
mod ending;
mod fault;
pub mod flags;
pub mod help;
pub mod json;
mod moment;
pub mod options;
mod outlet;
pub mod printer;
pub mod release;
mod row;
mod sum;
pub mod text;
mod values;

pub use fault::render_failure;
