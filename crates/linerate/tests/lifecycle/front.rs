//! A proxy in front of a server: it forwards the control connection and breaks data connections in a chosen way.

use std::io::Read;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use linerate_wire::native::opening::OPENING_BYTES;
use rustix::net::sockopt::set_socket_linger;

use crate::ends::Server;

/// The first byte of a TLS connection (RFC 8446, section 5.1).
const TLS_HANDSHAKE: u8 = 0x16;
/// Data connections between two times without a listener.
const SERVED_BETWEEN: u32 = 20;
/// How long there is no listener.
const ABSENT: Duration = Duration::from_millis(100);

/// What becomes of a data connection. Every other one is served whatever the fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Reset once it has said what it is and something more.
    Reset,
    /// Closed in order then.
    Closed,
    /// Never answered.
    Silence,
    /// Nobody listens: now and then, and for a while.
    Absence,
}

/// A proxy in front of a server.
pub(crate) struct Front {
    pub(crate) port: u16,
    goes_on: Arc<AtomicBool>,
}

impl Front {
    pub(crate) fn of(server: &Server, fate: Fate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let goes_on = Arc::new(AtomicBool::new(true));
        let (server_port, still) = (server.port, Arc::clone(&goes_on));
        thread::spawn(move || receive(listener, server_port, fate, &still));
        Self { port, goes_on }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.goes_on.store(false, Ordering::Relaxed);
        // It sees that when the next one comes.
        let _gone_already = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn receive(mut listener: TcpListener, server_port: u16, fate: Fate, goes_on: &AtomicBool) {
    let address = listener.local_addr().unwrap();
    let mut count = 0_u32;
    while goes_on.load(Ordering::Relaxed) {
        let Ok((client, _)) = listener.accept() else { continue };
        let mut first = [0];
        let is_data =
            client.peek(&mut first).is_ok_and(|length| length > 0 && first[0] != TLS_HANDSHAKE);
        count += u32::from(is_data);
        if is_data && fate != Fate::Absence && count.is_multiple_of(2) {
            thread::spawn(move || meet(client, fate));
            continue;
        }
        thread::spawn(move || relay(client, server_port));
        if is_data && fate == Fate::Absence && count.is_multiple_of(SERVED_BETWEEN) {
            drop(listener);
            thread::sleep(ABSENT);
            listener = TcpListener::bind(address).unwrap();
        }
    }
}

fn meet(mut client: TcpStream, fate: Fate) {
    let _gone = client.read_exact(&mut [0; OPENING_BYTES + 1]);
    match fate {
        Fate::Reset => set_socket_linger(&client, Some(Duration::ZERO)).unwrap(),
        // What is unread would make it a reset.
        Fate::Closed => {
            let _gone = client.shutdown(Shutdown::Write);
            let _gone = std::io::copy(&mut client, &mut std::io::sink());
        }
        Fate::Silence => {
            let _gone = std::io::copy(&mut client, &mut std::io::sink());
        }
        Fate::Absence => {}
    }
}

/// Carries what either end says to the other.
pub(crate) fn relay(client: TcpStream, server_port: u16) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else { return };
    for socket in [&client, &server] {
        let _slower_at_worst = socket.set_nodelay(true);
    }
    let ways = [(client.try_clone(), server.try_clone()), (Ok(server), Ok(client))];
    for (from, to) in ways {
        let (Ok(mut from), Ok(mut to)) = (from, to) else { return };
        thread::spawn(move || {
            let _gone = std::io::copy(&mut from, &mut to);
            let _gone = to.shutdown(Shutdown::Write);
        });
    }
}
