//! The output of one test in the form that was asked for.

use linerate_engine::iperf3::{Control, Event, Report, Start};
use linerate_measure::Sample;
use linerate_wire::iperf3::results::ServerOutput;

use super::context::Context;
use super::json::{Fields, Json};
use super::long_object::{Layout, LongObject};
use super::relayed::Relayed;
use super::sum::Timeline;
use super::text::TextPrinter;
use super::{document, ending};
use crate::output::narrate;

/// What a server's output is called.
const OUTPUT_TEXT: &str = "server_output_text";
const OUTPUT_DOCUMENT: &str = "server_output_json";

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

/// Collects what happens in a test, and renders the document.
#[derive(Debug)]
pub struct JsonPrinter {
    context: Context,
    form: Form,
    control: Option<Control>,
    /// What a server's client has asked for; 0: no rate.
    asked_bps: u64,
    start: Option<Start>,
    start_fields: Option<Fields>,
    timeline: Timeline,
    samples: Vec<Sample>,
    /// Figures in them, which are of the stock.
    figures: usize,
    /// Intervals for which there was no room. Once there is one, all that follow are: a document ends early, but has no gap.
    dropped: u64,
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
            asked_bps: 0,
            start: None,
            start_fields: None,
            timeline: Timeline::default(),
            samples: Vec::new(),
            figures: 0,
            dropped: 0,
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
            Event::Asked(parameters) => self.asked_bps = parameters.bandwidth_bps,
            Event::Started(start) => return self.record_start(start),
            Event::Sample(sample) => return self.record_sample(sample),
            Event::Ended(report) => self.record_end(report),
            Event::OmitEnded | Event::Warning(_) => {}
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

    fn record_sample(&mut self, sample: &Sample) -> Vec<String> {
        let interval = self.timeline.interval(sample);
        let Some(start) = self.start.as_ref().filter(|_| self.context.shows(&interval)) else {
            return Vec::new();
        };
        let lines = match self.form {
            Form::Stream { .. } => {
                self.line("interval", document::interval(&self.context, start, &interval))
            }
            Form::Text | Form::Json => Vec::new(),
        };
        let start_s = interval.start_s;
        if self.form != (Form::Stream { full: false }) {
            self.keep(sample, start_s);
        }
        lines
    }

    /// Keeps an interval for the document, where there is room.
    fn keep(&mut self, sample: &Sample, end_s: f64) {
        let figures = sample.flows.len();
        if self.dropped == 0 && self.context.stock.take(self.figures, figures) {
            self.figures += figures;
            self.samples.push(sample.clone());
            return;
        }
        if self.dropped == 0 {
            narrate(&format!("warning: the document has no intervals after {end_s:.0} s\n"));
        }
        self.dropped += 1;
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

    /// The whole document, in pieces; `error` is why the test failed.
    fn document(&self, error: Option<&str>, layout: Layout) -> impl Iterator<Item = String> {
        let start = match (&self.start_fields, &self.control, &self.context.asked) {
            (Some(fields), _, _) => fields.clone(),
            (None, Some(control), Some(asked)) => {
                document::start_of_refused(&self.context, control, asked)
            }
            // As in the original, the rate alone is known of what a server refuses.
            _ => document::start_of_nothing(&self.context).with_if(
                self.asked_bps > 0,
                "target_bitrate",
                self.asked_bps,
            ),
        };
        let document = LongObject {
            before: Fields::new().with("start", start),
            name: "intervals",
            after: Fields::new()
                .with_if(self.dropped > 0, "intervals_dropped", self.dropped)
                .with("end", self.end.clone().unwrap_or_default())
                .with_some("title", self.title.as_deref())
                .with_some("extra_data", self.extra_data.as_deref())
                .with_some(OUTPUT_TEXT, self.output_text()),
            relayed: self.output_document().map(|document| (OUTPUT_DOCUMENT, document)),
            last: Fields::new().with_some("error", error),
        };
        let intervals = self.start.iter().flat_map(move |start| {
            let mut timeline = Timeline::default();
            self.samples.iter().map(move |sample| {
                document::interval(&self.context, start, &timeline.interval(sample)).into()
            })
        });
        document.pieces(intervals, layout)
    }

    /// The document so far on one line; None where that is longer than so many bytes.
    pub fn render_line(&self, most_bytes: usize) -> Option<String> {
        let mut text = String::new();
        for piece in self.document(None, Layout::Line) {
            if text.len() + piece.len() > most_bytes {
                return None;
            }
            text.push_str(&piece);
        }
        Some(text)
    }

    /// What the server printed, where that is text.
    fn output_text(&self) -> Option<&str> {
        match &self.server_output {
            Some(ServerOutput::Text(text)) => Some(text),
            Some(ServerOutput::Json(_)) | None => None,
        }
    }

    /// What it printed, where that is a document.
    fn output_document(&self) -> Option<&str> {
        match &self.server_output {
            Some(ServerOutput::Json(text)) => Some(text),
            Some(ServerOutput::Text(_)) | None => None,
        }
    }

    /// The document of the server as an event, in pieces.
    fn output_event(&self) -> impl Iterator<Item = String> {
        let document = self.output_document();
        let relayed = document.and_then(|text| Relayed::new(text, Layout::Line, 0));
        let relayed = relayed.filter(|_| matches!(self.form, Form::Stream { .. }));
        let head = format!("{{\"event\":\"{OUTPUT_DOCUMENT}\",\"data\":");
        relayed.into_iter().flat_map(move |document| {
            std::iter::once(head.clone()).chain(document).chain(std::iter::once("}\n".to_owned()))
        })
    }

    /// The server had no time to look at the test.
    pub fn record_busy(&mut self) {
        self.control = None;
    }

    /// What is left to print when all is over, in pieces.
    pub fn render_rest(&self, error: Option<&str>) -> impl Iterator<Item = String> {
        // Lines only where the form is one of lines.
        let mut lines = Vec::new();
        if let Some(error) = error {
            lines.extend(self.line("error", error));
        }
        if let Some(output) = self.output_text() {
            lines.extend(self.line(OUTPUT_TEXT, output));
        }
        let end = self.line("end", self.end.clone().unwrap_or_default());
        let is_whole = self.form != (Form::Stream { full: false });
        let document = is_whole.then(|| self.document(error, Layout::Pretty));
        let document = document.into_iter().flatten().chain(is_whole.then(|| "\n".to_owned()));
        lines.into_iter().chain(self.output_event()).chain(end).chain(document)
    }
}

impl Drop for JsonPrinter {
    fn drop(&mut self) {
        self.context.stock.give_back(self.figures);
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
