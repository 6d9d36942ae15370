//! The shared UDP port: where flows of datagrams begin.
//!
//! Nothing is sent to an address that has not proved itself but a cookie, shorter than the message
//! it answers; and only messages with the token of a running test are answered at all.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use linerate_measure::Transport;
use linerate_wire::native::datagram::{Cookie, Handshake, PADDED_BYTES, Welcome};
use rustix::net::{RecvFlags, recvfrom};
use socket2::Socket;

use crate::control::cookie;
use crate::error::Error;
use crate::load::{Load, flow_tag};
use crate::socket::{Binding, flow_datagram};

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
pub(super) struct Knock {
    from: SocketAddr,
    message: Handshake,
    flow: u32,
    pub(super) token: [u8; 16],
}

impl UdpPort {
    pub(super) fn new(
        socket: Socket,
        local: SocketAddr,
        binding: Binding,
        secret: [u8; 32],
    ) -> Self {
        Self { socket, local, binding, secret }
    }

    /// The messages that have arrived, as far as they are the beginning of flows.
    pub(super) fn knocks(&self) -> Vec<Knock> {
        let mut knocks = Vec::new();
        for _ in 0..MOST_AT_ONCE {
            // One byte more than the longest message has, so that longer ones show.
            let mut datagram = [0_u8; PADDED_BYTES + 1];
            let received =
                recvfrom(self.socket.as_fd(), datagram.as_mut_slice(), RecvFlags::empty());
            let Ok((length, _, from)) = received else { break };
            let from = from.and_then(|address| SocketAddr::try_from(address).ok());
            knocks.extend(from.and_then(|from| knock(from, &datagram[..length])));
        }
        knocks
    }

    /// Answers a message whose token is that of the load's test.
    pub(super) fn handle_knock(
        &self,
        knock: &Knock,
        token: &[u8; 16],
        load: &mut Load,
    ) -> Result<(), Error> {
        let expected = cookie(&self.secret, knock.from, knock.flow, token);
        match knock.message {
            Handshake::Hello(_) => {
                let cookie = Handshake::Cookie(Cookie { flow: knock.flow, cookie: expected });
                self.say(&cookie, |message| self.socket.send_to(message, &knock.from.into()));
                Ok(())
            }
            Handshake::Proof(proof) if proof.cookie == expected => self.open(knock, token, load),
            _ => Ok(()),
        }
    }

    fn open(&self, knock: &Knock, token: &[u8; 16], load: &mut Load) -> Result<(), Error> {
        let options = load.workload().socket.clone();
        let socket = flow_datagram(Some(self.local), knock.from, &self.binding, &options)
            .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
            .map_err(|error| Error::Host(format!("can't open a UDP socket for a flow: {error}")))?;
        let tag = flow_tag(token, knock.flow);
        let welcome = Handshake::Welcome(Welcome { flow: knock.flow, tag });
        self.say(&welcome, |message| socket.send(message));
        if load.workload().transport == Transport::Quic {
            load.add_association(knock.flow, socket);
        } else {
            load.add_datagrams(knock.flow, socket, tag);
        }
        Ok(())
    }

    fn say(&self, message: &Handshake, send: impl Fn(&[u8]) -> std::io::Result<usize>) {
        let mut bytes = [0; PADDED_BYTES];
        if let Ok(length) = message.encode(&mut bytes) {
            // A message that is lost here is as one lost on the way: the client asks again.
            let _asked_again = send(&bytes[..length]);
        }
    }
}

impl Knock {
    pub(super) fn flow(&self) -> u32 {
        self.flow
    }
}

/// A datagram that begins a flow; `None` for every other.
fn knock(from: SocketAddr, datagram: &[u8]) -> Option<Knock> {
    let message = Handshake::decode(datagram).ok()?;
    let (flow, token) = match &message {
        Handshake::Hello(hello) => (hello.flow, hello.token),
        Handshake::Proof(proof) => (proof.flow, proof.token),
        Handshake::Cookie(_) | Handshake::Welcome(_) => return None,
    };
    Some(Knock { from, message, flow, token })
}
