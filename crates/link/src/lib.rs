//! Emulates a path between two machines, as a [`Link`] describes it.
//!
//! A test of a measuring tool needs a path whose delay, queue and losses are known. [`Link`] is the path's
//! description, from the crate `linerate-measure`. The [`Report`] says what became of each packet, and how far the
//! emulator itself was late.
//!
//! The emulator itself is `path`: a state machine for one direction, without I/O and clock. Two
//! forms move packets through a pair of them: [`Namespaces`] between two network namespaces, for any IP
//! traffic, and [`Forwarder`] between sockets, without privileges.
//!
//! It may not know the engine or any dialect: what is tested and what tests it share no line.

#![forbid(unsafe_code)]

mod corruption;
mod fate;
mod forward;
mod leftovers;
mod namespaces;
mod packet;
mod packet_loop;
mod path;
mod punctuality;

pub use forward::{Forwarder, ForwarderOptions};
pub use namespaces::{Namespaces, NamespacesOptions};

use linerate_measure::link::report::{Accuracy, Form, Passed, Waiting};
use linerate_measure::link::{Direction, Link, Report};
use linerate_measure::run::exit;
use linerate_measure::{Outcome, run::Status};

use path::Path;

use linerate_system::clock::SECOND_NS;

/// How the emulating thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Whether it sleeps between packets.
    pub waiting: Waiting,
    /// The processor that it is pinned to.
    pub cpu: Option<u32>,
    /// How long it runs; `None`: until it is cancelled.
    pub time_ns: Option<u64>,
}

/// Late packets above this share make the emulation untrustworthy.
const LATE_SHARE_MAX: f64 = 0.01;

/// The two directions' machines.
fn paths(link: &Link, buffer_bytes: usize, headers: bool) -> (Path, Path) {
    let corrupts =
        |first: &Direction, of: fn(&linerate_measure::link::Change) -> Option<&Direction>| {
            first.corrupt.is_some()
                || link.changes.iter().filter_map(of).any(|direction| direction.corrupt.is_some())
        };
    let right = corrupts(&link.to_right, |change| change.to_right.as_ref());
    let left = corrupts(&link.to_left, |change| change.to_left.as_ref());
    // Two seeds of which neither gives the other's numbers.
    let mut state = link.seed;
    let seeds = [(); 2].map(|()| linerate_measure::random::next_word(&mut state));
    (
        Path::new(link.to_right.clone(), seeds[0], buffer_bytes, headers && right),
        Path::new(link.to_left.clone(), seeds[1], buffer_bytes, headers && left),
    )
}

/// The times at which the description changes.
#[derive(Debug)]
struct Calendar<'a> {
    link: &'a Link,
    begun_ns: u64,
    next: usize,
}

impl<'a> Calendar<'a> {
    fn new(link: &'a Link, begun_ns: u64) -> Self {
        Self { link, begun_ns, next: 0 }
    }

    /// When the next change comes.
    #[inline]
    fn next_time(&self) -> Option<u64> {
        self.link.changes.get(self.next).map(|change| self.begun_ns + change.at_ns)
    }

    /// Applies what has come.
    fn apply<'p>(&mut self, now_ns: u64, right: &'p mut [Path], left: &'p mut [Path]) {
        while self.next_time().is_some_and(|at_ns| at_ns <= now_ns) {
            let Some(change) = self.link.changes.get(self.next) else { return };
            for (paths, direction) in
                [(&mut *right, &change.to_right), (&mut *left, &change.to_left)]
            {
                if let Some(direction) = direction {
                    paths.iter_mut().for_each(|path| path.change(now_ns, direction.clone()));
                }
            }
            self.next += 1;
        }
    }
}

/// What a form knows at its end.
struct Ending {
    form: Form,
    started_utc_ns: i64,
    elapsed_ns: u64,
    pace: Pace,
    to_right: Passed,
    to_left: Passed,
    accuracy: Accuracy,
    not_emulated: Vec<String>,
    notes: Vec<String>,
}

impl Ending {
    fn report(self, link: &Link) -> Report {
        let status = self.status();
        Report {
            schema: Report::SCHEMA.to_owned(),
            link: link.clone(),
            form: self.form,
            started_utc_ns: self.started_utc_ns,
            elapsed_ns: self.elapsed_ns,
            waiting: self.pace.waiting,
            cpu: self.pace.cpu,
            to_right: self.to_right,
            to_left: self.to_left,
            accuracy: self.accuracy,
            not_emulated: self.not_emulated,
            status,
        }
    }

    fn status(&self) -> Status {
        let both = [&self.to_right.counters, &self.to_left.counters];
        let delivered: u64 = both.iter().map(|counters| counters.delivered).sum();
        let held: u64 = both.iter().map(|counters| counters.lost_in_emulator).sum();
        let before: u64 = both.iter().filter_map(|counters| counters.lost_before).sum();
        let mut reasons = Vec::new();
        if self.accuracy.late as f64 > delivered as f64 * LATE_SHARE_MAX {
            let (late, after_us) = (self.accuracy.late, self.accuracy.late_after_ns / 1000);
            reasons.push(format!(
                "{late} of {delivered} packets left more than {after_us} µs after their time"
            ));
        }
        if held > 0 {
            reasons.push(format!("{held} packets were dropped because too many were in flight"));
        }
        if before > 0 {
            reasons.push(format!("{before} packets were dropped before the emulator saw them"));
        }
        let kept_up = reasons.is_empty();
        Status {
            outcome: if kept_up { Outcome::Complete } else { Outcome::Untrustworthy },
            exit_code: if kept_up { exit::VALID } else { exit::UNTRUSTWORTHY },
            verdict: None,
            reasons: Vec::new(),
            message: (!kept_up).then(|| {
                let reasons = reasons.join("; ");
                format!(
                    "the host could not keep up: {reasons}. Give the emulator a processor of its \
                     own (--cpu) or ask for less"
                )
            }),
            unmet: Vec::new(),
            notes: self.notes.clone(),
        }
    }
}

/// What went through a path. `first_ns` and `last_ns` are the times of the first and the last
/// packet delivered.
fn passed(path: Path, span_ns: u64, first_bytes: u64, lost_before: Option<u64>) -> Passed {
    let mut counters = path.counters();
    counters.lost_before = lost_before;
    // The first packet only starts the clock.
    let bytes = counters.delivered_bytes.saturating_sub(first_bytes);
    let delivered_bps = (counters.delivered > 1 && span_ns > 0)
        .then(|| bytes as f64 * 8.0 * SECOND_NS as f64 / span_ns as f64);
    Passed { counters, delivered_bps, flips: path.into_flips() }
}
