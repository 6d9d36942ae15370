//! The shared UDP port: where flows of datagrams begin.
//!
//! Nothing is sent to an address that has not proved itself but a cookie, shorter than the message
//! it answers; and only messages with the token of a running test are answered at all.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use bytes::BytesMut;
use linerate_measure::Transport;
use linerate_wire::native::datagram::{Cookie, Handshake, PADDED_BYTES, Welcome, flow_tag};
use socket2::Socket;

use crate::control::cookie;
use crate::error::Error;
use crate::load::Load;
use crate::socket::{
    Binding, Outgoing, enable_packet_facts, flow_datagram, receive_packets, send_packets,
};

/// Datagrams looked at before others have their turn.
const MOST_AT_ONCE: usize = 64;

/// The shared UDP port.
pub(super) struct UdpPort {
    socket: Socket,
    /// The port as the sockets of flows must name it, in the socket's own family.
    local: SocketAddr,
    binding: Binding,
    secret: [u8; 32],
}

/// A message that shows the token of a test.
pub(super) struct Hello {
    from: SocketAddr,
    /// This machine's address that it was sent to, and that answers come from; `None`: unknown.
    to: Option<IpAddr>,
    message: Handshake,
    pub(super) flow: u32,
    pub(super) token: [u8; 16],
}

impl UdpPort {
    pub(super) fn new(
        socket: Socket,
        local: SocketAddr,
        binding: Binding,
        secret: [u8; 32],
    ) -> Self {
        // A host with several addresses must answer from the one that was asked.
        enable_packet_facts(socket.as_fd(), local.is_ipv6(), local.ip().is_unspecified());
        Self { socket, local, binding, secret }
    }

    /// The messages that have arrived, as far as they are the beginning of flows.
    pub(super) fn hellos(&self) -> Vec<Hello> {
        let mut hellos = Vec::new();
        let mut datagram = BytesMut::new();
        for _ in 0..MOST_AT_ONCE {
            datagram.clear();
            let Ok(came) = receive_packets(self.socket.as_fd(), &mut datagram) else { break };
            let to = came.to.filter(|to| !to.is_multicast());
            hellos.extend(came.from.and_then(|from| hello(from, to, &datagram)));
        }
        hellos
    }

    /// Answers a message whose token is that of the load's test.
    pub(super) fn answer(
        &self,
        hello: &Hello,
        token: &[u8; 16],
        load: &mut Load,
    ) -> Result<(), Error> {
        let expected = cookie(&self.secret, hello.from, hello.flow, token);
        match hello.message {
            Handshake::Hello(_) => {
                let cookie = Handshake::Cookie(Cookie { flow: hello.flow, cookie: expected });
                self.say(&cookie, |bytes| {
                    let ipv4 = hello.from.ip().to_canonical().is_ipv4();
                    let (to, from) = (Some(hello.from), hello.to);
                    let plain = Outgoing { to, from, class: 0, ipv4, segment_bytes: None, bytes };
                    send_packets(self.socket.as_fd(), &plain)
                });
                Ok(())
            }
            Handshake::Proof(proof) if proof.cookie == expected => self.open(hello, token, load),
            _ => Ok(()),
        }
    }

    fn open(&self, hello: &Hello, token: &[u8; 16], load: &mut Load) -> Result<(), Error> {
        let options = load.workload().socket.clone();
        let local = self.local_for(hello);
        let socket = flow_datagram(Some(local), hello.from, &self.binding, &options)
            .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
            .map_err(|error| Error::Host(format!("can't open a UDP socket for a flow: {error}")))?;
        let tag = flow_tag(token, hello.flow);
        let welcome = Handshake::Welcome(Welcome { flow: hello.flow, tag });
        self.say(&welcome, |message| socket.send(message).map(|_length| ()));
        if load.workload().transport == Transport::Quic {
            load.add_quic_socket(hello.flow, socket);
        } else {
            load.add_datagrams(hello.flow, socket, tag);
        }
        Ok(())
    }

    /// The address that a flow's socket is bound to, in the shared socket's own family.
    fn local_for(&self, hello: &Hello) -> SocketAddr {
        let mut local = self.local;
        match (&mut local, hello.to) {
            (SocketAddr::V4(local), Some(IpAddr::V4(to))) => local.set_ip(to),
            (SocketAddr::V6(local), Some(IpAddr::V4(to))) => local.set_ip(to.to_ipv6_mapped()),
            (SocketAddr::V6(local), Some(IpAddr::V6(to))) => {
                local.set_ip(to);
                // Of a link-local address the interface is part (RFC 4007, section 6).
                if let SocketAddr::V6(from) = hello.from {
                    local.set_scope_id(from.scope_id());
                }
            }
            (SocketAddr::V4(_), Some(IpAddr::V6(_))) | (_, None) => {}
        }
        local
    }

    fn say(&self, message: &Handshake, send: impl Fn(&[u8]) -> std::io::Result<()>) {
        let mut bytes = [0; PADDED_BYTES];
        if let Ok(length) = message.encode(&mut bytes) {
            // A message that is lost here is as one lost on the way: the client asks again.
            let _asked_again = send(&bytes[..length]);
        }
    }
}

/// A datagram that begins a flow; `None` for every other.
fn hello(from: SocketAddr, to: Option<IpAddr>, datagram: &[u8]) -> Option<Hello> {
    let message = Handshake::decode(datagram).ok()?;
    let (flow, token) = match &message {
        Handshake::Hello(hello) => (hello.flow, hello.token),
        Handshake::Proof(proof) => (proof.flow, proof.token),
        Handshake::Cookie(_) | Handshake::Welcome(_) => return None,
    };
    Some(Hello { from, to, message, flow, token })
}
