//! Plans that come as text: what `--dry-run` prints, or what a user wrote.

use serde_json::{Map, Value};

use std::path::Path;

use super::{HostPort, Plan, PlanError};
use crate::schema;
use crate::schema::unknown_fields::unknown_fields;

/// What a text of plans is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// JSON (RFC 8259).
    Json,
    /// TOML 1.0.
    Toml,
}

impl Notation {
    /// TOML where the file's name ends with `.toml`, else JSON.
    pub fn of_path(path: &Path) -> Self {
        if path.extension().is_some_and(|ending| ending == "toml") {
            Self::Toml
        } else {
            Self::Json
        }
    }
}

/// One plan of a text, and what the text says its flows do.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenPlan {
    /// The plan.
    pub plan: Plan,
    /// `flows`, as `--dry-run` prints them beside the plan; absent where the text has none.
    pub flows: Option<Value>,
    /// Its place in the text, from 1, where the text has several. Plans of several hosts share one.
    pub place: Option<usize>,
}

/// The plans of a text, in their order: a plan; `{"plan": ..., "flows": [...]}`; an array of either; or, as
/// TOML has no array at its top, `{"plans": [...]}`. A plan whose `host` is an array stands for one plan a host.
/// A host may have its port behind it, as on the command line; `port` is that of the others. `schema` may be left
/// out.
///
/// # Errors
///
/// What is no plan, with the place in the text. A field that no plan has is an error, and the nearest that one
/// has is named. The plans' values aren't checked against each other: that is [`Plan::check`]'s.
pub fn read_plans(text: &str, notation: Notation) -> Result<Vec<WrittenPlan>, PlanError> {
    let document: Value = match notation {
        Notation::Json => serde_json::from_str(text).map_err(told)?,
        Notation::Toml => toml::from_str(text).map_err(told)?,
    };
    let documents = match document {
        Value::Array(several) => several,
        Value::Object(mut fields) if fields.contains_key("plans") => {
            let several = fields.remove("plans");
            if let Some(field) = fields.keys().next() {
                return Err(no_plan(format!(
                    "{field} stands beside plans: put it into each of them"
                )));
            }
            match several {
                Some(Value::Array(several)) => several,
                _ => return Err(no_plan("plans is no array")),
            }
        }
        single => vec![single],
    };
    if documents.is_empty() {
        return Err(no_plan("there is no plan in it"));
    }
    let several = documents.len() > 1;
    let mut plans = Vec::new();
    for (document, number) in documents.into_iter().zip(1..) {
        let place = several.then_some(number);
        let read = read_document(document, place);
        plans.extend(read.map_err(|error| match place {
            Some(number) => no_plan(format!("plan {number}: {error}")),
            None => error,
        })?);
    }
    Ok(plans)
}

fn read_document(document: Value, place: Option<usize>) -> Result<Vec<WrittenPlan>, PlanError> {
    let Value::Object(mut fields) = document else {
        return Err(no_plan("a plan is an object with host and workload"));
    };
    let (fields, flows) = match fields.remove("plan") {
        None => (fields, None),
        Some(Value::Object(plan)) => {
            let flows = fields.remove("flows");
            if let Some(field) = fields.keys().next() {
                return Err(no_plan(format!("{field} stands beside plan: only flows may")));
            }
            (plan, flows)
        }
        Some(_) => return Err(no_plan("plan is no object")),
    };
    let hosts = match fields.get("host") {
        Some(Value::Array(hosts)) if hosts.is_empty() => {
            return Err(no_plan("host names no host"));
        }
        Some(Value::Array(hosts)) => hosts.clone(),
        Some(host) => vec![host.clone()],
        None => return Err(no_plan("host is missing: the server's name or address")),
    };
    let plan = |host| {
        Ok(WrittenPlan { plan: read_plan(fields.clone(), host)?, flows: flows.clone(), place })
    };
    hosts.into_iter().map(plan).collect()
}

fn read_plan(mut fields: Map<String, Value>, mut host: Value) -> Result<Plan, PlanError> {
    if let Value::String(text) = &host {
        let parsed = HostPort::parse(text).map_err(|why| no_plan(format!("host: {why}")))?;
        if let Some(port) = parsed.port {
            fields.insert("port".to_owned(), port.into());
        }
        host = parsed.host.into();
    }
    fields.insert("host".to_owned(), host);
    match fields.entry("schema").or_insert_with(|| Plan::SCHEMA.into()) {
        Value::String(name) if name == Plan::SCHEMA => {}
        other => {
            return Err(no_plan(format!(
                "schema is {other}, and this program reads {}",
                Plan::SCHEMA
            )));
        }
    }
    fields.entry("port").or_insert_with(|| super::DEFAULT_PORT.into());
    let document = Value::Object(fields);
    if let Some(unknown) = unknown_fields(&schema::plan(), &document).first() {
        return Err(no_plan(unknown.to_string()));
    }
    serde_path_to_error::deserialize(document).map_err(told)
}

