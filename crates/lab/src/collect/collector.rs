//! When each source is read, and how often it may be.

use std::collections::VecDeque;

use linerate_measure::collected::{Column, Reader, Source};

use super::{MOST_ROWS, Row, Ticks};
use crate::agent::Moment;

/// What collecting may cost, as a share of one processor.
pub const BUDGET: f64 = 0.005;

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;
/// Readings whose mean cost is the cost of a source.
const COSTS_KEPT: usize = 8;
/// The longest time between two readings of a source, which it has however dear it is.
const LONGEST_PERIOD_NS: u64 = 60 * SECOND_NS;
/// Values that are kept before they are sent, however little time has passed.
const MOST_VALUES_KEPT: usize = 32_768;

/// The clocks that a collector goes by.
pub trait Clock {
    /// Now.
    fn now(&mut self) -> Moment;

    /// Processor time that collecting has used, in nanoseconds.
    fn cpu_ns(&mut self) -> u64;
}

/// A reader, how often it is read, and what it gave since the last message.
struct Slot {
    reader: Box<dyn Reader>,
    /// It is read at each tick whose number this divides.
    every: u64,
    /// What the last readings cost, in nanoseconds of processor time.
    costs_ns: VecDeque<u64>,
    was_read: bool,
    /// The columns to send with the next message.
    columns: Option<Vec<Column>>,
    rows: Vec<Row>,
    /// Why it couldn't be read.
    failed: Option<String>,
    /// It failed and isn't read again.
    ended: bool,
}

impl Slot {
    fn new(reader: Box<dyn Reader>) -> Self {
        Self {
            reader,
            every: 1,
            costs_ns: VecDeque::new(),
            was_read: false,
            columns: None,
            rows: Vec::new(),
            failed: None,
            ended: false,
        }
    }

    /// Processor time that a tick costs because of this source: the mean reading, spread over the ticks.
    fn cost_of_tick_ns(&self) -> f64 {
        let sum: u64 = self.costs_ns.iter().sum();
        sum as f64 / self.costs_ns.len().max(1) as f64 / self.every as f64
    }

    fn add_cost(&mut self, cost_ns: u64) {
        // The first reading fills caches and makes the columns; it says little of the next.
        if self.was_read {
            if self.costs_ns.len() == COSTS_KEPT {
                self.costs_ns.pop_front();
            }
            self.costs_ns.push_back(cost_ns);
        }
        self.was_read = true;
    }

    /// Reads once. Returns a message that must be sent before what was read now.
    fn read(&mut self, at: Moment, hz: f64, cpu_share: f64) -> Option<Ticks> {
        let mut values = Vec::with_capacity(self.rows.last().map_or(0, |row| row.values.len()));
        let changed = match self.reader.read(&mut values) {
            Ok(changed) => changed,
            Err(reason) => {
                self.failed = Some(reason);
                self.ended = true;
                return None;
            }
        };
        let before = (changed && !self.rows.is_empty()).then(|| self.message(hz, cpu_share));
        if changed {
            self.columns = Some(self.reader.columns().to_vec());
        }
        self.rows.push(Row { monotonic_ns: at.monotonic_ns, utc_ns: at.utc_ns, values });
        before
    }

    fn has_message(&self) -> bool {
        !self.rows.is_empty() || self.failed.is_some()
    }

    /// What was read since the last message.
    fn message(&mut self, hz: f64, cpu_share: f64) -> Ticks {
        Ticks {
            source: self.reader.source(),
            hz: hz / self.every as f64,
            cpu_share,
            columns: self.columns.take(),
            rows: std::mem::take(&mut self.rows),
            failed: self.failed.take(),
        }
    }
}

/// Processor time of collecting.
#[derive(Default)]
struct Spent {
    /// What the clock had when it began.
    at_begin_ns: u64,
    /// All since then.
    total_ns: u64,
    /// Of that, what readings used.
    reading_ns: u64,
    /// Both when the first messages had been sent: those carry the columns and cost more than later ones.
    first: Option<(u64, u64)>,
}

impl Spent {
    /// How much all costs for each unit of reading: readings are sent, too.
    fn factor(&self) -> f64 {
        let (total, reading) = self.first.unwrap_or((self.total_ns, self.reading_ns));
        let total = self.total_ns.saturating_sub(total);
        let reading = self.reading_ns.saturating_sub(reading);
        if reading == 0 { 1.0 } else { (total as f64 / reading as f64).max(1.0) }
    }
}

/// Reads the sources of one host at their times.
///
/// The caller waits until [`Collector::next_at_ns`], calls [`Collector::tick`] and sends what that returns.
pub struct Collector {
    slots: Vec<Slot>,
    /// Readings a second that were asked for.
    hz: f64,
    period_ns: u64,
    began_ns: u64,
    /// The next tick: its number and its time.
    next: (u64, u64),
    sent_ns: u64,
    spent: Spent,
}

