//! The servers of all dialects, each a process, and clients of theirs.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::ends::{LONGEST, holds_within, program};
use crate::resources::Held;

/// The flood's address, and that of an honest client.
pub(crate) const FLOOD: &str = "127.0.0.1";
pub(crate) const HONEST: &str = "127.0.0.2";
/// What is said on standard error may be so much; the rest is dropped.
const MOST_SAID_BYTES: usize = 1 << 20;

/// Whose dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Native,
    Netperf,
    Iperf3,
    /// Over its framing on TCP.
    Framed,
    /// secnetperf over QUIC.
    Quic,
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// As little as there can be.
    Little,
    /// It sends for so many seconds.
    Sends(u32),
    /// The server sends for so many seconds.
    Receives(u32),
}

impl Dialect {
    fn server_words(self, port: u16) -> (String, &'static str) {
        match self {
            Self::Native => (format!("serve --bind 127.0.0.1 --port {port}"), "listening on"),
            Self::Netperf => (format!("netserver -D -4 -L 127.0.0.1 -p {port}"), "port '"),
            Self::Iperf3 => {
                (format!("iperf3 -s -B 127.0.0.1 -p {port} --forceflush"), "listening on")
            }
            Self::Framed | Self::Quic => (format!("secnetperf -bind:127.0.0.1:{port}"), "Started!"),
        }
    }

    pub(crate) fn client_words(self, home: &str, port: u16, work: Work) -> String {
        match self {
            Self::Native => {
                let what = match work {
                    Work::Little => "rr --count 3".to_owned(),
                    Work::Sends(seconds) => format!("stream --up --rate 20M --time {seconds}s"),
                    Work::Receives(seconds) => format!("stream --down --time {seconds}s"),
                };
                format!("{what} 127.0.0.1 --port {port} --bind {home} --insecure")
            }
            Self::Netperf => {
                let (test, length) = match work {
                    Work::Little => ("TCP_RR", "-3".to_owned()),
                    Work::Sends(seconds) => ("TCP_STREAM", seconds.to_string()),
                    Work::Receives(seconds) => ("TCP_MAERTS", seconds.to_string()),
                };
                format!("netperf -H 127.0.0.1 -L {home} -p {port} -t {test} -l {length}")
            }
            Self::Iperf3 => {
                let what = match work {
                    Work::Little => "-n 100K".to_owned(),
                    Work::Sends(seconds) => format!("-t {seconds} -b 20M"),
                    Work::Receives(seconds) => format!("-R -t {seconds}"),
                };
                format!("iperf3 -c 127.0.0.1 -B {home} -p {port} {what}")
            }
            Self::Framed | Self::Quic => {
                let carriage = if self == Self::Framed { "-tcp:1" } else { "" };
                let what = match work {
                    Work::Little => "-down:10000".to_owned(),
                    Work::Sends(seconds) => format!("-up:{seconds}s"),
                    Work::Receives(seconds) => format!("-down:{seconds}s"),
                };
                let to = format!("-target:127.0.0.1 -port:{port} -bind:{home}");
                format!("secnetperf {to} {carriage} {what}")
            }
        }
    }
}

/// A process of the program; ended when dropped.
pub(crate) struct Process {
    child: Child,
    said: Arc<Mutex<String>>,
    _home: TempDir,
}

impl Process {
    pub(crate) fn start(words: &str) -> Self {
        let home = TempDir::new().unwrap();
        let mut child = program(home.path())
            .args(words.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Arc::<Mutex<String>>::default();
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for output in outputs {
            let said = Arc::clone(&said);
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                    if said.len() < MOST_SAID_BYTES || line.contains("panicked") {
                        said.push_str(&line);
                        said.push('\n');
                    }
                }
            });
        }
        Self { child, said, _home: home }
    }

    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it where it stands, as it is.
    pub(crate) fn freeze(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
    }

    /// Its exit code, once it has ended in this time.
    pub(crate) fn exit_code_within(&mut self, patience: Duration) -> Option<i32> {
        let mut status = None;
        holds_within(patience, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status?.code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// A server of a dialect.
pub(crate) struct Host {
    process: Process,
    dialect: Dialect,
    pub(crate) port: u16,
    idle: Held,
}

impl Host {
    /// Starts it on a free port, and makes one test so that it has all that it keeps.
    pub(crate) fn start(dialect: Dialect) -> Self {
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let (words, sign) = dialect.server_words(port);
            let mut process = Process::start(&words);
            // Somebody else may have taken the port meanwhile.
            let stands = holds_within(LONGEST, || {
                process.said().contains(sign) || process.child.try_wait().unwrap().is_some()
            });
            if stands && process.child.try_wait().unwrap().is_none() {
                let idle = Held::by(process.pid());
                let mut host = Self { process, dialect, port, idle };
                host.assert_serves();
                host.idle = Held::settled(host.process.pid());
                return host;
            }
        }
        panic!("no {dialect:?} server came up");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// A client of it at this address.
    pub(crate) fn client(&self, home: &str, work: Work) -> Process {
        Process::start(&self.dialect.client_words(home, self.port, work))
    }

    /// Shows that an honest client is served, and how soon.
    #[track_caller]
    pub(crate) fn assert_serves(&self) -> Duration {
        let began = Instant::now();
        let mut client = self.client(HONEST, Work::Little);
        let code = client.exit_code_within(LONGEST);
        assert_eq!(code, Some(0), "{:?}: {}", self.dialect, client.said());
        began.elapsed()
    }

    /// Shows that what it holds beyond its idle state is no more than this.
    #[track_caller]
    pub(crate) fn assert_holds_at_most(&self, descriptors: usize, bytes: u64) {
        let held = Held::by(self.process.pid());
        let more = held.descriptors.saturating_sub(self.idle.descriptors);
        assert!(more <= descriptors, "{:?} holds {held:?}, idle {:?}", self.dialect, self.idle);
        let more = held.resident_bytes.saturating_sub(self.idle.resident_bytes);
        assert!(more <= bytes, "{:?} holds {held:?}, idle {:?}", self.dialect, self.idle);
    }

    /// What it has more now than when it was idle: descriptors.
    pub(crate) fn busy_descriptors(&self) -> usize {
        Held::by(self.process.pid()).descriptors.saturating_sub(self.idle.descriptors)
    }

    /// Shows that it is there, idle as before, and has never panicked.
    #[track_caller]
    pub(crate) fn assert_idle(&self) {
        let mut held = self.idle;
        let is_idle = || {
            held = Held::by(self.process.pid());
            held.threads <= self.idle.threads && held.descriptors <= self.idle.descriptors
        };
        let is_idle = holds_within(Duration::from_secs(15), is_idle);
        assert!(is_idle, "{:?} holds {held:?}, idle {:?}", self.dialect, self.idle);
        let said = self.process.said();
        assert!(!said.contains("panicked"), "{said}");
    }
}
