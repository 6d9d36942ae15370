//! The program as server and as client, each a process with a home of its own.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::document::Document;

/// No client of these tests may take longer.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// Of so many runs one at least has a receiver that is not late.
const RUNS_AT_MOST: usize = 6;

/// What a server says on standard error, in its home.
const SERVER_STDERR: &str = "server.stderr";

/// `linerate serve` on a free port; ended when dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
    pub(crate) fingerprint: String,
    records: Mutex<Receiver<Value>>,
    home: TempDir,
}

impl Server {
    /// Starts it with these words, separated by blanks, behind `serve`.
    pub(crate) fn start(words: &str) -> Self {
        Self::start_in(TempDir::new().unwrap(), words)
    }

    /// Likewise, with this home.
    pub(crate) fn start_in(home: TempDir, words: &str) -> Self {
        let mut process = program(home.path())
            .args(["serve", "--ndjson"])
            .args(port_unless_named(words))
            .args(words.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(File::create(home.path().join(SERVER_STDERR)).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = lines.next().expect("a first record").unwrap();
        let (sender, records) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _nobody_listens = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let record: Value = serde_json::from_str(&first).unwrap();
        assert_eq!(record["record"], "listening", "{first}");
        let port = record["address"].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
        let fingerprint = record["fingerprint"].as_str().unwrap().to_owned();
        Self { process, port, fingerprint, records: Mutex::new(records), home }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The most that it had resident so far (VmHWM, proc(5)).
    #[allow(dead_code, reason = "for tests of many flows")]
    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        peak_bytes(&self.process)
    }

    /// The home of the server and of its clients.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Whether the process still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// The next record of this kind; those before it are skipped.
    #[track_caller]
    pub(crate) fn await_record(&self, kind: &str) -> Value {
        let deadline = Instant::now() + LONGEST;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let record = self.records.lock().unwrap().recv_timeout(left);
            let record = record.unwrap_or_else(|error| panic!("no record `{kind}`: {error}"));
            if record["record"] == kind {
                return record;
            }
        }
    }

    /// The records that nobody has asked for yet.
    pub(crate) fn records(&self) -> Vec<Value> {
        self.records.lock().unwrap().try_iter().collect()
    }

    /// What it has said on standard error.
    #[allow(dead_code, reason = "for the tests of hostile peers")]
    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(self.home().join(SERVER_STDERR)).unwrap()
    }

    /// Starts a client of this server over IPv4, `stream --time 1s` and the like, with its key
    /// pinned and a JSON document for output.
    pub(crate) fn start_client(&self, words: &str) -> Client {
        self.start_client_at("127.0.0.1", words)
    }

    /// Likewise; comes back when the server has admitted the test.
    #[track_caller]
    pub(crate) fn start_test(&self, words: &str) -> Client {
        let client = self.start_client(words);
        self.await_record("test_started");
        client
    }

    /// A client of another address of the server's.
    pub(crate) fn start_client_at(&self, host: &str, words: &str) -> Client {
        let words = format!("{words} --json --quiet --server-key {}", self.fingerprint);
        self.start_client_of(host, &words)
    }

    /// Likewise, without a key or a format that the words don't name.
    pub(crate) fn start_client_of(&self, host: &str, words: &str) -> Client {
        let (command, flags) = words.split_once(' ').unwrap_or((words, ""));
        let words = format!("{command} {host} --port {} {flags}", self.port);
        Client::start(self.home.path(), &words)
    }

    /// A client run to its end. A receiver that a busy machine keeps waiting finds everything there at once: no rate can be
    /// had of that, the run says so, and another is made.
    pub(crate) fn measure(&self, words: &str) -> Ended {
        let mut runs = (0..RUNS_AT_MOST).map(|_| self.start_client(words).finish());
        let last = runs.by_ref().find(|ended| !ended.receiver_was_late());
        last.unwrap_or_else(|| {
            panic!("`{words}`: the receiver was late in each of {RUNS_AT_MOST} runs")
        })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(&self.process, signal);
    }

    /// How the process ended, once it has.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.process.try_wait().unwrap()?.code()
    }

    /// Ends the process; its home is left.
    pub(crate) fn stop(mut self) -> TempDir {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::mem::replace(&mut self.home, TempDir::new().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn port_unless_named(words: &str) -> &'static [&'static str] {
    if words.split_whitespace().any(|word| word == "--port") { &[] } else { &["--port", "0"] }
}

/// The program in a home that the caller keeps, told nothing yet.
pub(crate) fn program(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("XDG_STATE_HOME", home)
        .stdin(Stdio::null());
    command
}

/// A copy of the program in this directory, which every user may run.
#[allow(dead_code, reason = "for tests of ordinary users")]
pub(crate) fn copy_for_every_user(home: &Path) -> PathBuf {
    let program = home.join("linerate");
    // By another process: while this one has the copy open for writing, whatever it starts has it too, and nobody can
    // run it.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_linerate")).arg(&program).status();
    assert!(copied.unwrap().success(), "the program can't be copied");
    for path in [home, &program] {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    program
}

/// This program, told nothing yet, as an ordinary user: another one where root runs the test.
#[allow(dead_code, reason = "for tests of ordinary users")]
pub(crate) fn as_ordinary_user(program: &Path) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program);
    command
}

