//! The link between two network namespaces: each gets one of two TUN devices, and the emulator is
//! what lies between the devices. Everything that is made here is removed when it is dropped.

use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use linerate_measure::link::report::{Form, Passed};
use linerate_measure::link::{Link, Report};

use super::leftovers::{Record, remove_leftovers};
use super::packet_loop::{forward, prepare_thread};
use super::{Ending, Pace, passed};
use linerate_system::cancel::Cancel;
use linerate_system::clock::utc_ns;
use linerate_system::error::Error;
use linerate_system::socket::open_tun;

/// Where `ip` keeps the names of namespaces (ip-netns(8)).
pub(super) const NETNS_DIRECTORY: &str = "/run/netns";
/// The device's name in both namespaces.
const DEVICE: &str = "link0";
/// What the devices are called until they are in their namespaces.
const DEVICE_PATTERN: &str = "linerate%d";
/// Packets that the system holds for the emulator to take.
const DEVICE_QUEUE_PACKETS: u32 = 2000;
/// Letters of a namespace's name: it is a file's.
const NAME_LETTERS_MAX: usize = 100;

/// What to make.
#[derive(Clone, Debug)]
pub struct NamespacesOptions {
    /// The name of the namespace on the left; there must be none of this name.
    pub left: String,
    /// The name of the one on the right.
    pub right: String,
    /// The directory for the record of what was made.
    pub records: PathBuf,
}

/// One end of the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The namespace.
    pub namespace: String,
    /// The address there, of a network of 24 bits.
    pub v4: &'static str,
    /// The address there, of a network of 64 bits.
    pub v6: &'static str,
}

/// Two namespaces and the link between them.
#[derive(Debug)]
pub struct Namespaces {
    /// Closed before the namespaces go.
    devices: [OwnedFd; 2],
    ends: [End; 2],
    notes: Vec<String>,
    _made: Made,
}

/// The namespaces that are there; they are removed when it is dropped.
#[derive(Debug)]
struct Made {
    names: Vec<String>,
    record: Record,
}

impl Drop for Made {
    fn drop(&mut self) {
        for name in &self.names {
            // Nothing is left to do about one that can't be removed, and nobody to tell.
            let _ = delete_namespace(name);
        }
    }
}

impl Namespaces {
    /// Makes the namespaces, the devices in them and their addresses, after removing what a crash
    /// of an earlier one has left.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`] where a name can't be one or is taken, [`Error::Host`] where privileges or
    /// tools are missing.
    pub fn create(link: &Link, options: &NamespacesOptions) -> Result<Self, Error> {
        let names = [&options.left, &options.right];
        check_names(names)?;
        let devices = [open_device()?, open_device()?];
        let notes = remove_leftovers(&options.records);
        for name in names {
            if std::path::Path::new(NETNS_DIRECTORY).join(name).exists() {
                return Err(Error::Plan(format!(
                    "there is a network namespace {name} already: give other names with --left \
                     and --right, or remove it with `ip netns delete {name}`"
                )));
            }
        }
        let mut made = Made { names: Vec::new(), record: Record::create(&options.records)? };
        for name in names {
            ip(&["netns", "add", name], "")?;
            made.names.push(name.clone());
            made.record.add(name)?;
        }
        let ends = [
            End { namespace: options.left.clone(), v4: "10.77.0.1", v6: "fd77::1" },
            End { namespace: options.right.clone(), v4: "10.77.0.2", v6: "fd77::2" },
        ];
        for ((_, device), end) in devices.iter().zip(&ends) {
            ip(&["link", "set", "dev", device, "netns", &end.namespace, "name", DEVICE], "")?;
            ip(&["-n", &end.namespace, "-batch", "-"], &set_up(link, end))?;
        }
        let devices = devices.map(|(device, _)| device);
        Ok(Self { devices, ends, notes, _made: made })
    }

    /// The ends, left and right.
    pub fn ends(&self) -> &[End; 2] {
        &self.ends
    }

