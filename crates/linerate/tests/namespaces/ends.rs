//! A server in one namespace and a client in the other.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::document::Document;
use crate::network::{Network, SERVER_V4, SERVER_V6};
use crate::run_delay::RunDelays;

/// No client of these tests may take longer.
const LONGEST: Duration = Duration::from_secs(60);

/// `linerate serve` in the server's namespace; ended when dropped.
pub(crate) struct Server<'a> {
    network: &'a Network,
    process: Child,
    port: String,
    fingerprint: String,
    home: TempDir,
}

impl<'a> Server<'a> {
    /// Starts it on a free port, with a home of its own.
    pub(crate) fn start(network: &'a Network) -> Self {
        Self::start_with(network, &[])
    }

    /// Starts it with more arguments.
    pub(crate) fn start_with(network: &'a Network, arguments: &[&str]) -> Self {
        let home = TempDir::new().unwrap();
        Self::start_program(network, program(&network.server, &home), home, arguments)
    }

    /// Starts it with words before it, which run it in some other way: the process id stays its own.
    pub(crate) fn start_under(network: &'a Network, words: &[String]) -> Self {
        let home = TempDir::new().unwrap();
        Self::start_program(network, program_under(&network.server, &home, words), home, &[])
    }

    fn start_program(
        network: &'a Network,
        mut program: Command,
        home: TempDir,
        arguments: &[&str],
    ) -> Self {
        let mut process = program
            .args(["serve", "--port", "0", "--ndjson"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = lines.next().expect("a first record").unwrap();
        // What it says later is read and forgotten, so that its pipe never fills up.
        std::thread::spawn(move || lines.for_each(drop));
        let record: Value = serde_json::from_str(&first).unwrap();
        assert_eq!(record["record"], "listening", "{first}");
        let address = record["address"].as_str().unwrap();
        let port = address.rsplit_once(':').unwrap().1.to_owned();
        let fingerprint = record["fingerprint"].as_str().unwrap().to_owned();
        Self { network, process, port, fingerprint, home }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Starts a client over IPv4: `["stream", "--time", "2s"]` and the like.
    pub(crate) fn start_client(&self, arguments: &[&str]) -> Client {
        self.start_client_to(&format!("{SERVER_V4}:{}", self.port), arguments)
    }

    /// Starts a client over IPv6.
    pub(crate) fn start_client_v6(&self, arguments: &[&str]) -> Client {
        self.start_client_to(&format!("[{SERVER_V6}]:{}", self.port), arguments)
    }

    /// Starts a client of another of the server's addresses.
    pub(crate) fn start_client_at(&self, address: &str, arguments: &[&str]) -> Client {
        self.start_client_to(&format!("{address}:{}", self.port), arguments)
    }

    /// A client over IPv4, run to its end.
    pub(crate) fn measure(&self, arguments: &[&str]) -> Document {
        self.start_client(arguments).finish().document
    }

    fn start_client_to(&self, host: &str, arguments: &[&str]) -> Client {
        let output = tempfile::NamedTempFile::new().unwrap();
        let process = program(&self.network.client, &self.home)
            .args([arguments[0], host, "--json", "--quiet", "--server-key", &self.fingerprint])
            .args(&arguments[1..])
            .stdout(File::create(output.path()).unwrap())
            .spawn()
            .unwrap();
        Client { process, output, started: Instant::now() }
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server in one of the originals' dialects, in the server's namespace; ended when dropped.
pub(crate) struct Spoken(Child);

impl Spoken {
    /// Starts it, and reads on until it has said that it listens.
    pub(crate) fn start(network: &Network, arguments: &[&str], listening: &str) -> Self {
        let mut process = Command::new("ip")
            .args(["netns", "exec", &network.server, env!("CARGO_BIN_EXE_linerate")])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let said = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with(listening));
        assert!(said.is_some(), "it never said {listening:?}");
        std::thread::spawn(move || lines.for_each(drop));
        Self(process)
    }
}

impl Drop for Spoken {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program in a namespace: `ip netns exec` becomes it, so the process id is its own.
fn program(namespace: &str, home: &TempDir) -> Command {
    program_under(namespace, home, &[])
}

/// Likewise, with words before it, which become it, too.
fn program_under(namespace: &str, home: &TempDir, words: &[String]) -> Command {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", namespace])
        .args(words)
        .arg(env!("CARGO_BIN_EXE_linerate"))
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path())
        .env("XDG_STATE_HOME", home.path())
        .stdin(Stdio::null());
    command
}

/// A running client.
pub(crate) struct Client {
    process: Child,
    output: tempfile::NamedTempFile,
    started: Instant,
}

/// A client that has ended.
pub(crate) struct Finished {
    pub(crate) document: Document,
    pub(crate) exit_code: i32,
    /// CPU seconds of the whole process, as /proc had them after its end.
    pub(crate) cpu_s: f64,
    /// Seconds in which its threads could have run and others had the processors, all threads together.
    pub(crate) delayed_s: f64,
}

impl Client {
    /// Whether it still runs. It is not waited for yet, so /proc keeps its figures.
    pub(crate) fn is_running(&self) -> bool {
        process_state(self.process.id()).is_some_and(|state| state != 'Z')
    }

    /// Sleeps until so long after its start.
    pub(crate) fn sleep_until(&self, after: Duration) {
        std::thread::sleep(after.saturating_sub(self.started.elapsed()));
    }

    /// Waits for its end and reads its document.
    pub(crate) fn finish(mut self) -> Finished {
        let mut delays = RunDelays::default();
        while self.is_running() {
            delays.look(self.process.id());
            if self.started.elapsed() > LONGEST {
                let _ = self.process.kill();
                let _ = self.process.wait();
                panic!("the client did not end within {LONGEST:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let cpu_s = process_cpu_s(self.process.id());
        let exit_code = self.process.wait().unwrap().code().unwrap_or(-1);
        let text = std::fs::read_to_string(self.output.path()).unwrap();
        let delayed_s = delays.total_s();
        Finished { document: Document::parse(&text), exit_code, cpu_s, delayed_s }
    }
}

/// The state letter in /proc/PID/stat (proc(5)); None of a process that is gone.
fn process_state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// User and system time of a process with all its threads, in seconds. The kernel counts these
/// fields in hundredths of a second on every architecture that Linux reports them for.
pub(crate) fn process_cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    ticks as f64 / 100.0
}
