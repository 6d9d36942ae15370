//! Failures, by the original's numbers.

use super::Code;

/// Why a test failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// By the original's numbers.
    pub code: Code,
    /// What the system said, where that is the reason.
    pub system_error: Option<i32>,
    /// What else is known: what was tried, and the way out.
    pub detail: Option<String>,
    /// Whether the other end said so ([`State::ServerError`](crate::iperf3::State)).
    pub from_peer: bool,
    /// Whether the user ended the test at this end; the report so far was told.
    pub interrupted: bool,
}

impl Failure {
    /// A failure that the code alone tells.
    pub fn of(code: Code) -> Self {
        Self { code, system_error: None, detail: None, from_peer: false, interrupted: false }
    }

    /// A failure of a system call.
    pub fn system(code: Code, error: &std::io::Error) -> Self {
        let system_error = error.raw_os_error();
        let detail = system_error.is_none().then(|| error.to_string());
        Self { system_error, detail, ..Self::of(code) }
    }

    /// More about it.
    pub fn because(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }
}

/// What the system says of an error by its number: `Connection refused`.
pub fn system_words(number: i32) -> String {
    let text = std::io::Error::from_raw_os_error(number).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The original's words: `unable to connect to server - ...: Connection refused`.
impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.code.text())?;
        let system_error = self.system_error.filter(|_| self.code.tells_system_error());
        if let Some(number) = system_error.filter(|number| *number != 0) {
            return write!(formatter, ": {}", system_words(number));
        }
        match &self.detail {
            Some(detail) => write!(formatter, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}
