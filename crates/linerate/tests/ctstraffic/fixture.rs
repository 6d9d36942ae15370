//! Clients and servers as processes, each test's on an address of its own.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The longest that a run may take on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// The protocol's port.
pub(crate) const PORT: u16 = 4444;

/// An address of this machine that no other test has.
pub(crate) fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let process = 64 + (std::process::id() % 128) as u8;
    Ipv4Addr::new(127, process, high, low)
}

/// A folder that goes when the test is over.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let name = format!("linerate-ctstraffic-{}", own_address());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The rows of a csv file, without its head, each as its cells.
    pub(crate) fn rows(&self, name: &str) -> Vec<Vec<String>> {
        let text = self.read(name);
        let cells = |line: &str| line.split(',').map(str::to_owned).collect();
        text.lines().skip(1).map(cells).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// How a run ended and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The numbers of the summary: succeeded, network errors, protocol errors.
    pub(crate) fn totals(&self) -> [u64; 3] {
        let line = self.stdout.lines().find(|line| line.contains("SuccessfulConnections")).unwrap();
        let numbers = line.split('[').skip(1).map(|rest| rest.split(']').next().unwrap());
        numbers.map(|number| number.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap()
    }
}

/// A program that runs. What it says is read meanwhile.
pub(crate) struct Running {
    child: Child,
    words: String,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

/// Starts the program with these words, separated by blanks, in a folder.
pub(crate) fn start(words: &str, folder: &Folder) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.arg("ctstraffic").args(words.split_whitespace()).current_dir(&folder.0);
    start_command(command, words)
}

pub(crate) fn start_command(mut command: Command, words: &str) -> Running {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    fn read(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
        thread::spawn(move || {
            let mut text = String::new();
            from.read_to_string(&mut text).unwrap();
            text
        })
    }
    let stdout = Some(read(child.stdout.take().unwrap()));
    let stderr = Some(read(child.stderr.take().unwrap()));
    Running { child, words: words.to_owned(), stdout, stderr }
}

/// Starts a server on this address, and waits until it listens.
pub(crate) fn start_server(address: Ipv4Addr, words: &str, folder: &Folder) -> Running {
    let server = start(&format!("-listen:{address} {words}"), folder);
    await_listener(SocketAddr::from((address, PORT)));
    server
}

/// Runs a client of this address to its end.
pub(crate) fn run_client(address: Ipv4Addr, words: &str, folder: &Folder) -> Ended {
    start(&format!("-target:{address} {words}"), folder).wait()
}

/// Waits until somebody listens on this address (proc(5): /proc/net/tcp).
pub(crate) fn await_listener(address: SocketAddr) {
    await_socket(address, "tcp", "0A");
}

/// Waits until somebody has a socket for datagrams on this address (proc(5): /proc/net/udp).
pub(crate) fn await_datagrams(address: SocketAddr) {
    await_socket(address, "udp", "07");
}

fn await_socket(address: SocketAddr, kind: &str, state: &str) {
    // Words of four bytes in this machine's order.
    let words = |bytes: &[u8]| {
        let words = bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap()));
        words.map(|word| format!("{word:08X}")).collect::<String>()
    };
    let (number, version) = match address {
        SocketAddr::V4(address) => (words(&address.ip().octets()), ""),
        SocketAddr::V6(address) => (words(&address.ip().octets()), "6"),
    };
    let nobody = "0".repeat(number.len());
    let shown = format!(" {number}:{:04X} {nobody}:0000 {state} ", address.port());
    let (file, end) = (format!("/proc/net/{kind}{version}"), Instant::now() + LIMIT);
    while !fs::read_to_string(&file).unwrap().contains(&shown) {
        assert!(Instant::now() < end, "nobody listens on {address}");
        thread::sleep(Duration::from_millis(5));
    }
}

impl Running {
    /// Memory that it has resident (proc(5): VmRSS), bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        1024 * resident.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    }

    /// The processors that each of its threads may run on (proc(5): Cpus_allowed_list).
    pub(crate) fn thread_processors(&self) -> Vec<String> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let status =
            threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("status")));
        let allowed = |status: &String| {
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            list.map(|list| list.trim().to_owned())
        };
        status.flatten().filter_map(|status| allowed(&status)).collect()
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Ended {
        let end = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "'{}' did not end within {LIMIT:?}", self.words);
            thread::sleep(Duration::from_millis(5));
        };
        Ended {
            exit_code: status.code().unwrap_or(-1),
            stdout: self.stdout.take().unwrap().join().unwrap(),
            stderr: self.stderr.take().unwrap().join().unwrap(),
        }
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn interrupt(self) -> Ended {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Waits until a file has so many lines with this text.
pub(crate) fn await_lines(path: &Path, text: &str, count: usize) {
    let end = Instant::now() + LIMIT;
    while fs::read_to_string(path).unwrap_or_default().matches(text).count() < count {
        assert!(Instant::now() < end, "no {count} of '{text}' in {}", path.display());
        thread::sleep(Duration::from_millis(5));
    }
}
