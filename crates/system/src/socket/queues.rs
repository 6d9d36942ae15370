//! The queueing disciplines of the interface that a socket sends through, as rtnetlink(7) tells them.

use std::cell::RefCell;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_measure::report::OwnQueue;
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// The kernel answers within the call that asks.
const ANSWER_LIMIT: Duration = Duration::from_millis(100);
/// A message's header: length, type, flags, number, sender.
const HEADER_BYTES: usize = 16;
const REQUEST: u16 = libc::NLM_F_REQUEST as u16;
const DUMP: u16 = libc::NLM_F_DUMP as u16;
/// Attributes of a route and of a discipline (linux/rtnetlink.h).
const ROUTE_BYTES: usize = 12;
const ROUTE_TO: u16 = libc::RTA_DST;
const ROUTE_THROUGH: u16 = libc::RTA_OIF;
const DISCIPLINE_BYTES: usize = 20;
/// `tcm_parent`, and its value for the root.
const DISCIPLINE_PARENT: std::ops::Range<usize> = 12..16;
const ROOT: u32 = 0xffff_ffff;
const DISCIPLINE_KIND: u16 = 1;
const DISCIPLINE_COUNTS: u16 = 3;

/// Disciplines that hold nothing: none at all, and hooks for filters.
const NO_QUEUES: [&str; 3] = ["noqueue", "clsact", "ingress"];

thread_local! {
    /// What the last socket of this thread met: a thread's flows mostly have one peer, and a host with a thousand
    /// interfaces has much to tell.
    static LAST: RefCell<Option<(Ends, Queues)>> = const { RefCell::new(None) };
}

/// What the way of a socket's datagrams depends on.
#[derive(PartialEq, Eq)]
struct Ends {
    device: Option<Vec<u8>>,
    local: Option<SocketAddr>,
    peer: Option<SocketAddr>,
}

impl Ends {
    fn of(socket: &Socket) -> Self {
        // Each flow has a port of its own, on which no route depends.
        let address = |address: io::Result<SockAddr>| {
            let mut address = address.ok()?.as_socket()?;
            address.set_port(0);
            Some(address)
        };
        Self {
            device: socket.device().ok().flatten(),
            local: address(socket.local_addr()),
            peer: address(socket.peer_addr()),
        }
    }
}

/// What datagrams meet before they leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Whether there is any queue, which may drop a datagram.
    pub some: bool,
    /// Whether one of them cuts trains and doesn't report what became of their parts: tbf and taprio do so with trains
    /// longer than their burst. Of an interface above others (VLAN, bond, bridge) its own are known alone.
    pub cut_trains: bool,
}

impl Queues {
    /// The queues towards a connected socket's peer; where the kernel doesn't tell, some that cut nothing.
    pub fn of(socket: &Socket) -> Self {
        let ends = Ends::of(socket);
        let known = LAST.with_borrow(|last| {
            last.as_ref().filter(|(last, _)| *last == ends).map(|(_, queues)| *queues)
        });
        if let Some(queues) = known {
            return queues;
        }
        let kinds = interface_of(socket).and_then(disciplines);
        let unknown = Self { some: true, cut_trains: false };
        let queues = kinds.map_or(unknown, |kinds| Self::of_kinds(&kinds));
        LAST.set(Some((ends, queues)));
        queues
    }

    fn of_kinds(kinds: &[String]) -> Self {
        Self {
            some: kinds.iter().any(|kind| !NO_QUEUES.contains(&kind.as_str())),
            cut_trains: kinds.iter().any(|kind| kind == "tbf" || kind == "taprio"),
        }
    }
}

/// An interface that packets leave through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface(u32);

impl Interface {
    /// The one that a connected socket sends through; `None` where the kernel doesn't tell.
    pub fn of(socket: &Socket) -> Option<Self> {
        interface_of(socket).ok().map(Self)
    }
}

/// What the root discipline of an interface has counted so far; `None` where the kernel doesn't tell, or it holds
/// nothing.
pub fn own_queue(interface: Interface) -> Option<OwnQueue> {
    counts_of_root(&disciplines_of(interface.0).ok()?)
}

