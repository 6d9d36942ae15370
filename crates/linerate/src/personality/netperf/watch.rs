//! What becomes of the samples of tests: interim results, and the run document's.

use linerate_engine::netperf::{Outcome, TestPlan};
use linerate_measure::Sample;

use super::document;
use super::figures::Iterations;
use super::interim::Interim;
use super::planning::Request;
use crate::personality::run_document::RunRecord;
use crate::personality::say;
use crate::start_time::utc_now_ns;

/// The receivers of a test's samples.
pub(super) struct Watch<'a> {
    /// Where interim results are asked for.
    interim: Option<Interim>,
    pub(super) record: Option<&'a mut RunRecord>,
    /// Whether a test before this one has begun.
    is_started: bool,
    /// Whether this test has had a sample.
    has_sample: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(request: &Request, record: Option<&'a mut RunRecord>) -> Self {
        let interim = request.plan.interval_ns.map(|_| Interim::new(request));
        let record = record.filter(|record| record.is_judged());
        Self { interim, record, is_started: false, has_sample: false }
    }

    /// The plan, with samples for a document.
    pub(super) fn plan(&self, plan: &TestPlan) -> TestPlan {
        let interval_ns = self.record.as_ref().map(|_| document::INTERVAL_NS);
        TestPlan { interval_ns: plan.interval_ns.or(interval_ns), ..plan.clone() }
    }

    /// Begins with another test, whose time begins anew.
    pub(super) fn restart(&mut self) {
        self.interim.iter_mut().for_each(Interim::restart);
        self.has_sample = false;
        if let Some(draft) = self.record.as_mut().and_then(|record| record.draft()) {
            draft.begin_iteration();
        }
    }

    /// The test that has begun last has no result beside those before it.
    pub(super) fn drop_iteration(&mut self) {
        if let Some(draft) = self.record.as_mut().and_then(|record| record.draft()) {
            draft.drop_iteration();
        }
    }

    /// A test has come to an end; one that was too short for samples has one in all.
    pub(super) fn record_outcome(&mut self, request: &Request, outcome: &Outcome) {
        if self.record.is_some() && !self.has_sample {
            self.record_sample(&document::whole_sample(&outcome.client, utc_now_ns()));
        }
        let Some(record) = &mut self.record else { return };
        let mut alone = Iterations::new(request.subject());
        alone.record(outcome.clone());
        if let Some(figures) = alone.figures(&request.schedule) {
            document::record_outcome(record, outcome, &figures);
        }
    }

    pub(super) fn see(&mut self, sample: &Sample) {
        if let Some(interim) = &mut self.interim {
            say(&interim.render_sample(sample));
        }
        self.record_sample(sample);
    }

    fn record_sample(&mut self, sample: &Sample) {
        let Some(record) = &mut self.record else { return };
        let began_utc_ns = sample.utc_ns.saturating_sub_unsigned(sample.to_ns);
        if !self.is_started {
            record.start(began_utc_ns);
        } else if let Some(draft) = record.draft().filter(|_| !self.has_sample) {
            draft.environment.started_utc_ns = Some(began_utc_ns);
        }
        (self.is_started, self.has_sample) = (true, true);
        record.record_sample(sample);
    }
}
