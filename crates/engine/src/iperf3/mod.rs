//! iperf3's dialect over sockets: the client, and a server for several clients at once.
//!
//! The conversation is `linerate_wire::iperf3`'s. This room opens the streams' sockets, gives the load what each
//! stream does, and decides when a test ends. Words are the original's: a *stream* is a flow.

mod client;
mod control;
mod datagrams;
mod descriptors;
mod event;
mod figures;
mod lull;
mod meter;
mod payload;
mod plan;
mod repeats;
mod report;
mod running;
mod server;
mod sockets;
mod spread;
mod stream_plan;
mod streams;
mod tail;
mod token;

pub use client::run;
pub use server::Server;

pub use event::{Control, Event, Observer, ServerEvent, Start, Stream};
pub use linerate_measure::Role;
pub use linerate_wire::iperf3::Failure;
pub use plan::{
    Authority, Credentials, Keepalive, Padding, RECEIVE_TIMEOUT, RateLimit, ServePlan, TestPlan,
};
pub use report::Report;
