//! Reaching the server.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::plan::Plan;
use linerate_measure::{Kind, SocketOptions, Transport};
use rustix::event::{PollFd, PollFlags};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection};
use socket2::Socket;

use crate::access::Authority;
use crate::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns};
use crate::control::{TlsChannel, control_client, server_name};
use crate::error::Error;
use crate::event::Cancel;
use crate::load::quic_sockets;
use crate::poll::poll_until;
use crate::probe::processors;
use crate::resolve;
use crate::socket::{Binding, connect_stream, local_socket_address, try_binding, try_port};

/// How long one address is tried.
pub(super) const CONNECT_NS: u64 = 5 * SECOND_NS;
/// How long a wait lasts before it is seen whether the user wants to stop.
pub(super) const LOOK_NS: u64 = 50 * MILLISECOND_NS;

/// What the socket of a flow is bound to; the control connection's, too, is the first one's.
pub(super) fn binding(plan: &Plan, flow: u32) -> io::Result<Binding> {
    let binds = &plan.local.binds;
    let bind = binds.get(flow as usize % binds.len().max(1));
    let bind = bind.map(|address| local_socket_address(address, 0)).transpose()?;
    Ok(Binding { bind, device: plan.local.bind_device.clone() })
}

/// Looks, before anything is measured, whether the local addresses that the load will use are this
/// machine's: connections that come and go would count one that isn't as so many failures.
pub(super) fn check_binds(plan: &Plan) -> Result<(), Error> {
    let (workload, binds) = (&plan.workload, &plan.local.binds);
    let used = match workload.kind {
        _ if workload.transport == Transport::Quic => {
            quic_sockets(workload, processors(&plan.local.cpus))
        }
        Kind::Connect { .. } => u32::MAX,
        Kind::Stream { .. } | Kind::Rr { .. } => workload.total_flows(),
    };
    for (flow, address) in (0..used).zip(binds) {
        let tried = binding(plan, flow).and_then(|binding| try_binding(&binding));
        let why = match tried.map_err(|error| error.raw_os_error()) {
            Err(Some(libc::EADDRNOTAVAIL)) => {
                "isn't an address of this machine (--bind): `ip address` lists its addresses"
            }
            Err(Some(libc::ENODEV)) if plan.local.bind_device.is_none() => {
                "names an interface that this machine doesn't have (--bind): `ip address` lists them"
            }
            Err(Some(libc::EINVAL)) if address.lacks_interface() => {
                "is a link-local address (--bind): give its interface too, as in fe80::1%eth0"
            }
            // Whatever else is wrong is told where it is met.
            _ => continue,
        };
        return Err(Error::Host(format!("{address} {why}")));
    }
    Ok(())
}

/// Looks, before anything is measured, whether this user may use the lowest of the local ports that connections
/// are to come from: without the privilege each of them would be one failure.
pub(super) fn check_source_ports(plan: &Plan) -> Result<(), Error> {
    let Some((first, last)) = plan.local.source_ports else { return Ok(()) };
    let tried = binding(plan, 0).and_then(|binding| try_port(binding.bind, first));
    match tried.map_err(|error| error.kind()) {
        Err(io::ErrorKind::PermissionDenied) => Err(Error::Host(format!(
            "this user may not use port {first} (--source-ports {first}-{last}): choose ports from {} on, or \
             run with the privilege (CAP_NET_BIND_SERVICE)",
            first_unprivileged_port()
        ))),
        // Whatever else is wrong is told where it is met.
        _ => Ok(()),
    }
}

/// The first port that every user may use (ip(7)).
fn first_unprivileged_port() -> u16 {
    let told = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    told.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1024)
}

/// The local addresses of connections, as sockets take them.
pub(super) fn local_addresses(plan: &Plan) -> Result<Vec<SocketAddr>, Error> {
    let binds = plan.local.binds.iter();
    let addresses: io::Result<Vec<_>> = binds.map(|bind| local_socket_address(bind, 0)).collect();
    addresses.map_err(|error| {
        Error::Host(format!(
            "a local address can't be used any more (--bind): \
         {error}"
        ))
    })
}

/// What to say where a load over QUIC, of which each thread has one socket, leaves local addresses unused.
pub(super) fn unused_binds(plan: &Plan, quic_sockets: u32) -> Option<String> {
    let given = plan.local.binds.len();
    let unused = plan.workload.transport == Transport::Quic && given > quic_sockets as usize;
    unused.then(|| {
        format!(
            "over QUIC each thread has one local address: {quic_sockets} of the {given} addresses of \
             --bind are used"
        )
    })
}

