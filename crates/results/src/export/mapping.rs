//! Settings and strict mappings of the indices, as the Common Data Model has them.

use serde_json::{Map, Value, json};

use super::{CdmVersion, DocumentKind};

/// The names that a series may be told apart by: the mapping has these and refuses others.
#[rustfmt::skip]
pub const NAMES: [&str; 129] = [
    "tool-name", "benchmark-name", "benchmark-group", "benchmark-id", "benchmark-role", "hostname", "engine-type",
    "engine-role", "engine-id", "userenv", "osruntime", "endpoint", "endpoint-label", "hypervisor-host", "hosted-by",
    "interface-type", "bridge", "interface", "id", "class", "type", "host", "role", "dev", "cmd", "tid", "pid", "job",
    "group", "tier", "level", "package", "die", "core", "thread", "kthread", "node", "mode", "socket", "domain",
    "shared-l1-domain", "shared-l2-domain", "shared-l3-domain", "shared-l4-domain", "cluster", "container", "cgroup",
    "parent", "sensor", "source", "controller", "pod", "port", "tx_port", "rx_port", "fwd_interface", "rev_interface",
    "port_pair", "status", "error", "stream", "direction", "clientserver", "protocol", "action", "cpu", "irq", "desc",
    "counter", "cstype", "csid", "cookie", "table", "priority", "reg14", "metadata", "metric", "dp", "flags",
    "recirc_id", "dp_hash", "skb_priority", "skb_mark", "ct_state", "ct_zone", "ct_mark", "ct_label", "icmp_type",
    "icmp_code", "in_port", "ipv4_src", "ipv4_dst", "ipv4_proto", "ipv4_frag", "udp_src", "udp_dst", "tcp_src",
    "tcp_dst", "eth_src", "eth_dst", "eth_type", "vlan", "dl_dst", "dl_src", "dl_vlan", "ipv6_src", "ipv6_dst",
    "actions", "ufid", "src", "dst", "sport", "dport", "mark", "output", "use", "device", "sensor_index",
    "sensor_name", "step", "epoch", "batch", "slot", "blade", "rank", "queue", "nic", "mempool_name", "function",
];

/// The name whose values are numbers.
pub const NUMBER_NAME: &str = "num";

/// The name that takes what no other does.
pub const OTHER_NAME: &str = "metadata";

/// Fields and their types.
type Fields = &'static [(&'static str, &'static str)];

const CDM: Fields = &[("ver", "keyword"), ("doctype", "keyword")];
const RUN: Fields = &[
    ("begin", "date"),
    ("end", "date"),
    ("harness", "keyword"),
    ("benchmark", "keyword"),
    ("host", "keyword"),
    ("email", "keyword"),
    ("name", "keyword"),
    ("source", "keyword"),
];
const TAG: Fields = &[("name", "keyword"), ("val", "keyword")];
const ITERATION: Fields = &[
    ("num", "unsigned_long"),
    ("status", "keyword"),
    ("path", "keyword"),
    ("primary-metric", "keyword"),
    ("primary-period", "keyword"),
];
const PARAM: Fields =
    &[("id", "keyword"), ("arg", "keyword"), ("role", "keyword"), ("val", "keyword")];
const SAMPLE: Fields = &[("num", "unsigned_long"), ("status", "keyword"), ("path", "keyword")];
const PERIOD: Fields =
    &[("begin", "date"), ("end", "date"), ("name", "keyword"), ("prev_id", "keyword")];
const METRIC_DESC: Fields = &[
    ("class", "keyword"),
    ("type", "keyword"),
    ("source", "keyword"),
    ("names-list", "keyword"),
    ("value-format", "keyword"),
];
const METRIC_DATA: Fields =
    &[("value", "double"), ("begin", "date"), ("end", "date"), ("duration", "long")];

fn object(fields: Fields, version: CdmVersion) -> Map<String, Value> {
    let of = |kind: &'static str| match (kind, version) {
        // Servers of the time of that version do not all have the type.
        ("unsigned_long", CdmVersion::V7) => "long",
        (kind, _) => kind,
    };
    fields.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": of(kind) }))).collect()
}

/// The kinds whose fields a kind of documents has besides its own, itself at the end.
fn parts(kind: DocumentKind) -> &'static [DocumentKind] {
    use DocumentKind::{Iteration, MetricData, MetricDesc, Param, Period, Run, Sample, Tag};
    match kind {
        Run => &[Run],
        Tag => &[Run, Tag],
        Iteration => &[Run, Iteration],
        Param => &[Run, Iteration, Param],
        Sample => &[Run, Iteration, Sample],
        Period => &[Run, Iteration, Sample, Period],
        MetricDesc => &[Run, Iteration, Sample, Period, MetricDesc],
        MetricData => &[MetricData],
    }
}

