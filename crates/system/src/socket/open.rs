//! Opening sockets with the options that a plan asks for.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_measure::SocketOptions;
use linerate_measure::report::SocketFacts;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, ipproto, socket_with, sockopt,
};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::option::bind_address_only;
use super::packet::route_mtu_bytes;
use super::tcp_info::tcp_status;

/// What the sockets of one end are bound to.
#[derive(Clone, Debug, Default)]
pub struct Binding {
    /// Its port doesn't count.
    pub bind: Option<SocketAddr>,
    /// The interface it is bound to.
    pub device: Option<String>,
}

impl Binding {
    fn apply(&self, socket: &Socket) -> io::Result<()> {
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        if let Some(mut address) = self.bind {
            address.set_port(0);
            // The port is chosen when the peer is known: then a port is taken for one peer only,
            // and not for all. Where the kernel can't, there are fewer ports.
            let _fewer_ports = bind_address_only(socket.as_fd());
            socket.bind(&address.into())?;
        }
        Ok(())
    }
}

/// Whether sockets can be bound so.
pub fn try_binding(binding: &Binding) -> io::Result<()> {
    let Some(address) = binding.bind else { return Ok(()) };
    let domain = Domain::for_address(address);
    binding.apply(&Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?)
}

/// Whether TCP sockets can be bound to this port; one that is taken is said to be, too.
pub fn try_port(bind: Option<SocketAddr>, port: u16) -> io::Result<()> {
    let mut local = bind.unwrap_or(SocketAddr::new(EVERYWHERE_V4, 0));
    local.set_port(port);
    let socket = Socket::new(Domain::for_address(local), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&local.into())
}

/// A listening TCP socket. Unspecified addresses take both families where the host has IPv6.
pub fn listen(address: SocketAddr, device: Option<&str>) -> io::Result<Socket> {
    let socket = unbound_listener(Protocol::TCP, address, device, false)?;
    listen_at(&socket, address)?;
    Ok(socket)
}

/// Listens at an address; at all of them over IPv4 alone where the host has no IPv6.
pub fn or_over_v4<T>(
    address: SocketAddr,
    listen: impl Fn(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    listen(address).or_else(|error| match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT) if address.ip().is_unspecified() => {
            listen(SocketAddr::new(EVERYWHERE_V4, address.port()))
        }
        _ => Err(error),
    })
}

/// A socket that will listen over TCP or MPTCP; of IPv6 alone where that is asked for.
pub fn unbound_listener(
    protocol: Protocol,
    address: SocketAddr,
    device: Option<&str>,
    only_v6: bool,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))?;
    prepare_listener(&socket, address, device)?;
    if only_v6 {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    Ok(socket)
}

/// Makes it listen.
pub fn listen_at(listener: &Socket, address: SocketAddr) -> io::Result<()> {
    listener.bind(&address.into())?;
    listener.listen(4096)
}

/// A UDP socket on a port that the sockets of its flows will share.
pub fn bind_datagram(address: SocketAddr, device: Option<&str>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    prepare_listener(&socket, address, device)?;
    // None of our sockets is there yet: a port that is in use belongs to another program.
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Binds a UDP socket to a port that other sockets have, too. If one of them was opened by
/// another user and passed on, SO_REUSEPORT is not enough (socket(7)), and SO_REUSEADDR is.
pub fn bind_beside(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    socket.set_reuse_port(true)?;
    socket.bind(&address.into()).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())
        }
        _ => Err(error),
    })
}

fn prepare_listener(socket: &Socket, address: SocketAddr, device: Option<&str>) -> io::Result<()> {
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    if let Some(device) = device {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    socket.set_nonblocking(true)
}

/// A TCP socket on its way to `address`: not blocking, connected when it becomes writable.
pub fn connect_stream(
    address: SocketAddr,
    binding: &Binding,
    options: &SocketOptions,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // The window and the segment size are agreed in the handshake, so they must be set before it.
    configure_buffers(&socket, options, None)?;
    if let Some(mss) = options.mss_bytes {
        socket.set_tcp_mss(mss)?;
    }
    binding.apply(&socket)?;
    match socket.connect(&address.into()) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        // connect(2) says EADDRNOTAVAIL for what bind(2) calls EADDRINUSE: no port is left.
        Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => {
            Err(io::Error::from_raw_os_error(libc::EADDRINUSE))
        }
        Err(error) => Err(error),
    }
}

/// Accepts a connection, which blocks or doesn't.
pub fn accept_stream(listener: &Socket, blocks: bool) -> io::Result<Socket> {
    let mode = if blocks { SocketFlags::empty() } else { SocketFlags::NONBLOCK };
    Ok(Socket::from(accept_with(listener, mode | SocketFlags::CLOEXEC)?))
}

