//! Names and addresses of both ends.

use std::io;
use std::net::SocketAddr;

use linerate_engine::resolve_host;
use linerate_measure::plan::Family;

/// An address, or a name's first address of this family, and of the preferred one if it has any.
pub(super) fn resolve(
    host: &str,
    family: Option<Family>,
    preferred: Option<Family>,
) -> io::Result<SocketAddr> {
    let found = resolve_all(host, family)?;
    let preferred = |address: &&SocketAddr| Some(Family::of(address.ip())) == preferred;
    found.iter().find(preferred).or(found.first()).copied().ok_or_else(unsupported)
}

/// All its addresses of this family, one at least.
pub(super) fn resolve_all(host: &str, family: Option<Family>) -> io::Result<Vec<SocketAddr>> {
    let found = resolve_host(host, 0, family)?;
    if found.is_empty() { Err(unsupported()) } else { Ok(found) }
}

/// The ends of a connection between two hosts with these addresses: the first local one of a family that the
/// remote host has, too, and the first remote one of that. Where they share none, each end's first.
pub(super) fn choose_ends(
    locals: &[SocketAddr],
    remotes: &[SocketAddr],
) -> Option<(Option<SocketAddr>, SocketAddr)> {
    let reached = |local: &SocketAddr| {
        let mut same = remotes.iter().filter(|remote| remote.is_ipv4() == local.is_ipv4());
        same.next().map(|remote| (Some(*local), *remote))
    };
    let firsts = || remotes.first().map(|remote| (locals.first().copied(), *remote));
    locals.iter().find_map(reached).or_else(firsts)
}

/// What the C library says of a name without an address of the family asked for.
pub(super) fn unsupported() -> io::Error {
    io::Error::other("Address family for hostname not supported")
}
