//! The command lines of other tools: how their options are written, and what each option means.
//!
//! linerate takes the command lines of iperf3, netperf, netserver, secnetperf, ctsTraffic and qperf.
//! This crate reads them. A *lexer* takes words apart ([`getopt`] for `-p 80` and `--port=80`, [`colon_options`] for
//! `-port:80`). A *table of flags* has a row for each option of the original, with its name, its
//! help and its meaning; parser, help text and the test that no option is missing all read it.
//! What comes out is a value that says what was typed ([`iperf3::options::Options`], [`netperf::options::Options`]).
//!
//! [`crucible`] reads files as well: matrices of parameters, their requirements, and run files.
//!
//! What was typed becomes a plan for the engine in the program, `linerate`, which also runs the
//! plan and prints its result. This crate may know nothing of the engine, of files, sockets,
//! clocks, threads or the environment: what a reading needs of them is an argument. So its fuzz
//! targets build without an engine, and it builds for a target that has no sockets.

#![forbid(unsafe_code)]

pub mod c_format;
pub mod colon_options;
pub mod crucible;
pub mod ctstraffic;
pub mod getopt;
pub mod iperf3;
pub mod netperf;
pub mod qperf;
pub mod secnetperf;
pub mod service_class;
pub mod target;
