//! The control connection: its options, and what is said where it breaks.

use std::io;
use std::time::Duration;

use linerate_wire::Machine;
use linerate_wire::iperf3::Code;
use socket2::{Socket, TcpKeepalive};

use super::{Failure, Keepalive};
use crate::control::{Conversation, Lost, TcpChannel};

/// The longest TCP_USER_TIMEOUT that Linux takes: an `int` of milliseconds.
const MOST_USER_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

/// A control connection and its machine.
pub(super) type Control<M> = Conversation<M, TcpChannel>;

/// How long the other end may take to close behind the last word, ns.
pub(super) const CLOSING_NS: u64 = crate::clock::SECOND_NS / 2;

/// A machine on a connection that stands.
pub(super) fn control<M: Machine>(
    machine: M,
    socket: Socket,
    keepalive: Option<Keepalive>,
    send_timeout: Option<Duration>,
) -> Result<Control<M>, Failure> {
    set_options(&socket, keepalive, send_timeout)?;
    Ok(Conversation::new(machine, TcpChannel::new(socket, None)))
}

/// Nothing is said on the connection while a test runs, so it is probed when it goes silent, and ends when no probe
/// is answered; with a time for sending that is longer, after that.
fn set_options(
    socket: &Socket,
    keepalive: Option<Keepalive>,
    send_timeout: Option<Duration>,
) -> Result<(), Failure> {
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
        let timeout = timeout.max(keepalive.detection_time()).min(MOST_USER_TIMEOUT);
        let set = socket.set_tcp_user_timeout(Some(timeout));
        set.map_err(failed(Code::USER_TIMEOUT))?;
    }
    Ok(())
}

/// Moves bytes between the connection and its machine.
pub(super) fn pump<M: Machine>(control: &mut Control<M>) -> Result<(), Failure> {
    control.pump().map_err(|lost| match lost {
        Lost::Reading(error) => Failure::system(Code::CONTROL_READ, &error),
        Lost::Writing(error) => Failure::system(Code::CONTROL_WRITE, &error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(
        keepalive: Option<Keepalive>,
        send_timeout: Option<Duration>,
    ) -> Result<Socket, Failure> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = Socket::from(stream);
        set_options(&socket, keepalive, send_timeout).map(|()| socket)
    }

    #[test]
    fn a_control_connection_gives_up_no_sooner_than_its_probes_take() {
        let given_up = |keepalive: Option<Keepalive>, send_timeout_s: Option<f64>| {
            let send_timeout = send_timeout_s.map(Duration::from_secs_f64);
            let socket = prepared(keepalive, send_timeout).unwrap();
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
        let socket = prepared(Some(keepalive), None).unwrap();
        let idle = socket.tcp_keepalive_time().unwrap().as_secs();
        let interval = socket.tcp_keepalive_interval().unwrap().as_secs();
        assert_eq!((idle, interval, socket.tcp_keepalive_retries().unwrap()), (20, 5, 3));
        let beyond = Keepalive { count: 1000, ..Keepalive::default() };
        let failure = prepared(Some(beyond), None).err().unwrap();
        assert_eq!(failure.code, Code::SET_KEEPALIVE_COUNT);
    }
}
