//! The JSON Schema of the form that users write.

use serde_json::{Value, json};

use super::topology::Topology;
use super::{HostSpec, KubernetesHost, Plan, Via};
use crate::collect::Source;
use linerate_measure::order::Order;

/// The JSON Schema (draft 2020-12) of a plan as it is written, in JSON or in TOML. What parameters a workload has is
/// told by the help of its command.
pub fn schema() -> Value {
    let (word, names) = (word_schema(), names_schema());
    let count = |text: &str| json!({ "type": "integer", "minimum": 1, "description": text });
    let text = |text: &str| json!({ "type": "string", "description": text });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": Plan::SCHEMA,
        "type": "object",
        "anyOf": [{ "required": ["cells"] }, { "required": ["hunt"] }],
        "additionalProperties": false,
        "properties": {
            "schema": { "const": Plan::SCHEMA },
            "title": text("A title for people."),
            "tags": { "type": "object", "additionalProperties": word, "description": "Marks that are kept with the run." },
            "hosts": {
                "type": "object",
                "description": "The hosts by name; absent: this machine.",
                "additionalProperties": host_schema(),
            },
            "topology": {
                "type": "object",
                "description": "Which hosts measure against which; absent: each host against itself.",
                "additionalProperties": false,
                "properties": {
                    "kind": { "enum": Topology::KINDS },
                    "hosts": names,
                    "outside": text("The host outside, of ingress and egress."),
                    "direction": { "enum": ["forward", "reverse", "both"], "description": "Of interhost." },
                    "pairs": { "type": "array", "description": "Pairs of client and server.", "items": { "oneOf": [
                        { "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 },
                        { "type": "object", "required": ["client", "server"], "additionalProperties": false, "properties": {
                            "client": { "type": "string" }, "server": { "type": "string" }, "port": count("The server's port."),
                        } },
                    ] } },
                    "mesh": names,
                    "incast": { "type": "object", "required": ["to"], "additionalProperties": false, "properties": {
                        "to": { "type": "string" }, "from": names,
                    } },
                    "scale_out": count("Groups of hosts."),
                    "scale_up": count("Pairs of each group."),
                    "port": count("The port of the first pair's server; each further pair has the next."),
                },
            },
            "schedule": schedule_schema(),
            "collect": collect_schema(),
            "cells": cells_schema(),
            "hunt": hunts_schema(),
        },
    })
}

fn cells_schema() -> Value {
    let (words, names) = (words_schema(), names_schema());
    json!({ "type": "array", "minItems": 1, "items": {
        "type": "object",
        "required": ["workload"],
        "description": "A list is an axis. Axes are crossed, the last one varies fastest.",
        "properties": {
            "workload": { "type": "string" },
            "zip": { "type": "array", "items": names, "description": "Axes that step together." },
            "exclude": { "type": "array", "items": { "type": "object", "additionalProperties": words } },
            "thresholds": names,
            "server": { "type": "object", "additionalProperties": words },
        },
        "additionalProperties": words,
    } })
}

/// As [`cells_schema`], with the limits of a search in the place of a workload.
fn hunts_schema() -> Value {
    let mut schema = cells_schema();
    let items = &mut schema["items"];
    items["required"] = json!([]);
    items["description"] = json!(
        "At each point of its axes the highest rate that keeps limits is searched. For one pair."
    );
    items["properties"]["workload"] = json!(false);
    for (name, description) in [
        ("rate", "LOW..HIGH, or one rate to judge."),
        ("loss", "The most that may be lost, or fail: 0.1%."),
        ("latency", "The most that a percentile of latency may be: p99=1ms."),
    ] {
        items["properties"][name] = words_schema();
        items["properties"][name]["description"] = json!(description);
    }
    schema
}

/// One value.
fn word_schema() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

/// One value, or a list.
fn words_schema() -> Value {
    let word = word_schema();
    json!({ "oneOf": [word, { "type": "array", "items": word, "minItems": 1 }] })
}

fn names_schema() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn collect_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "hz": { "type": "number", "minimum": 1, "maximum": 10 },
            "sources": { "type": "array", "items": { "enum": Source::ALL.map(Source::name) } },
            "interfaces": { "type": "array", "items": { "type": "string" } },
        },
    })
}

fn schedule_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "samples": { "type": "integer", "minimum": 1, "description": "Executions of each point." },
            "order": { "enum": Order::ALL.map(Order::name) },
            "seed": { "type": "integer", "minimum": 0, "description": "Absent: drawn, and recorded." },
            "max_failures": { "type": "integer", "minimum": 1, "description": "Failed attempts that end a cell." },
            "budget": { "type": ["string", "number"], "description": "Time, such as 2h." },
            "on_host_loss": { "enum": ["stop", "continue"] },
            "confidence": { "const": 0.95, "description": "A mean whose interval has a bound in it is undecided." },
        },
    })
}

fn host_schema() -> Value {
    let text = json!({ "type": "string" });
    let mut schema = json!({
        "type": "object",
        "required": ["transport"],
        "additionalProperties": false,
        "properties": {
            "transport": { "enum": HostSpec::TRANSPORTS },
            "data_address": { "type": "string", "description": "The address that other hosts measure against." },
            "namespace": { "type": "string", "description": "Of netns: as `ip netns` lists it. Of kubernetes: the cluster's." },
            "address": { "type": "string", "description": "Of ssh: whatever ssh takes." },
            "ssh_options": { "type": "array", "items": text },
            "sudo": { "type": "boolean" },
            "binary_dir": text,
            "node": { "type": "string", "description": "Of kubernetes: the node of the pods." },
            "kubeconfig": text,
            "context": text,
            "image": { "type": "string", "description": "Of kubernetes: the image of linerate." },
            "via": { "enum": Via::NAMES.map(|(name, _)| name) },
            "node_cpus": { "type": "integer", "minimum": 1, "description": "The node's processors." },
            "static_cpus": { "type": "boolean" },
            "host_network": { "type": "boolean" },
            "start_timeout": { "type": ["string", "number"] },
        },
    });
    for (name, theirs) in KubernetesHost::PASSED_ON {
        let description = format!("Of kubernetes, passed on as {theirs}.");
        schema["properties"][name] = json!({ "description": description });
    }
    schema
}
