//! The control connection's bytes, over a socket that doesn't block.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::time::Timespec;
use socket2::{Socket, TcpKeepalive};

use linerate_wire::iperf3::Code;
use linerate_wire::iperf3::client::Client;
use linerate_wire::iperf3::server::Server;

use super::running::LOOK_NS;
use super::{Failure, Keepalive};
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::waker::Waker;

/// Bytes taken at once.
const READ_BYTES: usize = 64 << 10;
/// What one segment carries at most: with IPv6's and TCP's headers it fits a link of the least MTU, 1,280 bytes
/// (RFC 8200, section 5). A path that drops larger packets without a word then costs no test its results. The
/// connection's own MSS can't be lowered for that: peers take their datagrams' default length from it.
const SEGMENT_BYTES: usize = 1_200;
/// What an end may leave unread before it is taken for dead.
const MOST_UNWRITTEN_BYTES: usize = 16 << 20;
/// The longest TCP_USER_TIMEOUT that Linux takes: an `int` of milliseconds.
const MOST_USER_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

/// One end's machine, as its connection sees it.
pub(super) trait Speaker {
    fn handle_bytes(&mut self, now_ns: u64, bytes: &[u8]);
    fn handle_end(&mut self);
    fn handle_timeout(&mut self, now_ns: u64);
    fn poll_timeout(&self) -> Option<u64>;
    fn poll_write(&mut self) -> Option<Vec<u8>>;
    fn is_over(&self) -> bool;
}

macro_rules! speaks {
    ($machine:ty) => {
        impl Speaker for $machine {
            fn handle_bytes(&mut self, now_ns: u64, bytes: &[u8]) {
                self.handle_bytes(now_ns, bytes);
            }

            fn handle_end(&mut self) {
                self.handle_end();
            }

            fn handle_timeout(&mut self, now_ns: u64) {
                self.handle_timeout(now_ns);
            }

            fn poll_timeout(&self) -> Option<u64> {
                self.poll_timeout()
            }

            fn poll_write(&mut self) -> Option<Vec<u8>> {
                self.poll_write()
            }

            fn is_over(&self) -> bool {
                self.is_over()
            }
        }
    };
}

speaks!(Client);
speaks!(Server);

/// A control connection.
pub(super) struct Control {
    socket: Socket,
    unwritten: Vec<u8>,
}