/// The counts of the discipline at the root, which counts what those below it dropped as well. Beside the root, the
/// kernel tells the disciplines below it, and that of packets that come in.
fn counts_of_root(answers: &[Vec<u8>]) -> Option<OwnQueue> {
    let is_root = |one: &&Vec<u8>| one.get(DISCIPLINE_PARENT) == Some(&ROOT.to_ne_bytes()[..]);
    let root = answers.iter().find(is_root)?;
    let kind = attribute(root, DISCIPLINE_BYTES, DISCIPLINE_KIND).map(name_of)?;
    let counted = attribute(root, DISCIPLINE_BYTES, DISCIPLINE_COUNTS).and_then(counts);
    counted.filter(|_| !NO_QUEUES.contains(&kind.as_str()))
}

/// `struct tc_stats` (linux/pkt_sched.h): bytes, packets, then what was dropped and held back.
fn counts(bytes: &[u8]) -> Option<OwnQueue> {
    let count = |at: usize| {
        let bytes = bytes.get(at..)?.first_chunk().copied()?;
        Some(u64::from(u32::from_ne_bytes(bytes)))
    };
    Some(OwnQueue { dropped: count(12)?, overlimits: count(16)? })
}

/// The number of the interface that a connected socket sends through.
fn interface_of(socket: &Socket) -> io::Result<u32> {
    let unknown = || io::Error::from(io::ErrorKind::NotFound);
    if let Some(device) = socket.device()? {
        let name = String::from_utf8(device).map_err(|_| unknown())?;
        return Ok(name_to_index(socket.as_fd(), &name)?);
    }
    let peer = socket.peer_addr()?.as_socket().ok_or_else(unknown)?;
    match peer {
        SocketAddr::V6(peer) if peer.scope_id() != 0 => Ok(peer.scope_id()),
        _ => route_to(peer.ip().to_canonical()),
    }
}

fn route_to(peer: IpAddr) -> io::Result<u32> {
    let (family, address) = match &peer {
        IpAddr::V4(peer) => (libc::AF_INET, peer.octets().to_vec()),
        IpAddr::V6(peer) => (libc::AF_INET6, peer.octets().to_vec()),
    };
    let mut body = vec![0; ROUTE_BYTES];
    // The family, and how many bits of the address count.
    body[..2].copy_from_slice(&[family as u8, 8 * address.len() as u8]);
    body.extend_from_slice(&(4 + address.len() as u16).to_ne_bytes());
    body.extend_from_slice(&ROUTE_TO.to_ne_bytes());
    body.extend_from_slice(&address);
    let answers = ask(libc::RTM_GETROUTE, REQUEST, &body)?;
    let through = answers.iter().find_map(|route| attribute(route, ROUTE_BYTES, ROUTE_THROUGH));
    let number = through.and_then(|bytes| bytes.first_chunk().copied());
    number.map(u32::from_ne_bytes).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The kinds of the disciplines of an interface.
fn disciplines(interface: u32) -> io::Result<Vec<String>> {
    let answers = disciplines_of(interface)?;
    let kinds = answers.iter().filter_map(|one| attribute(one, DISCIPLINE_BYTES, DISCIPLINE_KIND));
    Ok(kinds.map(name_of).collect())
}

fn name_of(kind: &[u8]) -> String {
    String::from_utf8_lossy(kind).trim_end_matches('\0').to_owned()
}

/// What the kernel tells of the disciplines of an interface.
fn disciplines_of(interface: u32) -> io::Result<Vec<Vec<u8>>> {
    let mut answers = ask(libc::RTM_GETQDISC, REQUEST | DUMP, &[0; DISCIPLINE_BYTES])?;
    // The kernel tells those of all interfaces; the number stands behind the family.
    answers.retain(|one| one.get(4..8) == Some(&interface.to_ne_bytes()[..]));
    Ok(answers)
}

/// Asks the kernel; the bodies of its answers.
fn ask(kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let socket = Socket::new(
        Domain::from(libc::AF_NETLINK),
        Type::RAW.cloexec(),
        Some(Protocol::from(libc::NETLINK_ROUTE)),
    )?;
    socket.set_read_timeout(Some(ANSWER_LIMIT))?;
    let mut request = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
    request.extend_from_slice(&kind.to_ne_bytes());
    request.extend_from_slice(&flags.to_ne_bytes());
    request.extend_from_slice(&[0; 8]);
    request.extend_from_slice(body);
    socket.send(&request)?;
    let (mut answers, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let length = (&socket).read(&mut buffer)?;
        for (kind, body) in messages(buffer.get(..length).unwrap_or_default()) {
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(answers),
                libc::NLMSG_ERROR => return Err(io::ErrorKind::NotFound.into()),
                _ => answers.push(body.to_vec()),
            }
        }
        if flags & DUMP == 0 {
            return Ok(answers);
        }
    }
}

