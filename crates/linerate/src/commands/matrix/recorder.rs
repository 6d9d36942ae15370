//! Where the events of a matrix go: the store, records, the screen.

use std::collections::BTreeMap;

use linerate_lab::plan::Plan;
use linerate_lab::schedule::{CellEnd, CellStatus, Event, RunEnding, Sink, SinkError};
use linerate_measure::Run;
use linerate_measure::window::{Span, Timeline};
use linerate_results::outcome::SampleOutcome;
use linerate_results::{
    AttemptId, NewDocument, NewSeries, RunEnd, RunId, RunStatus, StoreError, Tick, Writer, model,
    series_of_documents,
};
use serde_json::{Value, json};

use super::collected::Collected;
use super::screen::Screen;
use crate::index::Live;

/// The sink of a run.
pub(super) struct Recorder<'a> {
    pub(super) plan: &'a Plan,
    pub(super) writer: &'a Writer,
    pub(super) run: RunId,
    /// What sends the run to an index.
    pub(super) live: Option<&'a Live>,
    pub(super) screen: Screen,
    /// The attempt that runs.
    pub(super) attempt: Option<AttemptId>,
    /// What the hosts have counted.
    pub(super) collected: Collected,
    /// How the cells stand that have their end.
    pub(super) ends: BTreeMap<u32, Ended>,
    pub(super) has_lost_host: bool,
}

/// What is kept of a cell for the exit code and the result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ended {
    pub(super) status: CellStatus,
    pub(super) reason: String,
}

impl Sink for Recorder<'_> {
    fn handle(&mut self, event: &Event) -> Result<(), SinkError> {
        self.store(event).map_err(|error| SinkError(error.to_string()))?;
        self.screen.handle(event, self.plan).map_err(SinkError)
    }
}

impl Recorder<'_> {
    fn store(&mut self, event: &Event) -> Result<(), StoreError> {
        match event {
            Event::CellBegan { position, at_ns, .. } => {
                let attempt = self.writer.begin_cell(self.run, *position, ms(*at_ns))?;
                self.attempt = Some(attempt);
                self.collected.begin_cell();
            }
            Event::Ticks { position, host, collector, from_ns, offset_ns, data } => {
                if let Err(why) = self.collected.handle_ticks(host, *offset_ns, data) {
                    self.writer.note(self.run, *position, &why)?;
                    return Ok(());
                }
                // Between cells there is nothing that they could explain.
                if let Some(attempt) = self.attempt {
                    let tick = Tick {
                        host: host.clone(),
                        collector: collector.clone(),
                        at_ms: ms(from_ns.saturating_sub(*offset_ns)),
                        data: data.clone().into_bytes(),
                    };
                    self.writer.tick(attempt, tick)?;
                }
            }
            Event::CellEnded(end) => {
                let kept = Ended { status: end.status, reason: end.reason.clone() };
                self.ends.insert(end.position, kept);
                if let Some(attempt) = self.attempt.take() {
                    let mut kept = self.to_store(end);
                    if let Some(asked) = &self.plan.collect {
                        self.collected.end_cell(asked.hz, &mut kept);
                    }
                    self.writer.end_cell(attempt, kept)?;
                    self.live.iter().for_each(|live| live.wake());
                }
            }
            Event::HostLost { host, why } => {
                self.has_lost_host = true;
                self.writer.note(self.run, None, &format!("the host {host} was lost: {why}"))?;
            }
            Event::HostReady { host, facts, offset_ns, bound_ns } => {
                let text =
                    format!("host {host}: clock {offset_ns} ns off, within {bound_ns} ns: {facts}");
                self.writer.note(self.run, None, &text)?;
            }
            Event::Note { position, text } => self.writer.note(self.run, *position, text)?,
            Event::Starting { .. } | Event::Record { .. } | Event::RunEnded { .. } => {}
        }
        Ok(())
    }

    /// An attempt as the store has it.
    fn to_store(&self, end: &CellEnd) -> model::CellEnd {
        let mut kept = model::CellEnd::without_result(
            match end.status {
                CellStatus::Done | CellStatus::Untrusted => model::CellStatus::Done,
                CellStatus::Again => model::CellStatus::Waiting,
                CellStatus::Failed => model::CellStatus::Failed,
            },
            end.reason.clone(),
            ms(end.span_ns.1),
        );
        kept.exit_code = Some(end.exit_code.into());
        kept.skew_p99_us = end.skew.map(|skew| skew.p99_ns / 1000);
        kept.notes.clone_from(&end.notes);
        let mut pairs: BTreeMap<u32, Vec<(&Run, i64)>> = BTreeMap::new();
        for document in &end.documents {
            let of_pair = pairs.entry(document.pair).or_default();
            of_pair.push((&document.run, document.ahead_ns));
            kept.documents.push(NewDocument {
                host: document.host.clone(),
                kind: Run::SCHEMA.to_owned(),
                body: serde_json::to_string(&document.run).unwrap_or_default(),
            });
        }
        for (pair, documents) in pairs {
            let labels = [("csid".to_owned(), pair.to_string())];
            let made = series_of_documents(&documents, &labels);
            let shift = kept.timelines.len();
            add(&mut kept.timelines, &mut kept.series, made.timelines, made.series, shift);
            kept.period = shared(kept.period, made.period);
            if kept.primary_metric.is_empty() {
                kept.primary_metric = made.primary_metric;
            }
        }
        let outcome = SampleOutcome::of_runs(end.runs());
        kept.outcome = outcome.judged(end.status != CellStatus::Untrusted, &end.reason);
        kept
    }

    /// Ends the run in the store. `verdicts` has a word for each point.
    pub(super) fn end(
        &self,
        ending: &RunEnding,
        verdicts: Vec<(u32, String)>,
        at_ns: i64,
    ) -> Result<(), StoreError> {
        let is_failed = |ended: &Ended| ended.status != CellStatus::Done;
        let status = match ending {
            RunEnding::Complete if self.ends.values().any(is_failed) => RunStatus::Failed,
            RunEnding::Complete => RunStatus::Complete,
            _ => RunStatus::Stopped,
        };
        let partial = *ending != RunEnding::Complete || self.has_lost_host;
        let end = RunEnd { status, partial, ended_ms: ms(at_ns), iterations: verdicts };
        self.writer.end_run(self.run, end)
    }
}

