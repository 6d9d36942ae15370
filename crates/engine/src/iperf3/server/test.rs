//! One client's test, on a thread of its own.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linerate_wire::iperf3::server::Server;
use linerate_wire::iperf3::{Code, Cookie, Parameters, Protocol};
use socket2::Socket;

use super::acceptor::Notice;
use super::awaited::Awaited;
use super::conversation::Conversation;
use crate::acceptor::ClientSlot;
use crate::clock::{monotonic_ns, utc_ns};
use crate::error::Error;
use crate::event::Cancel;
use crate::iperf3::control::control;
use crate::iperf3::descriptors::Reserved;
use crate::iperf3::token::Gate;
use crate::iperf3::{Event, Failure, Keepalive, Observer, Role, ServePlan, sockets};
use crate::waker::Waker;

/// What the acceptor tells a test.
pub(super) enum Arrival {
    /// One of its streams has come.
    Stream(Socket),
    /// Its client may make streams now.
    Turn,
    /// It can't have more.
    Failed(Failure),
}

/// A test that has a cookie and a connection, and nothing more yet.
pub(super) struct Test {
    pub(super) number: u64,
    pub(super) cookie: Cookie,
    pub(super) plan: ServePlan,
    pub(super) gate: Option<Arc<Gate>>,
    pub(super) observer: Box<dyn Observer>,
    pub(super) cancel: Cancel,
    pub(super) slot: ClientSlot,
    pub(super) waker: Arc<Waker>,
    pub(super) to_self: Sender<Arrival>,
    pub(super) arrivals: Receiver<Arrival>,
    pub(super) acceptor: (Sender<Notice>, Arc<Waker>),
}

impl Test {
    /// Starts the thread. The acceptor learns of its end in any case.
    pub(super) fn start(self, socket: Socket) {
        let (number, acceptor) = (self.number, self.acceptor.clone());
        let refused = Error::no_thread(&io::Error::from_raw_os_error(libc::EAGAIN)).to_string();
        let failure = Some(Failure::of(Code::THREAD_CREATE).because(refused));
        let ending = Ending { number, acceptor, failure };
        let body = move || {
            // Dropped last, so that it also speaks where this unwinds.
            let mut ending = ending;
            ending.failure = None;
            ending.failure = self.run(socket).err();
        };
        // Without a thread the closure is dropped, and the ending in it tells.
        let _no_thread = std::thread::Builder::new().name("test".into()).spawn(body);
    }

    fn run(mut self, socket: Socket) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::system(Code::ACCEPT, &error);
        let (local, remote) = sockets::addresses(&socket).map_err(failed)?;
        self.observer.handle(&Event::Connected(Box::new(crate::iperf3::Control {
            role: Role::Server,
            local,
            remote,
            cookie: self.cookie,
            mss_bytes: socket.tcp_mss().ok(),
            keepalive: self.plan.keepalive.map(Keepalive::completed),
            utc_ns: utc_ns(),
        })));
        let machine = Server::new(monotonic_ns());
        let control = control(machine, socket, self.plan.keepalive, self.plan.send_timeout)?;
        let mut conversation = Conversation::new(self, control, (local, remote));
        let outcome = conversation.conduct();
        conversation.close(outcome.as_ref().err());
        outcome
    }

    /// Says something to the acceptor.
    pub(super) fn tell(&self, notice: Notice) {
        // The acceptor outlives its tests, unless the process ends.
        let _ended = self.acceptor.0.send(notice);
        self.acceptor.1.wake();
    }

    /// Whether the server lets a client do what it asks for, and with what.
    pub(super) fn admit(&self, parameters: &Parameters) -> Result<Reserved, Failure> {
        if let Some(gate) = &self.gate {
            let token = parameters.auth_token.as_deref().unwrap_or_default();
            let sealed = STANDARD.decode(token).unwrap_or_default();
            if !gate.lets_in(&sealed, utc_ns()) {
                return Err(Failure::of(Code::AUTHORIZATION));
            }
        }
        if let Some(limit) = self.plan.rate_limit {
            let streams = u64::try_from(parameters.total_streams()).unwrap_or(u64::MAX);
            let stream_bps = parameters.bandwidth_bps.max(parameters.fq_rate_bps);
            if stream_bps.saturating_mul(streams) > limit.bps {
                return Err(Failure::of(Code::TOTAL_RATE));
            }
        }
        if self.plan.file.is_some() && parameters.protocol == Protocol::Udp {
            return Err(Failure::of(Code::UDP_FILE));
        }
        let length_s = u64::from(parameters.time_s) + u64::from(parameters.omit_s);
        match self.plan.max_duration_s {
            Some(most_s) if parameters.time_s == 0 || length_s > u64::from(most_s) => {
                Err(Failure::of(Code::MAX_DURATION))
            }
            _ => Reserved::of(parameters, self.plan.file.is_some()),
        }
    }

    /// The client's address, and this end's towards it.
    pub(super) fn claim(
        &self,
        (local, remote): (SocketAddr, SocketAddr),
        awaited: Arc<Awaited>,
        answered_unasked_after_ns: u64,
        block_bytes: usize,
    ) -> super::udp::Claim {
        super::udp::Claim {
            test: self.number,
            client: remote.ip(),
            local,
            awaited,
            answered_unasked_after_ns,
            block_bytes,
            newest: None,
            to: self.to_self.clone(),
            waker: Arc::clone(&self.waker),
        }
    }
}

/// Tells the acceptor that a test is over, whatever ended it.
struct Ending {
    number: u64,
    acceptor: (Sender<Notice>, Arc<Waker>),
    failure: Option<Failure>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let _ended = self.acceptor.0.send(Notice::Over(self.number, self.failure.take()));
        self.acceptor.1.wake();
    }
}
