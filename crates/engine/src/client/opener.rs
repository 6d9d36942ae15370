//! Opens the flows of a test: many at once, without ever waiting for one.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::{Kind, Plan, Transport, Workload};
use linerate_wire::native::datagram::{Handshake, Hello, PADDED_BYTES, Proof, flow_tag};
use linerate_wire::native::opening::Opening;
use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvFlags, recv};
use rustls::ClientConfig;
use socket2::Socket;

use super::dial::{binding, flow_error};
use crate::clock::{MILLISECOND_NS, SECOND_NS};
use crate::control::server_name;
use crate::error::Error;
use crate::load::Load;
use crate::poll::poll_until;
use crate::probe::raise_open_files_limit;
use crate::socket::{configure_stream, connect_stream, flow_datagram};
use crate::transport::Negotiation;

/// The most connections that are on their way at once: enough to hide the path's delay, few enough not to
/// overflow a listener's queue. Until they stand they are in the file table that all share.
const MOST_AT_ONCE: usize = 256;
/// A message of the UDP handshake that isn't answered is sent again after this time.
const AGAIN_NS: u64 = 250 * MILLISECOND_NS;
/// The longest time without another flow that is set up.
const NEXT_FLOW_NS: u64 = 10 * SECOND_NS;
/// The longest time after the server is ready. The server waits for the start longer: this end knows what is missing.
const AFTER_READY_NS: u64 = 8 * SECOND_NS;

/// The flows that are still to be opened.
pub(super) struct Opener {
    server: SocketAddr,
    token: [u8; 16],
    transport: Transport,
    plan: Plan,
    tls: Option<Arc<ClientConfig>>,
    next: u32,
    total: u32,
    pending: Vec<Pending>,
    at_once: usize,
    /// When the last flow came to stand, or the opener began.
    stood_ns: u64,
    /// When all must stand, where the server is ready already.
    latest_ns: u64,
}

struct Pending {
    flow: u32,
    socket: Socket,
    /// What the UDP handshake says next, and when.
    saying: Option<Handshake>,
    due_ns: u64,
}

impl Opener {
    pub(super) fn new(
        plan: &Plan,
        server: SocketAddr,
        token: [u8; 16],
        tls: Option<Arc<ClientConfig>>,
        quic_sockets: u32,
        now_ns: u64,
    ) -> Self {
        Self {
            server,
            token,
            transport: plan.workload.transport,
            plan: plan.clone(),
            tls,
            next: 0,
            // Connections that come and go are opened as they are measured.
            total: match plan.workload.kind {
                _ if plan.workload.transport == Transport::Quic => quic_sockets,
                Kind::Connect { .. } => 0,
                Kind::Stream { .. } | Kind::Rr { .. } => plan.workload.opened_flows(),
            },
            pending: Vec::new(),
            at_once: (raise_open_files_limit() / 4).clamp(1, MOST_AT_ONCE as u64) as usize,
            stood_ns: now_ns,
            latest_ns: u64::MAX,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.next == self.total && self.pending.is_empty()
    }

    /// What to poll for.
    pub(super) fn poll_set(&self) -> impl Iterator<Item = PollFd<'_>> {
        let flags = match self.transport {
            Transport::Udp | Transport::Quic => PollFlags::IN,
            Transport::Tcp | Transport::Tls => PollFlags::OUT,
        };
        self.pending.iter().map(move |one| PollFd::from_borrowed_fd(one.socket.as_fd(), flags))
    }

    /// When something is due even if nothing happens.
    pub(super) fn next_time(&self) -> Option<u64> {
        if self.next < self.total && self.pending.len() < self.at_once {
            return Some(0);
        }
        let due_ns = self.pending.iter().map(|one| one.due_ns).min();
        due_ns.map(|due_ns| due_ns.min(self.deadline_ns()))
    }

    /// When the opener gives up, unless another flow is set up by then.
    fn deadline_ns(&self) -> u64 {
        self.latest_ns.min(self.stood_ns + NEXT_FLOW_NS)
    }

    /// Goes on as far as it can; flows that stand go to the load. Whether any does.
    pub(super) fn advance(&mut self, now_ns: u64, load: &mut Load) -> Result<bool, Error> {
        if now_ns > self.deadline_ns() && !self.is_done() {
            return Err(self.lost_patience(now_ns));
        }
        while self.next < self.total && self.pending.len() < self.at_once {
            let pending = self.begin(self.next)?;
            self.pending.push(pending);
            self.next += 1;
        }
        // From the last to the first, so that what is removed leaves the others' places alone.
        for (index, has_come) in self.arrivals().into_iter().enumerate().rev() {
            let Some(pending) = self.pending.get_mut(index) else { continue };
            let stands = match self.transport {
                _ if !has_come && now_ns < pending.due_ns => false,
                Transport::Udp | Transport::Quic => shake_hands(pending, now_ns)?,
                Transport::Tcp | Transport::Tls => is_connected(pending, self.server)?,
            };
            if stands {
                let pending = self.pending.swap_remove(index);
                self.hand_over(pending, load)?;
                self.stood_ns = now_ns;
            }
        }
        Ok(self.stood_ns == now_ns)
    }

    /// Which of the pending sockets have something to say.
    fn arrivals(&self) -> Vec<bool> {
        let mut polled: Vec<PollFd<'_>> = self.poll_set().collect();
        poll_until(&mut polled, 0);
        polled.iter().map(|one| !one.revents().is_empty()).collect()
    }

