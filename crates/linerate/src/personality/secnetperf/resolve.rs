//! The address of a target.

use std::net::{IpAddr, SocketAddr};

use linerate_engine::resolve_host;
use linerate_measure::plan::Family;
use linerate_personality::secnetperf::options::ClientOptions;

/// The addresses of the target that are of the family asked for, or of the local address; each once.
pub(super) fn resolve(options: &ClientOptions) -> Vec<SocketAddr> {
    let target = without_brackets(&options.target);
    let local = options.local.first().filter(|local| !local.ip().is_unspecified());
    let family = match options.family {
        4 => Some(Family::Ipv4),
        6 => Some(Family::Ipv6),
        _ => local.map(|local| Family::of(local.ip())),
    };
    let mut addresses = Vec::new();
    for address in resolve_host(target, options.port, family).unwrap_or_default() {
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
