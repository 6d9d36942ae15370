//! Parameters: with several values as a user writes them, and with one value as an iteration has them.

use serde_json::{Map, Value};

use super::document::{read_list, read_object, read_required, read_set, read_text, read_word};

/// The engines that a parameter is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EngineRole {
    /// Clients.
    #[default]
    Client,
    /// Servers.
    Server,
    /// Both.
    All,
}

impl EngineRole {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::All => "all",
        }
    }
}

pub(super) const ROLES: &[(&str, EngineRole)] =
    &[("client", EngineRole::Client), ("server", EngineRole::Server), ("all", EngineRole::All)];

/// A parameter with all values that it is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub arg: String,
    /// Its values, at least one.
    pub vals: Vec<String>,
    /// Who gets it.
    pub role: EngineRole,
    /// The one engine that gets it.
    pub id: Option<String>,
    /// The engines that get it: numbers and ranges.
    pub ids: Option<Vec<String>>,
    /// Whether it counts.
    pub is_enabled: bool,
}

impl Param {
    /// Whether this and another parameter are the same, so that one replaces the other. `with_ids` compares `ids`, too.
    pub(super) fn is_same(&self, other: &Self, with_ids: bool) -> bool {
        let id = |param: &Self| param.id.clone().unwrap_or_else(|| "1".to_owned());
        self.arg == other.arg
            && self.role == other.role
            && id(self) == id(other)
            && (!with_ids || self.ids == other.ids)
    }

    /// This parameter with one value.
    pub(super) fn with(&self, val: String) -> Setting {
        let Self { arg, role, id, ids, .. } = self.clone();
        Setting { arg, val, role, id, ids }
    }
}

/// A parameter with one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub arg: String,
    /// Its value.
    pub val: String,
    /// Who gets it.
    pub role: EngineRole,
    /// The one engine that gets it.
    pub id: Option<String>,
    /// The engines that get it: numbers and ranges.
    pub ids: Option<Vec<String>>,
}

impl Setting {
    /// Whether an engine gets it.
    pub fn applies(&self, role: EngineRole, engine: u32) -> bool {
        let for_role = self.role == EngineRole::All || self.role == role;
        let for_id = self.id.as_ref().is_none_or(|id| id.parse() == Ok(engine));
        let for_ids = self.ids.as_ref().is_none_or(|ids| {
            ids.iter().any(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                matches!((first.parse::<u32>(), last.parse::<u32>()),
                    (Ok(first), Ok(last)) if (first..=last).contains(&engine))
            })
        });
        for_role && for_id && for_ids
    }
}

/// Reads a parameter; one of a requirements file has no `ids`.
pub(super) fn read_param(value: &Value, place: &str, takes_ids: bool) -> Result<Param, String> {
    const KNOWN: [&str; 6] = ["arg", "vals", "role", "id", "enabled", "ids"];
    let known = if takes_ids { &KNOWN[..] } else { &KNOWN[..5] };
    let members = read_object(value, place, known)?;
    let arg = read_text(read_required(members, "arg", place)?, &format!("{place}.arg"))?;
    let vals_place = format!("{place}.vals");
    let vals = read_set(read_required(members, "vals", place)?, &vals_place, 1)?
        .iter()
        .enumerate()
        .map(|(index, val)| read_text(val, &format!("{vals_place}[{index}]")).map(str::to_owned))
        .collect::<Result<_, _>>()?;
    Ok(Param {
        arg: arg.to_owned(),
        vals,
        role: read_role(members, place)?,
        id: read_id(members, place)?,
        ids: read_ids(members, place)?,
        is_enabled: read_enabled(members, place)?,
    })
}

pub(super) fn read_role(members: &Map<String, Value>, place: &str) -> Result<EngineRole, String> {
    match members.get("role") {
        Some(role) => read_word(role, &format!("{place}.role"), ROLES),
        None => Ok(EngineRole::default()),
    }
}

pub(super) fn read_enabled(members: &Map<String, Value>, place: &str) -> Result<bool, String> {
    match members.get("enabled") {
        Some(word) => read_word(word, &format!("{place}.enabled"), &[("yes", true), ("no", false)]),
        None => Ok(true),
    }
}

fn read_id(members: &Map<String, Value>, place: &str) -> Result<Option<String>, String> {
    let Some(value) = members.get("id") else { return Ok(None) };
    let place = format!("{place}.id");
    let id = read_text(value, &place)?;
    if !is_number(id) {
        return Err(format!("{place} is {id:?}, and has to be an engine's number, such as \"3\""));
    }
    Ok(Some(id.to_owned()))
}

fn read_ids(members: &Map<String, Value>, place: &str) -> Result<Option<Vec<String>>, String> {
    let Some(value) = members.get("ids") else { return Ok(None) };
    let place = format!("{place}.ids");
    let mut ids = Vec::new();
    for (index, item) in read_list(value, &place, 1)?.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let range = read_text(item, &place)?;
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if !is_number(first) || !is_number(last) {
            return Err(format!(
                "{place} is {range:?}, and has to be a number or a range, such as \"1-4\""
            ));
        }
        ids.push(range.to_owned());
    }
    Ok(Some(ids))
}

/// Whether a text is a whole number from 1 without leading zeros.
fn is_number(text: &str) -> bool {
    !text.starts_with('0') && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Iterations as the original prints them: keys in order of the alphabet, four blanks for each level, all but ASCII
/// as `\u` escapes.
pub fn render_iterations(iterations: &[Vec<Setting>]) -> String {
    let mut text = String::new();
    render_list(&mut text, 0, iterations, |text, iteration| {
        render_list(text, 1, iteration, render_setting);
    });
    text
}

fn render_list<T>(text: &mut String, depth: usize, items: &[T], render: impl Fn(&mut String, &T)) {
    if items.is_empty() {
        text.push_str("[]");
        return;
    }
    text.push('[');
    for (index, item) in items.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        indent(text, depth + 1);
        render(text, item);
    }
    text.push('\n');
    indent(text, depth);
    text.push(']');
}

fn render_setting(text: &mut String, setting: &Setting) {
    text.push('{');
    let member = |text: &mut String, key: &str| {
        text.push_str(if key == "arg" { "\n" } else { ",\n" });
        indent(text, 3);
        text.push_str(&format!("\"{key}\": "));
    };
    member(text, "arg");
    render_text(text, &setting.arg);
    if let Some(id) = &setting.id {
        member(text, "id");
        render_text(text, id);
    }
    if let Some(ids) = &setting.ids {
        member(text, "ids");
        render_list(text, 3, ids, |text, id| render_text(text, id));
    }
    member(text, "role");
    render_text(text, setting.role.word());
    member(text, "val");
    render_text(text, &setting.val);
    text.push('\n');
    indent(text, 2);
    text.push('}');
}

fn indent(text: &mut String, depth: usize) {
    (0..depth).for_each(|_| text.push_str("    "));
}

fn render_text(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            ' '..='~' => text.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    text.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    text.push('"');
}
