//! Local addresses, as they are typed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linerate_measure::plan::{LocalAddress, limits};

use crate::args::values;

/// The local addresses that connections have in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources(Vec<LocalAddress>);

impl Sources {
    /// Parses addresses and prefixes, with commas between them. A prefix such as `127.0.0.0/29`
    /// stands for its host addresses, the first 256 at most: all but the network's and the
    /// broadcast address (RFC 1122, section 3.2.1.3), or the subnet-router anycast address
    /// (RFC 4291, section 2.6.1); both of a point-to-point link's (RFC 3021, RFC 6164).
    ///
    /// # Errors
    /// Shows the text and the grammar.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut addresses = Vec::new();
        for part in text.split(',') {
            match part.split_once('/') {
                None => addresses.push(values::address(part)?),
                Some((address, length)) => addresses.extend(parse_prefix(part, address, length)?),
            }
        }
        let most = limits::BINDS;
        if addresses.len() > most {
            return Err(format!("{} addresses: name at most {most}", addresses.len()));
        }
        Ok(Self(addresses))
    }

    /// The addresses, in the order in which flows have them.
    pub fn addresses(&self) -> &[LocalAddress] {
        &self.0
    }
}

fn parse_prefix(text: &str, address: &str, length: &str) -> Result<Vec<LocalAddress>, String> {
    let wrong = || format!("'{text}' is no prefix: give one such as 192.0.2.0/28");
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let bits: u32 = if address.is_ipv4() { 32 } else { 128 };
    let length: u32 = length.parse().map_err(|_| wrong())?;
    let host_bits = bits.checked_sub(length).ok_or_else(wrong)?;
    let all = 1_u128.checked_shl(host_bits).map_or(u128::MAX, |count| count - 1);
    let number = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    if number & all != 0 {
        return Err(format!("'{text}' is no prefix: bits behind the first {length} are set"));
    }
    let (first, last) = match (address, host_bits) {
        (_, 0 | 1) => (number, number | all),
        (IpAddr::V4(_), _) => (number + 1, (number | all) - 1),
        (IpAddr::V6(_), _) => (number + 1, number | all),
    };
    Ok((first..=last).take(limits::BINDS).map(|host| of_family(address, host)).collect())
}

fn of_family(family: IpAddr, number: u128) -> LocalAddress {
    match family {
        // The number came from 32 bits and stays in its prefix.
        IpAddr::V4(_) => {
            IpAddr::from(Ipv4Addr::from_bits(u32::try_from(number).unwrap_or(u32::MAX))).into()
        }
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::from_bits(number)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<String> {
        Sources::parse(text).unwrap().addresses().iter().map(LocalAddress::to_string).collect()
    }

    #[test]
    fn addresses_and_prefixes() {
        assert_eq!(parsed("192.0.2.7"), ["192.0.2.7"]);
        assert_eq!(parsed("192.0.2.7,192.0.2.9"), ["192.0.2.7", "192.0.2.9"]);
        assert_eq!(parsed("2001:db8::1"), ["2001:db8::1"]);
        assert_eq!(parsed("fe80::1%eth0,fe80::2%eth1"), ["fe80::1%eth0", "fe80::2%eth1"]);
        let six: Vec<String> = (1..=6).map(|host| format!("127.0.0.{host}")).collect();
        assert_eq!(parsed("127.0.0.0/29"), six);
        assert_eq!(parsed("192.0.2.2/31"), ["192.0.2.2", "192.0.2.3"]);
        assert_eq!(parsed("192.0.2.2/32"), ["192.0.2.2"]);
        assert_eq!(parsed("2001:db8::/126"), ["2001:db8::1", "2001:db8::2", "2001:db8::3"]);
        assert_eq!(parsed("::/0").len(), 256);
        assert_eq!(parsed("10.0.0.0/8").last().unwrap(), "10.0.1.0");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            ",",
            "a",
            "127.0.0.1/",
            "127.0.0.1/29",
            "127.0.0.0/33",
            "::/129",
            "/8",
            "fe80::%a/64",
        ] {
            assert!(Sources::parse(text).is_err(), "{text:?}");
        }
        assert!(Sources::parse("10.0.0.0/8,192.0.2.1").unwrap_err().contains("257"));
    }
}