/// Messages one behind the other: their types and bodies.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes([*rest.get(4)?, *rest.get(5)?]);
        let body = rest.get(HEADER_BYTES..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// An attribute behind so many bytes of a body.
fn attribute(body: &[u8], fixed_bytes: usize, wanted: u16) -> Option<&[u8]> {
    let mut rest = body.get(fixed_bytes..)?;
    loop {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let value = rest.get(4..length)?;
        if u16::from_ne_bytes([*rest.get(2)?, *rest.get(3)?]) == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn loopback_has_an_interface_of_its_own_number() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect("127.0.0.1:9").unwrap();
        let number = name_to_index(&socket, "lo").unwrap();
        assert_eq!(interface_of(&socket.into()).unwrap(), number);
        disciplines(number).unwrap();
    }

    #[test]
    fn queues_that_cut_trains_are_known_by_name() {
        let of = |kinds: &[&str]| {
            let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            let queues = Queues::of_kinds(&kinds);
            (queues.some, queues.cut_trains)
        };
        assert_eq!(of(&[]), (false, false));
        assert_eq!(of(&["noqueue"]), (false, false));
        assert_eq!(of(&["mq", "fq_codel"]), (true, false));
        assert_eq!(of(&["htb", "pfifo", "tbf"]), (true, true));
    }

    #[test]
    fn counts_read_as_the_kernel_writes_them() {
        let mut bytes = vec![0; 36];
        bytes[12..16].copy_from_slice(&7_u32.to_ne_bytes());
        bytes[16..20].copy_from_slice(&9_u32.to_ne_bytes());
        assert_eq!(counts(&bytes), Some(OwnQueue { dropped: 7, overlimits: 9 }));
        assert_eq!(counts(&bytes[..19]), None);
    }

    #[test]
    fn the_root_alone_is_counted() {
        let discipline = |parent: u32, kind: &[u8; 4], dropped: u32| {
            let mut body = vec![0; DISCIPLINE_BYTES];
            body[DISCIPLINE_PARENT].copy_from_slice(&parent.to_ne_bytes());
            body.extend_from_slice(&[8, 0, 1, 0]);
            body.extend_from_slice(kind);
            body.extend_from_slice(&[40, 0, 3, 0]);
            body.extend_from_slice(&[0; 12]);
            body.extend_from_slice(&dropped.to_ne_bytes());
            body.extend_from_slice(&[0; 20]);
            body
        };
        let answers = [discipline(0x10001, b"red\0", 5), discipline(ROOT, b"htb\0", 7)];
        assert_eq!(counts_of_root(&answers), Some(OwnQueue { dropped: 7, overlimits: 0 }));
        assert_eq!(counts_of_root(&answers[..1]), None);
    }

    #[test]
    fn broken_answers_are_no_attributes() {
        assert_eq!(attribute(&[0; 20], 20, 1), None);
        assert_eq!(attribute(&[0; 24], 20, 1), None);
        assert_eq!(attribute(&[9, 0, 1, 0], 0, 1), None);
        assert_eq!(messages(&[1, 2, 3]).count(), 0);
        assert_eq!(messages(&[0; 16]).count(), 0);
    }
}
