//! An endpoint's socket: packets in and out, in trains where the kernel has them.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::{EcnCodepoint, Transmit};
use socket2::Socket;

use crate::socket::{
    LONGEST_TRAIN_BYTES, Outgoing, Queues, enable_packet_facts, enable_receive_offload,
    forbid_fragments, only_passing_errors, plain, receive_packets, route_mtu_bytes, send_packets,
    tell_refusals,
};

/// The most segments of one train: the kernel takes 64 (udp(7)), and more than these bring nothing.
const MOST_SEGMENTS: usize = 44;
/// The most bytes of one: what a UDP packet over IPv4 can carry.
const MOST_TRAIN_BYTES: usize = 65_507;

/// Buffers that a thread keeps when nobody needs their bytes: those that a turn fills before these are read, and
/// one.
const MOST_BUFFERS: usize = 9;
/// Buffers that it has when somebody does, as where something before their bytes is missing. One buffer is kept
/// by whatever remains of it, be that a byte: when there are so many, what comes is copied from one more.
const MOST_LENT_BUFFERS: usize = 256;

thread_local! {
    /// Where trains come to. Memory that is given back with each train is taken again with page faults.
    /// Endpoints of one thread have their turns one after the other, and there may be thousands.
    static BUFFERS: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

/// A train of datagrams that has arrived.
pub(super) struct Train {
    pub(super) from: SocketAddr,
    pub(super) to: Option<IpAddr>,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) segment_bytes: usize,
    bytes: BytesMut,
    /// Whether its buffer may be kept.
    lends: bool,
}

impl Train {
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Its next datagram.
    pub(super) fn next(&mut self) -> Option<BytesMut> {
        let length = self.segment_bytes.min(self.bytes.len());
        let datagram = (length > 0).then(|| self.bytes.split_to(length))?;
        Some(if self.lends { datagram } else { BytesMut::from(&*datagram) })
    }
}

/// The socket of an endpoint.
pub(super) struct Packets {
    pub(super) socket: Arc<Socket>,
    /// The other end of a connected socket.
    peer: Option<SocketAddr>,
    ipv6: bool,
    dscp: u8,
    pub(super) ecn: bool,
    /// How many datagrams go out with one call.
    most_segments: usize,
    pub(super) receives_trains: bool,
    /// Whether a send fails where a queue of this machine drops the packet.
    tells_refusals: bool,
}