    /// What happened while they were made.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Emulates until the time is over or a request to stop comes, in the calling thread.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where a device fails.
    pub fn run(&self, link: &Link, pace: &Pace, cancel: &Cancel) -> Result<Report, Error> {
        let mut notes = self.notes.clone();
        let prepared = prepare_thread(pace)?;
        notes.extend(prepared.notes.iter().cloned());
        let started_utc_ns = utc_ns();
        let done = forward(link, &self.devices, pace, cancel).map_err(|source| Error::Io {
            operation: "forward packets between",
            address: format!("{} and {}", self.ends[0].namespace, self.ends[1].namespace),
            source,
        })?;
        let accuracy = done.punctuality.accuracy();
        let passed = |direction: usize, path| -> Passed {
            let span = done.punctuality.span(direction);
            let lost_before = self.dropped_packets(direction);
            passed(path, span.length_ns(), span.first_bytes, lost_before)
        };
        let ending = Ending {
            form: Form::Namespaces {
                left: self.ends[0].namespace.clone(),
                right: self.ends[1].namespace.clone(),
            },
            started_utc_ns,
            elapsed_ns: done.elapsed_ns,
            pace: *pace,
            to_right: passed(0, done.right),
            to_left: passed(1, done.left),
            accuracy,
            not_emulated: Vec::new(),
            notes,
        };
        Ok(ending.report(link))
    }

    /// Packets that a device has dropped because they were not taken in time.
    fn dropped_packets(&self, side: usize) -> Option<u64> {
        let namespace = &self.ends.get(side)?.namespace;
        let text = ip(&["-n", namespace, "-s", "-j", "link", "show", "dev", DEVICE], "").ok()?;
        let devices: serde_json::Value = serde_json::from_str(&text).ok()?;
        devices.pointer("/0/stats64/tx/dropped")?.as_u64()
    }
}

/// Removes a namespace's name; it is gone when its last process is.
pub(super) fn delete_namespace(name: &str) -> Result<(), Error> {
    ip(&["netns", "delete", name], "").map(drop)
}

/// The commands that set up one end. No address is made up beside ours, so that the link carries
/// no packet of its own.
fn set_up(link: &Link, end: &End) -> String {
    let (mtu, End { v4, v6, .. }) = (link.mtu_bytes, end);
    format!(
        "link set dev lo up\n\
         link set dev {DEVICE} addrgenmode none\n\
         link set dev {DEVICE} mtu {mtu} txqueuelen {DEVICE_QUEUE_PACKETS} multicast off up\n\
         addr add {v4}/24 dev {DEVICE}\n\
         addr add {v6}/64 dev {DEVICE} nodad\n\
         route add default dev {DEVICE}\n\
         route add ::/0 dev {DEVICE}\n"
    )
}

fn check_names(names: [&String; 2]) -> Result<(), Error> {
    for name in names {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !starts || name.len() > NAME_LETTERS_MAX || !name.chars().all(plain) {
            return Err(Error::Plan(format!(
                "{name:?} can't name a namespace: give letters, digits, '-', '_' and '.', a letter \
                 or digit first, {NAME_LETTERS_MAX} at most"
            )));
        }
    }
    if names[0] == names[1] {
        return Err(Error::Plan(format!(
            "the namespaces on both sides are called {}: give two names",
            names[0]
        )));
    }
    Ok(())
}

fn open_device() -> Result<(OwnedFd, String), Error> {
    open_tun(DEVICE_PATTERN).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => privileges_missing(),
        ErrorKind::NotFound => Error::Host(
            "this system has no TUN devices (/dev/net/tun): load the module tun, or use --relay, \
             which needs none"
                .to_owned(),
        ),
        _ => Error::Host(format!("can't make a TUN device: {error}. --relay needs none")),
    })
}

fn privileges_missing() -> Error {
    Error::Host(
        "making network namespaces and TUN devices needs root: run it as root, or use --relay, \
         which needs no privileges"
            .to_owned(),
    )
}

/// Runs `ip` with these words and this input: what it printed.
fn ip(words: &[&str], input: &str) -> Result<String, Error> {
    let run = || {
        let mut child = Command::new("ip")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // Where `ip` has ended early its output says why.
            let _ = stdin.write_all(input.as_bytes());
        }
        child.wait_with_output()
    };
    let output = run().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Host(
            "the tool `ip` is missing: install iproute2, or use --relay, which needs no tools"
                .to_owned(),
        ),
        _ => Error::Host(format!("can't start `ip`: {error}")),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("Operation not permitted") || said.contains("Permission denied") {
        return Err(privileges_missing());
    }
    Err(Error::Host(format!("`ip {}` failed: {}", words.join(" "), said.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_none_are_refused() {
        let good = "left-1_a.b".to_owned();
        assert!(check_names([&good, &"right".to_owned()]).is_ok());
        for bad in ["", ".", "..", "-n", "a/b", "a b", "ä", &"x".repeat(101), good.as_str()] {
            let error = check_names([&good, &bad.to_owned()]).unwrap_err();
            assert!(matches!(error, Error::Plan(_)), "{bad}: {error}");
        }
    }
}
