//! What is seen of a matrix while it runs: a line for each cell, a bar at the foot of a terminal, or records.

use std::time::Instant;

use linerate_lab::plan::Plan;
use linerate_lab::schedule::{CellEnd, CellStatus, Event};
use linerate_measure::hunt::HuntRecord;
use linerate_measure::units::{render_duration_ns, render_rate};
use serde_json::json;

use super::recorder::record_of;
use crate::output::{Destination, FootLine, Unwritten, narrate};

/// The cells of the bar.
const BAR: usize = 20;

/// What prints while a matrix runs.
pub(super) struct Screen {
    /// Whether records go to standard output.
    pub(super) ndjson: bool,
    pub(super) quiet: bool,
    pub(super) foot: Option<FootLine>,
    pub(super) eta: Eta,
}

/// How long a run will take.
#[derive(Debug)]
pub(super) struct Eta {
    /// Cells of the run, those of earlier controllers too.
    pub(super) cells: usize,
    /// Cells that have their end.
    pub(super) over: usize,
    /// The planned time of the cells that wait.
    pub(super) left_ns: u64,
    /// Time beyond the planned one, of the cells so far, and their number.
    pub(super) extra: (u64, u32),
    /// When the cell began that runs.
    pub(super) began: Option<Instant>,
}

impl Eta {
    /// Planned time and the mean set-up of each cell.
    pub(super) fn left_ns(&self) -> u64 {
        let (extra_ns, count) = self.extra;
        let each_ns = extra_ns.checked_div(u64::from(count)).unwrap_or(0);
        let waiting = u64::try_from(self.cells.saturating_sub(self.over)).unwrap_or(u64::MAX);
        self.left_ns.saturating_add(each_ns.saturating_mul(waiting))
    }

    fn end_cell(&mut self, planned_ns: u64) {
        self.over += 1;
        self.left_ns = self.left_ns.saturating_sub(planned_ns);
        if let Some(began) = self.began.take() {
            let taken_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.extra.0 = self.extra.0.saturating_add(taken_ns.saturating_sub(planned_ns));
            self.extra.1 += 1;
        }
    }

    /// The bar, the cells and the time that is left.
    pub(super) fn render(&self) -> String {
        let done = (self.over * BAR).checked_div(self.cells).unwrap_or(BAR);
        let bar = format!("{}{}", "#".repeat(done), ".".repeat(BAR.saturating_sub(done)));
        let left = render_duration_ns(whole_seconds(self.left_ns()));
        format!("[{bar}] {} of {} cells, {left} left", self.over, self.cells)
    }
}

fn whole_seconds(ns: u64) -> u64 {
    ns.div_ceil(1_000_000_000).saturating_mul(1_000_000_000)
}

impl Screen {
    /// Shows an event.
    ///
    /// # Errors
    ///
    /// Where records can't be written.
    pub(super) fn handle(&mut self, event: &Event, plan: &Plan) -> Result<(), String> {
        if self.ndjson {
            self.put(&record_of(event))?;
        }
        match event {
            Event::CellBegan { .. } => self.eta.began = Some(Instant::now()),
            Event::CellEnded(end) => {
                let place = usize::try_from(end.cell.iteration).ok();
                let point = place.and_then(|place| plan.points.get(place));
                if end.status != CellStatus::Again {
                    self.eta.end_cell(point.map_or(0, |point| point.expected_ns));
                    self.put_progress()?;
                }
                let point = point.map(|point| point.describe()).unwrap_or_default();
                self.say(&describe(end, &point));
            }
            Event::HostLost { host, why } => self.say(&format!("host {host} was lost: {why}")),
            Event::Note { text, .. } => self.say(text),
            Event::HostReady { .. }
            | Event::Starting { .. }
            | Event::Record { .. }
            | Event::Ticks { .. }
            | Event::RunEnded { .. } => {}
        }
        self.show_foot();
        Ok(())
    }

    fn put_progress(&self) -> Result<(), String> {
        if !self.ndjson {
            return Ok(());
        }
        let Eta { cells, over, .. } = self.eta;
        let left_ns = self.eta.left_ns();
        self.put(&json!({ "record": "progress", "cells": cells, "over": over, "left_ns": left_ns }))
    }

    pub(super) fn put(&self, record: &serde_json::Value) -> Result<(), String> {
        Destination::Stdout.put(&format!("{record}\n")).map_err(|unwritten| match unwritten {
            Unwritten::ReaderGone => READER_GONE.to_owned(),
            Unwritten::Failed(why) => why,
        })
    }

    pub(super) fn say(&mut self, text: &str) {
        if !self.quiet {
            let clear = self.foot.as_mut().map_or("", FootLine::give_way);
            narrate(&format!("{clear}{text}\n"));
        }
    }

    fn show_foot(&mut self) {
        let text = self.eta.render();
        if let Some(foot) = self.foot.as_mut().filter(|_| !self.quiet) {
            narrate(&foot.show(&text));
        }
    }

    /// Takes the bar away.
    pub(super) fn close(&mut self) {
        if let Some(foot) = &mut self.foot {
            narrate(foot.give_way());
        }
    }
}

/// Said where the reader of records has closed the pipe.
pub(super) const READER_GONE: &str = "the reader of standard output is gone";

fn describe(end: &CellEnd, point: &str) -> String {
    let summaries = end.runs().map(|run| &run.summary);
    let hunts = end.runs().map(|run| run.hunt.as_deref().map(HuntRecord::describe));
    let hunts: Option<Vec<String>> = hunts.collect();
    // Pairs in lockstep have found the same.
    let hunts = hunts.map(|mut found| {
        found.dedup();
        found
    });
    let goodput: Option<Vec<f64>> = summaries.clone().map(|one| one.goodput_bps).collect();
    let rates: Option<Vec<f64>> =
        summaries.map(|one| one.transactions_per_s.or(one.connections_per_s)).collect();
    let figure = match (hunts, goodput, rates) {
        (Some(found), ..) if !found.is_empty() && end.status == CellStatus::Done => {
            found.join(", ")
        }
        // The reason has what a hunt came to that is not to be trusted.
        (Some(found), ..) if !found.is_empty() => "no rate".to_owned(),
        (_, Some(rates), _) if !rates.is_empty() => render_rate(rates.iter().sum()),
        (_, _, Some(rates)) if !rates.is_empty() => format!("{:.0}/s", rates.iter().sum::<f64>()),
        _ => "no result".to_owned(),
    };
    let reason = match (end.status, end.reason.as_str()) {
        (CellStatus::Done, _) | (_, "") => String::new(),
        (CellStatus::Untrusted, reason) => format!(", not to be trusted: {reason}"),
        (CellStatus::Again, reason) => format!(", attempt {} failed: {reason}", end.attempt),
        (CellStatus::Failed, reason) => format!(", failed: {reason}"),
    };
    format!("cell {} {point}, sample {}: {figure}{reason}", end.position + 1, end.cell.sample + 1)
}
