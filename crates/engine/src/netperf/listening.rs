//! Where a netserver listens.

use std::io;
use std::net::SocketAddr;

use socket2::{Protocol, Socket};

use crate::error::Error;
use crate::socket::{listen_at, unbound_listener};

/// Ports tried where any will do, until one is free at all the addresses.
const MOST_PORTS: u32 = 64;

/// What listens, and why nothing does elsewhere.
#[derive(Debug)]
pub(super) struct Listening<L> {
    pub(super) listeners: Vec<L>,
    pub(super) lacking: Vec<Error>,
}

/// At all the addresses, but for those that this machine doesn't have or whose family the kernel doesn't, unless
/// there is no other. Port 0 becomes the same port everywhere, as clients get one number.
///
/// `listen` says the port, too.
///
/// # Errors
///
/// When it can't listen at one of the addresses for another reason, or at any.
pub(super) fn listen_everywhere<L>(
    addresses: &[SocketAddr],
    listen: impl Fn(SocketAddr) -> io::Result<(L, u16)>,
) -> Result<Listening<L>, Error> {
    let mut ports_left = MOST_PORTS;
    loop {
        ports_left -= 1;
        match listen_once(addresses, &listen) {
            Err((_, true)) if ports_left > 0 => {}
            Err((error, _)) => return Err(error),
            Ok(mut found) if found.listeners.is_empty() && !found.lacking.is_empty() => {
                return Err(found.lacking.swap_remove(0));
            }
            Ok(found) => return Ok(found),
        }
    }
}

/// Likewise, with the first port that comes where any will do. A failure says whether another may do better.
fn listen_once<L>(
    addresses: &[SocketAddr],
    listen: &impl Fn(SocketAddr) -> io::Result<(L, u16)>,
) -> Result<Listening<L>, (Error, bool)> {
    let (mut listeners, mut lacking) = (Vec::new(), Vec::new());
    let mut chosen_port = 0;
    for asked in addresses {
        let (mut address, takes_any) = (*asked, asked.port() == 0);
        if takes_any {
            address.set_port(chosen_port);
        }
        match listen(address) {
            Ok((listener, port)) => {
                listeners.push(listener);
                if takes_any {
                    chosen_port = port;
                }
            }
            Err(source) => {
                let is_lacking = is_lacking(&source);
                let is_taken = source.kind() == io::ErrorKind::AddrInUse;
                let error =
                    Error::Io { operation: "listen on", address: address.to_string(), source };
                if !is_lacking {
                    return Err((error, takes_any && is_taken));
                }
                lacking.push(error);
            }
        }
    }
    Ok(Listening { listeners, lacking })
}

fn is_lacking(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL))
}

/// A socket that listens at an address, and its port.
///
/// # Errors
///
/// What the system says.
pub(super) fn listen(address: SocketAddr) -> io::Result<(Socket, u16)> {
    let socket = unbound_listener(Protocol::TCP, address, None, address.is_ipv6())?;
    listen_at(&socket, address)?;
    let port = socket.local_addr()?.as_socket().map_or(address.port(), |bound| bound.port());
    Ok((socket, port))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// The ports that are listened on where every address fails that has such a number, and what is said
    /// of those that are done without.
    fn ports(texts: &[&str], errors: &[(u16, i32)]) -> Result<(Vec<u16>, String), Error> {
        let found = listen_everywhere(&addresses(texts), |address| {
            match errors.iter().find(|(port, _)| *port == address.port()) {
                Some((_, number)) => Err(io::Error::from_raw_os_error(*number)),
                None => Ok((address.port(), address.port())),
            }
        })?;
        let lacking: Vec<String> = found.lacking.iter().map(Error::to_string).collect();
        Ok((found.listeners, lacking.join(", ")))
    }

    #[test]
    fn an_address_or_a_family_that_this_machine_lacks_is_done_without() {
        let both = ["[::]:1", "0.0.0.0:2"];
        assert_eq!(ports(&both, &[]).unwrap(), (vec![1, 2], String::new()));
        for (number, left) in [(1, 2), (2, 1)] {
            for error in [libc::EAFNOSUPPORT, libc::EADDRNOTAVAIL] {
                let (listened, lacking) = ports(&both, &[(number, error)]).unwrap();
                assert_eq!(listened, [left]);
                assert!(lacking.contains(both[usize::from(number) - 1]), "{lacking}");
            }
        }
        let none = ports(&both, &[(1, libc::EAFNOSUPPORT), (2, libc::EAFNOSUPPORT)]);
        assert!(none.unwrap_err().to_string().contains("[::]:1"));
        assert!(ports(&both[..1], &[(1, libc::EAFNOSUPPORT)]).is_err());
    }

    #[test]
    fn any_other_failure_to_listen_is_told() {
        let taken = ports(&["[::]:1", "0.0.0.0:2"], &[(2, libc::EADDRINUSE)]);
        assert!(taken.unwrap_err().to_string().contains("0.0.0.0:2"));
    }

    #[test]
    fn any_port_is_one_that_is_free_at_all_addresses() {
        let next = Cell::new(100);
        let listen = |first_free: u16, address: SocketAddr| {
            let port =
                if address.port() > 0 { address.port() } else { next.replace(next.get() + 1) };
            if address.is_ipv4() && port < first_free {
                return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
            }
            Ok((port, port))
        };
        let three = addresses(&["[::1]:0", "127.0.0.1:0", "127.0.0.2:0"]);
        let found = listen_everywhere(&three, |address| listen(103, address)).unwrap();
        assert_eq!(found.listeners, [103, 103, 103]);
        // Somewhere they end.
        let none = listen_everywhere(&three, |address| listen(u16::MAX, address));
        assert!(none.unwrap_err().to_string().contains("127.0.0.1:"));
    }

    #[test]
    fn the_system_gives_all_addresses_one_port() {
        let found = listen_everywhere(&addresses(&["127.0.0.1:0", "127.0.0.2:0"]), listen).unwrap();
        let ports: Vec<u16> = found
            .listeners
            .iter()
            .map(|listener| listener.local_addr().unwrap().as_socket().unwrap().port())
            .collect();
        assert!(ports[0] > 0 && ports[0] == ports[1], "{ports:?}");
    }
}
