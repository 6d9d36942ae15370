//! The run document, read by its JSON alone.

use serde_json::Value;

/// What every run document has, whatever happened.
const FIELDS: [&str; 8] =
    ["schema", "run_id", "plan", "environment", "samples", "summary", "reports", "status"];

/// A run document.
#[derive(Debug)]
pub(crate) struct Document(Value);

impl Document {
    /// Reads it, and looks whether it has the fields that every run has.
    #[track_caller]
    pub(crate) fn parse(text: &str) -> Self {
        let value: Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text:?}"));
        Self::from_value(value)
    }

    #[track_caller]
    pub(crate) fn from_value(value: Value) -> Self {
        assert_eq!(value["schema"], "linerate.run/1");
        for field in FIELDS {
            assert!(!value[field].is_null(), "no {field} in {value}");
        }
        assert_eq!(value["run_id"].as_str().map(str::len), Some(32));
        Self(value)
    }

    pub(crate) fn json(&self) -> &Value {
        &self.0
    }

    pub(crate) fn message(&self) -> &str {
        self.0["status"]["message"].as_str().unwrap_or_default()
    }

    /// The codes of the reasons to doubt it.
    pub(crate) fn reason_codes(&self) -> Vec<&str> {
        let reasons = self.0["status"]["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
        reasons.iter().filter_map(|reason| reason["code"].as_str()).collect()
    }

    pub(crate) fn outcome(&self) -> &str {
        self.0["status"]["outcome"].as_str().unwrap_or_default()
    }

    /// A figure of the summary by its place, as in `goodput_bps` or `cpu_s/client/user_s`.
    #[track_caller]
    pub(crate) fn figure(&self, place: &str) -> f64 {
        let found = self.0["summary"].pointer(&format!("/{place}")).and_then(Value::as_f64);
        found.unwrap_or_else(|| panic!("no {place} in {}", self.0["summary"]))
    }

    /// A count of the summary by its place.
    #[track_caller]
    pub(crate) fn count(&self, place: &str) -> u64 {
        let found = self.0["summary"].pointer(&format!("/{place}")).and_then(Value::as_u64);
        found.unwrap_or_else(|| panic!("no {place} in {}", self.0["summary"]))
    }

    /// The samples of one end, `client` or `server`, in order.
    pub(crate) fn samples(&self, role: &str) -> Vec<&Value> {
        let all = self.0["samples"].as_array().unwrap();
        all.iter().filter(|sample| sample["role"] == role).collect()
    }

    /// The report of one end, `client` or `server`.
    #[track_caller]
    pub(crate) fn report(&self, role: &str) -> &Value {
        let all = self.0["reports"].as_array().unwrap();
        all.iter().find(|report| report["role"] == role).unwrap_or_else(|| panic!("no {role}"))
    }

    /// The sum over the flows of one end's report of a count, as in `sent/bytes`.
    #[track_caller]
    pub(crate) fn sum_of_flows(&self, role: &str, place: &str) -> u64 {
        let flows = self.report(role)["flows"].as_array().unwrap();
        let count = |flow: &Value| flow.pointer(&format!("/{place}")).and_then(Value::as_u64);
        flows.iter().filter_map(count).sum()
    }
}
