//! What both ends of media streams share: when rows are due, when a run ends, the pause before its end.

use std::thread;
use std::time::Duration;

use linerate_measure::report::{FlowReport, HostFacts, Waiting};
use linerate_measure::sample::{DatagramCounts, Traffic};
use linerate_measure::{EndReport, Role};
use linerate_wire::ctstraffic::media::receiver::FrameCounts;

use super::LOOK_NS;
use super::media_event::{MediaEvent, MediaRun, MediaStatus, MediaTotals, since};
use super::media_events::Events;
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::event::Cancel;
use crate::probe::MachineTimes;
use crate::waiting::CostMark;

/// From so many streams on, an end has a turn every [`TURN_NS`] and not for each frame: a thread that wakes up
/// 60,000 times a second does little else.
const MANY_STREAMS: usize = 64;
/// So much later than due a frame of many streams may be.
const TURN_NS: u64 = MILLISECOND_NS;

/// How a run of streams goes on and ends.
#[derive(Clone, Debug, Default)]
pub struct MediaTimes {
    /// Time between two rows of status.
    pub status_ns: u64,
    /// After so long everything ends; absent: never.
    pub time_limit: Option<Duration>,
    /// How long sockets stay open at the end.
    pub pause_at_end: Option<Duration>,
}

/// One end with all its streams.
pub(super) trait MediaEnd {
    /// Whether all was done that was asked.
    fn is_done(&self) -> bool;

    /// Streams that run.
    fn open(&self) -> usize;

    /// Which end this is.
    fn role(&self) -> Role;

    /// Whether its thread polls without sleeping.
    fn spins(&self) -> bool;

    /// What came of all streams until now.
    fn totals(&mut self) -> MediaTotals;

    /// When it began, and when it has moved datagrams.
    fn times(&self) -> EndTimes;

    /// What it knows of datagrams, beside [`MediaEnd::totals`].
    fn datagrams(&self) -> DatagramCounts;

    /// Does what is due, then waits until there is more to do, or until a time; not before `rest_until_ns` in any
    /// case.
    fn turn(&mut self, now_ns: u64, until_ns: u64, rest_until_ns: u64);
}

/// When an end began, and when it has moved datagrams of frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndTimes {
    pub(super) began_ns: u64,
    /// `None`: it has moved none.
    first_moved_ns: Option<u64>,
    last_moved_ns: Option<u64>,
}

impl EndTimes {
    pub(super) fn new(began_ns: u64) -> Self {
        Self { began_ns, first_moved_ns: None, last_moved_ns: None }
    }

    pub(super) fn record_moved(&mut self, now_ns: u64) {
        self.first_moved_ns.get_or_insert(now_ns);
        self.last_moved_ns = Some(now_ns);
    }

    /// The first and the last time that datagrams moved, since it began.
    fn moved_ns(&self) -> [Option<u64>; 2] {
        [self.first_moved_ns, self.last_moved_ns]
            .map(|at_ns| at_ns.map(|at_ns| at_ns.saturating_sub(self.began_ns)))
    }
}