    /// The server says that every flow stands there. Only the last word of a handshake can still
    /// be missing here, and it says no more than that.
    pub(super) fn handle_ready(&mut self, now_ns: u64, load: &mut Load) -> Result<(), Error> {
        // QUIC connections that come and go stand nowhere yet when the server is ready.
        if self.transport == Transport::Quic {
            self.latest_ns = now_ns + AFTER_READY_NS;
            return Ok(());
        }
        for pending in std::mem::take(&mut self.pending) {
            self.hand_over(pending, load)?;
        }
        Ok(())
    }

    fn begin(&self, flow: u32) -> Result<Pending, Error> {
        let failed = |error| flow_error(self.server, error);
        let binding = binding(&self.plan, flow).map_err(failed)?;
        let options = &self.plan.workload.socket;
        if self.is_datagrams() {
            let socket = flow_datagram(None, self.server, &binding, options).map_err(failed)?;
            socket.set_nonblocking(true).map_err(failed)?;
            let saying = Some(Handshake::Hello(Hello { flow, token: self.token }));
            Ok(Pending { flow, socket, saying, due_ns: 0 })
        } else {
            let socket = connect_stream(self.server, &binding, options).map_err(failed)?;
            Ok(Pending { flow, socket, saying: None, due_ns: u64::MAX })
        }
    }

    fn hand_over(&self, pending: Pending, load: &mut Load) -> Result<(), Error> {
        let Pending { flow, socket, .. } = pending;
        match self.transport {
            Transport::Udp => load.add_datagrams(flow, socket, flow_tag(&self.token, flow)),
            Transport::Quic => load.add_quic_socket(flow, socket),
            Transport::Tcp | Transport::Tls => return self.hand_over_stream(flow, socket, load),
        }
        Ok(())
    }

    fn is_datagrams(&self) -> bool {
        matches!(self.transport, Transport::Udp | Transport::Quic)
    }

    fn hand_over_stream(&self, flow: u32, socket: Socket, load: &mut Load) -> Result<(), Error> {
        let workload = &self.plan.workload;
        let failed = |error| flow_error(self.server, error);
        configure_stream(&socket, &workload.socket, workload.no_delay())
            .map_err(|error| option_error(workload, self.server, error))?;
        // 32 bytes always fit into the buffer of a new connection.
        socket.send(&Opening { flow, token: self.token }.encode()).map_err(failed)?;
        let negotiation = match &self.tls {
            None => None,
            Some(config) => Some(
                Negotiation::client(config, server_name())
                    .map_err(|error| Error::Host(format!("can't begin TLS: {error}")))?,
            ),
        };
        load.add_stream(flow, socket, negotiation);
        Ok(())
    }

    fn lost_patience(&self, now_ns: u64) -> Error {
        let seconds = now_ns.saturating_sub(self.stood_ns) / SECOND_NS;
        let standing = (self.next as usize).saturating_sub(self.pending.len());
        let (server, total) = (self.server, self.total);
        Error::Unreachable(if self.is_datagrams() && standing == 0 {
            format!(
                "the server answers over TCP, but not over UDP to {server} (nothing came back \
                 for {seconds} s): does a firewall let UDP port {} pass?",
                server.port()
            )
        } else {
            // Over QUIC there is one for each thread.
            let (things, option) = match self.transport {
                Transport::Udp => ("UDP flows", "--flows"),
                Transport::Quic => ("UDP sockets", "--threads"),
                Transport::Tcp | Transport::Tls => ("connections", "--flows"),
            };
            format!(
                "only {standing} of {total} {things} to {server} were set up, and no more within \
                 {seconds} s: ask for fewer {option}"
            )
        })
    }
}

fn option_error(workload: &Workload, server: SocketAddr, error: io::Error) -> Error {
    match (&workload.socket.congestion, error.raw_os_error()) {
        (Some(name), Some(libc::ENOENT)) => Error::Plan(format!(
            "this machine has no congestion control \"{name}\": see \
             /proc/sys/net/ipv4/tcp_available_congestion_control"
        )),
        _ => flow_error(server, error),
    }
}

fn is_connected(pending: &Pending, server: SocketAddr) -> Result<bool, Error> {
    if let Ok(Some(error)) | Err(error) = pending.socket.take_error() {
        return Err(flow_error(server, error));
    }
    Ok(pending.socket.peer_addr().is_ok())
}

/// One step of the UDP handshake; says whether the flow stands.
fn shake_hands(pending: &mut Pending, now_ns: u64) -> Result<bool, Error> {
    let mut datagram = [0_u8; PADDED_BYTES];
    while let Ok((length, _)) =
        recv(pending.socket.as_fd(), datagram.as_mut_slice(), RecvFlags::empty())
    {
        match (Handshake::decode(&datagram[..length.min(PADDED_BYTES)]), pending.saying) {
            (Ok(Handshake::Cookie(cookie)), Some(Handshake::Hello(hello))) => {
                let (flow, token) = (hello.flow, hello.token);
                let proof = Proof { flow, token, cookie: cookie.cookie };
                pending.saying = Some(Handshake::Proof(proof));
                pending.due_ns = 0;
            }
            (Ok(Handshake::Welcome(welcome)), _) if welcome.flow == pending.flow => {
                return Ok(true);
            }
            _ => {}
        }
    }
    if now_ns >= pending.due_ns
        && let Some(saying) = pending.saying
    {
        let mut message = [0_u8; PADDED_BYTES];
        let length = saying.encode(&mut message).unwrap_or(0);
        // Refused or out of room: said again when it is due again.
        let _said_again = pending.socket.send(&message[..length]);
        pending.due_ns = now_ns + AGAIN_NS;
    }
    Ok(false)
}
