//! What an end counted: the JSON message that both send when the test is over.

use serde_json::{Map, Value, json};

use super::code::Code;
use super::json::{Fields, Picked, Picking, parse_objects};

/// The longest results that a client reads of a test of few streams: a server's output may be in them.
pub const RESULTS_TO_CLIENT_LIMIT_BYTES: usize = 8 << 20;
/// The longest results that a server reads of a test of few streams: those of 256 take 80 KB.
pub const RESULTS_TO_SERVER_LIMIT_BYTES: usize = 1 << 20;

/// Streams whose results have room in the limits above.
const FEW_STREAMS: usize = 256;
/// What each stream beyond them may take: 300 bytes are usual, of the longest numbers 400.
const STREAM_LIMIT_BYTES: usize = 400;

/// How long results may be in a test of so many streams in both directions, where those of a test of
/// few may be `few_bytes`.
pub(super) fn limit_bytes(few_bytes: usize, streams: usize) -> usize {
    let more = streams.saturating_sub(FEW_STREAMS);
    few_bytes.saturating_add(more.saturating_mul(STREAM_LIMIT_BYTES))
}

/// What an end counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Processor time of the test, percent of its length: all, in the program, in the kernel.
    pub cpu_percent: CpuPercent,
    /// Whether it knows of retransmits as a sender: 1 yes, 0 no, -1 it only receives.
    pub sender_has_retransmits: i64,
    /// The congestion control that its TCP streams used.
    pub congestion_used: Option<String>,
    /// What the server printed.
    pub server_output: Option<ServerOutput>,
    /// Stream by stream, in the order of their numbers.
    pub streams: Vec<StreamResult>,
}

/// Processor time, percent of the time that went by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuPercent {
    /// All of it.
    pub total: f64,
    /// In the program.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

/// What a server printed.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOutput {
    /// As text.
    Text(String),
    /// As JSON (`-J` at the server): its text, since its fields have an order.
    Json(String),
}

/// What an end counted of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamResult {
    /// [`stream_id`](super::stream_id).
    pub id: u32,
    /// Bytes sent or received; those of the omitted time left out.
    pub bytes: u64,
    /// Those of the omitted time; ours alone tell, over TCP and where there is such a time.
    pub omitted_bytes: Option<u64>,
    /// Segments sent again, where the end is a sender that knows.
    pub retransmits: Option<u64>,
    /// Jitter (RFC 3550), seconds.
    pub jitter_s: f64,
    /// Datagrams lost, those of the omitted time included. Reordering may make it negative in
    /// between, in the original's arithmetic.
    pub errors: i64,
    /// Those of the omitted time; older releases don't tell.
    pub omitted_errors: Option<i64>,
    /// The highest number received, or datagrams sent; those of the omitted time included.
    pub packets: u64,
    /// Those of the omitted time; older releases don't tell.
    pub omitted_packets: Option<u64>,
    /// When the counted part began, seconds; older releases don't tell.
    pub start_time_s: Option<f64>,
    /// When it ended.
    pub end_time_s: Option<f64>,
}

/// What is read of results. A server's document stays as it stands in the text: it is long, and its fields have an order.
const OF_RESULTS: Picking = Picking {
    plain: &[
        "cpu_util_total",
        "cpu_util_user",
        "cpu_util_system",
        "sender_has_retransmits",
        "congestion_used",
        "server_output_text",
    ],
    raw: &["streams", "server_output_json"],
};

/// What is read of a stream's.
const OF_STREAM: Picking = Picking {
    plain: &[
        "id",
        "bytes",
        "omitted_bytes",
        "retransmits",
        "jitter",
        "errors",
        "omitted_errors",
        "packets",
        "omitted_packets",
        "start_time",
        "end_time",
    ],
    raw: &[],
};

impl StreamResult {
    /// Seconds that were counted, where the peer tells.
    pub fn seconds(&self) -> Option<f64> {
        Some((self.end_time_s? - self.start_time_s?).max(0.0))
    }

    /// Bytes that a receiver has of those that the sender counts. Each ends the omitted time by its own clock; where both tell
    /// what came before, the sender's holds for both.
    pub fn received_of(&self, sender: &Self) -> u64 {
        match self.omitted_bytes.zip(sender.omitted_bytes) {
            Some((own, senders)) => self.bytes.saturating_add(own).saturating_sub(senders),
            None => self.bytes,
        }
    }
}

impl Results {
    /// The stream with this number.
    pub fn stream(&self, id: u32) -> Option<&StreamResult> {
        let at = self.streams.partition_point(|stream| stream.id < id);
        self.streams.get(at).filter(|stream| stream.id == id)
    }

