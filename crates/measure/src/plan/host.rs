//! The server as it is written: a name or an address, and perhaps a port.

use std::net::{IpAddr, Ipv6Addr};

use super::Family;

/// A host, and the port if one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A name, an IPv4 address, or an IPv6 address without brackets.
    pub host: String,
    /// The port, where one was given.
    pub port: Option<u16>,
}

/// The longest name that DNS can hold (RFC 1035, section 2.3.4).
const NAME_LENGTH_MAX: usize = 253;

impl HostPort {
    /// Parses `name`, `name:port`, an IPv4 address with or without a port, an IPv6 address, and
    /// `[IPv6]` with or without a port (RFC 3986, section 3.2.2). An IPv6 address may name its
    /// interface after a `%` (RFC 4007, section 11).
    ///
    /// # Errors
    /// Says what the text looks like and what is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return Err(format!("'{text}' is a URL: give the host alone, such as example.net"));
        }
        if let Some(rest) = text.strip_prefix('[') {
            return parse_bracketed(text, rest);
        }
        if is_ipv6(text) {
            return Ok(Self { host: text.to_owned(), port: None });
        }
        match text.split_once(':') {
            None => Ok(Self { host: parse_name(text)?, port: None }),
            Some((_, rest)) if rest.contains(':') => Err(format!(
                "'{text}' is no IPv6 address; one with a port is written [2001:db8::1]:5250"
            )),
            Some((name, port)) => {
                Ok(Self { host: parse_name(name)?, port: Some(parse_port(port)?) })
            }
        }
    }

    /// The address family, where the host is an address.
    pub fn family(&self) -> Option<Family> {
        if is_ipv6(&self.host) {
            return Some(Family::Ipv6);
        }
        match self.host.parse::<IpAddr>() {
            Ok(_) => Some(Family::Ipv4),
            Err(_) => None,
        }
    }
}

/// A port.
///
/// # Errors
/// Where it isn't a whole number from 1 to 65535.
pub fn parse_port(text: &str) -> Result<u16, String> {
    match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("'{text}' is no port: give a whole number, 1 to 65535")),
    }
}

fn parse_bracketed(text: &str, rest: &str) -> Result<HostPort, String> {
    let wrong = || {
        format!("'{text}' is no host: write an IPv6 address between the brackets, as in [::1]:5250")
    };
    let (address, after) = rest.split_once(']').ok_or_else(wrong)?;
    if !is_ipv6(address) {
        return Err(wrong());
    }
    let port = match after.strip_prefix(':') {
        Some(port) => Some(parse_port(port)?),
        None if after.is_empty() => None,
        None => return Err(wrong()),
    };
    Ok(HostPort { host: address.to_owned(), port })
}

fn is_ipv6(text: &str) -> bool {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    address.parse::<Ipv6Addr>().is_ok() && zone.is_none_or(|zone| !zone.is_empty())
}

/// Only what no resolver could take is refused here: the resolver has the last word.
fn parse_name(text: &str) -> Result<String, String> {
    let strange = |c: char| c.is_whitespace() || c.is_control() || "/@[]%?#\\\"'".contains(c);
    if text.is_empty() {
        Err("the host is empty: give a name or an address".to_owned())
    } else if text.starts_with('-') || text.contains(strange) || text.len() > NAME_LENGTH_MAX {
        Err(format!(
            "'{}' is no host: give a name of at most {NAME_LENGTH_MAX} letters, or an address",
            text.escape_debug()
        ))
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<u16>) {
        let parsed = HostPort::parse(text).unwrap();
        (parsed.host, parsed.port)
    }

    #[test]
    fn names_and_addresses_with_and_without_a_port() {
        for (text, host, port) in [
            ("example.net", "example.net", None),
            ("example.net:5251", "example.net", Some(5251)),
            ("192.0.2.1", "192.0.2.1", None),
            ("192.0.2.1:1", "192.0.2.1", Some(1)),
            ("::1", "::1", None),
            ("2001:db8::1", "2001:db8::1", None),
            ("fe80::1%eth0", "fe80::1%eth0", None),
            ("[::1]", "::1", None),
            ("[::1]:65535", "::1", Some(65535)),
            ("[fe80::1%eth0]:5250", "fe80::1%eth0", Some(5250)),
            ("my_host-1", "my_host-1", None),
        ] {
            assert_eq!(parsed(text), (host.to_owned(), port), "{text}");
        }
    }

    #[test]
    fn invalid_host_is_refused() {
        for text in [
            "",
            ":5250",
            "a:",
            "a:0",
            "a:65536",
            "a:-1",
            "a:b:c",
            "[::1",
            "[::1]5250",
            "[a]:1",
            "a b",
            "http://a/",
            "a/b",
            "me@a",
            "-x",
            "[]:1",
            "fe80::1%",
            "1:2:3",
            "a\n",
        ] {
            assert!(HostPort::parse(text).is_err(), "{text:?}");
        }
        assert!(HostPort::parse(&"a".repeat(254)).is_err());
    }

    #[test]
    fn an_address_has_a_family_and_a_name_has_none() {
        assert_eq!(HostPort::parse("[::1]:1").unwrap().family(), Some(Family::Ipv6));
        assert_eq!(HostPort::parse("fe80::1%lo").unwrap().family(), Some(Family::Ipv6));
        assert_eq!(HostPort::parse("192.0.2.1").unwrap().family(), Some(Family::Ipv4));
        assert_eq!(HostPort::parse("example.net").unwrap().family(), None);
    }
}
