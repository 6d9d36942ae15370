//! Local addresses with the interface that is part of them.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use linerate_measure::plan::LocalAddress;
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Socket, Type};

/// What a socket binds to for an address: any port, and the number of the interface that the address names. ENODEV:
/// there is no such interface.
pub fn local_socket_address(address: &LocalAddress, port: u16) -> io::Result<SocketAddr> {
    match (address.ip, &address.interface) {
        (IpAddr::V6(ip), Some(interface)) => {
            Ok(SocketAddrV6::new(ip, port, 0, interface_number(interface)?).into())
        }
        (ip, _) => Ok(SocketAddr::new(ip, port)),
    }
}

fn interface_number(interface: &str) -> io::Result<u32> {
    if let Ok(number) = interface.parse() {
        return Ok(number);
    }
    let any = Socket::new(Domain::IPV6, Type::DGRAM, None)?;
    Ok(name_to_index(&any, interface)?)
}
