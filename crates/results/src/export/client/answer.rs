//! What answers of a server mean.

use serde_json::Value;

use super::{IndexError, Reply};

/// Whether the same request may succeed later.
pub(super) fn may_pass(status: u16) -> bool {
    matches!(status, 429 | 500..=599)
}

/// Refuses the answer to a search in which some of the documents may be missing.
pub(super) fn whole(answer: &Value) -> Result<(), IndexError> {
    let shards = &answer["_shards"];
    let failed = shards["failed"].as_u64().unwrap_or(0);
    match (failed, answer["timed_out"] == true) {
        (0, false) => Ok(()),
        (0, true) => Err(IndexError::Away("its search took too long and is not whole".to_owned())),
        (failed, _) => {
            let why = reason_of(&shards["failures"][0], "reason").unwrap_or_default();
            let text = format!("{failed} of its shards did not answer a search: {why}");
            Err(IndexError::Away(text.trim_end_matches([':', ' ']).to_owned()))
        }
    }
}

/// The reason within this field of a failure.
pub(super) fn reason_of(failure: &Value, field: &str) -> Option<String> {
    let reason = failure[field]["reason"].as_str()?;
    Some(reason.chars().take(300).collect())
}

pub(super) fn parse(reply: &Reply) -> Result<Value, IndexError> {
    serde_json::from_str(&reply.body)
        .map_err(|error| IndexError::Strange(format!("its answer is no JSON: {error}")))
}

pub(super) fn refusal(what: &str, reply: &Reply) -> IndexError {
    let why = format!("{what}: {}", said(reply));
    match reply.status {
        401 => IndexError::Denied(why + "; give a credential, as docs/opensearch.md says"),
        403 => IndexError::Denied(why + "; the credential has not the permission"),
        _ => IndexError::Refused(why),
    }
}

/// The server's own reason.
pub(super) fn said(reply: &Reply) -> String {
    let answer: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let reason = answer["error"]["reason"].as_str().or(answer["error"].as_str());
    let text = reason.or(reply.body.lines().next()).unwrap_or_default().trim();
    let text: String = text.chars().take(300).collect();
    match text.is_empty() {
        true => format!("HTTP status {}", reply.status),
        false => format!("HTTP status {}, {text}", reply.status),
    }
}
