//! A control connection to a netserver, and what is asked over it.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use linerate_wire::Machine as _;
use linerate_wire::netperf::client::{Client as Machine, ClientEvent};
use linerate_wire::netperf::fault::Fault;
use linerate_wire::netperf::message::Form;
use rustix::event::{PollFd, PollFlags};
use socket2::{Domain, Protocol, Socket, Type};

use super::client_test::ClientTest;
use super::control::{Control, channel, set_patient, unheard};
use super::liveness::Liveness;
use super::outcome::{Calibration, Outcome};
use super::plan::{ControlPlan, TestPlan};
use super::{address_beside, interface, over_interface};
use crate::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns};
use crate::control::Lost;
use crate::error::Error;
use crate::event::{Cancel, Sink};
use crate::resolve;
use crate::socket::plain;
use crate::tally::Counts;

/// How long one address is tried.
const CONNECT: Duration = Duration::from_secs(5);
/// A server from whose machine no packet comes for so long is gone. A path that is down for a while
/// ends no test, nor does one whose queue another load fills.
const SILENCE: Duration = Duration::from_secs(60);
/// How often a request to stop is looked for.
const LOOK_NS: u64 = 50 * MILLISECOND_NS;
/// A server that has finished closes within this time.
const CLOSING_NS: u64 = 2 * SECOND_NS;

/// A control connection to a netserver. Tests go over it one after another.
pub struct Client {
    pub(super) control: Control<Machine>,
    local: SocketAddr,
    peer: SocketAddr,
    server_cpu: Option<u32>,
    remote_error: Option<i32>,
    /// Whether the server isn't waited for at the end.
    leaves_at_once: bool,
}

/// Makes one test over a control connection of its own.
///
/// # Errors
///
/// When the server can't be reached, refuses, speaks wrongly or falls silent, and when this machine
/// can't do what was asked for.
pub fn run(
    control: &ControlPlan,
    plan: &TestPlan,
    sink: &Sink,
    cancel: &Cancel,
) -> Result<Outcome, Error> {
    let mut client = Client::connect(control, cancel)?;
    let outcome = client.run(plan, sink, cancel)?;
    client.close();
    Ok(outcome)
}

/// Makes one test without a netserver, against whatever discards, generates or echoes at the
/// remote port (`-N`), which the plan names. Only this end's figures are known.
///
/// # Errors
///
/// When the server can't be reached, and when this machine can't do what was asked for.
pub fn run_alone(
    remote: SocketAddr,
    plan: &TestPlan,
    sink: &Sink,
    cancel: &Cancel,
) -> Result<Outcome, Error> {
    ClientTest::prepare(None, remote, plan)?.run(sink, cancel)
}

impl Client {
    /// Connects to a netserver. It says nothing by itself, so that anything that listens there
    /// passes for one until it is asked for a test.
    ///
    /// # Errors
    ///
    /// When the server's port is closed, or the passphrase is too long for a message.
    pub fn connect(plan: &ControlPlan, cancel: &Cancel) -> Result<Self, Error> {
        let form = if plan.short_messages { Form::Short } else { Form::Long };
        let most = form.message_bytes() - 9;
        if plan.passphrase.as_ref().is_some_and(|phrase| phrase.len() > most) {
            return Err(Error::Plan(format!(
                "a passphrase has at most {most} bytes: give a shorter one to both ends"
            )));
        }
        let socket = dial(plan, cancel)?;
        let broken = |source| Error::Io {
            operation: "prepare the control connection to",
            address: plan.host.clone(),
            source,
        };
        let address = |of: std::io::Result<socket2::SockAddr>| {
            of.map(|address| address.as_socket()).map_err(broken)
        };
        let ends = (address(socket.local_addr())?, address(socket.peer_addr())?);
        let (Some(local), Some(peer)) = ends else {
            return Err(broken(std::io::ErrorKind::NotConnected.into()));
        };
        Ok(Self {
            control: Control::new(
                Machine::new(form, plan.passphrase.as_deref()),
                channel(socket, SILENCE).map_err(broken)?,
            ),
            local,
            peer,
            server_cpu: plan.server_cpu,
            remote_error: None,
            leaves_at_once: false,
        })
    }

    /// This end of the control connection.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The server's end of it.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The error of errno(3), or 998 for a test that it doesn't know, with which the server has
    /// refused something.
    pub fn remote_error(&self) -> Option<i32> {
        self.remote_error
    }

    pub(super) fn server_cpu(&self) -> Option<u32> {
        self.server_cpu
    }

    /// Makes a test. Samples go to `sink` as they are taken, where the plan asks for any; `cancel`
    /// ends the test early, with the result of the part that was done.
    ///
    /// # Errors
    ///
    /// When the server refuses, speaks wrongly or falls silent, and when this machine can't do what
    /// was asked for. After an error of the server's the connection is of no more use.
    pub fn run(&mut self, plan: &TestPlan, sink: &Sink, cancel: &Cancel) -> Result<Outcome, Error> {
        let remote = over_interface(plain(self.peer), interface(self.local));
        ClientTest::prepare(Some(self), remote, plan)?.run(sink, cancel)
    }

