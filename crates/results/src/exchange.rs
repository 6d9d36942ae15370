//! Requests to a server over HTTP that are repeated while it is away or busy. How a request gets there is the business
//! of an [`Exchange`].

use std::time::Duration;

use serde_json::Value;

/// The pause after the first failure. Each later one is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The longest reason of a server that is repeated, in characters.
const LONGEST_REASON: usize = 300;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// `GET`, `PUT` or `POST`.
    pub method: &'a str,
    /// Path and query, such as `/_bulk`.
    pub path: &'a str,
    /// JSON, or lines of JSON; empty: none.
    pub body: &'a str,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
    /// The content.
    pub body: String,
}

impl Reply {
    /// The status and the server's own reason.
    pub fn reason(&self) -> String {
        let answer: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let error = &answer["error"];
        // OpenSearch has an object or a text, the status message of a collector a field of its own.
        let reason = error["reason"].as_str().or(error.as_str()).or(answer["message"].as_str());
        let text = reason.or(self.body.lines().next()).unwrap_or_default().trim();
        let text: String = text.chars().take(LONGEST_REASON).collect();
        match text.is_empty() {
            true => format!("HTTP status {}", self.status),
            false => format!("HTTP status {}, {text}", self.status),
        }
    }
}

/// Why a request has no answer: a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// None came. One may come the next time.
    #[error("{0}")]
    Away(String),
    /// What answers is not trusted, and the next time it won't be either.
    #[error("{0}")]
    Untrusted(String),
}

/// Carries requests to one server.
pub trait Exchange {
    /// Sends a request and awaits its answer, whatever its status.
    ///
    /// # Errors
    /// Where none came.
    fn send(&mut self, request: &Request<'_>) -> Result<Reply, SendError>;

    /// Waits so long or somewhat longer. False: nothing more is wanted.
    fn pause(&mut self, time: Duration) -> bool;
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GivenUp {
    /// The server was away or busy too often in a row; its last reason.
    Away(String),
    /// What answers is not trusted.
    Untrusted(String),
    /// Nothing more is wanted.
    Interrupted,
}

/// Sends a request until the server takes or refuses it, `tries` times at most. `may_pass` tells the statuses after
/// which the same request may succeed later.
pub(crate) fn send_patiently(
    exchange: &mut impl Exchange,
    request: &Request<'_>,
    tries: u32,
    may_pass: fn(u16) -> bool,
) -> Result<Reply, GivenUp> {
    let mut failures = 0;
    loop {
        let (why, pause) = match exchange.send(request) {
            Ok(reply) if !may_pass(reply.status) => return Ok(reply),
            Ok(reply) => (reply.reason(), reply.retry_after),
            Err(SendError::Away(why)) => (why, None),
            Err(SendError::Untrusted(why)) => return Err(GivenUp::Untrusted(why)),
        };
        failures += 1;
        wait(exchange, failures, tries, pause, &why)?;
    }
}

/// Waits after so many failures in a row, at least as long as the server asked for.
pub(crate) fn wait(
    exchange: &mut impl Exchange,
    failures: u32,
    tries: u32,
    asked: Option<Duration>,
    why: &str,
) -> Result<(), GivenUp> {
    if failures >= tries {
        return Err(GivenUp::Away(why.to_owned()));
    }
    let usual = FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(6));
    let pause = asked.map_or(usual, |asked| asked.max(usual)).min(LONGEST_PAUSE);
    match exchange.pause(pause) {
        true => Ok(()),
        false => Err(GivenUp::Interrupted),
    }
}
