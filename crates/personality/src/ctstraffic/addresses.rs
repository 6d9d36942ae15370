//! What is checked of hosts only after their names are resolved.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use linerate_wire::ctstraffic::Span;

use super::Refusal;

/// The word for all addresses of both families.
pub const EVERYWHERE: &str = "*";

/// Both families' address for all.
pub const UNSPECIFIED: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];

/// A client's addresses: each pair of one of both lists that is of one family can connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientAddresses {
    /// Where to connect.
    pub targets: Vec<SocketAddr>,
    /// From where.
    pub binds: Vec<SocketAddr>,
}

/// Leaves out the addresses whose family the other list doesn't have. Without any `-Bind` a client
/// binds to all.
///
/// # Errors
/// Nothing is left.
pub fn match_families(
    targets: &[SocketAddr],
    binds: &[SocketAddr],
) -> Result<ClientAddresses, Refusal> {
    let unspecified = UNSPECIFIED.map(|address| SocketAddr::new(address, 0));
    let binds = if binds.is_empty() { &unspecified } else { binds };
    let of_family = |addresses: &[SocketAddr], others: &[SocketAddr]| {
        let is_matched = |a: &&SocketAddr| others.iter().any(|b| a.is_ipv4() == b.is_ipv4());
        addresses.iter().filter(is_matched).copied().collect::<Vec<_>>()
    };
    let matched =
        ClientAddresses { targets: of_family(targets, binds), binds: of_family(binds, targets) };
    if matched.targets.is_empty() {
        let text = "-bind addresses and target addresses must match families";
        return Err(Refusal::new(text));
    }
    Ok(matched)
}

/// The local port of the connection with this number, from 0. The ports are used in turn, and the first
/// connection has the second one.
pub fn local_port(ports: Span, number: u64) -> u16 {
    let count = ports.high.saturating_sub(ports.low).saturating_add(1);
    let port = ports.low.saturating_add(number.wrapping_add(1) % count);
    u16::try_from(port).unwrap_or(u16::MAX)
}

/// A name of an option that stands for no address.
pub fn unresolved(option: &str) -> Refusal {
    Refusal::new(format!("-{option} value did not resolve to an IP address"))
}

impl ClientAddresses {
    /// The addresses of the connection with this number, from 0: both lists are used in turn. A target
    /// of another family than the local address is passed over.
    pub fn pair(&self, number: u64) -> Option<(SocketAddr, SocketAddr)> {
        let at = |list: &[SocketAddr], number: u64| {
            let count = list.len().max(1) as u64;
            list.get((number % count) as usize).copied()
        };
        let bind = at(&self.binds, number)?;
        let targets = 0..self.targets.len() as u64;
        let mut targets = targets.filter_map(|skip| at(&self.targets, number.wrapping_add(skip)));
        let target = targets.find(|target| target.is_ipv4() == bind.is_ipv4())?;
        Some((bind, target))
    }

    /// Likewise. Addresses that were matched have a pair for each number; others give the unspecified address.
    pub fn pair_or_unspecified(&self, number: u64) -> (SocketAddr, SocketAddr) {
        let [v4, _] = UNSPECIFIED.map(|address| SocketAddr::new(address, 0));
        self.pair(number).unwrap_or((v4, v4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 0)
    }

    fn addresses(text: &str) -> Vec<SocketAddr> {
        text.split_whitespace().map(address).collect()
    }

    #[test]
    fn families_must_match() {
        let refused = match_families(&addresses("127.0.0.1"), &addresses("::1")).unwrap_err();
        assert_eq!(refused.text, "-bind addresses and target addresses must match families");
        let matched = match_families(&addresses("127.0.0.1 ::1"), &addresses("::2")).unwrap();
        assert_eq!((matched.targets, matched.binds), (addresses("::1"), addresses("::2")));
        let any = match_families(&addresses("127.0.0.1"), &[]).unwrap();
        assert_eq!(any.binds, addresses("0.0.0.0"));
        assert_eq!(unresolved("listen").text, "-listen value did not resolve to an IP address");
    }

    #[test]
    fn local_ports_are_used_from_the_second_one_on() {
        let ports = Span { low: 5000, high: 5002 };
        let used = (0..5).map(|number| local_port(ports, number));
        assert_eq!(used.collect::<Vec<_>>(), [5001, 5002, 5000, 5001, 5002]);
        assert_eq!(local_port(Span::of(7), 9), 7);
    }

    #[test]
    fn addresses_are_used_in_turn() {
        let matched =
            match_families(&addresses("1.0.0.1 ::1 1.0.0.2"), &addresses("2.0.0.1 ::2")).unwrap();
        let pairs: Vec<_> = (0..4).filter_map(|number| matched.pair(number)).collect();
        let targets: Vec<_> = pairs.iter().map(|(_, target)| *target).collect();
        assert_eq!(targets, ["1.0.0.1", "::1", "1.0.0.2", "::1"].map(address));
        assert!(pairs.iter().all(|(bind, target)| bind.is_ipv4() == target.is_ipv4()));
    }
}