/// A running client; ended when dropped.
pub(crate) struct Client {
    process: Child,
    words: String,
    stdout: tempfile::NamedTempFile,
    stderr: tempfile::NamedTempFile,
    started: Instant,
}

/// A client that has ended.
pub(crate) struct Ended {
    /// `None`: killed by a signal.
    pub(crate) exit_code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
    words: String,
}

impl Client {
    /// The program with these words, separated by blanks.
    pub(crate) fn start(home: &Path, words: &str) -> Self {
        let stdout = tempfile::NamedTempFile::new().unwrap();
        let stderr = tempfile::NamedTempFile::new().unwrap();
        let process = program(home)
            .args(words.split_whitespace())
            .stdout(File::create(stdout.path()).unwrap())
            .stderr(File::create(stderr.path()).unwrap())
            .spawn()
            .unwrap();
        Self { process, words: words.to_owned(), stdout, stderr, started: Instant::now() }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(&self.process, signal);
    }

    #[allow(dead_code, reason = "for the tests of hostile peers")]
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The most that it had resident so far (VmHWM, proc(5)); `None` where it has gone.
    #[allow(dead_code, reason = "for tests of many flows")]
    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        peak_bytes(&self.process)
    }

    /// What it has printed so far.
    pub(crate) fn stdout_so_far(&self) -> String {
        std::fs::read_to_string(self.stdout.path()).unwrap()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Ended {
        self.finish_within(LONGEST)
    }

    /// Waits so long, from now on, for its end.
    #[track_caller]
    pub(crate) fn finish_within(mut self, patience: Duration) -> Ended {
        let mut time = SharedTime::start();
        while self.is_running() {
            if time.passed() > patience {
                panic!("`{}` did not end within {patience:?}", self.words);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let took = self.started.elapsed();
        Ended {
            exit_code: self.process.wait().unwrap().code(),
            stdout: self.stdout_so_far(),
            stderr: std::fs::read_to_string(self.stderr.path()).unwrap(),
            took,
            words: self.words.clone(),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Ended {
    /// Whether the figures aren't to be trusted since the receiver's time was too short for what was sent.
    fn receiver_was_late(&self) -> bool {
        self.exit_code == Some(6)
            && (self.stdout.contains("s clock, and were sent within")
                || self.stdout.contains("and no time, so there"))
    }

    /// Its document, which must be whole and say this exit code, with which it must have ended.
    #[track_caller]
    pub(crate) fn document(&self, exit_code: i32) -> Document {
        let seen = format!("`{}`: {}\n{}", self.words, self.stderr, self.stdout);
        assert_eq!(self.exit_code, Some(exit_code), "{seen}");
        let document = Document::parse(&self.stdout);
        assert_eq!(document.json()["status"]["exit_code"], exit_code, "{seen}");
        document
    }
}

fn peak_bytes(process: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn send(process: &Child, signal: Signal) {
    kill_process(Pid::from_child(process), signal).unwrap();
}

/// Time that passes more slowly on a busy machine: by the share of a processor that a ready thread has.
struct SharedTime {
    looked: Instant,
    passed: Duration,
    processors: f64,
}

impl SharedTime {
    fn start() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        Self { looked: Instant::now(), passed: Duration::ZERO, processors }
    }

    /// How much has passed. It must be looked at often.
    fn passed(&mut self) -> Duration {
        // The fourth field is `ready/all`, the numbers of threads (proc(5)).
        let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let ready = text.split_whitespace().nth(3).and_then(|both| both.split('/').next());
        let ready: f64 = ready.and_then(|ready| ready.parse().ok()).unwrap_or(1.0);
        let now = Instant::now();
        let share = (self.processors / ready.max(1.0)).min(1.0);
        self.passed += now.duration_since(self.looked).mul_f64(share);
        self.looked = now;
        self.passed
    }
}

/// Sleeps so long, and up to four times as long on a busy machine: until a process that was started has come about as
/// far as on an idle one.
pub(crate) fn let_pass(time: Duration) {
    let latest = Instant::now() + 4 * time;
    holds_within(time, || Instant::now() > latest);
}

/// Waits until it holds, at most so long on an idle machine; says whether it did.
pub(crate) fn holds_within(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let mut time = SharedTime::start();
    while !holds() {
        if time.passed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
