//! Which congestion controls of TCP this process may use.

use std::io;

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::Error;

/// The congestion controls that every user may choose (tcp(7)).
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
/// Those that the kernel has. Only a privileged process may choose all of them (CAP_NET_ADMIN).
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Looks whether this process may use a congestion control of TCP, before any connection asks for it.
///
/// # Errors
/// `Host`: the kernel doesn't have it, or keeps it for privileged users.
pub fn check_congestion(name: &str) -> Result<(), Error> {
    try_congestion(name).map_err(|error| {
        let listed = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let (allowed, available) = (listed(ALLOWED), listed(AVAILABLE));
        let why = match error.kind() {
            io::ErrorKind::PermissionDenied => format!(
                "this user may not use the congestion control \"{name}\" (--congestion): choose one of {}, or \
                 add it to net.ipv4.tcp_allowed_congestion_control",
                allowed.trim()
            ),
            io::ErrorKind::NotFound => format!(
                "this kernel has no congestion control \"{name}\" (--congestion): it has {}",
                available.trim()
            ),
            _ => format!("the congestion control \"{name}\" can't be used (--congestion): {error}"),
        };
        Error::Host(why)
    })
}

/// Chooses it for a socket that nothing else uses.
fn try_congestion(name: &str) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_congestion(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_may_use_reno() {
        check_congestion("reno").unwrap();
    }

    #[test]
    fn an_unknown_control_is_named_with_those_that_there_are() {
        let told = check_congestion("reno2000-of-me").unwrap_err().to_string();
        assert!(told.contains("\"reno2000-of-me\" (--congestion): it has "), "{told}");
        assert!(told.contains("reno"), "{told}");
    }
}
