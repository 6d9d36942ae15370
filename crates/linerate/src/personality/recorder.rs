//! What the tests of a process are recorded with, in every dialect and at both ends.
//!
//! A client has one record, of [`Recorder::begin`]. A server has one for each test, of a [`ServerRecorder`]. What the
//! dialects of servers differ in is a [`ServedDialect`].

use std::fmt::Debug;
use std::sync::Arc;

use linerate_engine::event::{Cancel, Observe, TestEnding, TestObserver};
use linerate_measure::run::Draft;
use linerate_measure::{Dialect, DialectOptions, Outcome, Plan, Role, Sample};
use linerate_wire::visible::visible;

use super::run_document::{RunOutput, RunRecord};

/// What the tests of this process are recorded with.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    output: Arc<RunOutput>,
    dialect: Dialect,
    role: Role,
    /// What was typed.
    options: DialectOptions,
    /// Whether the process ends with its test.
    has_one_test: bool,
}

impl Recorder {
    /// As the environment asks.
    ///
    /// # Errors
    /// A sentence for the user, with the variable and the path.
    pub(crate) fn of_environment(
        dialect: Dialect,
        role: Role,
        options: DialectOptions,
        cancel: &Cancel,
    ) -> Result<Self, String> {
        let output = RunOutput::of_environment(role, cancel)?;
        Ok(Self { output, dialect, role, options, has_one_test: role == Role::Client })
    }

    /// Of a server that ends with its test.
    pub(crate) fn of_one_test(self) -> Self {
        Self { has_one_test: true, ..self }
    }

    /// Whether tests are recorded: for a document, records or a verdict.
    fn is_judged(&self) -> bool {
        self.output.is_judged(self.has_one_test)
    }

    /// The record of a test that begins, with the nearest native plan.
    pub(crate) fn begin(&self, plan: Plan) -> RunRecord {
        let Self { output, dialect, role, has_one_test, .. } = self;
        let mut record = output.begin(*dialect, *role, plan, *has_one_test);
        if let Some(draft) = record.draft() {
            draft.options = Some(self.options.clone());
        }
        record
    }
}

/// A command line as it was typed, which tells nothing by the name of an option.
pub(crate) fn command_line(name: &str, words: &[String]) -> DialectOptions {
    let command_line = std::iter::once(name.to_owned()).chain(words.iter().cloned()).collect();
    DialectOptions { command_line, ..DialectOptions::default() }
}

/// How the tests of a dialect's server become runs.
pub(crate) trait ServedDialect: Debug + Send + Sync + 'static {
    /// What a client asks for.
    type Asked;
    /// What a test comes to.
    type Report: 'static;

    /// The exit code of a test that isn't complete.
    const INCOMPLETE: u8 = 1;

    /// The nearest native plan.
    fn plan(&self, asked: &Self::Asked) -> Plan;

    /// What else is known when a test begins.
    fn describe(&self, _asked: &Self::Asked, _draft: &mut Draft) {}

    /// What the test came to.
    fn conclude(draft: &mut Draft, report: Self::Report);
}

/// Records the tests of a server.
#[derive(Debug)]
pub(crate) struct ServerRecorder<D> {
    recorder: Recorder,
    dialect: D,
}

impl<D: ServedDialect> ServerRecorder<D> {
    pub(crate) fn new(recorder: Recorder, dialect: D) -> Self {
        Self { recorder, dialect }
    }

    pub(crate) fn dialect(&self) -> &D {
        &self.dialect
    }

    /// The observer of its tests, where documents or records are asked for.
    pub(crate) fn observer(self) -> Option<Arc<dyn Observe<D::Asked, D::Report>>> {
        self.recorder.is_judged().then(|| Arc::new(self) as Arc<dyn Observe<_, _>>)
    }

    /// The record of a test that a client asks for.
    pub(crate) fn begin_test(&self, asked: &D::Asked) -> RunRecord {
        let mut record = self.recorder.begin(self.dialect.plan(asked));
        if let Some(draft) = record.draft() {
            self.dialect.describe(asked, draft);
        }
        record
    }
}

impl<D: ServedDialect> Observe<D::Asked, D::Report> for ServerRecorder<D> {
    fn begin(&self, asked: &D::Asked) -> Box<dyn TestObserver<D::Report>> {
        let (conclude, incomplete) = (D::conclude, D::INCOMPLETE);
        Box::new(ObservedTest { record: self.begin_test(asked), conclude, incomplete })
    }
}

/// The record of one test of a server.
struct ObservedTest<R> {
    record: RunRecord,
    conclude: fn(&mut Draft, R),
    incomplete: u8,
}

impl<R> TestObserver<R> for ObservedTest<R> {
    fn started(&mut self, utc_ns: i64) {
        self.record.start(utc_ns);
    }

    fn sampled(&mut self, sample: &Sample) {
        self.record.record_sample(sample);
    }

    fn ended(mut self: Box<Self>, report: Option<R>, how: &TestEnding) {
        if let Some((draft, report)) = self.record.draft().zip(report) {
            (self.conclude)(draft, report);
        }
        let (outcome, why) = match how {
            TestEnding::Complete => (Outcome::Complete, None),
            TestEnding::Interrupted(why) => (Outcome::Interrupted, Some(why)),
            TestEnding::Refused(why) | TestEnding::Failed(why) => (Outcome::Failed, Some(why)),
        };
        let exit_code = if why.is_some() { self.incomplete } else { 0 };
        self.record.finish(outcome, exit_code, why.map(|why| visible(why)));
    }
}
