//! The part of an attempt that a hunt of several pairs needs: one trial after the other, on all pairs at once.

use std::time::Duration;

use linerate_measure::record::Record;
use linerate_measure::{Outcome, Role, Sample};

use super::attempt::{Attempt, Stage};
use super::event::Event;
use super::program::Program;
use super::run::Conductor;
use crate::barrier::from_host;
use crate::hunting::Hunting;

/// Clients have so long to tell of a trial that was ended.
const GRACE: Duration = Duration::from_secs(60);

/// What a record was.
pub(super) enum Told {
    /// The document of a run.
    Document,
    /// What an end counted in an interval.
    Sample(Box<Sample>),
    /// Anything else.
    Other,
}

impl Attempt {
    /// Begins the search of the cell's point, where it has one, by the pairs whose servers were started.
    pub(super) fn begin_hunt(&mut self, conductor: &Conductor<'_>) {
        let pairs = conductor.plan.pairs.iter().enumerate();
        let taking_part =
            pairs.filter_map(|(place, pair)| self.ways.to(place).map(|_| (place, pair.number)));
        let search = self.point(conductor).and_then(|point| point.search.as_deref());
        self.hunting = search.map(|search| Hunting::new(search, taking_part));
    }

    /// Takes a sample of a trial, and ends the trial's loads where it decides.
    pub(super) fn handle_sample(
        &mut self,
        conductor: &mut Conductor<'_>,
        place: usize,
        sample: &Sample,
    ) {
        let Some(hunting) = &mut self.hunting else { return };
        if self.stage == Stage::Measuring && hunting.handle_sample(place, sample) {
            let clients = self.programs.iter().filter(|one| one.role == Role::Client);
            for client in clients.filter(|one| one.end.is_none()) {
                conductor.fleet.stop(client.host, client.task, GRACE);
            }
        }
    }

    /// All clients of a trial have ended: the next one, or the end of the hunt.
    pub(super) fn end_trial(&mut self, conductor: &mut Conductor<'_>) {
        let Some(hunting) = &mut self.hunting else { return };
        let mut failure = None;
        for client in self.programs.iter_mut().filter(|one| one.role == Role::Client) {
            let Some(run) = client.run.take() else {
                failure.get_or_insert_with(|| client.describe_end());
                continue;
            };
            let was_ended = run.status.outcome == Outcome::Interrupted && hunting.is_decided();
            let has_failed = matches!(run.status.outcome, Outcome::Failed | Outcome::Interrupted);
            if has_failed && !was_ended {
                failure.get_or_insert_with(|| client.describe_end());
            }
            let named = self.start.clock(client.host).filter(|_| !self.start.was_set(client.host));
            let clock = named.or_else(|| conductor.hosts.clock(client.host));
            let started_ns =
                client.started_ns.zip(clock).map(|(ns, clock)| from_host(ns, clock.offset));
            hunting.handle_run(client.place, run, started_ns);
        }
        if let Some(why) = failure {
            self.fail(&why);
            self.end_programs(conductor);
            return;
        }
        for (pair, trial) in hunting.end_trial() {
            let json = Record::Trial { version: Record::VERSION, trial: Box::new(trial) }.render();
            let (position, role) = (self.position, Role::Client);
            let json = json.trim_end().to_owned();
            self.untold.push(Event::Record { position, pair, role, json });
        }
        self.start_clients(conductor);
    }

    /// The documents of the hunt take the place of those of its last trial.
    pub(super) fn conclude_hunt(&mut self) {
        let Some(hunting) = self.hunting.take() else { return };
        self.notes.extend(hunting.note());
        for (place, run) in hunting.into_runs() {
            let is_its = |one: &&mut Program| one.role == Role::Client && one.place == place;
            if let Some(client) = self.programs.iter_mut().find(is_its) {
                client.end.get_or_insert_default().code = Some(run.status.exit_code.into());
                client.run = Some(run);
            }
        }
    }
}