    /// The JSON text.
    pub fn render(&self) -> String {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("cpu_util_total", json!(self.cpu_percent.total));
        put("cpu_util_user", json!(self.cpu_percent.user));
        put("cpu_util_system", json!(self.cpu_percent.system));
        put("sender_has_retransmits", json!(self.sender_has_retransmits));
        if let Some(name) = &self.congestion_used {
            put("congestion_used", json!(name));
        }
        match &self.server_output {
            Some(ServerOutput::Text(text)) => put("server_output_text", json!(text)),
            Some(ServerOutput::Json(_)) | None => None,
        };
        put("streams", self.streams.iter().map(render_stream).collect());
        let text = Value::Object(fields).to_string();
        match (&self.server_output, text.strip_suffix('}')) {
            (Some(ServerOutput::Json(document)), Some(open)) => {
                format!("{open},\"server_output_json\":{document}}}")
            }
            _ => text,
        }
    }

    /// Reads what the other end sent of a test of so many streams in both directions. Fields that no release knows
    /// are passed over.
    ///
    /// # Errors
    ///
    /// [`Code::RECEIVE_RESULTS`] where something is missing that every release tells, or more streams are told of
    /// than the test has.
    pub fn parse(text: &[u8], most_streams: usize) -> Result<Self, Code> {
        let text = str::from_utf8(text).map_err(|_| Code::RECEIVE_RESULTS)?;
        let picked = OF_RESULTS.parse(text).ok_or(Code::RECEIVE_RESULTS)?;
        Self::of(&picked, most_streams).ok_or(Code::RECEIVE_RESULTS)
    }

    fn of(picked: &Picked<'_>, most_streams: usize) -> Option<Self> {
        let fields = Fields(&picked.plain);
        let mut streams =
            parse_objects(picked.raw("streams")?, most_streams, OF_STREAM, parse_stream)?;
        streams.sort_by_key(|stream| stream.id);
        let text = fields.text("server_output_text", RESULTS_TO_CLIENT_LIMIT_BYTES);
        let document = picked.raw("server_output_json").filter(|document| *document != "null");
        let document = document.map(|document| ServerOutput::Json(document.to_owned()));
        Some(Self {
            cpu_percent: CpuPercent {
                total: fields.fraction("cpu_util_total")?,
                user: fields.fraction("cpu_util_user")?,
                system: fields.fraction("cpu_util_system")?,
            },
            sender_has_retransmits: fields.whole("sender_has_retransmits")?,
            congestion_used: fields.text("congestion_used", 64),
            server_output: text.map(ServerOutput::Text).or(document),
            streams,
        })
    }
}

fn render_stream(stream: &StreamResult) -> Value {
    let mut value = json!({
        "id": stream.id,
        "bytes": stream.bytes,
        "retransmits": stream.retransmits.map_or(json!(-1), |count| json!(count)),
        "jitter": stream.jitter_s,
        "errors": stream.errors,
        "omitted_errors": stream.omitted_errors.unwrap_or(0),
        "packets": stream.packets,
        "omitted_packets": stream.omitted_packets.unwrap_or(0),
        "start_time": stream.start_time_s.unwrap_or(0.0),
        "end_time": stream.end_time_s.unwrap_or(0.0),
    });
    if let (Some(bytes), Some(fields)) = (stream.omitted_bytes, value.as_object_mut()) {
        fields.insert("omitted_bytes".to_owned(), json!(bytes));
    }
    value
}

fn parse_stream(picked: &Picked<'_>) -> Option<StreamResult> {
    let fields = Fields(&picked.plain);
    // One without the other would make figures of different datagrams.
    let omitted = fields.whole("omitted_errors").zip(fields.count("omitted_packets"));
    let times = fields.fraction("start_time").zip(fields.fraction("end_time"));
    Some(StreamResult {
        id: u32::try_from(fields.count("id")?).ok()?,
        bytes: fields.count("bytes")?,
        omitted_bytes: fields.count("omitted_bytes"),
        retransmits: u64::try_from(fields.whole("retransmits")?).ok(),
        jitter_s: fields.fraction("jitter")?,
        errors: fields.whole("errors")?,
        omitted_errors: omitted.map(|both| both.0),
        packets: fields.count("packets")?,
        omitted_packets: omitted.map(|both| both.1),
        start_time_s: times.map(|both| both.0),
        end_time_s: times.map(|both| both.1),
    })
}
