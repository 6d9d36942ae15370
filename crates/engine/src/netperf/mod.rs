//! The netperf dialect over sockets: a client that tests against a netserver, and a netserver that
//! many clients test against at once.
//!
//! The conversation is [`wire::netperf`](linerate_wire::netperf)'s; the bytes are moved by the same
//! flows that carry native loads. `docs/compat/netperf.md` says what is like the original and what
//! isn't.

mod client;
mod client_test;
mod control;
mod data;
mod figures;
mod filling;
mod job;
mod listening;
mod liveness;
mod lives;
mod observer;
mod opening;
mod outcome;
mod plan;
mod processor;
mod request;
mod server;
mod server_test;
mod session;
mod spinners;
mod test_context;
mod timing;
mod waiting;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use crate::error::Error;

pub use crate::socket::TcpFigures;
pub use client::{Client, run, run_alone};
pub use observer::Asked;
pub use outcome::{Calibration, Outcome};
pub use plan::{
    ControlPlan, Dirt, EndPlan, Pacing, TestEnd, TestKind, TestOptions, TestPlan, TestTransport,
};
pub use processor::local_calibration;
pub use server::{Server, ServerOptions};

/// The number of the error with which the server has refused something, of errno(3), or 998 for a
/// test that it doesn't know; `None` where the error is another one.
pub fn remote_errno(error: &Error) -> Option<i32> {
    let Error::Peer(text) = error else { return None };
    let (_, number) = text.split_once("remote error ")?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The address that stands for all of a machine's.
fn unspecified(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// The interface of an address, by its number; 0 for none.
pub fn interface(address: SocketAddr) -> u32 {
    match address {
        SocketAddr::V6(address) => address.scope_id(),
        SocketAddr::V4(_) => 0,
    }
}

/// The address as it is reached over an interface, where it names none. So the address of one end has with it
/// the interface of the other's, which may be link-local where it itself isn't.
pub fn over_interface(address: SocketAddr, interface: u32) -> SocketAddr {
    match address {
        SocketAddr::V6(plain) if plain.scope_id() == 0 => {
            SocketAddrV6::new(*plain.ip(), plain.port(), 0, interface).into()
        }
        _ => address,
    }
}

/// A port of an address. A link-local address is of one interface only, which neither messages nor plans
/// have a word for: it is the one that the control connection goes over.
fn address_beside(address: IpAddr, port: u16, control: SocketAddr) -> SocketAddr {
    match (address, control) {
        (IpAddr::V6(address), SocketAddr::V6(control)) if address.is_unicast_link_local() => {
            SocketAddrV6::new(address, port, 0, control.scope_id()).into()
        }
        _ => SocketAddr::new(address, port),
    }
}

#[cfg(test)]
mod tests {
    use super::{address_beside, interface, over_interface};

    #[test]
    fn a_link_local_address_stays_on_the_interface_of_the_control_connection() {
        let over = |control: &str, address: &str| {
            address_beside(address.parse().unwrap(), 7, control.parse().unwrap()).to_string()
        };
        assert_eq!(over("[fe80::1%3]:12865", "fe80::1"), "[fe80::1%3]:7");
        assert_eq!(over("[fe80::1%3]:12865", "fe80::2"), "[fe80::2%3]:7");
        assert_eq!(over("[fe80::1%3]:12865", "2001:db8::1"), "[2001:db8::1]:7");
        assert_eq!(over("[2001:db8::1]:12865", "fe80::1"), "[fe80::1]:7");
        assert_eq!(over("10.0.0.1:12865", "10.0.0.2"), "10.0.0.2:7");
    }

    #[test]
    fn the_interface_of_the_local_address_counts_where_the_remote_one_has_none() {
        let over = |remote: &str, local: &str| {
            let local = interface(local.parse().unwrap());
            over_interface(remote.parse().unwrap(), local).to_string()
        };
        assert_eq!(over("[2001:db8::1]:7", "[fe80::1%3]:0"), "[2001:db8::1%3]:7");
        assert_eq!(over("[fe80::2]:7", "[fe80::1%3]:0"), "[fe80::2%3]:7");
        assert_eq!(over("[fe80::2%4]:7", "[fe80::1%3]:0"), "[fe80::2%4]:7");
        assert_eq!(over("[2001:db8::1]:7", "[2001:db8::2]:0"), "[2001:db8::1]:7");
        assert_eq!(over("10.0.0.1:7", "[fe80::1%3]:0"), "10.0.0.1:7");
        assert_eq!(over("[2001:db8::1]:7", "10.0.0.1:0"), "[2001:db8::1]:7");
    }
}
