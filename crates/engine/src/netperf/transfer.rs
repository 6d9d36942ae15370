//! What goes over connections that come and go, in calls that sleep.

use std::io;
use std::os::fd::AsFd;

use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use crate::buffers::{Buffers, Dirt};
use crate::connections::{Awaited, SpinWait};
use crate::flow::{FlowShared, Local};
use crate::phase::Phase;

/// Bytes of the largest send.
const MOST_BYTES: usize = 1 << 20;

/// What is sent over the connections, and how what comes is waited for.
pub(super) struct Transfer {
    outgoing: Vec<u8>,
    dirt: Dirt,
    /// Absent where it sleeps at once.
    pub(super) spin_wait: Option<SpinWait>,
}

impl Transfer {
    /// Sends of up to so many bytes, larger ones in pieces.
    pub(super) fn new(buffers: &Buffers, bytes: usize) -> Self {
        let outgoing = buffers.filled(bytes.clamp(1, MOST_BYTES), 1);
        Self { outgoing, dirt: buffers.dirt, spin_wait: None }
    }

    /// Sends so much, unless the load has come to the phase `until`.
    pub(super) fn send_all(
        &mut self,
        socket: &Socket,
        bytes: usize,
        until: Phase,
        shared: &FlowShared,
        local: &mut Local,
    ) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            if local.phase() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let most = left.min(self.outgoing.len());
            let piece = self.outgoing.get_mut(..most).unwrap_or_default();
            self.dirt.before_send(piece);
            let sent = rustix::net::send(socket.as_fd(), piece, SendFlags::NOSIGNAL)?;
            shared.tally.record_sent(sent);
            left -= sent;
        }
        Ok(())
    }

    /// Receives so much, or up to the peer's end; says how much is missing.
    pub(super) fn receive(
        &mut self,
        socket: &Socket,
        bytes: usize,
        until: Phase,
        shared: &FlowShared,
        local: &mut Local,
    ) -> io::Result<usize> {
        let mut left = bytes;
        while left > 0 {
            if local.phase() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let most = left.min(local.receive_buffer.len());
            let into = local.receive_buffer.get_mut(..most).unwrap_or_default();
            self.dirt.before_receive(into);
            let length = match &mut self.spin_wait {
                Some(wait) => wait.receive(Awaited::Bytes, socket, into, RecvFlags::empty())?,
                None => rustix::net::recv(socket.as_fd(), into, RecvFlags::empty())?.0,
            };
            if length == 0 {
                break;
            }
            shared.tally.record_received(length);
            left -= length;
        }
        Ok(left)
    }
}
