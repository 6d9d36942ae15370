//! A document of TOML or JSON with its fields in the order in which they were written.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::PlanError;

/// A value of a document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// A text.
    Text(String),
    /// A number, true or false as a word: `10`, `0.5`, `true`.
    Plain(String),
    /// A list.
    List(Vec<Node>),
    /// A table.
    Table(Vec<(String, Node)>),
}

impl Node {
    /// As JSON, for what is passed on.
    pub(super) fn into_json(self) -> Value {
        match self {
            Self::Text(text) => Value::String(text),
            Self::Plain(word) => serde_json::from_str(&word).unwrap_or(Value::String(word)),
            Self::List(items) => items.into_iter().map(Self::into_json).collect(),
            Self::Table(entries) => {
                let entries = entries.into_iter().map(|(name, node)| (name, node.into_json()));
                Value::Object(entries.collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NodeVisitor;

        impl<'de> Visitor<'de> for NodeVisitor {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a text, a number, true, false, a list or a table")
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Plain(value.to_string()))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Plain(value.to_string()))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
                Ok(Node::Plain(value.to_string()))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
                match value.is_finite() {
                    true => Ok(Node::Plain(value.to_string())),
                    false => Err(E::custom(format!("{value} is no number that can be used"))),
                }
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Node, E> {
                Ok(Node::Text(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Node::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
                let mut table: Vec<(String, Node)> = Vec::new();
                while let Some((name, value)) = entries.next_entry::<String, Node>()? {
                    if table.iter().any(|(before, _)| *before == name) {
                        return Err(de::Error::custom(format!("{name} is given twice")));
                    }
                    table.push((name, value));
                }
                Ok(Node::Table(table))
            }
        }

        deserializer.deserialize_any(NodeVisitor)
    }
}

/// A table whose fields are taken out one by one.
#[derive(Debug)]
pub(super) struct Fields {
    /// Where the table stands, such as `cells[1]`; empty at the top.
    place: String,
    left: Vec<(String, Node)>,
    known: Vec<&'static str>,
}

impl Fields {
    pub(super) fn new(place: &str, node: Node) -> Result<Self, PlanError> {
        match node {
            Node::Table(left) => Ok(Self { place: place.to_owned(), left, known: Vec::new() }),
            _ => {
                let place = if place.is_empty() { "the plan" } else { place };
                Err(PlanError::new(place, "is no table: write its fields by name"))
            }
        }
    }

    /// Where a field stands.
    pub(super) fn place_of(&self, name: &str) -> String {
        // TOML and JSON allow a name without a letter.
        let name = if name.is_empty() { "\"\"" } else { name };
        if self.place.is_empty() { name.to_owned() } else { format!("{}.{name}", self.place) }
    }

    pub(super) fn fault(&self, name: &str, why: impl Into<String>) -> PlanError {
        PlanError::new(&self.place_of(name), why)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.left.iter().any(|(field, _)| field == name)
    }

    pub(super) fn take(&mut self, name: &'static str) -> Option<Node> {
        self.known.push(name);
        let place = self.left.iter().position(|(field, _)| field == name)?;
        Some(self.left.remove(place).1)
    }

    pub(super) fn word(&mut self, name: &'static str) -> Result<Option<String>, PlanError> {
        match self.take(name) {
            None => Ok(None),
            Some(Node::Text(word) | Node::Plain(word)) => Ok(Some(word)),
            Some(_) => Err(self.fault(name, "is a list or a table: give one value")),
        }
    }

    pub(super) fn words(&mut self, name: &'static str) -> Result<Option<Vec<String>>, PlanError> {
        let Some(node) = self.take(name) else { return Ok(None) };
        read_words(&self.place_of(name), node).map(Some)
    }

    /// A whole number from `least` to `most`.
    pub(super) fn count(
        &mut self,
        name: &'static str,
        least: u32,
        most: u32,
    ) -> Result<Option<u32>, PlanError> {
        let Some(word) = self.word(name)? else { return Ok(None) };
        let count = word.parse().ok().filter(|count| (least..=most).contains(count));
        count.map(Some).ok_or_else(|| {
            self.fault(name, format!("is {word}: give a whole number from {least} to {most}"))
        })
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool, PlanError> {
        match self.word(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(word) => Err(self.fault(name, format!("is {word}: give true or false"))),
        }
    }

    /// The fields that were not taken, in their order.
    pub(super) fn rest(&mut self) -> Vec<(String, Node)> {
        std::mem::take(&mut self.left)
    }

    /// # Errors
    /// A field that was never asked for.
    pub(super) fn finish(self) -> Result<(), PlanError> {
        let Some((name, _)) = self.left.first() else { return Ok(()) };
        let known: Vec<String> = self.known.iter().map(|name| (*name).to_owned()).collect();
        Err(self.fault(name, format!("is unknown: {}", suggest(name, &known))))
    }
}

/// One word, or a list of words.
pub(super) fn read_words(place: &str, node: Node) -> Result<Vec<String>, PlanError> {
    let word = |node| match node {
        Node::Text(word) | Node::Plain(word) => Ok(word),
        _ => Err(PlanError::new(place, "has a list or a table as a value: give words or numbers")),
    };
    match node {
        Node::List(items) => items.into_iter().map(word).collect(),
        node => word(node).map(|word| vec![word]),
    }
}

/// What to write in place of an unknown name.
pub(super) fn suggest(name: &str, known: &[String]) -> String {
    const SIMILAR: f64 = 0.7;
    const SHOWN: usize = 40;

    let likeness = |one: &&String| strsim::jaro_winkler(one, name);
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let nearest = nearest.filter(|one| likeness(one) >= SIMILAR);
    let shown = known.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if known.len() > SHOWN { ", ..." } else { "" };
    match nearest {
        Some(nearest) => format!("write {nearest}, or another of {shown}{more}"),
        None => format!("there are {shown}{more}"),
    }
}
