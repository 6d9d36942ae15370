//! What is typed as a target: a name or an address.

use std::net::IpAddr;

/// Whether a target is an address, with a scope or in brackets at times, and so is no server's name.
pub fn is_address(target: &str) -> bool {
    let target = without_brackets(target);
    let unscoped = target.split_once('%').map_or(target, |(address, _)| address);
    unscoped.parse::<IpAddr>().is_ok()
}

/// The target as the C library resolves it: `[::1]` is `::1`.
pub fn without_brackets(target: &str) -> &str {
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
