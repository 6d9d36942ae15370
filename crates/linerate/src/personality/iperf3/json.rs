//! JSON with the fields in their order, and written as the original's library writes it.

use std::fmt;

use linerate_personality::c_format::render_general;
use linerate_wire::visible::push_json;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value. Unlike `serde_json`'s, an object keeps the order of its fields.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Whole(i128),
    /// Any number.
    Number(f64),
    /// A text.
    Text(String),
    /// Values in order.
    Array(Vec<Json>),
    /// Fields in order.
    Object(Vec<(String, Json)>),
}

/// Fields in order, for [`Json::Object`].
#[derive(Clone, Debug, Default)]
pub struct Fields(pub(super) Vec<(String, Json)>);

impl Fields {
    /// No fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more field.
    pub fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// One more field where there is a value.
    pub fn with_some(self, name: &str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// One more field if the condition holds.
    pub fn with_if(self, holds: bool, name: &str, value: impl Into<Json>) -> Self {
        self.with_some(name, holds.then_some(value))
    }

    /// All fields of another object behind these.
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}

impl From<Fields> for Json {
    fn from(fields: Fields) -> Self {
        Self::Object(fields.0)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

macro_rules! from_whole {
    ($($type:ty)*) => { $(impl From<$type> for Json {
        fn from(value: $type) -> Self {
            Self::Whole(i128::from(value))
        }
    })* };
}
from_whole!(u8 u16 u32 u64 i64);

impl From<f64> for Json {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Vec<Json>> for Json {
    fn from(value: Vec<Json>) -> Self {
        Self::Array(value)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InOrder)
    }
}

/// Takes a value as it is read.
struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut read: A) -> Result<Json, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = read.next_element()? {
            values.push(value);
        }
        Ok(Json::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut read: A) -> Result<Json, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = read.next_entry()? {
            fields.push(field);
        }
        Ok(Json::Object(fields))
    }
}

impl Json {
    /// Reads a text; none where it isn't JSON, or nests too deep.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// On one line, without blanks.
    pub fn render_line(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, None);
        text
    }

    /// With tabs, as `-J` prints it.
    pub fn render_pretty(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, Some(0));
        text
    }

    pub(super) fn write(&self, text: &mut String, depth: Option<usize>) {
        match self {
            Self::Null => text.push_str("null"),
            Self::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Self::Whole(value) => text.push_str(&value.to_string()),
            Self::Number(value) => text.push_str(&render_number(*value)),
            Self::Text(value) => write_text(text, value),
            Self::Array(values) => {
                text.push('[');
                for (place, value) in values.iter().enumerate() {
                    if place > 0 {
                        text.push_str(if depth.is_some() { ", " } else { "," });
                    }
                    value.write(text, depth.map(|depth| depth + 1));
                }
                text.push(']');
            }
            Self::Object(fields) => write_object(text, fields, depth),
        }
    }
}

fn write_object(text: &mut String, fields: &[(String, Json)], depth: Option<usize>) {
    text.push('{');
    write_fields(text, fields, false, depth);
    end_object(text, depth);
}

/// Fields of an object; `follows`: behind others.
pub(super) fn write_fields(
    text: &mut String,
    fields: &[(String, Json)],
    follows: bool,
    depth: Option<usize>,
) {
    for (place, (name, value)) in fields.iter().enumerate() {
        write_name(text, follows || place > 0, name, depth);
        value.write(text, depth.map(|depth| depth + 1));
    }
}

/// What stands before a field's value.
pub(super) fn write_name(text: &mut String, follows: bool, name: &str, depth: Option<usize>) {
    if follows {
        text.push(',');
    }
    if let Some(depth) = depth {
        text.push('\n');
        text.push_str(&"\t".repeat(depth + 1));
    }
    write_text(text, name);
    text.push_str(if depth.is_some() { ":\t" } else { ":" });
}

pub(super) fn end_object(text: &mut String, depth: Option<usize>) {
    if let Some(depth) = depth {
        text.push('\n');
        text.push_str(&"\t".repeat(depth));
    }
    text.push('}');
}

fn write_text(text: &mut String, value: &str) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            // The original's library leaves all but C0 as they are; a terminal would act on them.
            other => push_json(text, other.encode_utf8(&mut [0; 4])),
        }
    }
    text.push('"');
}

/// A number with 15 digits, or 17 where 15 don't tell it exactly.
fn render_number(value: f64) -> String {
    if !value.is_finite() {
        return "null".to_owned();
    }
    let short = render_general(value, 15);
    let read: f64 = short.parse().unwrap_or(f64::NAN);
    if (read - value).abs() <= value.abs().max(read.abs()) * f64::EPSILON {
        short
    } else {
        render_general(value, 17)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_original_writes_them() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (1.000_812_053_680_42, "1.00081205368042"),
            (1_047_725.190_902_658_9, "1047725.1909026589"),
            (0.052_367_479_795_047_27, "0.052367479795047273"),
            (25_275_291_809.080_746, "25275291809.080746"),
            (1e20, "1e+20"),
            (0.000_01, "1e-05"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(render_number(value), text);
        }
    }

    #[test]
    fn objects_are_laid_out_with_tabs() {
        let inner = Fields::new().with("socket", 5u32).with("host", "a\"b\n");
        let json: Json = Fields::new()
            .with("connected", vec![Json::from(inner.clone()), Json::from(inner)])
            .with("end", Fields::new())
            .with("none", Vec::new())
            .into();
        let pretty = "{\n\t\"connected\":\t[{\n\t\t\t\"socket\":\t5,\n\t\t\t\"host\":\t\"a\\\"b\\n\"\n\
                      \t\t}, {\n\t\t\t\"socket\":\t5,\n\t\t\t\"host\":\t\"a\\\"b\\n\"\n\t\t}],\n\
                      \t\"end\":\t{\n\t},\n\t\"none\":\t[]\n}";
        assert_eq!(json.render_pretty(), pretty);
        let line = r#"{"connected":[{"socket":5,"host":"a\"b\n"},{"socket":5,"host":"a\"b\n"}],"end":{},"none":[]}"#;
        assert_eq!(json.render_line(), line);
        assert_eq!(Json::parse(line), Some(json));
        assert_eq!(Json::parse(&"[".repeat(100_000)), None);
    }
}
