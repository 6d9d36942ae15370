//! Messages of the control connection: JSON objects (RFC 8259) whose field `kind` says which.
//!
//! Unknown fields are ignored, so that a later version may add some; an unknown kind is an error.
//! Documents (plans, samples, reports) cross as strings: this crate doesn't know what they mean.

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::visible::visible_json;

mod check;

pub use check::{
    MAX_COUNTS, MAX_HOST_BYTES, MAX_PLAN_BYTES, MAX_SAMPLE_BYTES, MAX_SOFTWARE_BYTES,
    MAX_TEXT_BYTES, MAX_VERSIONS,
};

/// Why a message is none, or is not to be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MessageError(pub(super) String);

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClientMessage {
    /// First: its versions and software, and the proof that it holds the shared key.
    Hello(ClientHello),
    /// What it wants done.
    Request(Request),
    /// Still there; what time is it?
    Ping(Ping),
    /// Start the load.
    Start(Start),
    /// How many datagrams it has sent in each flow.
    Sent(Sent),
    /// It is done, or gives up.
    Finish,
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServerMessage {
    /// First: the version and its software.
    Hello(ServerHello),
    /// The client waits for its turn.
    Queued(Queued),
    /// The test may be set up.
    Admitted(Admitted),
    /// It may not.
    Refused(Refused),
    /// The answer to a ping.
    Pong(Pong),
    /// All flows have arrived.
    Ready,
    /// The load runs.
    Started(Started),
    /// What the server counted in an interval.
    Sample(Sample),
    /// How many datagrams it has sent in each flow.
    Sent(Sent),
    /// What the server counted in all.
    Result(Report),
    /// The server failed, or the client broke the protocol.
    Error(Failure),
}

/// Content of [`ClientMessage::Hello`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHello {
    /// The versions of the protocol that the client speaks, 1 to 16 of them.
    pub versions: Vec<u16>,
    /// Name and version of the program.
    pub software: String,
    /// The proof that the client holds the key that both share: 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// Content of [`ClientMessage::Request`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The document that says what is wanted.
    pub plan: String,
    /// Wait until no other client measures against this server.
    #[serde(default)]
    pub exclusive: bool,
    /// Keep a place for this connection, and say the token of tests that belong to it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub begins_lease: bool,
    /// The token of the lease that the test belongs to: 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Content of [`ClientMessage::Ping`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// When it was sent, on the client's monotonic clock.
    pub sent_ns: u64,
}

/// Content of [`ClientMessage::Start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// When both ends shall start (UTC, nanoseconds since 1970); absent: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_utc_ns: Option<i64>,
}

/// Content of [`ClientMessage::Sent`] and [`ServerMessage::Sent`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Flow by flow, at most [`MAX_COUNTS`]; the rest follows in further messages.
    pub datagrams: Vec<FlowCount>,
}

/// Datagrams of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowCount {
    /// The flow.
    pub flow: u32,
    /// Datagrams, warm-up included: one more than the last sequence number.
    pub datagrams: u64,
}

/// Content of [`ServerMessage::Hello`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerHello {
    /// The version of the protocol that both shall speak.
    pub version: u16,
    /// Name and version of the program.
    pub software: String,
    /// Whether only clients are admitted that hold a shared key.
    #[serde(default)]
    pub key_required: bool,
}

/// Content of [`ServerMessage::Queued`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// 1: next.
    pub place: u32,
}

/// Content of [`ServerMessage::Admitted`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// Names the run at both ends: 32 hexadecimal digits.
    pub run_id: String,
    /// What data connections and UDP flows show to belong to this test: 32 hexadecimal digits.
    pub token: String,
    /// The document that describes the server's machine.
    pub host: String,
    /// The token of the lease that has begun, or that goes on: 32 hexadecimal digits. Never shown outside TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

/// Content of [`ServerMessage::Refused`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// What for.
    pub cause: RefusalCause,
    /// The same in a sentence for the user.
    pub text: String,
}

/// Why a server turns a client away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCause {
    /// They speak no version in common.
    Version,
    /// The client doesn't hold the shared key.
    Key,
    /// No room for another test at this time.
    Busy,
    /// The test is beyond what this server allows.
    Limit,
    /// The plan makes no sense to it.
    Plan,
    /// Its machine can't do it.
    Host,
    /// The client broke the protocol.
    Protocol,
}

