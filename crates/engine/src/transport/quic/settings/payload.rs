//! How long packets may get: what a path is tried with.

use std::net::SocketAddr;

/// The longest UDP payload that a path is tried with where nothing is known of it: what fits into an
/// Ethernet frame over IPv4 and over IPv6.
pub(super) const MOST_PAYLOAD_BYTES: [u16; 2] = [1_472, 1_452];
/// The same where the route is known: what a jumbo frame of 9,000 bytes carries. Hardly a link has longer
/// ones but loopback, where they bring little.
pub(super) const MOST_JUMBO_BYTES: [u16; 2] = [8_972, 8_952];
/// Where there are more connections, long packets that all of them try at once overflow the sockets, and
/// handshakes take seconds longer.
pub(crate) const MOST_JUMBO_CONNECTIONS: u32 = 64;
/// What every path carries (RFC 9000, section 14).
pub(crate) const LEAST_PAYLOAD_BYTES: u16 = 1_200;
/// Headers of IP and UDP (RFC 791, RFC 8200, RFC 768).
const HEADERS_BYTES: [u32; 2] = [28, 48];

/// That of IPv4, or of IPv6.
pub(super) fn of_family<T>([ipv4, ipv6]: &[T; 2], peer: SocketAddr) -> &T {
    if peer.ip().to_canonical().is_ipv4() { ipv4 } else { ipv6 }
}

/// The longest UDP payload that a route with this MTU is tried with.
pub(super) fn route_payload_bytes(peer: SocketAddr, mtu_bytes: u32) -> u16 {
    let payload = mtu_bytes.saturating_sub(*of_family(&HEADERS_BYTES, peer));
    let payload = u16::try_from(payload).unwrap_or(u16::MAX);
    payload.clamp(LEAST_PAYLOAD_BYTES, *of_family(&MOST_JUMBO_BYTES, peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_tried_with_what_it_carries_up_to_a_jumbo_frame() {
        for (mtu_bytes, ipv4, ipv6) in [
            (0, 1_200, 1_200),
            (1_240, 1_212, 1_200),
            (1_500, 1_472, 1_452),
            (9_000, 8_972, 8_952),
            (65_536, 8_972, 8_952),
            (u32::MAX, 8_972, 8_952),
        ] {
            let of = |address: &str| route_payload_bytes(address.parse().unwrap(), mtu_bytes);
            assert_eq!((of("192.0.2.1:9"), of("[2001:db8::1]:9")), (ipv4, ipv6), "{mtu_bytes}");
            // Over a socket of IPv6, IPv4 all the same.
            assert_eq!(of("[::ffff:192.0.2.1]:9"), ipv4, "{mtu_bytes}");
        }
    }
}
