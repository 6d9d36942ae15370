//! Fields of a document that its schema doesn't have: misspelt ones would be skipped without a word.

use serde_json::{Map, Value};

/// A field that nothing reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// Where it stands: names and places, dots between them (`workload.flws`).
    pub path: String,
    /// The known field of that place whose name is most like it; absent where none is much like it.
    pub nearest: Option<String>,
}

impl std::fmt::Display for UnknownField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no field {}", self.path)?;
        self.nearest.as_ref().map_or(Ok(()), |name| write!(f, "; did you mean {name}?"))
    }
}

/// How like two names must be, by their Jaro similarity (0 to 1), for one to be proposed for the other.
const LIKENESS: f64 = 0.7;

/// The fields of `document` that `schema`, a root schema of this crate (draft 2020-12), doesn't know.
///
/// A value of another type than the schema's is left to the document's reader.
pub fn unknown_fields(schema: &Value, document: &Value) -> Vec<UnknownField> {
    let mut found = Vec::new();
    Walk { root: schema, found: &mut found }.visit(schema, document, "");
    found
}

struct Walk<'a> {
    root: &'a Value,
    found: &'a mut Vec<UnknownField>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, schema: &'a Value, value: &Value, path: &str) {
        match value {
            Value::Object(fields) => self.visit_fields(schema, fields, path),
            Value::Array(items) => {
                let of_items =
                    self.shapes(schema, &Map::new()).into_iter().find_map(|s| s.get("items"));
                for (place, item) in items.iter().enumerate() {
                    if let Some(of_item) = of_items {
                        self.visit(of_item, item, &join(path, &place.to_string()));
                    }
                }
            }
            _ => {}
        }
    }

    fn visit_fields(&mut self, schema: &'a Value, fields: &Map<String, Value>, path: &str) {
        let shapes = self.shapes(schema, fields);
        let known: Vec<&Map<String, Value>> =
            shapes.iter().filter_map(|shape| shape.get("properties")?.as_object()).collect();
        let of_others = shapes.iter().find_map(|shape| {
            shape.get("additionalProperties").filter(|of_others| of_others.is_object())
        });
        if known.is_empty() && of_others.is_none() {
            return;
        }
        for (name, value) in fields {
            let place = join(path, name);
            match known.iter().find_map(|properties| properties.get(name)).or(of_others) {
                Some(schema) => self.visit(schema, value, &place),
                None => {
                    let names = known.iter().flat_map(|properties| properties.keys());
                    self.found.push(UnknownField { path: place, nearest: nearest(name, names) });
                }
            }
        }
    }

    /// The schemas that say something of a value with these fields: `schema` itself, what it refers to, all that it
    /// requires, and of alternatives those that the constants among the fields leave open.
    fn shapes(&self, schema: &'a Value, fields: &Map<String, Value>) -> Vec<&'a Value> {
        let mut shapes = vec![schema];
        let referred = schema.get("$ref").and_then(Value::as_str);
        let referred = referred.and_then(|path| self.root.pointer(path.trim_start_matches('#')));
        let of =
            |keyword: &str| schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
        let open = |alternative: &&Value| !contradicts(alternative, fields);
        let alternatives = of("oneOf").chain(of("anyOf")).filter(open);
        for further in referred.into_iter().chain(of("allOf")).chain(alternatives) {
            shapes.extend(self.shapes(further, fields));
        }
        shapes
    }
}

/// Whether a field has another value than the constant that the alternative has for it.
fn contradicts(alternative: &Value, fields: &Map<String, Value>) -> bool {
    let properties = alternative.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().any(|(name, schema)| {
        let (constant, value) = (schema.get("const"), fields.get(name));
        constant.is_some_and(|constant| value.is_some_and(|value| value != constant))
    })
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Option<String> {
    let likeness = |known: &'a String| (strsim::jaro(name, known), known);
    let most_like = known.map(likeness).max_by(|one, other| one.0.total_cmp(&other.0));
    most_like.filter(|(likeness, _)| *likeness > LIKENESS).map(|(_, name)| name.clone())
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema;

    fn told(document: &Value) -> Vec<String> {
        let unknown = unknown_fields(&schema::plan(), document);
        unknown.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn no_field_of_a_plan_is_unknown() {
        for workload in [
            crate::Workload::stream(crate::Direction::Up, crate::Transport::Quic),
            crate::Workload::rr(crate::Transport::Udp),
            crate::Workload::connect(crate::Transport::Tls),
        ] {
            let text = serde_json::to_value(&workload).unwrap();
            let tags = json!({ "any": "name" });
            assert_eq!(told(&json!({ "workload": text, "tags": tags })), [""; 0]);
        }
    }

    #[test]
    fn a_misspelt_field_is_named_with_the_one_that_was_meant() {
        let document = json!({ "hots": 1, "workload": { "flws": 1, "socket": { "xyz": 1 } } });
        assert_eq!(
            told(&document),
            [
                "there is no field hots; did you mean host?",
                "there is no field workload.flws; did you mean flows?",
                "there is no field workload.socket.xyz"
            ]
        );
    }

    #[test]
    fn a_field_of_another_kind_is_unknown() {
        let kind = json!({ "name": "stream", "direction": "up", "send_bytes": 1, "close": "fin" });
        assert_eq!(
            told(&json!({ "workload": { "kind": kind } }))[0],
            "there is no field workload.kind.close"
        );
    }
}