impl Packets {
    pub(super) fn new(socket: Arc<Socket>, offload: bool, ecn: bool, dscp: u8) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let ipv6 = socket.local_addr()?.is_ipv6();
        let peer = socket.peer_addr().ok().and_then(|peer| peer.as_socket()).map(plain);
        enable_packet_facts(socket.as_fd(), ipv6, peer.is_none());
        forbid_fragments(socket.as_fd(), ipv6);
        let receives_trains = offload && enable_receive_offload(socket.as_fd()).is_ok();
        Ok(Self {
            socket,
            peer,
            ipv6,
            dscp,
            ecn,
            most_segments: if offload { MOST_SEGMENTS } else { 1 },
            receives_trains,
            tells_refusals: false,
        })
    }

    /// Has its sends fail where a queue of this machine drops the packet. Through queues that tell nobody what became
    /// of a train's parts, packets leave one by one.
    pub(super) fn telling_refusals(mut self) -> Self {
        // Where the kernel can't, what it drops is taken for lost.
        self.tells_refusals = tell_refusals(self.socket.as_fd(), self.ipv6).is_ok();
        if self.tells_refusals && self.most_segments > 1 && Queues::of(&self.socket).cut_trains {
            self.most_segments = 1;
        }
        self
    }

    /// A failed call: with the option that tells refusals all errors of the path queue up, and the socket is ready
    /// until they are taken.
    #[cold]
    pub(super) fn forget_errors(&self) {
        if self.tells_refusals {
            only_passing_errors(self.socket.as_fd());
        }
    }

    /// The other end of a connected socket, and its route's MTU, where the kernel knows it.
    pub(super) fn route(&self) -> Option<(SocketAddr, u32)> {
        Some((self.peer?, route_mtu_bytes(self.socket.as_fd(), self.ipv6).ok()?))
    }

    /// How many datagrams of this length leave with one call.
    pub(super) fn most_segments(&self, datagram_bytes: usize) -> usize {
        self.most_segments.min(MOST_TRAIN_BYTES / datagram_bytes.max(1)).max(1)
    }

    /// Whether several leave with one call.
    pub(super) fn sends_trains(&self) -> bool {
        self.most_segments > 1
    }

    /// Takes what has arrived; `None` where that is nothing.
    pub(super) fn receive(&mut self) -> io::Result<Option<Train>> {
        BUFFERS.with_borrow_mut(|buffers| {
            let free = |buffer: &mut BytesMut| buffer.try_reclaim(LONGEST_TRAIN_BYTES);
            let place = buffers.iter_mut().position(free).unwrap_or_else(|| {
                buffers.push(BytesMut::new());
                buffers.len() - 1
            });
            if buffers.len() > MOST_BUFFERS.max(place + 1) {
                buffers.pop_if(free);
            }
            let lends = place < MOST_LENT_BUFFERS;
            buffers.get_mut(place).map_or(Ok(None), |buffer| self.receive_into(buffer, lends))
        })
    }

    fn receive_into(&self, buffer: &mut BytesMut, lends: bool) -> io::Result<Option<Train>> {
        match receive_packets(self.socket.as_fd(), buffer) {
            Ok(incoming) => {
                let bytes = buffer.split_to(incoming.length);
                let Some(from) = self.peer.or(incoming.from.map(plain)) else { return Ok(None) };
                Ok(Some(Train {
                    from,
                    to: incoming.to,
                    ecn: EcnCodepoint::from_bits(incoming.ecn),
                    segment_bytes: incoming.segment_bytes,
                    bytes,
                    lends,
                }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => {
                self.forget_errors();
                Err(error)
            }
        }
    }

    /// Sends what a connection or the endpoint has made; says how many of its packets were refused where others were
    /// not.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where the socket takes no more now: the same is to be sent again. With any other nothing of it has
    /// left.
    pub(super) fn send(&mut self, transmit: &Transmit, bytes: &[u8]) -> io::Result<usize> {
        let ecn = transmit.ecn.filter(|_| self.ecn).map_or(0, |ecn| ecn as u8);
        let out = Outgoing {
            to: self.peer.is_none().then(|| self.named(transmit.destination)),
            from: transmit.src_ip.filter(|_| self.peer.is_none()),
            class: self.dscp << 2 | ecn,
            ipv4: transmit.destination.is_ipv4(),
            segment_bytes: transmit
                .segment_size
                .filter(|bytes| *bytes < transmit.size)
                .and_then(|bytes| u16::try_from(bytes).ok()),
            bytes: bytes.get(..transmit.size).unwrap_or(bytes),
        };
        match self.send_now(&out) {
            // A path without segmentation offload says so at the first train (EIO, EINVAL).
            Err(error) if out.segment_bytes.is_some() && is_refused_train(&error) => {
                self.most_segments = 1;
                self.send_one_by_one(&out)
            }
            sent => sent.map(|()| 0),
        }
    }

    /// Sends with one call, or with a second one where the first only told what an earlier packet has met.
    fn send_now(&self, out: &Outgoing<'_>) -> io::Result<()> {
        let sent = send_packets(self.socket.as_fd(), out);
        let Err(error) = &sent else { return sent };
        let may_be_of_earlier = match error.raw_os_error() {
            Some(libc::EMSGSIZE) => true,
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EIO | libc::EINVAL | libc::EPERM) => false,
            _ => self.tells_refusals,
        };
        if !may_be_of_earlier {
            return sent;
        }
        self.forget_errors();
        send_packets(self.socket.as_fd(), out).inspect_err(|_| self.forget_errors())
    }

    fn send_one_by_one(&self, out: &Outgoing<'_>) -> io::Result<usize> {
        let each = usize::from(out.segment_bytes.unwrap_or(u16::MAX)).max(1);
        let mut refused = 0;
        for bytes in out.bytes.chunks(each) {
            match self.send_now(&Outgoing { segment_bytes: None, bytes, ..*out }) {
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => refused += 1,
                sent => sent?,
            }
        }
        Ok(refused)
    }

    /// An address in the socket's own family.
    fn named(&self, to: SocketAddr) -> SocketAddr {
        match to {
            SocketAddr::V4(to) if self.ipv6 => {
                SocketAddr::new(to.ip().to_ipv6_mapped().into(), to.port())
            }
            to => to,
        }
    }
}

fn is_refused_train(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::time::Timespec;

    use super::*;

    fn receive(packets: &mut Packets) -> Train {
        let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
        poll(&mut [PollFd::new(&packets.socket, PollFlags::IN)], Some(&limit)).unwrap();
        packets.receive().unwrap().expect("a packet has come")
    }

    #[test]
    fn buffers_are_taken_again_when_nobody_needs_their_bytes_and_few_when_somebody_does() {
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let mut packets = Packets::new(Arc::new(receiver.into()), true, true, 0).unwrap();
        let mut send_and_receive = |number: u8| {
            sender.send(&[number; 100]).unwrap();
            let datagram = receive(&mut packets).next().expect("it is a datagram");
            (datagram, BUFFERS.with_borrow(Vec::len))
        };
        let (first, _) = send_and_receive(0);
        let place = first.as_ptr();
        drop(first);
        let mut kept = Vec::new();
        for number in (0..u8::MAX).chain(0..u8::MAX) {
            let (bytes, buffers) = send_and_receive(number);
            kept.push(bytes);
            // That of what is copied is always free again.
            assert_eq!(buffers, kept.len().min(MOST_LENT_BUFFERS + 1));
        }
        assert_eq!(kept[0].as_ptr(), place);
        let numbers = (0..u8::MAX).chain(0..u8::MAX);
        assert!(numbers.zip(&kept).all(|(number, bytes)| **bytes == [number; 100]));
        kept.clear();
        assert_eq!(send_and_receive(0).0.as_ptr(), place);
        for _ in 0..=MOST_LENT_BUFFERS {
            send_and_receive(0);
        }
        assert_eq!(send_and_receive(0).1, MOST_BUFFERS);
    }
}
