//! The bounds of every field.

use super::{ClientMessage, MessageError, ServerMessage};
use crate::native::TOKEN_BYTES;
use crate::native::hex::parse_hex;

/// The most versions that a client names.
pub const MAX_VERSIONS: usize = 16;
/// The longest name of a program.
pub const MAX_SOFTWARE_BYTES: usize = 128;
/// The longest plan: half of what a frame to the server holds, since quotes double in a string.
pub const MAX_PLAN_BYTES: usize = 128 * 1024;
/// The longest sentence.
pub const MAX_TEXT_BYTES: usize = 4096;
/// The longest description of the server's machine.
pub const MAX_HOST_BYTES: usize = 256 * 1024;
/// The longest sample.
pub const MAX_SAMPLE_BYTES: usize = 1024 * 1024;
/// The most flows that one message counts.
pub const MAX_COUNTS: usize = 4096;

impl ClientMessage {
    /// Checks every field against its bounds.
    ///
    /// # Errors
    ///
    /// Names the first field that is out of bounds.
    pub fn check(&self) -> Result<(), MessageError> {
        match self {
            Self::Hello(hello) => {
                if hello.versions.is_empty() || hello.versions.len() > MAX_VERSIONS {
                    return fail(format!("versions: {} of them", hello.versions.len()));
                }
                text("software", &hello.software, MAX_SOFTWARE_BYTES)?;
                hello.proof.as_deref().map_or(Ok(()), hex::<32>("proof"))
            }
            Self::Request(request) => {
                text("plan", &request.plan, MAX_PLAN_BYTES)?;
                if request.begins_lease && request.lease.is_some() {
                    return fail("begins_lease: the test belongs to a lease already".to_owned());
                }
                request.lease.as_deref().map_or(Ok(()), hex::<TOKEN_BYTES>("lease"))
            }
            Self::Start(start) => match start.at_utc_ns {
                Some(at) if at < 0 => fail(format!("at_utc_ns: {at} is before 1970")),
                _ => Ok(()),
            },
            Self::Sent(sent) => counts(sent.datagrams.len()),
            Self::Ping(_) | Self::Finish => Ok(()),
        }
    }
}

impl ServerMessage {
    /// Checks every field against its bounds.
    ///
    /// # Errors
    ///
    /// Names the first field that is out of bounds.
    pub fn check(&self) -> Result<(), MessageError> {
        match self {
            Self::Hello(hello) => text("software", &hello.software, MAX_SOFTWARE_BYTES),
            Self::Queued(queued) if queued.place == 0 => fail("place: 0".to_owned()),
            Self::Admitted(admitted) => {
                hex::<16>("run_id")(&admitted.run_id)?;
                hex::<TOKEN_BYTES>("token")(&admitted.token)?;
                admitted.lease.as_deref().map_or(Ok(()), hex::<TOKEN_BYTES>("lease"))?;
                text("host", &admitted.host, MAX_HOST_BYTES)
            }
            Self::Refused(refused) => text("text", &refused.text, MAX_TEXT_BYTES),
            Self::Sample(sample) => text("sample", &sample.sample, MAX_SAMPLE_BYTES),
            Self::Sent(sent) => counts(sent.datagrams.len()),
            Self::Error(error) => text("text", &error.text, MAX_TEXT_BYTES),
            // A report may fill its frame. The timestamps may be any numbers: code that
            // computes with them must expect that.
            Self::Result(_) | Self::Queued(_) | Self::Pong(_) | Self::Ready | Self::Started(_) => {
                Ok(())
            }
        }
    }
}

fn fail(text: String) -> Result<(), MessageError> {
    Err(MessageError(format!("a field is out of bounds: {text}")))
}

fn text(field: &str, value: &str, limit_bytes: usize) -> Result<(), MessageError> {
    if value.len() > limit_bytes {
        return fail(format!("{field} has {} bytes, the limit is {limit_bytes}", value.len()));
    }
    Ok(())
}

fn hex<const N: usize>(field: &str) -> impl Fn(&str) -> Result<(), MessageError> {
    move |value| match parse_hex::<N>(value) {
        Some(_) => Ok(()),
        None => fail(format!("{field} is not {} hexadecimal digits", 2 * N)),
    }
}

fn counts(flows: usize) -> Result<(), MessageError> {
    if flows > MAX_COUNTS {
        return fail(format!("datagrams: {flows} flows, the limit is {MAX_COUNTS}"));
    }
    Ok(())
}