impl Collector {
    /// Begins at the next moment of UTC that is a whole number of periods, so that all hosts read at the same times as
    /// far as their clocks agree. `hz` is of a checked [`Request`](super::Request).
    pub fn new(readers: Vec<Box<dyn Reader>>, hz: f64, clock: &mut dyn Clock) -> Self {
        let now = clock.now();
        let hz = hz.clamp(super::LEAST_HZ, super::MOST_HZ);
        let period_ns = (SECOND_NS as f64 / hz) as u64;
        let utc_ns = u64::try_from(now.utc_ns).unwrap_or(0);
        let number = utc_ns / period_ns + 1;
        let at_ns = now.monotonic_ns.saturating_add(number * period_ns - utc_ns);
        let at_begin_ns = clock.cpu_ns();
        Self {
            slots: readers.into_iter().map(Slot::new).collect(),
            hz,
            period_ns,
            began_ns: now.monotonic_ns,
            next: (number, at_ns),
            sent_ns: now.monotonic_ns,
            spent: Spent { at_begin_ns, ..Spent::default() },
        }
    }

    /// When to call [`Collector::tick`] next, on the monotonic clock.
    pub fn next_at_ns(&self) -> u64 {
        self.next.1
    }

    /// Reads what is due. Returns what there is to send: each second, a message for each source that was read.
    pub fn tick(&mut self, clock: &mut dyn Clock) -> Vec<Ticks> {
        let mut ready = Vec::new();
        let now = clock.now();
        let share = self.account(now, clock.cpu_ns());
        let mut before_ns = self.spent.at_begin_ns + self.spent.total_ns;
        for slot in &mut self.slots {
            if slot.ended || !self.next.0.is_multiple_of(slot.every) {
                continue;
            }
            ready.extend(slot.read(clock.now(), self.hz, share));
            let after_ns = clock.cpu_ns();
            let cost_ns = after_ns.saturating_sub(before_ns);
            slot.add_cost(cost_ns);
            self.spent.reading_ns += cost_ns;
            before_ns = after_ns;
        }
        self.schedule(now.monotonic_ns);
        if self.is_time_to_send(now.monotonic_ns) {
            ready.extend(self.send(clock));
        }
        ready
    }

    /// What was read and not yet sent.
    pub fn finish(&mut self, clock: &mut dyn Clock) -> Vec<Ticks> {
        self.send(clock)
    }

    /// Adds up what was used. Returns its share of one processor.
    fn account(&mut self, now: Moment, cpu_ns: u64) -> f64 {
        self.spent.total_ns = cpu_ns.saturating_sub(self.spent.at_begin_ns);
        let elapsed_ns = now.monotonic_ns.saturating_sub(self.began_ns).max(1);
        self.spent.total_ns as f64 / elapsed_ns as f64
    }

    /// The next tick that is still to come: a late thread leaves out those that it missed.
    fn schedule(&mut self, now_ns: u64) {
        let (number, at_ns) = self.next;
        let steps = now_ns.saturating_sub(at_ns) / self.period_ns + 1;
        self.next = (number.saturating_add(steps), at_ns.saturating_add(steps * self.period_ns));
    }

    fn is_time_to_send(&self, now_ns: u64) -> bool {
        let rows = || self.slots.iter().flat_map(|slot| &slot.rows);
        let kept: usize = rows().map(|row| row.values.len()).sum();
        let is_full = self.slots.iter().any(|slot| slot.rows.len() >= MOST_ROWS);
        // Half a period early, so that a second's last tick is not left for the next second.
        let due_ns = self.sent_ns.saturating_add(SECOND_NS - self.period_ns / 2);
        now_ns >= due_ns || kept >= MOST_VALUES_KEPT || is_full
    }

    fn send(&mut self, clock: &mut dyn Clock) -> Vec<Ticks> {
        let now = clock.now();
        let share = self.account(now, clock.cpu_ns());
        self.keep_budget();
        if self.spent.first.is_none() && self.slots.iter().any(|slot| slot.costs_ns.len() > 1) {
            self.spent.first = Some((self.spent.total_ns, self.spent.reading_ns));
        }
        self.sent_ns = now.monotonic_ns;
        let hz = self.hz;
        let slots = self.slots.iter_mut().filter(|slot| slot.has_message());
        slots.map(|slot| slot.message(hz, share)).collect()
    }

    /// Reads the dearest source half as often, until all of it fits the budget.
    fn keep_budget(&mut self) {
        let factor = self.spent.factor();
        let budget_ns = BUDGET * self.period_ns as f64;
        let longest = LONGEST_PERIOD_NS / self.period_ns;
        loop {
            let running = || self.slots.iter().filter(|slot| !slot.ended);
            let cost_ns: f64 = factor * running().map(Slot::cost_of_tick_ns).sum::<f64>();
            if cost_ns <= budget_ns {
                return;
            }
            let can_be_less = |slot: &&mut Slot| !slot.ended && slot.every * 2 <= longest;
            let dearest = self.slots.iter_mut().filter(can_be_less);
            let Some(slot) = dearest
                .max_by(|a, b| a.cost_of_tick_ns().total_cmp(&b.cost_of_tick_ns()))
                .filter(|slot| slot.cost_of_tick_ns() > 0.0)
            else {
                return;
            };
            slot.every *= 2;
        }
    }

    /// The sources that are read, with the readings a second that each has now.
    pub fn rates(&self) -> impl Iterator<Item = (Source, f64)> {
        let running = self.slots.iter().filter(|slot| !slot.ended);
        running.map(|slot| (slot.reader.source(), self.hz / slot.every as f64))
    }
}