fn told(error: impl std::fmt::Display) -> PlanError {
    no_plan(error.to_string().trim_end())
}

fn no_plan(text: impl Into<String>) -> PlanError {
    PlanError { text: text.into(), field: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Transport, Workload};

    fn plan() -> Value {
        json!({ "host": "a", "workload": Workload::rr(Transport::Tcp) })
    }

    fn read(document: &Value) -> Result<Vec<WrittenPlan>, String> {
        read_plans(&document.to_string(), Notation::Json).map_err(|error| error.to_string())
    }

    #[test]
    fn plans_are_read_in_every_form() {
        let dry_run = json!({ "plan": plan(), "flows": [] });
        for (document, count) in [
            (plan(), 1),
            (dry_run.clone(), 1),
            (json!([plan(), dry_run]), 2),
            (json!({ "plans": [plan(), plan()] }), 2),
        ] {
            let plans = read(&document).unwrap();
            assert_eq!(plans.len(), count);
            assert!(plans.iter().all(|written| written.plan.port == 5250));
        }
        let toml = "[[plans]]\nhost = 'a'\nworkload = { kind = { name = 'stream', direction = 'up', send_bytes = 9 }, \
                    transport = 'tcp', end = { by = 'count', count = 1 }, flows = 1, interval_ns = 1000000000 }";
        assert_eq!(read_plans(toml, Notation::Toml).unwrap().len(), 1);
    }

    #[test]
    fn a_plan_of_several_hosts_is_one_plan_a_host() {
        let mut document = plan();
        document["host"] = json!(["a", "b"]);
        let hosts = read(&document).unwrap().into_iter().map(|written| written.plan.host);
        assert_eq!(hosts.collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn port_behind_a_host_is_that_hosts_port() {
        let mut document = plan();
        document["host"] = json!(["a:1", "b", "[::1]:2", "::1", "192.0.2.1:3"]);
        document["port"] = 9.into();
        let servers = |document: &Value| {
            let plans = read(document).unwrap().into_iter().map(|written| written.plan);
            plans.map(|plan| (plan.host, plan.port)).collect::<Vec<_>>()
        };
        let expected = [("a", 1), ("b", 9), ("::1", 2), ("::1", 9), ("192.0.2.1", 3)];
        assert_eq!(servers(&document), expected.map(|(host, port)| (host.to_owned(), port)));
        document["host"] = "a:1".into();
        assert_eq!(servers(&document), [("a".to_owned(), 1)]);
    }

    #[test]
    fn invalid_plan_is_refused_with_its_place() {
        let changed = |change: fn(&mut Value)| {
            let mut document = plan();
            change(&mut document);
            document
        };
        for (document, sentence) in [
            (json!([]), "there is no plan in it"),
            (json!(5), "a plan is an object with host and workload"),
            (json!({}), "host is missing: the server's name or address"),
            (
                json!({ "plans": [], "port": 1 }),
                "port stands beside plans: put it into each of them",
            ),
            (json!({ "plan": plan(), "host": "b" }), "host stands beside plan: only flows may"),
            (
                changed(|plan| plan["schema"] = "x/2".into()),
                "schema is \"x/2\", and this program reads linerate.plan/1",
            ),
            (changed(|plan| plan["host"] = json!([])), "host names no host"),
            (
                changed(|plan| plan["host"] = json!(["a", "b:0"])),
                "host: '0' is no port: give a whole number, 1 to 65535",
            ),
            (changed(|plan| plan["prot"] = 1.into()), "there is no field prot; did you mean port?"),
            (
                changed(|plan| plan["workload"]["flows"] = "x".into()),
                "workload.flows: invalid type: string \"x\", expected u32",
            ),
        ] {
            assert_eq!(read(&document).unwrap_err(), sentence);
        }
        let second = read(&json!([plan(), {}])).unwrap_err();
        assert!(second.starts_with("plan 2: host is missing"), "{second}");
    }
}
