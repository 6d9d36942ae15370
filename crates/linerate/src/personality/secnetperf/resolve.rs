//! The address of a target.

use std::net::{SocketAddr, ToSocketAddrs};

use super::options::ClientOptions;

/// The first address of the target that is of the family asked for, or of the local address.
pub(super) fn resolve(options: &ClientOptions) -> Option<SocketAddr> {
    let target = options.target.trim_start_matches('[').trim_end_matches(']');
    let local = options.local.first().filter(|local| !local.ip().is_unspecified());
    let wanted = |address: &SocketAddr| match (options.family, local) {
        (4, _) => address.is_ipv4(),
        (6, _) => address.is_ipv6(),
        (_, Some(local)) => address.is_ipv4() == local.is_ipv4(),
        _ => true,
    };
    (target, options.port).to_socket_addrs().ok()?.find(wanted)
}
