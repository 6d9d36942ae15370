//! What a process holds, as /proc has it (proc(5)).

use std::fs;
use std::time::Duration;

use crate::ends::{Server, holds_within};

/// What a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) threads: usize,
    pub(crate) descriptors: usize,
    pub(crate) resident_bytes: u64,
}

impl Held {
    pub(crate) fn by(pid: u32) -> Self {
        let count = |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).unwrap().count();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kibibytes: u64 = resident.split_whitespace().next().unwrap().parse().unwrap();
        Self { threads: count("task"), descriptors: count("fd"), resident_bytes: kibibytes * 1024 }
    }

    /// What a process holds once its threads and descriptors have been the same for a while. A test's end is the
    /// client's before it is the server's, and a busy machine runs the server late.
    pub(crate) fn settled(pid: u32) -> Self {
        let (mut held, mut alike) = (Self::by(pid), 0);
        let settled = || {
            let before = std::mem::replace(&mut held, Self::by(pid));
            let is_alike = (before.threads, before.descriptors) == (held.threads, held.descriptors);
            alike = if is_alike { alike + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(50));
            alike == 10
        };
        assert!(holds_within(Duration::from_secs(60), settled));
        held
    }

    /// What a server holds that has made one small test of each transport and is idle again: what
    /// it makes once and keeps is not a leak.
    pub(crate) fn by_idle(server: &Server) -> Self {
        for flags in ["--tcp", "--tls", "--udp"] {
            server.measure(&format!("rr --count 5 {flags}")).document(0);
        }
        let held = Self::settled(server.pid());
        // What it said of these tests is nobody's concern.
        server.records();
        held
    }
}

/// Fails unless the server holds no more threads and descriptors than when it was idle, at the
/// latest after so long.
#[track_caller]
pub(crate) fn assert_idle(server: &Server, idle: Held, patience: Duration) {
    let mut held = Held::by(server.pid());
    let is_idle = || {
        held = Held::by(server.pid());
        held.threads <= idle.threads && held.descriptors <= idle.descriptors
    };
    assert!(
        holds_within(patience, is_idle),
        "idle it held {idle:?}, now {held:?}: {:?}",
        server.records()
    );
}