/// Whether a call failed for want of descriptors.
pub fn is_short_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// A TCP socket on its way to `address` from this port or one of the kernel's choice; all its
/// options are set before it leaves. It doesn't block.
pub fn dial_stream(
    address: SocketAddr,
    binding: &Binding,
    port: Option<u16>,
    options: &SocketOptions,
) -> io::Result<Socket> {
    let socket = open_stream(address, options, None)?;
    bind_source(&socket, address, binding, port)?;
    begin_connecting(&socket, address)?;
    Ok(socket)
}

/// A TCP socket for a connection to `address`, with all its options. It doesn't block, or for so long at most.
pub fn open_stream(
    address: SocketAddr,
    options: &SocketOptions,
    blocks_for: Option<Duration>,
) -> io::Result<Socket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mode = if blocks_for.is_some() { SocketFlags::empty() } else { SocketFlags::NONBLOCK };
    let flags = mode | SocketFlags::CLOEXEC;
    let socket = Socket::from(socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?);
    if blocks_for.is_some() {
        socket.set_read_timeout(blocks_for)?;
        socket.set_write_timeout(blocks_for)?;
    }
    if *options != SocketOptions::default() {
        configure_asked(&socket, options)?;
        if let Some(mss) = options.mss_bytes {
            socket.set_tcp_mss(mss)?;
        }
    }
    Ok(socket)
}

/// Binds a socket whose connection will go to `address`, to this port or one of the kernel's choice.
pub fn bind_source(
    socket: &Socket,
    address: SocketAddr,
    binding: &Binding,
    port: Option<u16>,
) -> io::Result<()> {
    let Some(port) = port else { return binding.apply(socket).map_err(not_ours) };
    if let Some(device) = &binding.device {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    // A port in TIME-WAIT may be bound; connecting tells whether it is free for this peer.
    socket.set_reuse_address(true)?;
    let any = if address.is_ipv4() { EVERYWHERE_V4 } else { EVERYWHERE_V6 };
    let mut local = binding.bind.unwrap_or(SocketAddr::new(any, 0));
    local.set_port(port);
    socket.bind(&local.into()).map_err(not_ours)
}

/// Connects a socket that doesn't block, or not for long; says whether the connection is still on its way.
pub fn begin_connecting(socket: &Socket, address: SocketAddr) -> io::Result<bool> {
    match socket.connect(&address.into()) {
        Ok(()) => Ok(false),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(true),
        Err(error) => Err(error),
    }
}

/// A failed bind: an address that isn't this machine's is told from ports that have run out.
fn not_ours(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => io::ErrorKind::AddrNotAvailable.into(),
        _ => error,
    }
}

/// Sets a connected TCP socket's options.
pub fn configure_stream(
    socket: &Socket,
    options: &SocketOptions,
    no_delay: bool,
) -> io::Result<()> {
    socket.set_tcp_nodelay(no_delay)?;
    configure_asked(socket, options)
}

/// Sets what was asked for, and leaves the rest as the kernel has it.
pub fn configure_asked(socket: &Socket, options: &SocketOptions) -> io::Result<()> {
    if options.no_delay {
        socket.set_tcp_nodelay(true)?;
    }
    if let Some(name) = &options.congestion {
        socket.set_tcp_congestion(name.as_bytes())?;
    }
    configure_buffers(socket, options, None)?;
    configure_dscp(socket, options)
}

/// A UDP socket connected to `peer`, bound to `local` with its port shared.
pub fn flow_datagram(
    local: Option<SocketAddr>,
    peer: SocketAddr,
    binding: &Binding,
    options: &SocketOptions,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP))?;
    configure_buffers(&socket, options, Some(DATAGRAM_BUFFER_BYTES))?;
    if let Some(local) = local {
        if local.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        if let Some(device) = &binding.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        bind_beside(&socket, local)?;
    } else {
        binding.apply(&socket)?;
    }
    socket.connect(&peer.into())?;
    configure_dscp(&socket, options)?;
    Ok(socket)
}

/// UDP flows ask for this much, so that the scheduler's pauses don't count as loss; the kernel
/// grants what its limits allow.
const DATAGRAM_BUFFER_BYTES: usize = 4 << 20;

/// A UDP socket that is connected to a peer, with buffers of so many bytes, or by default such as a flow's has. The
/// kernel grants what its limits allow. Without a local address the kernel chooses one.
pub fn connect_datagram(
    local: Option<SocketAddr>,
    remote: SocketAddr,
    buffer_bytes: Option<usize>,
) -> io::Result<Socket> {
    let kind = Type::DGRAM.nonblocking();
    let socket = Socket::new(Domain::for_address(remote), kind, Some(Protocol::UDP))?;
    configure_buffers(
        &socket,
        &SocketOptions::default(),
        Some(buffer_bytes.unwrap_or(DATAGRAM_BUFFER_BYTES)),
    )?;
    if let Some(local) = local {
        socket.bind(&local.into())?;
    }
    socket.connect(&remote.into())?;
    Ok(socket)
}