fn part(kind: DocumentKind, version: CdmVersion) -> Value {
    let fields = match kind {
        DocumentKind::Run => RUN,
        DocumentKind::Tag => TAG,
        DocumentKind::Iteration => ITERATION,
        DocumentKind::Param => PARAM,
        DocumentKind::Sample => SAMPLE,
        DocumentKind::Period => PERIOD,
        DocumentKind::MetricDesc => METRIC_DESC,
        DocumentKind::MetricData => METRIC_DATA,
    };
    let mut fields = object(fields, version);
    let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    let keyword = || json!({ "type": "keyword" });
    match kind {
        DocumentKind::Run => {
            add("desc", json!({ "type": "text", "analyzer": "standard" }));
            add(
                "tags",
                json!({ "type": "text", "analyzer": "whitespace", "fields": { "raw": { "type": "keyword" } } }),
            );
            if version.has_aggregation() {
                add("partial", json!({ "type": "boolean" }));
                add("dropped-engines", keyword());
            }
        }
        DocumentKind::MetricDesc => {
            let mut names: Map<String, Value> =
                NAMES.iter().map(|name| ((*name).to_owned(), keyword())).collect();
            names.insert(NUMBER_NAME.to_owned(), json!({ "type": "double" }));
            add("names", json!({ "properties": names }));
            add("values", json!({ "properties": { "pass": keyword(), "fail": keyword() } }));
            if version.has_aggregation() {
                add("default-aggregation", keyword());
            }
        }
        _ => {}
    }
    if kind != DocumentKind::MetricData {
        add(&version.id_field(kind), keyword());
    }
    json!({ "properties": fields })
}

/// The mapping of the index of a kind of documents.
pub fn mapping(kind: DocumentKind, version: CdmVersion) -> Value {
    let mut properties = Map::new();
    properties.insert("cdm".to_owned(), json!({ "properties": object(CDM, version) }));
    for one in parts(kind) {
        properties.insert(one.name().to_owned(), part(*one, version));
    }
    if kind == DocumentKind::MetricData {
        let id = |kind: DocumentKind| {
            let field = version.id_field(kind);
            json!({ "properties": { field: { "type": "keyword" } } })
        };
        properties.insert("metric_desc".to_owned(), id(DocumentKind::MetricDesc));
        if version.data_has_run() {
            properties.insert("run".to_owned(), id(DocumentKind::Run));
        }
    }
    json!({ "dynamic": "strict", "properties": properties })
}

/// What an index of a kind of documents is made with.
pub fn creation(kind: DocumentKind, version: CdmVersion) -> Value {
    json!({
        "settings": {
            "number_of_shards": 1,
            "number_of_replicas": 1,
            "max_result_window": 262_144,
            "max_terms_count": 262_144,
            "codec": "best_compression",
            "refresh_interval": "5s",
        },
        "mappings": mapping(kind, version),
    })
}

/// Makes whole numbers without a sign such with one, for servers that lack the type. No document has a number that
/// needs it.
pub(super) fn without_unsigned(content: &mut Value) {
    match content {
        Value::Object(fields) => fields.values_mut().for_each(without_unsigned),
        Value::String(kind) if kind == "unsigned_long" => *kind = "long".to_owned(),
        _ => {}
    }
}

/// The type that a mapping gives a field, which is named by its path; `keyword` where it gives none.
pub(super) fn type_of<'a>(mapping: &'a Value, path: &str) -> &'a str {
    let field = path.split('.').fold(mapping, |outer, name| &outer["properties"][name]);
    field["type"].as_str().unwrap_or("keyword")
}

/// What an index lacks of the mapping that it should have, as a mapping that can be added; `None`: nothing.
///
/// # Errors
/// A field that has another type there: its path, and both types.
pub fn missing(wanted: &Value, found: &Value) -> Result<Option<Value>, String> {
    let mut lacking = lacking(wanted, found, "")?;
    if let Some(fields) = lacking.as_mut().and_then(Value::as_object_mut) {
        fields.insert("dynamic".to_owned(), "strict".into());
    }
    Ok(lacking)
}

fn lacking(wanted: &Value, found: &Value, path: &str) -> Result<Option<Value>, String> {
    let none = Map::new();
    let fields = |value: &'_ Value| value.get("properties").and_then(Value::as_object).cloned();
    let (wanted, found) = (fields(wanted).unwrap_or_default(), fields(found).unwrap_or(none));
    let mut lacks = Map::new();
    for (name, wanted) in &wanted {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let Some(found) = found.get(name) else {
            lacks.insert(name.clone(), wanted.clone());
            continue;
        };
        if wanted.get("properties").is_some() {
            if let Some(inner) = lacking(wanted, found, &path)? {
                lacks.insert(name.clone(), inner);
            }
            continue;
        }
        let kind = |value: &Value| {
            value.get("type").and_then(Value::as_str).unwrap_or("object").to_owned()
        };
        let (wanted, found) = (kind(wanted), kind(found));
        if wanted != found && !(is_whole(&wanted) && is_whole(&found)) {
            return Err(format!("its field {path} is of type {found} and not {wanted}"));
        }
    }
    Ok((!lacks.is_empty()).then(|| json!({ "properties": lacks })))
}

/// Types of whole numbers, any of which will do.
fn is_whole(kind: &str) -> bool {
    ["long", "unsigned_long", "integer"].contains(&kind)
}
