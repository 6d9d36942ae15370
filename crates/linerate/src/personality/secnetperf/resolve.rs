//! The address of a target.

use std::net::SocketAddr;

use linerate_engine::resolve_host;
use linerate_measure::plan::Family;
use linerate_personality::secnetperf::options::ClientOptions;
use linerate_personality::target::without_brackets;

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