/// Adds the series of one document to those of the others.
fn add(
    timelines: &mut Vec<Timeline>,
    series: &mut Vec<NewSeries>,
    more: Vec<Timeline>,
    made: Vec<NewSeries>,
    shift: usize,
) {
    timelines.extend(more);
    series.extend(made.into_iter().map(|one| NewSeries { timeline: one.timeline + shift, ..one }));
}

pub(super) fn ms(ns: i64) -> i64 {
    ns.div_euclid(1_000_000)
}

/// The record of an event.
pub(super) fn record_of(event: &Event) -> Value {
    match event {
        Event::HostReady { host, facts, offset_ns, bound_ns } => json!({
            "record": "host_ready", "host": host, "offset_ns": offset_ns, "bound_ns": bound_ns,
            "facts": serde_json::from_str::<Value>(facts).unwrap_or_default(),
        }),
        Event::CellBegan { position, cell, attempt, at_ns } => json!({
            "record": "cell_began", "position": position, "point": cell.iteration,
            "sample": cell.sample + 1, "attempt": attempt, "utc_ns": at_ns,
        }),
        Event::Starting { position, at_ns } => {
            json!({ "record": "starting", "position": position, "utc_ns": at_ns })
        }
        Event::Record { position, pair, role, json } => json!({
            "record": "child", "position": position, "pair": pair, "role": role,
            "child": serde_json::from_str::<Value>(json).unwrap_or_default(),
        }),
        Event::Ticks { position, host, collector, from_ns, offset_ns, data } => json!({
            "record": "ticks", "position": position, "host": host, "collector": collector,
            "from_ns": from_ns, "offset_ns": offset_ns,
            "ticks": serde_json::from_str::<Value>(data).unwrap_or_default(),
        }),
        Event::CellEnded(end) => json!({
            "record": "cell_ended", "position": end.position, "point": end.cell.iteration,
            "sample": end.cell.sample + 1, "attempt": end.attempt, "status": status_name(end.status),
            "reason": end.reason, "exit_code": end.exit_code,
            "began_ns": end.span_ns.0, "ended_ns": end.span_ns.1,
            "skew": end.skew.map(|skew| json!({
                "min_ns": skew.min_ns, "p50_ns": skew.p50_ns, "p99_ns": skew.p99_ns, "max_ns": skew.max_ns,
                "bound_ns": skew.bound_ns,
            })),
            "notes": end.notes,
            "documents": end.documents.iter().map(|document| json!({
                "pair": document.pair, "host": document.host, "role": document.role,
                "run": document.run,
            })).collect::<Vec<_>>(),
        }),
        Event::HostLost { host, why } => json!({ "record": "host_lost", "host": host, "why": why }),
        Event::Note { position, text } => {
            json!({ "record": "note", "position": position, "text": text })
        }
        Event::RunEnded { ending, at_ns } => {
            json!({ "record": "run_ended", "ending": ending_name(ending), "utc_ns": at_ns })
        }
    }
}

/// The time that two periods share; where they share none, the first.
fn shared(one: Option<Span>, other: Option<Span>) -> Option<Span> {
    let (Some(first), Some(second)) = (one, other) else { return one.or(other) };
    let (begin, end) = (first.begin_ms.max(second.begin_ms), first.end_ms.min(second.end_ms));
    Span::new(begin, end).or(one)
}

pub(super) fn status_name(status: CellStatus) -> &'static str {
    match status {
        CellStatus::Done => "done",
        CellStatus::Untrusted => "untrusted",
        CellStatus::Again => "again",
        CellStatus::Failed => "failed",
    }
}

pub(super) fn ending_name(ending: &RunEnding) -> &'static str {
    match ending {
        RunEnding::Complete => "complete",
        RunEnding::OverBudget { .. } => "over_budget",
        RunEnding::Aborted { .. } => "aborted",
        RunEnding::HostLost { .. } => "host_lost",
        RunEnding::Interrupted => "interrupted",
    }
}
