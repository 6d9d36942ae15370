//! What two stored runs differ in beside their figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Run;

/// The most that are told.
pub const MOST_DIFFERENCES: usize = 20;
/// Facts that differ from run to run and say nothing.
const IGNORED: [&str; 2] = ["ran_on_cpus", "load_average_1m"];

/// Something that two runs differ in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The field of the document: `environment.client.kernel`.
    pub field: String,
    /// A's value; absent where A's document has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<String>,
    /// B's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
}

/// What differs in the plans and machines of two runs, at most [`MOST_DIFFERENCES`].
pub fn differences(a: &Run, b: &Run) -> Vec<Difference> {
    let facts = |run: &Run| {
        serde_json::json!({
            "plan": run.plan,
            "options": run.options,
            "environment": { "client": run.environment.client, "server": run.environment.server },
        })
    };
    let mut found = Vec::new();
    walk("", Some(&facts(a)), Some(&facts(b)), &mut found);
    found.truncate(MOST_DIFFERENCES);
    found
}

fn walk(field: &str, a: Option<&Value>, b: Option<&Value>, found: &mut Vec<Difference>) {
    if a == b {
        return;
    }
    let object =
        |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let (in_a, in_b) = (object(a), object(b));
    if in_a.is_empty() && in_b.is_empty() {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let shown = |value: Option<&Value>| value.filter(|value| !value.is_null()).map(text);
        found.push(Difference { field: field.to_owned(), a: shown(a), b: shown(b) });
        return;
    }
    let mut names: Vec<&String> = in_a.keys().chain(in_b.keys()).collect();
    names.sort();
    names.dedup();
    for name in names.into_iter().filter(|name| !IGNORED.contains(&name.as_str())) {
        let inner = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
        walk(&inner, in_a.get(name), in_b.get(name), found);
    }
}
