//! QUIC from a source address that can't be answered.

use crate::skipped::skip;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};

use crate::dialect::{Dialect, Host};
use crate::quic_packets::Opening;
use crate::random::Random;

/// Nothing can be sent to port 0, from which anybody can send.
#[test]
fn first_packets_from_port_0_end_no_server() {
    let raw = match socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::UDP)) {
        Ok(raw) => raw,
        Err(error) => return skip(&format!("a raw socket needs root: {error}")),
    };
    let host = Host::start(Dialect::Quic);
    let mut random = Random::draw("nowhere");
    let opening = Opening::new(&mut random);
    for number in 0..8 {
        let packet = opening.packet(random.number().to_be_bytes(), number, &opening.frames);
        // Both ports, the length, and no checksum (RFC 768).
        let length = u16::try_from(8 + packet.len()).unwrap();
        let header = [0, host.port, length, 0].map(u16::to_be_bytes).concat();
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        // One after the other, so that each thread of the server has some.
        std::thread::sleep(Duration::from_millis(50));
        sendto(&raw, &[header, packet].concat(), SendFlags::empty(), &to).unwrap();
    }
    host.assert_serves();
}
