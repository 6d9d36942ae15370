//! The listening socket: as those tests want it whose streams are to come.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use linerate_measure::plan::Family;
use linerate_wire::iperf3::Parameters;
use socket2::{Protocol, Socket};

use crate::iperf3::ServePlan;
use crate::socket::{EVERYWHERE_V4, EVERYWHERE_V6, FirstWindow, accept_stream, listen_over};

/// How often, and after how long each time, one tries to have the port again.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// What is settled before a stream is accepted, since its handshake says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beginning {
    /// Whether clients that speak MPTCP get that. Others get plain TCP all the same.
    multipath: bool,
    window_bytes: Option<u32>,
}

impl Beginning {
    pub(super) fn of(parameters: &Parameters) -> Self {
        Self { multipath: parameters.mptcp, window_bytes: parameters.window_bytes }
    }
}

/// The server's port over TCP.
pub(super) struct Listener {
    /// Absent only where the port is lost.
    socket: Option<Socket>,
    first_window: FirstWindow,
    /// With the port that it got.
    plan: ServePlan,
    begins: Beginning,
    /// The tests whose streams are to come.
    awaiting: Vec<(u64, Beginning)>,
}

impl Listener {
    pub(super) fn open(plan: &ServePlan) -> io::Result<(Self, SocketAddr)> {
        let socket = open(plan, Protocol::TCP)?;
        let address = socket.local_addr()?.as_socket();
        let address = address.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
        let listener = Self {
            first_window: FirstWindow::of(&socket)?,
            socket: Some(socket),
            plan: ServePlan { port: address.port(), ..plan.clone() },
            begins: Beginning::default(),
            awaiting: Vec::new(),
        };
        Ok((listener, address))
    }

    pub(super) fn accept(&self) -> io::Result<Socket> {
        let socket = self.socket.as_ref();
        accept_stream(socket.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?, false)
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// The streams of a test are to come.
    pub(super) fn await_streams(&mut self, test: u64, beginning: Beginning) -> io::Result<()> {
        self.awaiting.push((test, beginning));
        self.adapt()
    }

    /// A test has its streams, or is over.
    pub(super) fn release(&mut self, test: u64) -> io::Result<()> {
        self.awaiting.retain(|(awaiting, _)| *awaiting != test);
        self.adapt()
    }

    /// Where tests want different windows, none gets its own before its streams stand: too large a first window
    /// costs it throughput, one too small would cost the others theirs.
    fn adapt(&mut self) -> io::Result<()> {
        let awaiting = self.awaiting.iter().map(|(_, beginning)| beginning);
        let wanted = Beginning {
            multipath: awaiting.clone().any(|beginning| beginning.multipath),
            window_bytes: FirstWindow::agreed(awaiting.map(|beginning| beginning.window_bytes)),
        };
        if wanted == self.begins {
            return Ok(());
        }
        if wanted.multipath || self.begins.multipath {
            self.reopen(wanted)?;
        }
        if let Some(socket) = &self.socket {
            self.first_window.set(socket, wanted.window_bytes);
        }
        self.begins = wanted;
        Ok(())
    }

    /// Makes the socket anew, as the original does: its protocol can't change, nor its window over MPTCP.
    fn reopen(&mut self, begins: Beginning) -> io::Result<()> {
        // Two can't have the port.
        self.socket = None;
        let protocol = if begins.multipath { Protocol::MPTCP } else { Protocol::TCP };
        let mut tries = 1;
        let socket = loop {
            match open(&self.plan, protocol) {
                Ok(socket) => break socket,
                Err(error) if tries >= TRIES => return Err(error),
                Err(_) => tries += 1,
            }
            std::thread::sleep(PAUSE);
        };
        self.first_window = FirstWindow::of(&socket)?;
        if let (true, Some(bytes)) = (begins.multipath, begins.window_bytes) {
            // Each stream's buffers are checked when it stands.
            let _less_at_worst = socket.set_recv_buffer_size(bytes as usize);
        }
        self.socket = Some(socket);
        Ok(())
    }
}

/// On all addresses of both families where the host has them; over plain TCP where the kernel has no MPTCP.
fn open(plan: &ServePlan, protocol: Protocol) -> io::Result<Socket> {
    let device = plan.bind_device.as_deref();
    let only_v6 = plan.family == Some(Family::Ipv6);
    let at = |ip: IpAddr| {
        let address = SocketAddr::new(ip, plan.port);
        let over = |protocol| listen_over(protocol, address, device, only_v6);
        over(protocol).or_else(|error| match protocol {
            Protocol::MPTCP => over(Protocol::TCP),
            _ => Err(error),
        })
    };
    match (plan.bind, plan.family) {
        (Some(ip), _) => at(ip),
        (None, Some(Family::Ipv4)) => at(EVERYWHERE_V4),
        (None, Some(Family::Ipv6)) => at(EVERYWHERE_V6),
        (None, None) => at(EVERYWHERE_V6).or_else(|error| match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT) => at(EVERYWHERE_V4),
            _ => Err(error),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    /// The receive buffer of a stream that comes now.
    fn received_bytes(listener: &Listener, port: u16) -> usize {
        let _client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let accepted = loop {
            match listener.accept() {
                Ok(socket) => break socket,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        accepted.recv_buffer_size().unwrap()
    }

    fn listener() -> (Listener, u16) {
        let plan = ServePlan { port: 0, ..ServePlan::default() };
        let (listener, address) = Listener::open(&plan).unwrap();
        (listener, address.port())
    }

    const SMALL: Beginning = Beginning { multipath: false, window_bytes: Some(8_192) };

    #[test]
    fn streams_begin_with_their_window_while_no_other_test_awaits_any() {
        let (mut listener, port) = listener();
        let usual_bytes = received_bytes(&listener, port);
        listener.await_streams(1, SMALL).unwrap();
        assert_eq!(received_bytes(&listener, port), 16_384);
        listener.await_streams(2, Beginning::default()).unwrap();
        assert_eq!(received_bytes(&listener, port), usual_bytes);
        listener.release(2).unwrap();
        assert_eq!(received_bytes(&listener, port), 16_384);
        listener.release(1).unwrap();
        listener.release(1).unwrap();
        assert_eq!(received_bytes(&listener, port), usual_bytes);
    }

    #[test]
    fn a_port_that_speaks_mptcp_for_a_while_stays_the_same() {
        let (mut listener, port) = listener();
        let usual_bytes = received_bytes(&listener, port);
        let multipath = Beginning { multipath: true, ..SMALL };
        listener.await_streams(1, multipath).unwrap();
        assert_eq!(received_bytes(&listener, port), 16_384);
        listener.release(1).unwrap();
        assert_eq!(received_bytes(&listener, port), usual_bytes);
        assert_eq!(listener.begins, Beginning::default());
    }
}
