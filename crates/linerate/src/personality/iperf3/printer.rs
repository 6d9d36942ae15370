//! The output of one test in the form that was asked for.

use linerate_engine::iperf3::{Control, Event, Interval, Report, Start};
use linerate_wire::iperf3::results::ServerOutput;

use super::context::Context;
use super::json::{Fields, Json};
use super::text::TextPrinter;
use super::{document, ending};
use crate::output::narrate;

/// The form of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// For people.
    #[default]
    Text,
    /// `-J`: one document when all is over.
    Json,
    /// `--json-stream`: one line for each event; `full`: and the document at the end.
    Stream {
        /// `--json-stream-full-output`.
        full: bool,
    },
}

impl Form {
    /// Whether it is JSON of some kind.
    pub fn is_json(self) -> bool {
        self != Self::Text
    }
}

/// Figures of streams that a document may have, one for each stream and interval: days of a test, or
/// many streams. A client must not fill its server's memory.
const MOST_FIGURES: usize = 250_000;

/// Collects what happens in a test, and renders the document.
#[derive(Debug)]
pub struct JsonPrinter {
    context: Context,
    form: Form,
    control: Option<Control>,
    start: Option<Start>,
    start_fields: Option<Fields>,
    intervals: Vec<Interval>,
    figures: usize,
    end: Option<Fields>,
    extra_data: Option<String>,
    title: Option<String>,
    server_output: Option<ServerOutput>,
}

impl JsonPrinter {
    /// For one test.
    pub fn new(context: Context, form: Form) -> Self {
        let (title, extra_data) = (context.title.clone(), context.extra_data.clone());
        Self {
            context,
            form,
            control: None,
            start: None,
            start_fields: None,
            intervals: Vec::new(),
            figures: 0,
            end: None,
            extra_data,
            title,
            server_output: None,
        }
    }

    /// Takes what happened; the lines of a stream of events.
    pub fn record_event(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Connected(control) => self.control = Some((**control).clone()),
            Event::Started(start) => return self.record_start(start),
            Event::Interval(interval) if self.context.shows(interval) => {
                return self.record_interval(interval);
            }
            Event::Ended(report) => self.record_end(report),
            Event::Interval(_) | Event::Warning(_) => {}
        }
        Vec::new()
    }

    fn record_start(&mut self, start: &Start) -> Vec<String> {
        let parameters = &start.parameters;
        self.extra_data = parameters.extra_data.clone().or(self.extra_data.take());
        self.title = parameters.title.clone().or(self.title.take());
        let fields = document::start(&self.context, self.control.as_ref(), start);
        self.start = Some(start.clone());
        self.start_fields = Some(fields.clone());
        self.line("start", fields)
    }

    fn record_interval(&mut self, interval: &Interval) -> Vec<String> {
        let Some(start) = &self.start else { return Vec::new() };
        if self.form != (Form::Stream { full: false }) {
            let figures = self.figures + interval.streams.len();
            if figures <= MOST_FIGURES {
                self.intervals.push(interval.clone());
            } else if self.figures <= MOST_FIGURES {
                let end_s = interval.start_s;
                narrate(&format!("warning: the document has no intervals after {end_s:.0} s\n"));
            }
            self.figures = figures;
        }
        match self.form {
            Form::Stream { .. } => {
                self.line("interval", document::interval(&self.context, start, interval))
            }
            Form::Text | Form::Json => Vec::new(),
        }
    }

    fn rendered_intervals(&self) -> Vec<Json> {
        let Some(start) = &self.start else { return Vec::new() };
        let intervals = self.intervals.iter();
        intervals
            .map(|interval| document::interval(&self.context, start, interval).into())
            .collect()
    }

    fn record_end(&mut self, report: &Report) {
        let Some(start) = &self.start else { return };
        self.end = Some(ending::end(&self.context, start, report));
        self.server_output.clone_from(&report.server_output);
    }

    fn line(&self, event: &str, data: impl Into<Json>) -> Vec<String> {
        match self.form {
            Form::Stream { .. } => {
                let line: Json = Fields::new().with("event", event).with("data", data).into();
                vec![format!("{}\n", line.render_line())]
            }
            Form::Text | Form::Json => Vec::new(),
        }
    }

    /// The whole document; `error` is why the test failed.
    pub fn document(&self, error: Option<&str>) -> Json {
        let start = match (&self.start_fields, &self.control, &self.context.asked) {
            (Some(fields), _, _) => fields.clone(),
            (None, Some(control), Some(asked)) => {
                document::start_of_refused(&self.context, control, asked)
            }
            _ => document::start_of_nothing(&self.context),
        };
        let (name, output) = self.output();
        Fields::new()
            .with("start", start)
            .with("intervals", self.rendered_intervals())
            .with("end", self.end.clone().unwrap_or_default())
            .with_some("title", self.title.as_deref())
            .with_some("extra_data", self.extra_data.as_deref())
            .with_some(name, output)
            .with_some("error", error)
            .into()
    }

    fn output(&self) -> (&'static str, Option<Json>) {
        match &self.server_output {
            None => ("server_output_text", None),
            Some(ServerOutput::Text(text)) => ("server_output_text", Some(text.as_str().into())),
            Some(ServerOutput::Json(text)) => ("server_output_json", Json::parse(text)),
        }
    }

    /// The server had no time to look at the test.
    pub fn record_busy(&mut self) {
        self.control = None;
    }

    /// What is left to print when all is over.
    pub fn render_rest(&self, error: Option<&str>) -> Vec<String> {
        let document = || format!("{}\n", self.document(error).render_pretty());
        let Form::Stream { full } = self.form else { return vec![document()] };
        let mut lines = Vec::new();
        if let Some(error) = error {
            lines.extend(self.line("error", error));
        }
        let (name, output) = self.output();
        if let Some(output) = output {
            lines.extend(self.line(name, output));
        }
        lines.extend(self.line("end", self.end.clone().unwrap_or_default()));
        if full {
            lines.push(document());
        }
        lines
    }
}

/// The output of one test.
#[derive(Debug)]
pub enum Printer {
    /// Text.
    Text(Box<TextPrinter>),
    /// JSON, whole or as a stream.
    Json(Box<JsonPrinter>),
}

impl Printer {
    /// For one test.
    pub fn new(context: Context, form: Form) -> Self {
        match form {
            Form::Text => Self::Text(Box::new(TextPrinter::new(context))),
            _ => Self::Json(Box::new(JsonPrinter::new(context, form))),
        }
    }

    /// What to print of what happened.
    pub fn record_event(&mut self, event: &Event) -> Vec<String> {
        match self {
            Self::Text(printer) => printer.render_event(event),
            Self::Json(printer) => printer.record_event(event),
        }
    }
}