/// Connects to the server and begins TLS; returns the address that answered.
pub(super) fn dial(
    plan: &Plan,
    authority: Option<&Authority>,
    cancel: &Cancel,
) -> Result<(SocketAddr, TlsChannel), Error> {
    let mut last = None;
    for address in addresses(plan)? {
        match connect(address, plan, cancel) {
            Ok(socket) => {
                socket.set_tcp_nodelay(true).map_err(|e| unreachable_error(address, &e))?;
                return Ok((address, TlsChannel::new(socket, session(&plan.host, authority)?)));
            }
            Err(Error::Unreachable(why)) => last = Some(Error::Unreachable(why)),
            Err(other) => return Err(other),
        }
    }
    Err(last.unwrap_or_else(|| no_address(plan)))
}

fn session(host: &str, authority: Option<&Authority>) -> Result<Connection, Error> {
    let failed = |error: rustls::Error| Error::Host(format!("can't begin TLS: {error}"));
    let name = match authority {
        None => server_name(),
        Some(_) => ServerName::try_from(host.to_owned()).map_err(|_| {
            Error::Plan(format!(
                "no certificate can be for the host \"{host}\": give the name that the server's \
                 certificate has, or leave out --ca"
            ))
        })?,
    };
    let config = Arc::new(control_client(authority)?);
    ClientConnection::new(config, name).map(Connection::from).map_err(failed)
}

fn addresses(plan: &Plan) -> Result<Vec<SocketAddr>, Error> {
    let found = resolve::resolve(&plan.host, plan.port, plan.family);
    let mut found = found.map_err(|error| resolve::unknown_host(&plan.host, &error))?;
    let bind = plan.local.binds.first();
    found.retain(|address| bind.is_none_or(|bind| bind.is_ipv4() == address.is_ipv4()));
    if found.is_empty() { Err(no_address(plan)) } else { Ok(found) }
}

fn no_address(plan: &Plan) -> Error {
    resolve::no_address(&plan.host, "-4, -6 and --bind")
}

/// Segments of the control connection, both ways: with IPv6's and TCP's headers they fit a link of the least MTU,
/// 1,280 bytes (RFC 8200, section 5). Where larger packets vanish unsaid, a test whose own packets fit keeps its result.
const CONTROL_MSS_BYTES: u32 = 1_200;

fn connect(address: SocketAddr, plan: &Plan, cancel: &Cancel) -> Result<Socket, Error> {
    let io = |source: io::Error| local_or_remote(address, source);
    let options = SocketOptions { mss_bytes: Some(CONTROL_MSS_BYTES), ..SocketOptions::default() };
    let socket = binding(plan, 0)
        .and_then(|binding| connect_stream(address, &binding, &options))
        .map_err(io)?;
    let deadline_ns = monotonic_ns() + CONNECT_NS;
    loop {
        if cancel.requested() {
            return Err(Error::Interrupted);
        }
        let mut polled = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)];
        if poll_until(&mut polled, monotonic_ns() + LOOK_NS) {
            return match socket.take_error() {
                Ok(None) => Ok(socket),
                Ok(Some(error)) | Err(error) => Err(io(error)),
            };
        }
        if monotonic_ns() > deadline_ns {
            let seconds = Duration::from_nanos(CONNECT_NS).as_secs();
            return Err(Error::Unreachable(format!(
                "{address} doesn't answer (no answer in {seconds} s): is the host up, and does a \
                 firewall let TCP port {} pass?",
                address.port()
            )));
        }
    }
}

/// Whether a failed connect is this machine's fault (a bad --bind) or the path's.
fn local_or_remote(address: SocketAddr, error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => Error::Host(format!(
            "can't connect to {address} from the address given with --bind: this machine doesn't have \
             that address ({error})"
        )),
        // Of UDP the kernel says that there is nothing for now.
        Some(libc::EADDRINUSE | libc::EAGAIN) => Error::Host(format!(
            "no local port is left for another connection to {address} ({error}): give several \
             local addresses with --bind (A,B or a prefix), each of which has ports of its own, \
             or widen net.ipv4.ip_local_port_range"
        )),
        Some(libc::ENODEV) => Error::Host(format!(
            "can't connect to {address}: there is no such network device (--bind-device)"
        )),
        Some(libc::EPERM | libc::EACCES) => Error::Host(format!(
            "this machine doesn't allow connections to {address} ({error}): check its firewall, and \
             privileges for --bind-device"
        )),
        Some(libc::EMFILE | libc::ENFILE) => Error::Host(format!(
            "can't open another socket ({error}): ask for fewer --flows, or raise the limit \
             (ulimit -n)"
        )),
        _ => unreachable_error(address, &error),
    }
}

fn unreachable_error(address: SocketAddr, error: &io::Error) -> Error {
    let way_out = match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "nothing listens there: start `linerate serve` on that host, or give its port with \
             --port"
        }
        _ => "check the address and the route to it",
    };
    Error::Unreachable(format!("can't connect to {address} ({error}): {way_out}"))
}

/// An error of a connection that belongs to a flow.
pub(super) fn flow_error(address: SocketAddr, error: io::Error) -> Error {
    local_or_remote(address, error)
}
