//! What carries a connection that comes and goes: TCP, or TLS over it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::Handshake;
use linerate_measure::sample::TcpStatus;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::RecvFlags;
use rustix::time::Timespec;
use rustls::Connection;
use socket2::Socket;

use super::LONGEST_WAIT_NS;
use super::attempt::{Carrier, Part};
use super::opening::TcpOpening;
use super::script::{LifeStream, Progress};
use super::slots::Milestones;
use super::spin_wait::{Awaited, SpinWait};
use crate::flow::{CALLS_PER_TURN, Local};
use crate::socket::{TcpCounts, tcp_counts, tcp_status, tcp_unacknowledged_bytes};
use crate::tally::Tally;
use crate::transport::{ByteStream, Tcp, Tls};

/// A connection's socket, and the session over it where there is one.
pub(super) struct TcpCarrier {
    tcp: Tcp,
    tls: Option<Box<Tls>>,
}

impl TcpCarrier {
    pub(super) fn new(socket: Socket) -> Self {
        Self { tcp: Tcp(Arc::new(socket)), tls: None }
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.tcp.0
    }

    /// The socket alone; `None` under TLS, which has read some of its bytes.
    pub(super) fn into_socket(self) -> Option<Socket> {
        let Self { tcp, tls } = self;
        if tls.is_some() {
            return None;
        }
        Arc::into_inner(tcp.0)
    }

    /// From here on everything goes under TLS.
    pub(super) fn secure(&mut self, session: Connection) {
        // A handshake is small messages back and forth, none of which may wait for the next.
        let _slower_at_worst = self.tcp.0.set_tcp_nodelay(true);
        self.tls = Some(Box::new(Tls::new(Arc::clone(&self.tcp.0), session)));
    }

    /// Waits a little for a connection on its way: sending at once would wait too, and hide when it
    /// stood.
    pub(super) fn await_connection(&self) -> io::Result<()> {
        let mut polled = [PollFd::new(self, PollFlags::OUT)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: LONGEST_WAIT_NS as _ };
        match poll(&mut polled, Some(&timeout))? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }

    /// Fails with `WouldBlock` as long as the connection is on its way, and as it did where it came to nothing.
    pub(super) fn see_connection(&self) -> io::Result<()> {
        // A call less than poll and SO_ERROR.
        if self.tcp.0.peer_addr().is_ok() {
            return Ok(());
        }
        let mut polled = [PollFd::new(self, PollFlags::OUT)];
        if poll(&mut polled, Some(&Timespec::default()))? == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.tcp.0.take_error()?.map_or(Ok(()), Err)
    }

    /// Whether the peer has yet to say its last word of TLS's handshake.
    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    pub(super) fn establish(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| tls.establish())
    }

    /// Sends the beginning of `bytes` with the first messages of TLS (0-RTT), where the server has
    /// promised to take that; says how many.
    pub(super) fn send_early(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tls.as_mut().map_or(Ok(0), |tls| tls.send_early(bytes))
    }
}

impl LifeStream for TcpCarrier {
    type Wait = Option<SpinWait>;

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.send(bytes),
            None => self.tcp.send(bytes),
        }
    }

    fn holds_no_bytes(&self) -> bool {
        self.tls.is_none()
    }

    /// Receives; without TLS by way of `spin_wait` where there is one.
    #[inline]
    fn receive(
        &mut self,
        awaited: Awaited,
        into: &mut [u8],
        spin_wait: &mut Option<SpinWait>,
    ) -> io::Result<usize> {
        match (&mut self.tls, spin_wait) {
            (Some(tls), _) => tls.receive(into),
            (None, Some(spin_wait)) => {
                spin_wait.receive(awaited, &self.tcp.0, into, RecvFlags::empty())
            }
            (None, None) => self.tcp.receive(into),
        }
    }
}

impl Carrier for TcpCarrier {
    type Opening = TcpOpening;

    const OPERATIONS_PER_TURN: u32 = CALLS_PER_TURN;

    fn open(
        &mut self,
        opening: &mut TcpOpening,
        part: &Part,
        times: &mut Milestones,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<Option<Progress>> {
        opening.advance(self, part, times, tally, local)
    }

    fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| tls.flush())
    }

    fn take_ticket(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| tls.take_ticket())
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => tls.finish_sending(),
            None => self.tcp.finish_sending(),
        }
    }

    fn discard(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.tls {
            Some(_) => Ok(0),
            None => self.tcp.receive(into),
        }
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        let local = self.socket().local_addr().ok()?.as_socket()?;
        let peer = self.socket().peer_addr().ok()?.as_socket()?;
        Some((local, peer))
    }

    fn unacknowledged_bytes(&self) -> u64 {
        tcp_unacknowledged_bytes(self.as_fd()).unwrap_or(0)
    }

    fn kernel_figures(&self) -> Option<(TcpStatus, TcpCounts)> {
        Some((tcp_status(self.as_fd())?, tcp_counts(self.as_fd())))
    }

    fn handshake(&self) -> Option<Handshake> {
        self.tls.as_ref().map(|tls| tls.handshake())
    }

    /// Closes in order, after what TLS has to say.
    fn close(mut self) {
        if let Some(tls) = &mut self.tls {
            // The peer may have gone; it has had its response.
            let _gone = tls.finish_sending();
        }
    }

    fn reset(self) {
        // A socket that doesn't take the option closes in order.
        let _in_order = self.tcp.0.set_linger(Some(Duration::ZERO));
    }
}

impl AsFd for TcpCarrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.0.as_fd()
    }
}
