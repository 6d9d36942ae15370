//! Sockets of control connections and streams, with the options that parameters ask for.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use linerate_wire::iperf3::{Code, Parameters, Protocol};
use rustix::net::sockopt;
use socket2::{Domain, Protocol as Transport, Socket, Type};

use super::Failure;
use crate::socket::{everywhere, lease_flow_label, plain, set_unfragmented};

/// What sockets are bound to.
#[derive(Clone, Debug, Default)]
pub(super) struct Local {
    /// Its port doesn't count.
    pub(super) address: Option<SocketAddr>,
    pub(super) port: Option<u16>,
    pub(super) device: Option<String>,
}

/// A connection on its way to `remote`; it doesn't block.
pub(super) fn connect(
    remote: SocketAddr,
    local: &Local,
    parameters: Option<&Parameters>,
    refusal: Code,
) -> Result<Socket, Failure> {
    let failed = |error: io::Error| Failure::system(refusal, &error);
    let socket = match parameters.filter(|parameters| parameters.mptcp) {
        Some(_) => open_multipath(remote, refusal)?,
        None => Socket::new(Domain::for_address(remote), Type::STREAM, Some(Transport::TCP))
            .map_err(failed)?,
    };
    socket.set_nonblocking(true).map_err(failed)?;
    bind(&socket, remote, local).map_err(failed)?;
    if let Some(parameters) = parameters {
        // Segment and window are agreed in the handshake.
        if let Some(mss) = parameters.mss_bytes {
            socket.set_tcp_mss(mss).map_err(|error| Failure::system(Code::SET_MSS, &error))?;
        }
        set_options(&socket, remote, parameters)?;
        set_congestion(&socket, parameters)
            .map_err(|error| Failure::system(Code::CONGESTION, &error))?;
    }
    let remote = labelled(&socket, remote, parameters)?;
    match socket.connect(&remote.into()) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(error) => Err(failed(error)),
    }
}

fn open_multipath(remote: SocketAddr, refusal: Code) -> Result<Socket, Failure> {
    let socket = Socket::new(Domain::for_address(remote), Type::STREAM, Some(Transport::MPTCP));
    socket.map_err(|error| {
        Failure::of(refusal).because(format!(
            "this host has no MPTCP ({error}): set net.mptcp.enabled to 1 where its kernel can, or \
             leave out -m"
        ))
    })
}

/// A socket of datagrams connected to `remote`.
pub(super) fn connect_datagrams(
    remote: SocketAddr,
    local: &Local,
    parameters: &Parameters,
) -> Result<Socket, Failure> {
    let failed = |error: io::Error| Failure::system(Code::STREAM_CONNECT, &error);
    let socket = Socket::new(Domain::for_address(remote), Type::DGRAM, Some(Transport::UDP))
        .map_err(failed)?;
    bind(&socket, remote, local).map_err(failed)?;
    set_options(&socket, remote, parameters)?;
    let remote = labelled(&socket, remote, Some(parameters))?;
    socket.connect(&remote.into()).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    Ok(socket)
}

/// The address with the flow label that is asked for; only IPv6 has such.
fn labelled(
    socket: &Socket,
    remote: SocketAddr,
    parameters: Option<&Parameters>,
) -> Result<SocketAddr, Failure> {
    let label = parameters.and_then(|parameters| parameters.flow_label).filter(|label| *label > 0);
    match (label, remote) {
        (None, _) => Ok(remote),
        (Some(label), SocketAddr::V6(mut remote)) => {
            lease_flow_label(socket.as_fd(), *remote.ip(), label)
                .map_err(|error| Failure::system(Code::SET_FLOW_LABEL, &error))?;
            remote.set_flowinfo(label.to_be());
            Ok(SocketAddr::V6(remote))
        }
        (Some(_), SocketAddr::V4(_)) => Err(Failure::of(Code::SET_FLOW_LABEL)
            .because("only IPv6 has flow labels: give -6, or leave out -L")),
    }
}

