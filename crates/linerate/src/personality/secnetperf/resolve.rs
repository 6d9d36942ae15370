//! The address of a target.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use linerate_personality::secnetperf::options::ClientOptions;

/// The addresses of the target that are of the family asked for, or of the local address; each once.
pub(super) fn resolve(options: &ClientOptions) -> Vec<SocketAddr> {
    let target = without_brackets(&options.target);
    let local = options.local.first().filter(|local| !local.ip().is_unspecified());
    let wanted = |address: &SocketAddr| match (options.family, local) {
        (4, _) => address.is_ipv4(),
        (6, _) => address.is_ipv6(),
        (_, Some(local)) => address.is_ipv4() == local.is_ipv4(),
        _ => true,
    };
    let mut addresses = Vec::new();
    for address in (target, options.port).to_socket_addrs().into_iter().flatten().filter(wanted) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Whether the target is an address, with a scope or in brackets at times, and so is no server's name.
pub(super) fn is_address(target: &str) -> bool {
    let target = without_brackets(target);
    let unscoped = target.split_once('%').map_or(target, |(address, _)| address);
    unscoped.parse::<IpAddr>().is_ok()
}

fn without_brackets(target: &str) -> &str {
    target.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_brackets_and_with_a_scope_are_no_names() {
        for address in ["127.0.0.1", "::1", "[::1]", "fe80::1%eth0", "[fe80::1%eth0]"] {
            assert!(is_address(address), "{address}");
        }
        for name in ["localhost", "a.example", "1.2.3", "[a]"] {
            assert!(!is_address(name), "{name}");
        }
    }
}
