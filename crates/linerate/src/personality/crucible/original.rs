//! The original iperf3 in place of linerate's own: its program measures, and its document becomes a run.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use linerate_engine::{host_facts, random_run_id};
use linerate_measure::run::Draft;
use linerate_measure::{Dialect, DialectOptions, Outcome, Plan, Run};
use linerate_personality::crucible::iperf::listens;
use linerate_personality::iperf3::command_line::parse_command_line;
use linerate_personality::iperf3::document::{DOCUMENT_BYTES_MAX, read_document, read_version};
use rustix::process::{Pid, Signal, kill_process_group};

use super::super::iperf3::plan_of;
use super::Failure;
use crate::output::narrate;
use crate::start_time::utc_now_ns;

/// How often is looked whether the server listens.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What is read of the answer to `--version`.
const VERSION_BYTES_MAX: u64 = 4096;

/// A program that says nothing for so long is given up.
const VERSION_WITHIN: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug)]
enum NoAnswer {
    NotStarted(io::Error),
    Unread(io::Error),
    Silent,
}

/// What a program prints, the beginning; it is ended then.
fn answer(command: &mut Command, within: Duration) -> Result<Vec<u8>, NoAnswer> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // A group of its own: what a script has started holds the pipe, and ends with it.
    command.process_group(0);
    let mut child = command.spawn().map_err(NoAnswer::NotStarted)?;
    let (teller, told) = mpsc::channel();
    let pipe = child.stdout.take();
    let read = move || {
        let mut printed = Vec::new();
        let read =
            pipe.map_or(Ok(0), |pipe| pipe.take(VERSION_BYTES_MAX).read_to_end(&mut printed));
        // Nobody waits any more where that took too long.
        let _told = teller.send(read.map(|_| printed));
    };
    let reading = thread::Builder::new().spawn(read);
    let printed = match reading {
        Ok(_) => told.recv_timeout(within).map_err(|_| NoAnswer::Silent),
        Err(error) => Err(NoAnswer::NotStarted(error)),
    };
    // A program that prints without end isn't waited for.
    let _gone = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _reaped = child.wait();
    printed?.map_err(NoAnswer::Unread)
}

/// The original's program.
#[derive(Debug)]
pub(super) struct Original {
    path: String,
    version: String,
}

impl Original {
    /// Asks the program for its version.
    ///
    /// # Errors
    /// It can't be started, isn't iperf3, or is too old.
    pub(super) fn find(path: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::new(format!("--iperf3 {path}: {why}"));
        let mut command = Command::new(path);
        command.arg("--version");
        let printed = answer(&mut command, VERSION_WITHIN).map_err(|fault| {
            wrong(&match fault {
                NoAnswer::NotStarted(error) if error.kind() == ErrorKind::NotFound => {
                    "there is no such program on this host: install iperf3, or give the path that it has here"
                        .to_owned()
                }
                NoAnswer::NotStarted(error) => format!("it can't be started: {error}"),
                NoAnswer::Unread(error) => format!("it can't be read: {error}"),
                NoAnswer::Silent => {
                    let within = VERSION_WITHIN.as_secs();
                    format!("it did not answer to --version within {within} s: give the path of an iperf3")
                }
            })
        })?;
        let version =
            read_version(&String::from_utf8_lossy(&printed)).map_err(|why| wrong(&why))?;
        Ok(Self { path: path.to_owned(), version })
    }

