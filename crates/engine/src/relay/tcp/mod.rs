//! TCP on both sides: a client's connection is split, and goes on over another one to the target.

mod mover;
mod pair;
mod worker;

use std::net::SocketAddr;
use std::sync::Arc;

use socket2::Socket;

use super::ProxyPlan;
use crate::acceptor::{listen_error, listening_address};
use crate::error::Error;
use crate::socket::{listen, or_over_v4};
pub(super) use worker::Worker;

/// The listener of all threads, and its address.
///
/// # Errors
///
/// Where nothing can listen there.
pub(super) fn bind(plan: &ProxyPlan) -> Result<(Arc<Socket>, SocketAddr), Error> {
    let wanted = listening_address(plan.bind.as_ref(), plan.port)?;
    let failed = |error| listen_error(wanted, &error);
    let listener = or_over_v4(wanted, |address| listen(address, None)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?.as_socket().unwrap_or(wanted);
    Ok((Arc::new(listener), address))
}
