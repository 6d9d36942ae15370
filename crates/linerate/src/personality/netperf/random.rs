//! Random numbers: for hosts of a network, UUIDs and names of files.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linerate_engine::error::Error;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// A number of 128 bits from the kernel's generator, which needs no device file (a root directory of
/// its own may have none).
pub(super) fn draw() -> io::Result<u128> {
    let mut bytes = [0u8; 16];
    loop {
        // Up to 256 bytes come whole (getrandom(2)); a signal can interrupt the wait for the first ones.
        match getrandom(&mut bytes, GetRandomFlags::empty()) {
            Ok(_) => return Ok(u128::from_be_bytes(bytes)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The address with all but its first bits random; absent: as it is.
pub(super) fn draw_host(address: IpAddr, fixed_bits: Option<u32>) -> Result<IpAddr, Error> {
    let Some(fixed_bits) = fixed_bits else { return Ok(address) };
    let random = draw().map_err(failed)?;
    Ok(match address {
        IpAddr::V4(v4) => {
            let host = u32::MAX.checked_shr(fixed_bits).unwrap_or(0);
            Ipv4Addr::from_bits((v4.to_bits() & !host) | (random as u32 & host)).into()
        }
        IpAddr::V6(v6) => {
            let host = u128::MAX.checked_shr(fixed_bits).unwrap_or(0);
            Ipv6Addr::from_bits((v6.to_bits() & !host) | (random & host)).into()
        }
    })
}

/// A random UUID (RFC 9562, version 4).
pub(super) fn fresh_uuid() -> Result<String, Error> {
    let mut number = draw().map_err(failed)?;
    number = (number & !(0xf << 76)) | (0x4 << 76);
    number = (number & !(0x3 << 62)) | (0x2 << 62);
    let digits = format!("{number:032x}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if matches!(place, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    Ok(text)
}

fn failed(source: io::Error) -> Error {
    Error::Io { operation: "draw", address: "getrandom".to_owned(), source }
}
