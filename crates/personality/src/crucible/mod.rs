//! Crucible: the files and command lines that it takes, and what they mean.
//!
//! Crucible is a set of programs around benchmarks of networks and disks. A user writes a matrix of parameters
//! (`mv-params`), the rules of a benchmark's parameters (`multiplex.json`, here [`requirements`]) and a run file with
//! benchmarks and endpoints. All of them are read here, strictly; [`quirk`] has the table of what the original does
//! otherwise. Nothing here opens a file.

pub mod command_line;
pub mod document;
pub mod endpoint;
pub mod fault;
pub mod iperf;
mod kept;
pub mod kube;
pub mod multiplex;
pub mod mv_params;
pub mod numbers;
pub mod parameter;
mod pattern;
pub mod quirk;
pub mod requirements;
pub mod run_file;
mod units;
