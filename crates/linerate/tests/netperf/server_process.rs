//! A netserver of ours, and netperfs that test against it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

/// A netserver in the foreground on a free port; it ends with the value.
pub(crate) struct Netserver {
    child: Child,
    pub(crate) port: u16,
}

impl Netserver {
    pub(crate) fn start(options: &str) -> Self {
        Self::start_at("-4 -L 127.0.0.1", options)
    }

    /// Likewise, at other addresses.
    pub(crate) fn start_at(addresses: &str, options: &str) -> Self {
        Self::start_with(addresses, options, &[])
    }

    /// Likewise, with variables in its environment.
    pub(crate) fn start_with(addresses: &str, options: &str, variables: &[(&str, &Path)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .envs(variables.iter().copied())
            .args("netserver -D -p 0".split_whitespace())
            .args(addresses.split_whitespace())
            .args(options.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = port_of(&line);
        Self { child, port }
    }

    /// Runs netperf against it.
    pub(crate) fn netperf(&self, options: &str) -> Ended {
        netperf(&format!("-H 127.0.0.1 -p {} {options}", self.port))
    }

    /// Starts netperf against it.
    pub(crate) fn start_netperf(&self, options: &str) -> Child {
        let options = format!("-H 127.0.0.1 -p {} {options}", self.port);
        command("", &options).stdout(Stdio::null()).spawn().unwrap()
    }

    /// Has it do nothing more.
    pub(crate) fn freeze(&self) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) {
        let pid = Pid::from_child(&self.child);
        if self.child.try_wait().unwrap().is_none() {
            rustix::process::kill_process(pid, Signal::TERM).unwrap();
        }
        self.child.wait().unwrap();
    }

    /// Its number in /proc.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Netserver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The port in a netserver's first line.
pub(crate) fn port_of(line: &str) -> u16 {
    let port = line.split("port '").nth(1).and_then(|rest| rest.split('\'').next());
    port.unwrap_or_else(|| panic!("no port in {line:?}")).parse().unwrap()
}

/// How a program ended and what it said.
pub(crate) struct Ended {
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn netperf(options: &str) -> Ended {
    netperf_of("", options)
}

/// Netperf that takes its netserver for one of this release.
pub(crate) fn netperf_of(release: &str, options: &str) -> Ended {
    ended(&mut command(release, options))
}

/// Netperf with a variable in its environment.
pub(crate) fn netperf_with(variable: &str, options: &str) -> Ended {
    ended(command("", options).env(variable, ""))
}

pub(crate) fn ended(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    Ended {
        exit_code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn command(release: &str, options: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.arg("netperf").env("LINERATE_NETPERF_VERSION", release);
    command.args(options.split_whitespace()).stdin(Stdio::null());
    command
}

/// What `-k` printed.
pub(crate) fn value(stdout: &str, name: &str) -> String {
    let found = stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {stdout}")).to_owned()
}