/// Lets a UDP socket hold as much as a flow's does.
pub fn enlarge_datagram_buffers(socket: &Socket) -> io::Result<()> {
    configure_buffers(socket, &SocketOptions::default(), Some(DATAGRAM_BUFFER_BYTES))
}

/// Likewise, beyond the kernel's limits where this program may (CAP_NET_ADMIN).
///
/// # Errors
///
/// Where the socket refuses buffers of any size.
pub fn force_datagram_buffers(socket: &Socket) -> io::Result<()> {
    enlarge_datagram_buffers(socket)?;
    // Without the privilege the kernel's limits hold.
    let _refused = sockopt::set_socket_recv_buffer_size_force(socket, DATAGRAM_BUFFER_BYTES)
        .and_then(|()| sockopt::set_socket_send_buffer_size_force(socket, DATAGRAM_BUFFER_BYTES));
    Ok(())
}

fn configure_buffers(
    socket: &Socket,
    options: &SocketOptions,
    default: Option<usize>,
) -> io::Result<()> {
    if let Some(bytes) = options.window_bytes.map(|bytes| bytes as usize).or(default) {
        socket.set_send_buffer_size(bytes)?;
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

fn configure_dscp(socket: &Socket, options: &SocketOptions) -> io::Result<()> {
    let Some(dscp) = options.dscp else { return Ok(()) };
    // The code point is the upper six bits of the former type-of-service byte (RFC 2474).
    let class = u32::from(dscp) << 2;
    if socket.local_addr()?.is_ipv6() {
        socket.set_tclass_v6(class)?;
        let peer = socket.peer_addr().ok().and_then(|peer| peer.as_socket_ipv6());
        let mapped = peer.and_then(|peer| peer.ip().to_ipv4_mapped());
        if mapped.is_none() {
            return Ok(());
        }
    }
    socket.set_tos_v4(class)
}

/// The addresses of a connected socket.
#[derive(Clone, Copy, Debug, Default)]
pub struct Addresses {
    local: Option<SocketAddr>,
    peer: Option<SocketAddr>,
}

impl Addresses {
    /// Those of a socket.
    pub fn of(socket: &Socket) -> Self {
        let plain = |address: io::Result<SockAddr>| Some(plain(address.ok()?.as_socket()?));
        Self { local: plain(socket.local_addr()), peer: plain(socket.peer_addr()) }
    }
}

/// The most payload that a connection's segments carry. TCP_MAXSEG of a closed one is what was asked for,
/// so that TCP_INFO is read first.
pub fn segment_bytes(socket: &Socket) -> Option<u32> {
    let told = tcp_status(socket.as_fd()).map(|status| status.mss_bytes).filter(|bytes| *bytes > 0);
    told.or_else(|| socket.tcp_mss().ok())
}

/// What the kernel granted a socket that is or was connected.
pub fn granted(socket: &Socket, addresses: Addresses, stream: bool) -> SocketFacts {
    let shown = |address: Option<SocketAddr>| {
        let is_known = |address: &SocketAddr| address.port() > 0 || !address.ip().is_unspecified();
        Some(address.filter(is_known)?.to_string())
    };
    let bytes = |size: io::Result<usize>| size.ok().and_then(|n| u32::try_from(n).ok());
    SocketFacts {
        local: shown(addresses.local),
        peer: shown(addresses.peer),
        congestion: stream.then(|| sockopt::tcp_congestion(socket.as_fd()).ok()).flatten(),
        send_buffer_bytes: bytes(socket.send_buffer_size()),
        receive_buffer_bytes: bytes(socket.recv_buffer_size()),
        mss_bytes: if stream { segment_bytes(socket) } else { None },
        path_mtu_bytes: addresses
            .peer
            .filter(|_| !stream)
            .and_then(|peer| route_mtu_bytes(socket.as_fd(), peer.is_ipv6()).ok()),
        gso: None,
        gro: None,
        cipher: None,
    }
}

/// An IPv4 address that an IPv6 socket shows as mapped, as IPv4.
pub fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        // A link-local address is one of its interface only, which stands beside it.
        IpAddr::V6(_) => address,
    }
}

/// The address that listens to everything, of both families.
pub const EVERYWHERE_V6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
/// The address that listens to everything over IPv4.
pub const EVERYWHERE_V4: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The address that stands for all of the family of this one.
pub fn everywhere(ip: IpAddr) -> IpAddr {
    if ip.is_ipv4() { EVERYWHERE_V4 } else { EVERYWHERE_V6 }
}