/// Content of [`ServerMessage::Pong`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// As it stood in the ping.
    pub sent_ns: u64,
    /// When the ping came in (UTC, nanoseconds since 1970, the server's clock).
    pub received_ns: i64,
    /// When the pong went out, likewise.
    pub replied_ns: i64,
    /// The server's monotonic clock at that time, any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monotonic_ns: Option<u64>,
}

/// Content of [`ServerMessage::Started`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// When (UTC, nanoseconds since 1970, the server's clock).
    pub utc_ns: i64,
}

/// Content of [`ServerMessage::Sample`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The document.
    pub sample: String,
}

/// Content of [`ServerMessage::Result`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The document.
    pub report: String,
}

/// Content of [`ServerMessage::Error`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What went wrong, in a sentence for the user.
    pub text: String,
}

impl ClientMessage {
    /// What stands in the field `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Request(_) => "request",
            Self::Ping(_) => "ping",
            Self::Start(_) => "start",
            Self::Sent(_) => "sent",
            Self::Finish => "finish",
        }
    }

    /// Reads the body of a frame and checks every field.
    ///
    /// # Errors
    ///
    /// When it is no JSON object, of no known kind, lacks a field, or a field is out of bounds.
    pub fn decode(body: &[u8]) -> Result<Self, MessageError> {
        let body = &*shown(body)?;
        let message = match kind(body)?.as_str() {
            "hello" => Self::Hello(content(body)?),
            "request" => Self::Request(content(body)?),
            "ping" => Self::Ping(content(body)?),
            "start" => Self::Start(content(body)?),
            "sent" => Self::Sent(content(body)?),
            "finish" => Self::Finish,
            unknown => return Err(unknown_kind(unknown)),
        };
        message.check()?;
        Ok(message)
    }
}

impl ServerMessage {
    /// What stands in the field `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Queued(_) => "queued",
            Self::Admitted(_) => "admitted",
            Self::Refused(_) => "refused",
            Self::Pong(_) => "pong",
            Self::Ready => "ready",
            Self::Started(_) => "started",
            Self::Sample(_) => "sample",
            Self::Sent(_) => "sent",
            Self::Result(_) => "result",
            Self::Error(_) => "error",
        }
    }

    /// Reads the body of a frame and checks every field.
    ///
    /// # Errors
    ///
    /// When it is no JSON object, of no known kind, lacks a field, or a field is out of bounds.
    pub fn decode(body: &[u8]) -> Result<Self, MessageError> {
        let body = &*shown(body)?;
        let message = match kind(body)?.as_str() {
            "hello" => Self::Hello(content(body)?),
            "queued" => Self::Queued(content(body)?),
            "admitted" => Self::Admitted(content(body)?),
            "refused" => Self::Refused(content(body)?),
            "pong" => Self::Pong(content(body)?),
            "ready" => Self::Ready,
            "started" => Self::Started(content(body)?),
            "sample" => Self::Sample(content(body)?),
            "sent" => Self::Sent(content(body)?),
            "result" => Self::Result(content(body)?),
            "error" => Self::Error(content(body)?),
            unknown => return Err(unknown_kind(unknown)),
        };
        message.check()?;
        Ok(message)
    }
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

/// The message's kind. Kind and content are read in two passes: serde's own way with a tagged
/// enum holds the whole object in memory as a tree, thirty times its size at worst.
fn kind(body: &str) -> Result<String, MessageError> {
    content::<Kind>(body).map(|kind| kind.kind)
}

fn content<T: DeserializeOwned>(body: &str) -> Result<T, MessageError> {
    serde_json::from_str(body).map_err(|error| not_a_message(&error))
}

/// The body as it may be shown: its texts may reach a terminal or a log.
fn shown(body: &[u8]) -> Result<Cow<'_, str>, MessageError> {
    std::str::from_utf8(body).map(visible_json).map_err(|error| not_a_message(&error))
}

fn not_a_message(why: &dyn fmt::Display) -> MessageError {
    MessageError(format!("not a message: {why}"))
}

fn unknown_kind(kind: &str) -> MessageError {
    MessageError(format!(
        "not a message: unknown kind {:?}",
        kind.chars().take(32).collect::<String>()
    ))
}

#[cfg(test)]
mod tests;