fn bind(socket: &Socket, remote: SocketAddr, local: &Local) -> io::Result<()> {
    if let Some(device) = &local.device {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    if local.address.is_none() && local.port.is_none() {
        return Ok(());
    }
    if local.port.is_some() {
        socket.set_reuse_address(true)?;
    }
    let mut address = local.address.unwrap_or(SocketAddr::new(everywhere(remote.ip()), 0));
    address.set_port(local.port.unwrap_or(0));
    socket.bind(&address.into())
}

/// Sets what is asked for of a stream's socket, at either end.
pub(super) fn set_options(
    socket: &Socket,
    remote: SocketAddr,
    parameters: &Parameters,
) -> Result<(), Failure> {
    let udp = parameters.protocol == Protocol::Udp;
    let failed = |code| move |error: io::Error| Failure::system(code, &error);
    if parameters.no_delay && !udp {
        socket.set_tcp_nodelay(true).map_err(failed(Code::SET_NO_DELAY))?;
    }
    set_buffers(socket, parameters, udp)?;
    if parameters.tos > 0 {
        set_tos(socket, remote, parameters.tos)?;
    }
    if parameters.dont_fragment && udp && plain(remote).is_ipv4() {
        set_unfragmented(socket.as_fd(), false).map_err(failed(Code::DONT_FRAGMENT))?;
    }
    Ok(())
}

/// What a socket of datagrams asks for to receive into, so that the scheduler's pauses don't count
/// as loss.
const DATAGRAM_BUFFER_BYTES: usize = 4 << 20;

fn set_buffers(socket: &Socket, parameters: &Parameters, udp: bool) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::system(Code::SET_BUFFER, &error);
    if let Some(bytes) = parameters.window_bytes {
        let bytes = bytes as usize;
        socket.set_send_buffer_size(bytes).map_err(failed)?;
        socket.set_recv_buffer_size(bytes).map_err(failed)?;
        let sent = socket.send_buffer_size().map_err(failed)?;
        let received = socket.recv_buffer_size().map_err(failed)?;
        if sent < bytes || received < bytes {
            return Err(Failure::of(Code::BUFFER_MISMATCH).because(format!(
                "{bytes} bytes were asked for, {sent} to send and {received} to receive were \
                 granted; raise net.core.wmem_max and net.core.rmem_max, or ask for less with -w"
            )));
        }
    } else if udp {
        let _less_at_worst = socket.set_recv_buffer_size(DATAGRAM_BUFFER_BYTES);
    }
    Ok(())
}

fn set_tos(socket: &Socket, remote: SocketAddr, tos: u8) -> Result<(), Failure> {
    if remote.is_ipv6() {
        socket
            .set_tclass_v6(tos.into())
            .map_err(|error| Failure::system(Code::TRAFFIC_CLASS, &error))?;
    }
    if plain(remote).is_ipv4() {
        socket.set_tos_v4(tos.into()).map_err(|error| Failure::system(Code::TOS, &error))?;
    }
    Ok(())
}

/// Sets the congestion control that is asked for.
pub(super) fn set_congestion(socket: &Socket, parameters: &Parameters) -> io::Result<()> {
    match &parameters.congestion {
        Some(name) => Ok(sockopt::set_tcp_congestion(socket.as_fd(), name)?),
        None => Ok(()),
    }
}

/// Both addresses of a connection, mapped ones as IPv4.
pub(super) fn addresses(socket: &Socket) -> io::Result<(SocketAddr, SocketAddr)> {
    let address = |address: socket2::SockAddr| {
        address.as_socket().map(plain).ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))
    };
    Ok((address(socket.local_addr()?)?, address(socket.peer_addr()?)?))
}

/// What the kernel granted a socket to send from and to receive into, bytes.
pub(super) fn buffers(socket: &Socket) -> (u32, u32) {
    let bytes = |size: io::Result<usize>| {
        size.ok().and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0)
    };
    (bytes(socket.send_buffer_size()), bytes(socket.recv_buffer_size()))
}
