//! A path that a client's datagrams take from ever other ports, as behind a router that forgets.

use std::io::ErrorKind;
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Bytes that pass, both ways together, before the next change.
const BYTES_EACH: u64 = 400_000;

/// A relay of datagrams between one client and a server, which it talks to from ever other ports.
pub(crate) struct Relay {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// When what a client says is lost.
struct Hole {
    /// So many bytes pass before, both ways together.
    after_bytes: u64,
    length: Duration,
    until: Option<Instant>,
}

struct Shared {
    front: UdpSocket,
    back: Mutex<Arc<UdpSocket>>,
    server_port: u16,
    passed_bytes: AtomicU64,
    changes: AtomicU64,
    hole: Mutex<Option<Hole>>,
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

    fn loses(&self) -> bool {
        let mut hole = self.hole.lock().unwrap();
        let Some(hole) = hole.as_mut() else { return false };
        if self.passed_bytes.load(Ordering::Relaxed) < hole.after_bytes {
            return false;
        }
        let now = Instant::now();
        now < *hole.until.get_or_insert(now + hole.length)
    }

    /// Carries connections until the test ends; what they still carry then ends with their ends.
    fn connect_all(&self, listener: &TcpListener) {
        listener.set_nonblocking(true).unwrap();
        while !self.ends.load(Ordering::Relaxed) {
            let Ok((near, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            near.set_nonblocking(false).unwrap();
            let far = TcpStream::connect(("127.0.0.1", self.server_port)).unwrap();
            let (near_again, far_again) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            std::thread::spawn(move || pass_on(near, far));
            std::thread::spawn(move || pass_on(far_again, near_again));
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
            if up && self.loses() {
                continue;
            }
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

/// Carries what one end of a connection says until it ends.
fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let _cut_off = std::io::copy(&mut from, &mut to);
    let _gone = to.shutdown(Shutdown::Write);
}

impl Relay {
    pub(crate) fn start(server_port: u16) -> Self {
        Self::between(socket(), server_port)
    }

    /// One that carries TCP connections to the same port, too, whose addresses stay.
    pub(crate) fn with_connections(server_port: u16) -> Self {
        // A port that is free for both.
        let (front, listener) = (0..100)
            .find_map(|_| {
                let front = socket();
                let listener = TcpListener::bind(front.local_addr().unwrap()).ok()?;
                Some((front, listener))
            })
            .unwrap();
        let mut relay = Self::between(front, server_port);
        let shared = Arc::clone(&relay.shared);
        relay.threads.push(std::thread::spawn(move || shared.connect_all(&listener)));
        relay
    }

    fn between(front: UdpSocket, server_port: u16) -> Self {
        let port = front.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            front,
            back: Mutex::new(Shared::new_back(server_port)),
            server_port,
            passed_bytes: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            hole: Mutex::new(None),
            ends: AtomicBool::new(false),
        });
        let client = Arc::new(Mutex::new(None));
        let threads = [true, false].map(|up| {
            let (shared, client) = (Arc::clone(&shared), Arc::clone(&client));
            std::thread::spawn(move || shared.carry(&client, up))
        });
        Self { port, shared, threads: threads.into() }
    }

    /// Loses all that the client sends for so long, from the moment on when so many bytes have passed.
    #[allow(dead_code, reason = "not every test that has a relay loses something")]
    pub(crate) fn lose(&self, after_bytes: u64, length: Duration) {
        *self.shared.hole.lock().unwrap() = Some(Hole { after_bytes, length, until: None });
    }

    #[allow(dead_code, reason = "likewise")]
    pub(crate) fn has_lost(&self) -> bool {
        self.shared.hole.lock().unwrap().as_ref().is_some_and(|hole| hole.until.is_some())
    }

    pub(crate) fn changes(&self) -> u64 {
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