/// Runs an end until all is done, until the time is up or until it is cancelled.
pub(super) fn conduct(
    mut end: impl MediaEnd,
    times: &MediaTimes,
    events: &Events<'_>,
    cancel: &Cancel,
) -> MediaRun {
    let began_ns = end.times().began_ns;
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let limit_ns = times.time_limit.map_or(u64::MAX, ns);
    let ends_ns = began_ns.saturating_add(limit_ns);
    let (machine, mark) = (MachineTimes::now(), CostMark::now());
    let mut rows = StatusRows::new(began_ns, times.status_ns);
    let tell_status = |end: &mut dyn MediaEnd, rows: &mut StatusRows, now_ns| {
        let row = rows.cut(now_ns, end.open(), end.totals());
        events.tell(MediaEvent::Status(row));
    };
    tell_status(&mut end, &mut rows, began_ns);
    let is_complete = loop {
        let now_ns = monotonic_ns();
        if cancel.requested() {
            break false;
        }
        if now_ns >= ends_ns {
            events.tell(MediaEvent::TimeIsUp);
            break false;
        }
        if end.is_done() {
            break true;
        }
        if now_ns >= rows.next_ns() {
            match events.has_room_for_status() {
                true => tell_status(&mut end, &mut rows, now_ns),
                false => rows.put_off(now_ns),
            }
        }
        take_turn(&mut end, now_ns, rows.next_ns().min(ends_ns));
    };
    if !is_complete {
        events.stop();
    }
    if let Some(pause) = times.pause_at_end.filter(|_| !cancel.requested()) {
        events.tell(MediaEvent::Pausing);
        let until_ns = monotonic_ns().saturating_add(ns(pause));
        // What is under way goes on meanwhile. An end that is done doesn't wait by itself.
        while monotonic_ns() < until_ns && !cancel.requested() {
            if end.is_done() {
                let left_ns = until_ns.saturating_sub(monotonic_ns()).min(LOOK_NS);
                thread::sleep(Duration::from_nanos(left_ns));
            } else {
                take_turn(&mut end, monotonic_ns(), until_ns);
            }
        }
    }
    let now_ns = monotonic_ns();
    tell_status(&mut end, &mut rows, now_ns);
    let totals = end.totals();
    MediaRun {
        totals,
        open: end.open() as u64,
        elapsed_ns: now_ns - began_ns,
        is_complete,
        lost_events: events.lost(),
        report: report(&end, &totals, (&machine, &mark), now_ns),
    }
}

/// What the calling thread, which has carried all streams, and the machine have done since the run began.
fn report(
    end: &impl MediaEnd,
    totals: &MediaTotals,
    (machine, mark): (&MachineTimes, &CostMark),
    ended_ns: u64,
) -> EndReport {
    let cost = mark.cost();
    let times = end.times();
    let [from_ns, to_ns] = times.moved_ns();
    let traffic = Some(Traffic { bytes: totals.counts.bits / 8, calls: None });
    let (sent, received) = match end.role() {
        Role::Client => (None, traffic),
        Role::Server => (traffic, None),
    };
    // All streams are one flow: those that come and go have no numbers that both ends know.
    let flow = FlowReport {
        sent,
        received,
        from_ns,
        to_ns,
        datagrams: Some(end.datagrams()),
        ..FlowReport::default()
    };
    EndReport {
        host: HostFacts { ran_on_cpus: cost.ran_on_cpus, ..HostFacts::default() },
        flows: vec![flow],
        elapsed_ns: ended_ns.saturating_sub(times.began_ns),
        cpu: Some(cost.cpu),
        waiting: Some(Waiting { spins: end.spins(), ..cost.waiting }),
        machine_cpu: MachineTimes::now().cpus_since(machine),
        ..EndReport::nothing(end.role())
    }
}

fn take_turn(end: &mut impl MediaEnd, now_ns: u64, until_ns: u64) {
    let rest_until_ns = if end.open() < MANY_STREAMS { now_ns } else { now_ns + TURN_NS };
    end.turn(now_ns, until_ns.min(now_ns + LOOK_NS), rest_until_ns);
}

/// Cuts rows of status.
#[derive(Clone, Copy, Debug)]
struct StatusRows {
    began_ns: u64,
    interval_ns: u64,
    /// When the next row is due.
    next_ns: u64,
    last_ns: u64,
    last: FrameCounts,
}

impl StatusRows {
    fn new(began_ns: u64, interval_ns: u64) -> Self {
        let interval_ns = interval_ns.max(MILLISECOND_NS);
        let next_ns = began_ns.saturating_add(interval_ns);
        let last = FrameCounts::default();
        Self { began_ns, interval_ns, next_ns, last_ns: began_ns, last }
    }

    fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Leaves the row that is due to the next one.
    fn put_off(&mut self, now_ns: u64) {
        self.next_ns = now_ns.saturating_add(self.interval_ns);
    }

    /// The row of the time since the last one.
    fn cut(&mut self, now_ns: u64, streams: usize, totals: MediaTotals) -> MediaStatus {
        let row = MediaStatus {
            at_ns: now_ns - self.began_ns,
            slice_ns: now_ns - self.last_ns,
            streams: streams as u64,
            counts: since(totals.counts, self.last),
            totals,
        };
        (self.last_ns, self.last) = (now_ns, totals.counts);
        self.put_off(now_ns);
        row
    }
}
