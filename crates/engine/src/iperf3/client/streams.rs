//! Opening a test's streams, one by one: their order is all that tells them apart.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;

use linerate_wire::iperf3::datagram::{GREETING, Header, greeting_again, is_answer};
use linerate_wire::iperf3::{Code, Cookie, Parameters, Protocol};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use socket2::Socket;

use super::dial::{connect, interrupted};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::event::Cancel;
use crate::iperf3::repeats::{self, Repeats};
use crate::iperf3::running::LOOK_NS;
use crate::iperf3::sockets::{Local, connect_datagrams};
use crate::iperf3::{Failure, TestPlan};
use crate::poll::poll_until;

/// How long a stream may take.
const STREAM_NS: u64 = 30 * SECOND_NS;
/// The number that the first data to arrive has at most: a path that loses more of it is no path.
const LATEST_FIRST: u64 = 256;
/// Late datagrams after which the control connection is asked, too.
const LOOK_AFTER: u64 = 256;

/// What the streams of a test are opened with.
pub(super) struct Opener<'a> {
    pub(super) plan: &'a TestPlan,
    pub(super) parameters: &'a Parameters,
    pub(super) server: SocketAddr,
    pub(super) cookie: Cookie,
    /// The control connection: it may tell that no stream will come to anything.
    pub(super) control: &'a Socket,
    pub(super) cancel: &'a Cancel,
}

impl Opener<'_> {
    /// Opens all streams. `None`: the control connection has something to say.
    pub(super) fn open(&self) -> Result<Option<Vec<Socket>>, Failure> {
        let mut opened = Vec::new();
        let total = self.parameters.total_streams();
        for index in 0..total {
            let local = self.local(index)?;
            let stream = if self.parameters.protocol == Protocol::Udp {
                self.greet(&local, index + 1 == total)?
            } else {
                Some(self.connect(&local)?)
            };
            match stream {
                Some(stream) => opened.push(stream),
                None => return Ok(None),
            }
        }
        Ok(Some(opened))
    }

    fn local(&self, index: usize) -> Result<Local, Failure> {
        let offset = u16::try_from(index).unwrap_or(u16::MAX);
        let port = self.plan.client_port.map(|first| {
            let beyond = || {
                Failure::of(Code::BAD_PORT)
                    .because("the last stream's --cport is beyond 65535: begin with a lower one")
            };
            first.checked_add(offset).ok_or_else(beyond)
        });
        let device = self.plan.bind_device.clone();
        Ok(Local { address: self.plan.bind, port: port.transpose()?, device })
    }

    fn connect(&self, local: &Local) -> Result<Socket, Failure> {
        let parameters = Some(self.parameters);
        let refusal = Code::STREAM_CONNECT;
        let socket = connect(self.server, local, parameters, refusal, STREAM_NS, self.cancel)?;
        let failed = |error: io::Error| Failure::system(Code::SEND_COOKIE, &error);
        if self.plan.send_timeout.is_some() {
            socket.set_tcp_user_timeout(self.plan.send_timeout).map_err(failed)?;
        }
        // A new connection has room for the few bytes.
        (&socket).write_all(self.cookie.wire()).map_err(failed)?;
        Ok(socket)
    }

    /// Says the greeting until it is answered. Where only the answer was lost, an original server takes the next
    /// greeting for data and never answers; ours answers again by itself. `is_last`: the server begins the test
    /// when it has the stream.
    fn greet(&self, local: &Local, is_last: bool) -> Result<Option<Socket>, Failure> {
        let failed = |error: io::Error| Failure::system(Code::STREAM_CONNECT, &error);
        let socket = connect_datagrams(self.server, local, self.parameters)?;
        socket.send(&GREETING).map_err(failed)?;
        let mut repeats = Repeats::after(repeats::wait_ns(self.control.as_fd()));
        let deadline_ns = monotonic_ns().saturating_add(STREAM_NS);
        let mut discarded = 0_u64;
        loop {
            if self.cancel.requested() {
                return Err(interrupted());
            }
            let now_ns = monotonic_ns();
            if now_ns >= deadline_ns {
                let (seconds, port) = (STREAM_NS / SECOND_NS, self.server.port());
                return Err(Failure::of(Code::STREAM_CONNECT).because(format!(
                    "no answer for {seconds} s: does a firewall let UDP port {port} pass?"
                )));
            }
            if repeats.is_due(now_ns) {
                let block_bytes = self.parameters.block_bytes as usize;
                socket.send(&greeting_again(now_ns, block_bytes)).map_err(failed)?;
            }
            let mut bytes = [0; 64];
            match recv(&socket, bytes.as_mut_slice(), RecvFlags::PEEK) {
                Ok((_, length)) => {
                    let datagram = bytes.get(..length).unwrap_or_default();
                    if is_last && self.may_be_of_the_test(datagram) {
                        // For its receiver, once it has begun: this has overtaken the news, or the answer was lost.
                        if self.control_speaks(LOOK_NS) {
                            return Ok(Some(socket));
                        }
                        continue;
                    }
                    let answers = is_answer(datagram);
                    let _same = (&socket).read(&mut bytes).map_err(failed)?;
                    if answers {
                        return Ok(Some(socket));
                    }
                    // Late data that never ends must not hide what the server says.
                    discarded += 1;
                    if discarded.is_multiple_of(LOOK_AFTER) && self.control_speaks(0) {
                        return Ok(is_last.then_some(socket));
                    }
                }
                Err(Errno::AGAIN) => {
                    if self.control_has_news(&socket) {
                        // That the test begins, where the answer to the last greeting alone was lost.
                        return Ok(is_last.then_some(socket));
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    /// Whether a datagram can be data of the test itself; else it came late for another one from the same port.
    fn may_be_of_the_test(&self, datagram: &[u8]) -> bool {
        let header = Header::decode(self.parameters.wide_counters, datagram);
        header.is_some_and(|header| (1..=LATEST_FIRST).contains(&header.number))
    }

    /// Waits for an answer; says whether the control connection spoke instead.
    fn control_has_news(&self, socket: &Socket) -> bool {
        let [answers, speaks] = readable([socket, self.control], LOOK_NS);
        speaks && !answers
    }

    /// Waits so long for the control connection; says whether it spoke.
    fn control_speaks(&self, wait_ns: u64) -> bool {
        let [speaks] = readable([self.control], wait_ns);
        speaks
    }
}

/// Which of these can be read from, as soon as one can or so much time is over.
fn readable<const N: usize>(sockets: [&Socket; N], wait_ns: u64) -> [bool; N] {
    let mut polled = sockets.map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN));
    poll_until(&mut polled, monotonic_ns() + wait_ns);
    polled.map(|socket| !socket.revents().is_empty())
}
