//! Strict reading of JSON documents: unknown keys, wrong types and repeated items are errors that name their place.

use serde_json::{Map, Value};

/// The members of an object that has no other keys than `known`.
pub(super) fn read_object<'a>(
    value: &'a Value,
    place: &str,
    known: &[&str],
) -> Result<&'a Map<String, Value>, String> {
    let Value::Object(members) = value else {
        return Err(format!("{place} is {}, and has to be an object", kind(value)));
    };
    match members.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("{place} has an unknown key {key:?}; known are {}", list(known))),
        None => Ok(members),
    }
}

/// A member that must be there.
pub(super) fn read_required<'a>(
    members: &'a Map<String, Value>,
    key: &str,
    place: &str,
) -> Result<&'a Value, String> {
    members.get(key).ok_or_else(|| format!("{place} lacks {key:?}"))
}

/// The items of a list that has at least `least` of them.
pub(super) fn read_list<'a>(
    value: &'a Value,
    place: &str,
    least: usize,
) -> Result<&'a [Value], String> {
    let Value::Array(items) = value else {
        return Err(format!("{place} is {}, and has to be a list", kind(value)));
    };
    if items.len() < least {
        return Err(format!("{place} is empty, and needs at least one item"));
    }
    Ok(items)
}

/// The items of a list in which none stands twice.
pub(super) fn read_set<'a>(
    value: &'a Value,
    place: &str,
    least: usize,
) -> Result<&'a [Value], String> {
    let items = read_list(value, place, least)?;
    // Texts are compared by hashes, so that a long list of values is read in linear time.
    let mut seen = std::collections::HashSet::with_capacity(items.len());
    match items.iter().position(|item| !seen.insert(item.to_string())) {
        Some(again) => Err(format!("{place}[{again}] stands there twice")),
        None => Ok(items),
    }
}

/// A text that isn't empty.
pub(super) fn read_text<'a>(value: &'a Value, place: &str) -> Result<&'a str, String> {
    match value {
        Value::String(text) if text.is_empty() => Err(format!("{place} is empty")),
        Value::String(text) => Ok(text),
        other => {
            Err(format!("{place} is {}, and has to be a text in quotes", kind_of_value(other)))
        }
    }
}

/// One of a few words.
pub(super) fn read_word<T: Copy>(
    value: &Value,
    place: &str,
    words: &[(&str, T)],
) -> Result<T, String> {
    let text = read_text(value, place)?;
    words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{place} is {text:?}, and has to be one of {}", list(&known))
    })
}

/// A whole number of at least `least`.
pub(super) fn read_count(value: &Value, place: &str, least: u64) -> Result<u64, String> {
    value.as_u64().filter(|count| *count >= least).ok_or_else(|| {
        format!("{place} is {}, and has to be a whole number from {least}", kind_of_value(value))
    })
}

/// Yes or no.
pub(super) fn read_bool(value: &Value, place: &str) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| format!("{place} is {}, and has to be true or false", kind_of_value(value)))
}

/// Names as a sentence has them.
pub fn list(names: &[impl AsRef<str>]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", "),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn kind_of_value(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("{text:?}"),
        other => kind(other).to_owned(),
    }
}
