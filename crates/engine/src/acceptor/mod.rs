//! How servers accept clients: listeners, accepted connections, clients that haven't identified themselves, and
//! making room when there is none.
//!
//! A server with one thread for all keeps its clients in [`Pending`]; one with a thread for each gives them [`Slots`].

mod accept;
mod address;
mod idle_timeout;
mod pending;
mod slots;
mod turns;

pub(crate) use accept::{Accepted, accept};
pub(crate) use address::{listen_error, listening_address};
pub(crate) use idle_timeout::IdleTimeout;
pub(crate) use pending::{Origin, Pending, Progress};
pub(crate) use slots::{ClientSlot, SlotLimits, Slots};
pub(crate) use turns::Turns;
