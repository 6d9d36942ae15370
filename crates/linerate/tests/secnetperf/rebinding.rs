//! A client whose address changes in the midst, as behind a router that forgets: its transfers go on.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::fixture::{Server, results, run};

/// Bytes that pass, both ways together, before the next change.
const BYTES_EACH: u64 = 400_000;

/// A relay of datagrams between one client and a server, which it talks to from ever other ports.
struct Relay {
    port: u16,
    shared: Arc<Shared>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

struct Shared {
    front: UdpSocket,
    back: Mutex<Arc<UdpSocket>>,
    server_port: u16,
    passed_bytes: AtomicU64,
    changes: AtomicU64,
    ends: AtomicBool,
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    socket
}

impl Shared {
    fn new_back(server_port: u16) -> Arc<UdpSocket> {
        let back = socket();
        back.connect(("127.0.0.1", server_port)).unwrap();
        Arc::new(back)
    }

    fn back(&self) -> Arc<UdpSocket> {
        Arc::clone(&self.back.lock().unwrap())
    }

    /// Counts, and changes the port when it is time.
    fn record(&self, bytes: usize) {
        let before = self.passed_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if before / BYTES_EACH != (before + bytes as u64) / BYTES_EACH {
            *self.back.lock().unwrap() = Self::new_back(self.server_port);
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Carries datagrams one way until the test ends.
    fn carry(&self, client: &Mutex<Option<std::net::SocketAddr>>, up: bool) {
        let mut bytes = vec![0; 65_536];
        while !self.ends.load(Ordering::Relaxed) {
            let received = if up {
                self.front.recv_from(&mut bytes).map(|(length, from)| {
                    *client.lock().unwrap() = Some(from);
                    length
                })
            } else {
                self.back().recv(&mut bytes)
            };
            let length = match received {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                // A late word to a port that is closed by now.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(error) => panic!("{error}"),
            };
            // What the kernel has no room for is lost, as in any network.
            if up {
                let _lost = self.back().send(&bytes[..length]);
            } else if let Some(client) = *client.lock().unwrap() {
                let _lost = self.front.send_to(&bytes[..length], client);
            }
            self.record(length);
        }
    }
}

impl Relay {
    fn start(server_port: u16) -> Self {
        let front = socket();
        let port = front.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            front,
            back: Mutex::new(Shared::new_back(server_port)),
            server_port,
            passed_bytes: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            ends: AtomicBool::new(false),
        });
        let client = Arc::new(Mutex::new(None));
        let threads = [true, false].map(|up| {
            let (shared, client) = (Arc::clone(&shared), Arc::clone(&client));
            std::thread::spawn(move || shared.carry(&client, up))
        });
        Self { port, shared, threads: threads.into() }
    }

    fn changes(&self) -> u64 {
        self.shared.changes.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok() || std::thread::panicking());
        }
    }
}

#[test]
fn a_transfer_goes_on_when_its_clients_port_changes() {
    let marked = "-cibir:010203 -serverid:9";
    for (flags, words, streams) in [
        ("", "-up:3mb", 1),
        ("", "-down:3mb", 1),
        ("", "-encrypt:0 -up:2mb -down:2mb", 1),
        (marked, "-cibir:010203 -streams:7 -up:400kb", 7),
    ] {
        let server = Server::start(flags);
        let relay = Relay::start(server.port);
        let port = relay.port;
        let ended = run(&format!("-target:127.0.0.1 -port:{port} {words}"));
        let line = format!("Completed 1 connections and {streams} streams!");
        assert_eq!(results(&ended), [line], "{flags} {words}");
        assert!(relay.changes() >= 5, "{words}: {} changes", relay.changes());
    }
}
