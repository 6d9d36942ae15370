//! How a test's data connection is opened at the client.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_wire::netperf::test::Transport;
use socket2::Socket;

use super::address_beside;
use super::client_test::ClientTest;
use super::plan::TestPlan;
use crate::error::Error;

/// How long the data connection is tried.
const CONNECT: Duration = Duration::from_secs(10);

impl ClientTest<'_> {
    /// Connects the data socket.
    pub(super) fn connect(&self, socket: &Socket, server: SocketAddr) -> Result<(), Error> {
        let connected = match self.request.transport {
            Transport::Tcp => socket.connect_timeout(&server.into(), CONNECT),
            Transport::Udp => socket.connect(&server.into()),
        };
        // A shard that waits for several things at once, or for none, must not be kept by one of them.
        connected.and_then(|()| socket.set_nonblocking(true)).map_err(|source| Error::Io {
            operation: "make the data connection to",
            address: server.to_string(),
            source,
        })
    }

    /// Binds it as the plan says, where it says anything.
    pub(super) fn bind(&self, socket: &Socket) -> Result<(), Error> {
        if self.plan.local.address.is_none() && self.plan.local.port == 0 {
            return Ok(());
        }
        let bound = socket
            .set_reuse_address(true)
            .and_then(|()| socket.bind(&local_address(self.plan, self.v6, self.remote).into()));
        bound.map_err(|error| local_fault(&error))
    }
}

/// Where the data socket is bound.
pub(super) fn local_address(plan: &TestPlan, v6: bool, remote: SocketAddr) -> SocketAddr {
    let address = plan.local.address.unwrap_or_else(|| super::unspecified(v6));
    address_beside(address, plan.local.port, remote)
}

/// What this machine refuses of a data socket.
pub(super) fn local_fault(error: &std::io::Error) -> Error {
    Error::Host(format!(
        "this machine refuses a data socket with the requested options ({error}): check the local \
         address and port (-L, -P), the congestion control (-K), the socket sizes (-s), and -F and -g \
         behind the --"
    ))
}
