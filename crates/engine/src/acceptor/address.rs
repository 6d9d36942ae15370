//! Where a server listens, and why it can't.

use std::io;
use std::net::SocketAddr;

use linerate_measure::plan::LocalAddress;

use crate::error::Error;
use crate::socket::{EVERYWHERE_V6, local_socket_address};

/// The address that a server listens on; without one: all, of both families.
///
/// # Errors
///
/// Where the address names an interface that this machine doesn't have.
pub(crate) fn listening_address(
    bind: Option<&LocalAddress>,
    port: u16,
) -> Result<SocketAddr, Error> {
    let Some(address) = bind else { return Ok(SocketAddr::new(EVERYWHERE_V6, port)) };
    local_socket_address(address, port).map_err(|error| {
        Error::Host(format!(
            "can't listen on {address} ({error}): `ip address` lists this machine's addresses"
        ))
    })
}

/// What the user is told where nothing can listen on an address.
pub(crate) fn listen_error(address: SocketAddr, error: &io::Error) -> Error {
    let port = address.port();
    Error::Host(match error.raw_os_error() {
        Some(libc::EADDRINUSE) => format!(
            "port {port} is taken by another program: give another with --port, or end that \
             program (ss -lntup shows which it is)"
        ),
        Some(libc::EACCES | libc::EPERM) => format!(
            "this user may not listen on {address} ({error}): choose a port above 1023 with \
             --port, or run with the privilege"
        ),
        Some(libc::EADDRNOTAVAIL) => {
            format!("{} isn't an address of this machine (--bind)", address.ip())
        }
        Some(libc::EINVAL) if address.is_ipv6() => {
            format!(
                "can't listen on {address} ({error}): does --bind name the interface, as in fe80::1%eth0?"
            )
        }
        Some(libc::ENODEV) => "there is no such network device (--bind-device)".to_owned(),
        _ => format!("can't listen on {address}: {error}"),
    })
}
