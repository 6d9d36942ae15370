//! The listening socket: as those tests want it whose streams are to come.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use linerate_measure::plan::Family;
use linerate_wire::iperf3::Parameters;
use socket2::{Protocol, Socket};

use crate::acceptor::{Accepted, accept};
use crate::iperf3::ServePlan;
use crate::socket::{
    EVERYWHERE_V4, EVERYWHERE_V6, FirstWindow, listen_at, or_over_v4, unbound_listener,
};

/// How often one tries to have the port again, and how long after each failure.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// What is settled before a stream is accepted, since its handshake says it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beginning {
    /// Whether the client wants MPTCP.
    pub(super) multipath: bool,
    window_bytes: Option<u32>,
}

impl Beginning {
    pub(super) fn of(parameters: &Parameters) -> Self {
        Self { multipath: parameters.mptcp, window_bytes: parameters.window_bytes }
    }
}

/// The server's port over TCP.
pub(super) struct Listener {
    socket: Socket,
    address: SocketAddr,
    device: Option<String>,
    only_v6: bool,
    first_window: FirstWindow,
    /// Whether a test has wanted MPTCP, or the socket isn't ours to replace.
    multipath: bool,
    /// The tests whose streams are to come.
    awaiting: Vec<(u64, Beginning)>,
}

impl Listener {
    /// On all addresses of both families where the host has them.
    pub(super) fn open(plan: &ServePlan) -> io::Result<Self> {
        let at = |ip: IpAddr| Self::open_at(plan, SocketAddr::new(ip, plan.port));
        match (plan.bind, plan.family) {
            (Some(mut address), _) => {
                address.set_port(plan.port);
                Self::open_at(plan, address)
            }
            (None, Some(Family::Ipv4)) => at(EVERYWHERE_V4),
            (None, Some(Family::Ipv6)) => at(EVERYWHERE_V6),
            (None, None) => or_over_v4(SocketAddr::new(EVERYWHERE_V6, plan.port), |address| {
                Self::open_at(plan, address)
            }),
        }
    }

    fn open_at(plan: &ServePlan, address: SocketAddr) -> io::Result<Self> {
        let device = plan.bind_device.clone();
        let only_v6 = plan.family == Some(Family::Ipv6);
        let socket = unbound_listener(Protocol::TCP, address, device.as_deref(), only_v6)?;
        listen_at(&socket, address)?;
        let address = socket.local_addr()?.as_socket();
        Ok(Self {
            address: address.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?,
            first_window: FirstWindow::of(&socket)?,
            socket,
            device,
            only_v6,
            multipath: false,
            awaiting: Vec::new(),
        })
    }

    /// Over a socket that a service manager handed over. It stays the one that it is, and speaks MPTCP if it does already.
    pub(super) fn over(socket: Socket, address: SocketAddr) -> io::Result<Self> {
        Ok(Self {
            address,
            first_window: FirstWindow::of(&socket)?,
            socket,
            device: None,
            only_v6: false,
            multipath: true,
            awaiting: Vec::new(),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn accept(&self) -> io::Result<Accepted> {
        accept(&self.socket)
    }

    /// Gives a connection that turns out to be no stream the buffer that it would have without the tests that await some.
    pub(super) fn restore(&self, accepted: &Socket) {
        self.first_window.restore(accepted);
    }

    /// Whether the socket is about to be another, which loses the connections that were not accepted.
    pub(super) fn is_changed_by(&self, beginning: Beginning) -> bool {
        beginning.multipath && !self.multipath
    }

    /// The streams of a test are to come.
    pub(super) fn await_streams(&mut self, test: u64, beginning: Beginning) -> io::Result<()> {
        self.awaiting.push((test, beginning));
        if self.is_changed_by(beginning) {
            self.speak_multipath()?;
        }
        self.set_first_window();
        Ok(())
    }

    /// A test has its streams, or is over.
    pub(super) fn release(&mut self, test: u64) {
        self.awaiting.retain(|(awaiting, _)| *awaiting != test);
        self.set_first_window();
    }

    fn set_first_window(&mut self) {
        let wanted = self.awaiting.iter().map(|(_, beginning)| beginning.window_bytes);
        self.first_window.set(&self.socket, FirstWindow::agreed(wanted));
    }

    /// Speaks MPTCP from now on with clients that do, where the kernel does; others get plain TCP all the same. For
    /// good, since further paths join a connection by way of its listener, for as long as it stands.
    /// Not from the start, since such a listener's first window can't be changed back.
    fn speak_multipath(&mut self) -> io::Result<()> {
        let device = self.device.as_deref();
        let next = unbound_listener(Protocol::MPTCP, self.address, device, self.only_v6);
        let Ok(next) = next else { return Ok(()) };
        self.multipath = true;
        // Two can't have the port.
        drop(std::mem::replace(&mut self.socket, next));
        let mut tries = 1;
        while let Err(error) = listen_at(&self.socket, self.address) {
            if tries == TRIES {
                return Err(error);
            }
            tries += 1;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    /// The stream that comes now.
    fn accepted(listener: &Listener) -> Socket {
        let _client = TcpStream::connect(("127.0.0.1", listener.address().port())).unwrap();
        loop {
            if let Accepted::Client(socket, _) = listener.accept().unwrap() {
                return socket;
            }
        }
    }

    fn received_bytes(listener: &Listener) -> usize {
        accepted(listener).recv_buffer_size().unwrap()
    }

    fn listener() -> Listener {
        Listener::open(&ServePlan { port: 0, ..ServePlan::default() }).unwrap()
    }

    const SMALL: Beginning = Beginning { multipath: false, window_bytes: Some(8_192) };

    #[test]
    fn streams_begin_with_their_window_while_no_other_test_awaits_any() {
        let mut listener = listener();
        let usual_bytes = received_bytes(&listener);
        listener.await_streams(1, SMALL).unwrap();
        let early = accepted(&listener);
        assert_eq!(early.recv_buffer_size().unwrap(), 16_384);
        let late = accepted(&listener);
        listener.restore(&early);
        assert_eq!(early.recv_buffer_size().unwrap(), usual_bytes);
        listener.await_streams(2, Beginning::default()).unwrap();
        assert_eq!(received_bytes(&listener), usual_bytes);
        listener.release(2);
        assert_eq!(received_bytes(&listener), 16_384);
        listener.release(1);
        listener.release(1);
        assert_eq!(received_bytes(&listener), usual_bytes);
        listener.restore(&late);
        assert_eq!(late.recv_buffer_size().unwrap(), usual_bytes);
    }

    #[test]
    fn it_speaks_mptcp_on_the_same_port_from_the_first_test_on_that_wants_it() {
        let mut listener = listener();
        let (address, usual_bytes) = (listener.address(), received_bytes(&listener));
        let multipath = Beginning { multipath: true, ..SMALL };
        assert!(listener.is_changed_by(multipath) && !listener.is_changed_by(SMALL));
        listener.await_streams(1, multipath).unwrap();
        assert!(!listener.is_changed_by(multipath));
        assert_eq!(listener.socket.local_addr().unwrap().as_socket(), Some(address));
        listener.release(1);
        assert_eq!(received_bytes(&listener), usual_bytes);
    }
}
