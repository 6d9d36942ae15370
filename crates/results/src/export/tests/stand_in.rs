//! A server in memory that keeps documents, answers the questions that the client asks, and fails as it is told.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::exchange::{Exchange, Reply, Request, SendError};

/// What a request comes to, by its body; `None`: it is done as usual.
pub(super) type Failure = fn(&str) -> Option<Result<Reply, SendError>>;

/// Documents by index and name.
pub(super) type Documents = BTreeMap<(String, String), Value>;

#[derive(Clone, Default)]
pub(super) struct StandIn(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    indices: BTreeMap<String, Value>,
    documents: Documents,
    requests: Vec<String>,
    pauses: Vec<Duration>,
    /// The path of requests that fail, how many more, and how.
    failing: Option<(String, usize, Failure)>,
    /// A type that mappings can't have.
    lacking: Option<String>,
    /// Documents with this text are refused, with this reason.
    refused: Option<(String, String)>,
}

pub(super) fn answer(status: u16, body: &str) -> Reply {
    Reply { status, retry_after: None, body: body.to_owned() }
}

/// As usual.
pub(super) fn accept() -> Option<Result<Reply, SendError>> {
    None
}

impl StandIn {
    pub(super) fn documents(&self) -> Documents {
        self.0.borrow().documents.clone()
    }

    pub(super) fn change_documents(&self, change: impl FnMut(&mut Value)) {
        self.0.borrow_mut().documents.values_mut().for_each(change);
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.0.borrow().requests.clone()
    }

    pub(super) fn pauses(&self) -> Vec<Duration> {
        self.0.borrow().pauses.clone()
    }

    pub(super) fn add_index(&self, name: &str, content: Value) {
        self.0.borrow_mut().indices.insert(name.to_owned(), content);
    }

    pub(super) fn index(&self, name: &str) -> Value {
        self.0.borrow().indices[name].clone()
    }

    pub(super) fn lack(&self, kind: &str) {
        self.0.borrow_mut().lacking = Some(kind.to_owned());
    }

    pub(super) fn fail(&self, path: &str, times: usize, failure: Failure) {
        self.0.borrow_mut().failing = Some((path.to_owned(), times, failure));
    }

    pub(super) fn refuse(&self, text: &str, reason: &str) {
        self.0.borrow_mut().refused = Some((text.to_owned(), reason.to_owned()));
    }
}

impl Exchange for StandIn {
    fn send(&mut self, request: &Request<'_>) -> Result<Reply, SendError> {
        let mut state = self.0.borrow_mut();
        state.requests.push(format!("{} {}", request.method, request.path));
        if let Some((path, times, failure)) = &mut state.failing
            && *path == request.path
            && *times > 0
            && let Some(failed) = failure(request.body)
        {
            *times -= 1;
            return failed;
        }
        Ok(state.perform(request))
    }

    fn pause(&mut self, time: Duration) -> bool {
        self.0.borrow_mut().pauses.push(time);
        true
    }
}