    /// Asks what the server's processors are worth.
    ///
    /// # Errors
    ///
    /// When it doesn't say.
    pub fn calibrate(&mut self, cancel: &Cancel) -> Result<Calibration, Error> {
        self.control.machine.calibrate(monotonic_ns());
        match self.await_event(cancel)? {
            ClientEvent::Calibration { rate, cpus } => Ok(Calibration { rate, cpus }),
            _ => {
                Err(self
                    .failed(&Fault::Protocol("its answer belongs to another request".to_owned())))
            }
        }
    }

    /// Sends that there are no more tests, and waits until the server has read it.
    pub fn close(self) {
        self.control.close(if self.leaves_at_once { 0 } else { CLOSING_NS });
    }

    /// The server is busy with a test whose results aren't awaited any more.
    pub(super) fn leave_at_once(&mut self) {
        self.leaves_at_once = true;
    }

    /// Waits for the next thing that the server says.
    pub(super) fn await_event(&mut self, cancel: &Cancel) -> Result<ClientEvent, Error> {
        loop {
            if let Some(event) = self.listen(None, LOOK_NS)? {
                return Ok(event);
            }
            if cancel.requested() {
                return Err(Error::Interrupted);
            }
        }
    }

    /// Says what there is to say, waits for the server, for something else or for so long, and
    /// returns what the server has said.
    pub(super) fn listen(
        &mut self,
        other: Option<BorrowedFd<'_>>,
        wait_ns: u64,
    ) -> Result<Option<ClientEvent>, Error> {
        let other = other.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let said = self.control.say();
        self.check(said)?;
        self.control.wait(None, other.as_slice(), monotonic_ns().saturating_add(wait_ns));
        let pumped = self.control.pump();
        self.check(pumped)?;
        match self.control.machine.poll_event() {
            Some(ClientEvent::Failed(fault)) => Err(self.failed(&fault)),
            event => Ok(event),
        }
    }

    fn check(&self, moved: Result<(), Lost>) -> Result<(), Error> {
        match moved {
            Err(Lost::Writing(error)) => {
                Err(Error::Peer(format!("the control connection to {} broke: {error}", self.peer)))
            }
            // The machine tells what it missed.
            Ok(()) | Err(Lost::Reading(_)) => Ok(()),
        }
    }

    /// While data goes, this end judges by that, too, whether the server's machine is there.
    pub(super) fn set_patient(&self, patient: bool) {
        set_patient(self.control.channel(), patient);
    }

    /// Looks whether the server's machine is there.
    pub(super) fn look_for_server(
        &self,
        liveness: &mut Liveness,
        counts: &Counts,
    ) -> Result<(), Error> {
        if liveness.is_lost(|| unheard(self.control.channel()), counts, monotonic_ns()) {
            let (peer, why) = (self.peer, liveness.why());
            return Err(Error::Peer(format!("the netserver at {peer} is lost: {why}")));
        }
        Ok(())
    }

    pub(super) fn failed(&mut self, fault: &Fault) -> Error {
        if let Fault::Remote { number } = fault {
            self.remote_error = Some(*number);
        }
        let way_out = match fault {
            Fault::Closed { .. } => {
                "; a netserver with a passphrase closes like this: give the \
                 passphrase with -Z"
            }
            Fault::Silent { .. } => {
                "; a netserver before 2.6 needs shorter messages: set \
                 LINERATE_NETPERF_VERSION=2.5"
            }
            _ => "",
        };
        let peer = self.peer;
        Error::Peer(format!("the test against the netserver at {peer} failed: {fault}{way_out}"))
    }
}

fn dial(plan: &ControlPlan, cancel: &Cancel) -> Result<Socket, Error> {
    let mut last = None;
    for address in addresses(plan)? {
        if cancel.requested() {
            return Err(Error::Interrupted);
        }
        match connect(address, plan) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = Some((address, error)),
        }
    }
    Err(match last {
        Some((address, error)) => Error::Unreachable(format!(
            "can't connect to a netserver at {address} ({error}): start one on that host, or give \
             its port with -p"
        )),
        None => resolve::no_address(&plan.host, "-4, -6 and -L"),
    })
}

fn addresses(plan: &ControlPlan) -> Result<Vec<SocketAddr>, Error> {
    let found = resolve::resolve(&plan.host, plan.port, plan.family);
    let mut found = found.map_err(|error| resolve::unknown_host(&plan.host, &error))?;
    found.retain(|address| plan.local.is_none_or(|local| local.is_ipv4() == address.is_ipv4()));
    Ok(found)
}

fn connect(address: SocketAddr, plan: &ControlPlan) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if plan.local.is_some() || plan.local_port > 0 {
        socket.set_reuse_address(true)?;
        let local = plan.local.unwrap_or_else(|| super::unspecified(address.is_ipv6()));
        let beside = over_interface(address, plan.local_interface);
        let local = address_beside(local.to_canonical(), plan.local_port, beside);
        socket.bind(&local.into())?;
    }
    socket.connect_timeout(&address.into(), CONNECT)?;
    Ok(socket)
}
