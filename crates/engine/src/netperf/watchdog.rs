//! Who looks after a loop of connections that receives without a time-out.
//!
//! Such a time-out would cost a call a connection and a timer a wait: with transactions that connect, on
//! one processor, 2 % of the rate.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use socket2::Socket;

use crate::tally::Counts;

/// What the loop waits for, as it and its watchdog see it.
#[derive(Default)]
struct Standing {
    /// How many connections there were.
    count: u64,
    /// The one that there is now.
    socket: Option<Arc<Socket>>,
    /// Who made the first one, until somebody asks.
    newcomer: Option<SocketAddr>,
    /// Whether it was cut off.
    is_cut: bool,
    /// Whether there will be no more.
    is_over: bool,
}

impl Standing {
    /// Wakes whoever waits for the connection.
    fn cut(&mut self) {
        if let Some(socket) = &self.socket {
            self.is_cut = true;
            // Fails only where the connection is gone, and then nobody waits for it.
            let _gone = socket.shutdown(Shutdown::Both);
        }
    }
}

/// The loop's side of it.
#[derive(Clone, Default)]
pub(super) struct Watched(Arc<Mutex<Standing>>);

impl Watched {
    /// Does what a connection is made for.
    ///
    /// # Errors
    ///
    /// What `work` says; a time-out where the connection fell silent or there are to be no more.
    pub(super) fn run(
        &self,
        socket: Socket,
        work: impl FnOnce(&Socket) -> io::Result<()>,
    ) -> io::Result<()> {
        let socket = Arc::new(socket);
        self.enter(&socket)?;
        let done = work(&socket);
        if self.leave() { Err(io::ErrorKind::TimedOut.into()) } else { done }
    }

    fn enter(&self, socket: &Arc<Socket>) -> io::Result<()> {
        let mut standing = self.standing();
        if standing.is_over {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if standing.count == 0 {
            standing.newcomer = socket.peer_addr().ok().and_then(|peer| peer.as_socket());
        }
        standing.count += 1;
        standing.socket = Some(Arc::clone(socket));
        Ok(())
    }

    /// Whether the connection was cut off.
    fn leave(&self) -> bool {
        let mut standing = self.standing();
        standing.socket = None;
        std::mem::take(&mut standing.is_cut)
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cuts off what falls silent. When it goes, the loop waits for nothing more.
pub(super) struct Watchdog {
    watched: Watched,
    /// A connection that doesn't go on for so long has failed.
    silence_ns: u64,
    /// Where the connections come from.
    listener: Option<Arc<Socket>>,
    /// The connection and what had moved when it was last seen to go on, and when that was.
    seen: ((u64, u64), u64),
}

impl Watchdog {
    /// Of connections that come to a listener, or else of those that this end begins.
    pub(super) fn new(silence: Duration, listener: Option<Arc<Socket>>) -> Self {
        let silence_ns = u64::try_from(silence.as_nanos()).unwrap_or(u64::MAX);
        Self { watched: Watched::default(), silence_ns, listener, seen: ((0, 0), 0) }
    }

    /// For the loop.
    pub(super) fn watched(&self) -> Watched {
        self.watched.clone()
    }

    /// Who made the first of the connections; says it once.
    pub(super) fn take_newcomer(&self) -> Option<SocketAddr> {
        self.watched.standing().newcomer.take()
    }

    /// Looks whether the connection goes on; to be called several times in each `silence`.
    pub(super) fn look(&mut self, counts: &Counts, now_ns: u64) {
        let moved_bytes = counts.sent_bytes.wrapping_add(counts.received_bytes);
        let mut standing = self.watched.standing();
        let seen = (standing.count, moved_bytes);
        if seen != self.seen.0 || standing.socket.is_none() {
            self.seen = (seen, now_ns);
        } else if now_ns.saturating_sub(self.seen.1) >= self.silence_ns {
            standing.cut();
        }
    }

    /// Ends what the loop waits for, whatever that is. The phase ends the loop.
    pub(super) fn end(&self) {
        let mut standing = self.watched.standing();
        standing.is_over = true;
        standing.cut();
        if let Some(listener) = &self.listener {
            // Fails only where nobody waits for connections any more.
            let _awake = listener.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;
    use crate::clock::SECOND_NS;

    const SILENCE_NS: u64 = 5 * SECOND_NS;
    const SILENCE: Duration = Duration::from_nanos(SILENCE_NS);

    /// Connections of which the far ends say nothing.
    fn silent_pair(listener: &TcpListener) -> (Socket, TcpStream) {
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0.into(), far)
    }

    /// Waits for what never comes.
    fn wait(watched: &Watched, socket: Socket) -> io::Result<()> {
        watched.run(socket, |mut socket| socket.read(&mut [0]).map(|_| ()))
    }

    #[test]
    fn what_falls_silent_is_cut_off_and_the_next_connection_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut watchdog = Watchdog::new(SILENCE, None);
        let watched = watchdog.watched();
        let ((near, _far), (next, mut next_far)) = (silent_pair(&listener), silent_pair(&listener));
        let waiting = thread::spawn(move || {
            let first = wait(&watched, near);
            (first, wait(&watched, next))
        });
        while watchdog.watched().standing().count == 0 {
            thread::yield_now();
        }
        let mut counts = Counts::default();
        watchdog.look(&counts, SECOND_NS);
        counts.received_bytes += 1;
        // It has gone on: its time begins anew.
        watchdog.look(&counts, SECOND_NS + SILENCE_NS);
        watchdog.look(&counts, SECOND_NS + 2 * SILENCE_NS - 1);
        assert!(!watchdog.watched().standing().is_cut);
        watchdog.look(&counts, SECOND_NS + 2 * SILENCE_NS);
        while watchdog.watched().standing().count == 1 {
            thread::yield_now();
        }
        watchdog.look(&counts, SECOND_NS + 3 * SILENCE_NS);
        io::Write::write_all(&mut next_far, &[7]).unwrap();
        let (first, second) = waiting.join().unwrap();
        assert_eq!(first.unwrap_err().kind(), io::ErrorKind::TimedOut);
        second.unwrap();
    }

    #[test]
    fn a_watchdog_that_goes_ends_whatever_the_loop_waits_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (near, _far) = silent_pair(&listener);
        let (other, _other_far) = silent_pair(&listener);
        let listener = Arc::new(Socket::from(listener));
        let watchdog = Watchdog::new(SILENCE, Some(Arc::clone(&listener)));
        let (watched, seen) = (watchdog.watched(), watchdog.watched());
        let accepting = thread::spawn(move || listener.accept().is_err());
        let waiting = thread::spawn(move || (wait(&watched, near), wait(&watched, other)));
        while seen.standing().count == 0 {
            thread::yield_now();
        }
        // As a rule the other thread sleeps in its call by then.
        thread::sleep(Duration::from_millis(20));
        drop(watchdog);
        let (stood, entered) = waiting.join().unwrap();
        assert_eq!(stood.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(entered.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(accepting.join().unwrap());
    }
}