    /// Serves until the program ends; standard error tells when it listens on the port.
    pub(super) fn serve(&self, words: &[String], port: u16) -> Result<u8, Failure> {
        if is_listening(port)? {
            return Err(Failure::new(format!(
                "the TCP port {port} is taken on this host: end the program that listens there"
            )));
        }
        // A client's document has the server's part only where the server prints JSON.
        let mut child = guarded(OsStr::new(&self.path))?
            .args(words)
            .arg("--json")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| Failure::new(format!("can't start {}: {error}", self.path)))?;
        let waited = |error| Failure::new(format!("can't wait for {}: {error}", self.path));
        while !is_listening(port)? {
            if let Some(status) = child.try_wait().map_err(waited)? {
                let path = &self.path;
                return Err(Failure::new(format!(
                    "{path} ended with {status} before it listened on port {port}"
                )));
            }
            thread::sleep(LOOK_EVERY);
        }
        narrate(&format!("{} {port}\n", super::plan::LISTENING));
        let status = child.wait().map_err(waited)?;
        Err(Failure::new(format!("{}, the server, ended with {status}", self.path)))
    }

    /// Measures once.
    pub(super) fn measure(&self, words: &[String]) -> Result<Run, Failure> {
        let plan = plan_words(words).map_err(Failure::new)?;
        let began_utc_ns = utc_now_ns();
        let failed = |why: String| Failure::new(format!("{}: {why}", self.path));
        let mut child = guarded(OsStr::new(&self.path))?
            .args(words)
            .args(["--json", "--get-server-output"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("it can't be started: {error}")))?;
        let mut printed = Vec::new();
        let read = match child.stdout.take() {
            Some(pipe) => pipe.take(DOCUMENT_BYTES_MAX + 1).read_to_end(&mut printed),
            None => Ok(0),
        };
        let is_too_long = printed.len() as u64 > DOCUMENT_BYTES_MAX;
        if is_too_long || read.is_err() {
            let _gone = child.kill();
        }
        let status = child.wait().map_err(|error| failed(format!("can't wait for it: {error}")))?;
        read.map_err(|error| failed(format!("its output can't be read: {error}")))?;
        if is_too_long {
            return Err(failed(format!(
                "its document has more than {} MiB: give a longer interval, such as passthru -i10, \
                 or fewer streams",
                DOCUMENT_BYTES_MAX >> 20
            )));
        }
        let document = read_document(&String::from_utf8_lossy(&printed), began_utc_ns)
            .map_err(|why| failed(format!("{why} (it ended with {status})")))?;
        if !status.success() {
            return Err(failed(format!("it ended with {status}")));
        }
        let mut draft = Draft::new(random_run_id(), plan);
        draft.dialect = Dialect::Iperf3;
        let command_line = std::iter::once(self.path.clone()).chain(words.iter().cloned());
        draft.options = Some(DialectOptions {
            command_line: command_line.collect(),
            ..DialectOptions::default()
        });
        draft.environment.client = host_facts();
        draft.environment.started_utc_ns = Some(began_utc_ns);
        draft.samples = document.samples;
        document.reports.into_iter().for_each(|report| draft.record_report(report));
        draft.notes.push(format!("{} measured, which is {}", self.path, self.version));
        if !document.has_server {
            draft.notes.push(
                "the server didn't tell what it counted: it isn't iperf3 with --json".to_owned(),
            );
        }
        Ok(draft.into_run(Outcome::Complete, 0, None))
    }
}

/// What the words ask for, as linerate's own iperf3 reads them.
fn plan_words(words: &[String]) -> Result<Plan, String> {
    let options = parse_command_line(words, |path: &Path| path.exists())
        .map_err(|_| format!("iperf3 can't take the words {:?}", words.join(" ")))?;
    Ok(plan_of(&options))
}

/// Starts a program that the kernel kills when this process ends, whatever ends it.
pub(super) fn guarded(program: &OsStr) -> Result<Command, Failure> {
    let own = env::current_exe()
        .map_err(|error| Failure::new(format!("can't tell this program's path: {error}")))?;
    let mut command = Command::new(own);
    command.args(["agent", "--child-of", &std::process::id().to_string(), "--"]).arg(program);
    Ok(command)
}

/// Whether somebody listens on a port of this host or namespace.
fn is_listening(port: u16) -> Result<bool, Failure> {
    let of_ipv4 = fs::read_to_string("/proc/self/net/tcp")
        .map_err(|error| Failure::new(format!("/proc/self/net/tcp: {error}")))?;
    // A kernel without IPv6 has no such table.
    let of_ipv6 = fs::read_to_string("/proc/self/net/tcp6").unwrap_or_default();
    Ok(listens(&of_ipv4, port) || listens(&of_ipv6, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_stays_silent_is_given_up() {
        let mut echo = Command::new("echo");
        let printed = answer(echo.arg("iperf 3.9"), VERSION_WITHIN).unwrap();
        assert_eq!(printed, b"iperf 3.9\n");
        let mut sleep = Command::new("sleep");
        let silent = answer(sleep.arg("1000"), Duration::from_millis(20));
        assert!(matches!(silent, Err(NoAnswer::Silent)), "{silent:?}");
        let absent = answer(&mut Command::new("/nowhere/iperf3"), VERSION_WITHIN);
        assert!(matches!(absent, Err(NoAnswer::NotStarted(_))), "{absent:?}");
    }
}
