//! Names of hosts, and their addresses.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};

use linerate_measure::plan::Family;

use crate::error::Error;

/// What the standard library writes before the C library's reason.
const PREFIX: &str = "failed to lookup address information: ";

/// The addresses of a host, which is a name or an address, with this port, in the order of the C library.
/// With a family, only addresses of that family: there may be none.
///
/// # Errors
///
/// When the name is unknown. The error's text is the C library's reason, such as `Name or service not known`.
pub fn resolve(host: &str, port: u16, family: Option<Family>) -> io::Result<Vec<SocketAddr>> {
    let found = (host, port).to_socket_addrs().map_err(|error| {
        let text = error.to_string();
        io::Error::new(error.kind(), text.strip_prefix(PREFIX).unwrap_or(&text).to_owned())
    })?;
    Ok(found
        .filter(|address| family.is_none_or(|family| family == Family::of(address.ip())))
        .collect())
}

/// The error for a host that [`resolve`] doesn't find.
pub fn unknown_host(host: &str, error: &io::Error) -> Error {
    Error::Unreachable(format!(
        "the host \"{host}\" is unknown ({error}): check the name, or give an address"
    ))
}

/// The error for a host without an address of the family that these flags request.
pub fn no_address(host: &str, flags: &str) -> Error {
    Error::Unreachable(format!(
        "the host \"{host}\" has no address of the requested family: leave out {flags}, or give another host"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_keeps_its_interface() {
        // Loopback is the first interface everywhere.
        match resolve("fe80::1%lo", 7, None).unwrap().as_slice() {
            [SocketAddr::V6(found)] => assert_eq!((found.scope_id(), found.port()), (1, 7)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_addresses_of_the_family_are_found() {
        let family = |family| resolve("127.0.0.1", 7, Some(family)).unwrap();
        assert_eq!(family(Family::Ipv4), ["127.0.0.1:7".parse().unwrap()]);
        assert_eq!(family(Family::Ipv6), []);
    }

    #[test]
    fn the_reason_of_an_unknown_name_is_the_c_librarys() {
        let error = resolve("no-such-host.invalid", 7, None).unwrap_err();
        assert!(!error.to_string().contains("failed to lookup"), "{error}");
        let text = unknown_host("no-such-host.invalid", &error).to_string();
        assert!(text.contains("\"no-such-host.invalid\" is unknown ("), "{text}");
    }
}
