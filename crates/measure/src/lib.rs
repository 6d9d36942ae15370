//! The vocabulary and arithmetic of network measurement.
//!
//! Each thing that linerate asks, counts or concludes has one name and one type:
//!
//! * [`Plan`]: what was asked;
//! * [`Sample`]: what one end counted in one interval;
//! * [`EndReport`]: what one end counted in all;
//! * [`Run`]: the document that comes out.
//!
//! Text, JSON, terminal and web page read these and print nothing else.
//!
//! The crate is pure. It has no I/O, no clock and no thread: time comes in as an argument, in
//! nanoseconds, and a result depends on the arguments alone. So it builds for a target without
//! sockets, and every formula in it is tested against its definition.
//!
//! Besides those documents:
//!
//! * [`units`] reads and writes quantities.
//! * [`histogram`] keeps latencies.
//! * [`datagram`] counts what became of numbered datagrams.
//! * [`media`] counts what became of the frames that datagrams make up.
//! * [`clock_offset`] compares two clocks, [`one_way`] has the delay of each direction.
//! * [`collected`] names what is read from a host's kernel beside a test.
//! * [`comparison`] tells whether two ways to measure differ.
//! * [`fairness`] compares flows.
//! * [`repeats`] has what several runs of one plan come to, and when there are enough of them.
//! * [`steady`] finds a run's warm-up, and tells how much the run varied.
//! * [`quantile`] tells how well one run knows the quantiles of its latencies.
//! * [`random`] draws numbers that a seed repeats.
//! * [`hunt`] searches for the highest rate that keeps limits.
//! * [`loaded`] has latency while a path is idle and while it is filled.
//! * [`dialect`] has what only another tool's test has.
//! * [`step`] has what each flow of a workload does.
//! * [`link`] describes paths to emulate.
//! * [`so_far`] has what a run's samples come to while it goes on.
//! * [`summary`] draws the conclusions and judges them.
//! * [`trust`] says whether a result can be believed, [`limits`] what limited it.
//! * [`metric`] lists what is measured.
//! * [`matrix`] has the points of a parameter matrix, [`order`] their order, [`threshold`] demands on
//!   their figures, [`confidence`] how far a mean of few values is from the true one.
//! * [`window`] averages series over windows of time.
//! * [`schema`] publishes the formats.
//!
//! It may not know: files, sockets, clocks, threads, terminals, or where a result is printed.
//!
//! Units: `_ns` nanoseconds, `_bytes` bytes, `_bps` bits per second, `_s` seconds. Rates are
//! computed from measured time, never from requested time. A value that was not measured is
//! absent (`None`), never zero.

#![forbid(unsafe_code)]

pub mod clock_offset;
pub mod collected;
pub mod comparison;
pub mod confidence;
pub mod datagram;
pub mod dialect;
pub mod fairness;
pub mod histogram;
pub mod hunt;
pub mod limits;
pub mod link;
pub mod loaded;
pub mod matrix;
pub mod media;
pub mod metric;
pub mod one_way;
pub mod order;
pub mod paths;
pub mod plan;
pub mod quantile;
pub mod random;
pub mod record;
pub mod repeats;
pub mod report;
pub mod run;
pub mod sample;
pub mod schema;
pub mod so_far;
pub mod steady;
pub mod step;
pub mod summary;
pub mod threshold;
pub mod trust;
pub mod units;
pub mod window;

pub use dialect::{Dialect, DialectOptions};
pub use media::Media;
pub use plan::{
    Arrivals, Cipher, Closing, Direction, End, Handshake, Kind, Pacing, Payload, Plan, PlanError,
    QuicOptions, QuicVersion, Rate, Schedule, SocketOptions, Threading, TlsOptions, Transport,
    Variant, Workload,
};
pub use report::{EndReport, FlowReport};
pub use run::{Environment, Outcome, Run, Status};
pub use sample::{Role, Sample};
pub use summary::Summary;
