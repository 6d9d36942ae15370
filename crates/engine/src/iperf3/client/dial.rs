//! Reaching the server.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use linerate_measure::plan::Family;
use linerate_wire::iperf3::{Code, Parameters};
use rustix::event::{PollFd, PollFlags};
use socket2::Socket;

use crate::clock::{SECOND_NS, monotonic_ns};
use crate::event::Cancel;
use crate::iperf3::running::LOOK_NS;
use crate::iperf3::sockets::{self, Local};
use crate::iperf3::{Failure, TestPlan};
use crate::poll::poll_until;
use crate::resolve;

/// How long a connection may take, unless `--connect-timeout` says something else.
const CONNECT_NS: u64 = 30 * SECOND_NS;

/// Connects the control connection; says the address that answered.
pub(super) fn dial(plan: &TestPlan, cancel: &Cancel) -> Result<(Socket, SocketAddr), Failure> {
    let local = Local { address: plan.bind, port: None, device: plan.bind_device.clone() };
    let limit_ns = plan
        .connect_timeout
        .map_or(CONNECT_NS, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
    let mut last = Failure::of(Code::CONNECT)
        .because(format!("the host \"{}\" has no address of the requested family", plan.host));
    for address in addresses(plan)? {
        match connect(address, &local, None, Code::CONNECT, limit_ns, cancel) {
            Ok(socket) => return Ok((socket, address)),
            Err(failure) if failure.interrupted => return Err(failure),
            Err(failure) => last = failure,
        }
    }
    Err(last)
}

fn addresses(plan: &TestPlan) -> Result<Vec<SocketAddr>, Failure> {
    let family = plan.family.or(plan.bind.map(|bind| Family::of(bind.ip())));
    resolve::resolve(&plan.host, plan.port, family)
        .map_err(|error| Failure::of(Code::CONNECT).because(error.to_string()))
}

/// Connects, and waits until the connection stands.
pub(super) fn connect(
    address: SocketAddr,
    local: &Local,
    parameters: Option<&Parameters>,
    refusal: Code,
    limit_ns: u64,
    cancel: &Cancel,
) -> Result<Socket, Failure> {
    let socket = sockets::connect(address, local, parameters, refusal)?;
    let deadline_ns = monotonic_ns().saturating_add(limit_ns);
    loop {
        if cancel.requested() {
            return Err(interrupted());
        }
        let now_ns = monotonic_ns();
        let mut polled = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)];
        if poll_until(&mut polled, deadline_ns.min(now_ns + LOOK_NS)) {
            return match socket.take_error() {
                Ok(None) => Ok(socket),
                Ok(Some(error)) | Err(error) => Err(Failure::system(refusal, &error)),
            };
        }
        if now_ns >= deadline_ns {
            let error = std::io::Error::from_raw_os_error(libc::ETIMEDOUT);
            return Err(Failure::system(refusal, &error));
        }
    }
}

/// The user wants to stop.
pub(super) fn interrupted() -> Failure {
    Failure { interrupted: true, ..Failure::of(Code::CLIENT_TERMINATED) }
}
