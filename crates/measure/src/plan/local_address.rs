//! An address of this machine, as it is typed.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An address of this machine, and its interface where that is part of it: IPv6's link-local addresses are of one
/// interface alone (RFC 4007, section 6). As text `192.0.2.1`, `2001:db8::1` or `fe80::1%eth0`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct LocalAddress {
    /// The address.
    pub ip: IpAddr,
    /// The interface's name or number.
    pub interface: Option<String>,
}

impl LocalAddress {
    /// Whether it is of IPv4.
    pub fn is_ipv4(&self) -> bool {
        self.ip.is_ipv4()
    }

    /// Whether it is of one interface alone, which is not named.
    pub fn lacks_interface(&self) -> bool {
        self.interface.is_none() && is_link_local(self.ip)
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

impl From<IpAddr> for LocalAddress {
    fn from(ip: IpAddr) -> Self {
        Self { ip, interface: None }
    }
}

impl FromStr for LocalAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (ip, interface) = match text.split_once('%') {
            Some((ip, interface)) => (ip, Some(interface)),
            None => (text, None),
        };
        let ip: IpAddr = ip.parse().map_err(|_| {
            format!(
                "'{text}' is no address: give one of this machine, such as 192.0.2.1, 2001:db8::1 or fe80::1%eth0"
            )
        })?;
        match interface {
            None => Ok(ip.into()),
            Some("") => Err(format!("'{text}' names no interface: give one as in fe80::1%eth0")),
            Some(_) if !is_link_local(ip) => Err(format!(
                "'{text}' names an interface, and {ip} is no link-local address (fe80::/10): leave out the interface"
            )),
            Some(interface) => Ok(Self { ip, interface: Some(interface.to_owned()) }),
        }
    }
}

impl fmt::Display for LocalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.interface {
            None => self.ip.fmt(f),
            Some(interface) => write!(f, "{}%{interface}", self.ip),
        }
    }
}

impl TryFrom<String> for LocalAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<LocalAddress> for String {
    fn from(address: LocalAddress) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_as_it_was_written() {
        for text in ["192.0.2.1", "2001:db8::1", "fe80::1", "fe80::1%eth0", "febf::1%3"] {
            let address: LocalAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            let json = serde_json::to_string(&address).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<LocalAddress>(&json).unwrap(), address);
            assert_eq!(address.lacks_interface(), text == "fe80::1");
        }
    }

    #[test]
    fn only_a_link_local_address_has_an_interface() {
        for text in ["", "a", "192.0.2.1%eth0", "2001:db8::1%eth0", "fe80::1%", "%eth0"] {
            assert!(text.parse::<LocalAddress>().is_err(), "{text:?}");
        }
    }
}