impl State {
    fn perform(&mut self, request: &Request<'_>) -> Reply {
        let path = request.path.split('?').next().unwrap();
        let body: Value = serde_json::from_str(request.body).unwrap_or_default();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let ok = |value: Value| answer(200, &value.to_string());
        match (request.method, &parts[..]) {
            ("GET", [""]) => {
                ok(json!({ "version": { "number": "2.19.1", "distribution": "opensearch" } }))
            }
            ("GET", ["_cat", ..]) => {
                let rows = self.indices.keys().map(|name| json!({ "index": name }));
                ok(rows.collect())
            }
            ("POST", ["_bulk"]) => ok(self.write(request.body)),
            ("PUT", [_] | [_, "_mapping"]) if self.lacks_type_of(request.body) => {
                // As Elasticsearch 7.17.9 answers.
                let kind = self.lacking.as_deref().unwrap_or_default();
                let reason = format!(
                    "Failed to parse mapping [_doc]: No handler for type [{kind}] declared on field"
                );
                answer(400, &json!({ "error": { "reason": reason } }).to_string())
            }
            ("PUT", [name]) if self.indices.contains_key(*name) => {
                answer(400, r#"{"error":{"type":"resource_already_exists_exception"}}"#)
            }
            ("PUT", [name]) => {
                self.indices.insert((*name).to_owned(), body);
                ok(json!({ "acknowledged": true }))
            }
            ("GET", [name, "_mapping"]) => ok(json!({ (*name): self.indices[*name] })),
            ("PUT", [name, "_mapping"]) => {
                let fields = self.indices.get_mut(*name).unwrap();
                fields["mappings"] = body;
                ok(json!({}))
            }
            ("POST", [_, "_refresh"]) => ok(json!({})),
            ("POST", [name, "_delete_by_query"]) => {
                let pattern = (*name).to_owned();
                self.documents.retain(|(index, _), document| {
                    *index != pattern || !fits(&body["query"], document)
                });
                ok(json!({}))
            }
            ("POST", [name, "_search"]) => ok(self.search(name, &body)),
            other => panic!("no such request: {other:?}"),
        }
    }

    fn lacks_type_of(&self, body: &str) -> bool {
        self.lacking.as_ref().is_some_and(|kind| body.contains(&format!("\"{kind}\"")))
    }

    fn write(&mut self, lines: &str) -> Value {
        let lines: Vec<&str> = lines.lines().collect();
        let mut items = Vec::new();
        for pair in lines.chunks(2) {
            let [action, document] = pair else { panic!("an action without a document") };
            let action: Value = serde_json::from_str(action).unwrap();
            let text = |field: &str| action["index"][field].as_str().unwrap().to_owned();
            let key = (text("_index"), text("_id"));
            assert!(self.indices.contains_key(&key.0), "{} would be guessed", key.0);
            if let Some((refused, reason)) = &self.refused
                && document.contains(refused.as_str())
            {
                let error = json!({ "type": reason, "reason": "no" });
                items.push(json!({ "index": { "status": 400, "error": error } }));
                continue;
            }
            let before = self.documents.insert(key, serde_json::from_str(document).unwrap());
            let status = if before.is_some() { 200 } else { 201 };
            items.push(json!({ "index": { "status": status } }));
        }
        json!({ "items": items })
    }

    fn search(&self, pattern: &str, body: &Value) -> Value {
        let is_of = |index: &str| match pattern.strip_suffix('*') {
            Some(begin) => index.starts_with(begin),
            None => index == pattern,
        };
        let filters = body["query"]["bool"]["filter"].as_array().unwrap();
        let fields = body["sort"].as_array().unwrap().iter();
        let fields: Vec<String> =
            fields.map(|field| field.as_object().unwrap().keys().next().unwrap().clone()).collect();
        let found = self.documents.iter().filter(|((index, _), document)| {
            is_of(index) && filters.iter().all(|filter| fits(filter, document))
        });
        let order = |document: &Value| -> Vec<String> {
            fields.iter().map(|field| format!("{:>20}", at(document, field).to_string())).collect()
        };
        let mut found: Vec<&Value> = found.map(|(_, document)| document).collect();
        found.sort_by_key(|document| order(document));
        let hits = found.into_iter();
        let hits = hits.map(|document| json!({ "_source": document, "sort": order(document) }));
        json!({ "hits": { "hits": hits.collect::<Vec<_>>() } })
    }
}

fn at<'a>(document: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(document, |value, name| &value[name])
}

/// Whether a document has what a query of terms asks for.
fn fits(query: &Value, document: &Value) -> bool {
    let (kind, asked) = query.as_object().unwrap().iter().next().unwrap();
    let (path, value) = asked.as_object().unwrap().iter().next().unwrap();
    let found = at(document, path);
    match kind.as_str() {
        "term" => found == value,
        _ => value.as_array().unwrap().contains(found),
    }
}