impl Control {
    /// A connection that stands. Nothing is said on it while a test runs, so it is probed when it goes silent, and
    /// ends when no probe is answered; with a time for sending that is longer, after that.
    pub(super) fn new(
        socket: Socket,
        keepalive: Option<Keepalive>,
        send_timeout: Option<Duration>,
    ) -> Result<Self, Failure> {
        let failed = |code: Code| move |error: io::Error| Failure::system(code, &error);
        socket.set_nonblocking(true).map_err(failed(Code::NON_BLOCKING))?;
        socket.set_tcp_nodelay(true).map_err(failed(Code::SET_NO_DELAY))?;
        let keepalive = keepalive.unwrap_or_default().completed();
        let seconds = |n: u32| Duration::from_secs(n.into());
        let setting = TcpKeepalive::new();
        for (setting, code) in [
            (setting.clone().with_time(seconds(keepalive.idle_s)), Code::SET_KEEPALIVE_IDLE),
            (
                setting.clone().with_interval(seconds(keepalive.interval_s)),
                Code::SET_KEEPALIVE_INTERVAL,
            ),
            (setting.with_retries(keepalive.count), Code::SET_KEEPALIVE_COUNT),
        ] {
            socket.set_tcp_keepalive(&setting).map_err(failed(code))?;
        }
        if let Some(timeout) = send_timeout {
            // Where there is this time, Linux goes by it and no longer by the number of probes: one that is
            // shorter than the probes take would end the connection for a single lost one.
            let timeout = timeout.max(keepalive.patience()).min(MOST_USER_TIMEOUT);
            let set = socket.set_tcp_user_timeout(Some(timeout));
            set.map_err(failed(Code::USER_TIMEOUT))?;
        }
        Ok(Self { socket, unwritten: Vec::new() })
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Queues bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.unwritten.len() + bytes.len() > MOST_UNWRITTEN_BYTES {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.unwritten.extend_from_slice(bytes);
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        let flushed = loop {
            let rest = self.unwritten.get(written..).unwrap_or_default();
            if rest.is_empty() {
                break Ok(());
            }
            let segment = rest.get(..SEGMENT_BYTES).unwrap_or(rest);
            // The end of a record: the kernel puts nothing more into this segment, nor when it is sent again.
            match send(&self.socket, segment, SendFlags::EOR | SendFlags::NOSIGNAL) {
                Ok(length) => written += length,
                Err(Errno::AGAIN) => break Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => break Err(error.into()),
            }
        };
        self.unwritten.drain(..written);
        flushed
    }

    /// Takes what has come; `None` at the end.
    pub(super) fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.flush()?;
        let mut bytes = vec![0; READ_BYTES];
        loop {
            match (&self.socket).read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(length) => {
                    bytes.truncate(length);
                    return Ok(Some(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Some(Vec::new()));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves bytes between the connection and its machine.
    pub(super) fn pump(&mut self, machine: &mut dyn Speaker) -> Result<(), Failure> {
        match self.read() {
            Ok(Some(bytes)) => machine.handle_bytes(monotonic_ns(), &bytes),
            Ok(None) => machine.handle_end(),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => machine.handle_end(),
            Err(_) if machine.is_over() => {}
            Err(error) => return Err(Failure::system(Code::CONTROL_READ, &error)),
        }
        while let Some(bytes) = machine.poll_write() {
            match self.write(&bytes) {
                // A peer that has said all may be gone.
                Err(_) if machine.is_over() => return Ok(()),
                Err(error) => return Err(Failure::system(Code::CONTROL_WRITE, &error)),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Waits for more to give to the machine, or until it has waited long enough.
    pub(super) fn await_more(&self, machine: &mut dyn Speaker, waker: &Waker) {
        let now_ns = monotonic_ns();
        machine.handle_timeout(now_ns);
        self.wait(waker, machine.poll_timeout().unwrap_or(u64::MAX).min(now_ns + LOOK_NS));
    }

    /// Waits until something has come, somebody rings, or the time has come.
    pub(super) fn wait(&self, waker: &Waker, until_ns: u64) {
        let wait_ns = until_ns.saturating_sub(monotonic_ns());
        let timeout =
            Timespec { tv_sec: (wait_ns / SECOND_NS) as i64, tv_nsec: (wait_ns % SECOND_NS) as _ };
        let interest = match self.unwritten.is_empty() {
            true => PollFlags::IN,
            false => PollFlags::IN | PollFlags::OUT,
        };
        let mut polled =
            [PollFd::new(self, interest), PollFd::from_borrowed_fd(waker.as_fd(), PollFlags::IN)];
        let _interrupted = poll(&mut polled, Some(&timeout));
        waker.silence();
    }

    /// Waits a moment for what is queued to leave, and closes in order: what the other end has said
    /// and nobody read would turn the last words into a reset.
    pub(super) fn close(mut self) {
        let until_ns = monotonic_ns() + SECOND_NS / 2;
        let _gone = self.flush();
        let _gone = self.socket.shutdown(std::net::Shutdown::Write);
        while monotonic_ns() < until_ns {
            let wait = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            let mut polled = [PollFd::new(&self, PollFlags::IN)];
            let _interrupted = poll(&mut polled, Some(&wait));
            match self.read() {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(
        keepalive: Option<Keepalive>,
        send_timeout: Option<Duration>,
    ) -> Result<Control, Failure> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Control::new(Socket::from(stream), keepalive, send_timeout)
    }

    #[test]
    fn a_control_connection_gives_up_no_sooner_than_its_probes_take() {
        let given_up = |keepalive: Option<Keepalive>, send_timeout_s: Option<f64>| {
            let send_timeout = send_timeout_s.map(Duration::from_secs_f64);
            let socket = control(keepalive, send_timeout).unwrap().socket;
            socket.tcp_user_timeout().unwrap().map(|timeout| timeout.as_secs())
        };
        assert_eq!(given_up(None, None), None);
        assert_eq!(given_up(None, Some(0.7)), Some(25));
        assert_eq!(given_up(None, Some(60.0)), Some(60));
        let asked = |idle_s, interval_s, count| Some(Keepalive { idle_s, interval_s, count });
        assert_eq!(given_up(asked(20, 2, 4), Some(0.7)), Some(28));
        let longest = asked(32_767, 32_767, 127);
        assert_eq!(given_up(longest, Some(0.7)), Some(MOST_USER_TIMEOUT.as_secs()));
    }

    #[test]
    fn a_control_connection_is_probed_as_asked() {
        let keepalive = Keepalive { idle_s: 20, ..Keepalive::default() };
        let socket = control(Some(keepalive), None).unwrap().socket;
        let idle = socket.tcp_keepalive_time().unwrap().as_secs();
        let interval = socket.tcp_keepalive_interval().unwrap().as_secs();
        assert_eq!((idle, interval, socket.tcp_keepalive_retries().unwrap()), (20, 5, 3));
        let beyond = Keepalive { count: 1000, ..Keepalive::default() };
        let failure = control(Some(beyond), None).err().unwrap();
        assert_eq!(failure.code, Code::SET_KEEPALIVE_COUNT);
    }
}
