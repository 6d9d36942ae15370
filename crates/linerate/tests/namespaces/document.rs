//! The run document, read by its JSON alone.

use serde_json::Value;

/// A run document.
#[derive(Debug)]
pub(crate) struct Document(Value);

impl Document {
    /// Reads it, or that of latency under load; every run prints one, also one that failed.
    pub(crate) fn parse(text: &str) -> Self {
        let value: Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let schema = value["schema"].as_str().unwrap_or_default();
        assert!(["linerate.run/1", "linerate.loaded/1"].contains(&schema), "{text}");
        Self(value)
    }

    /// Fails, with the document's own words, unless the run was valid.
    #[track_caller]
    pub(crate) fn assert_complete(&self) {
        let status = &self.0["status"];
        assert_eq!(status["outcome"], "complete", "{status}");
        assert_eq!(status["exit_code"], 0, "{status}");
    }

    /// A figure by its place, as in `/summary/goodput_bps`.
    #[track_caller]
    pub(crate) fn figure(&self, pointer: &str) -> f64 {
        let found = self.0.pointer(pointer).and_then(Value::as_f64);
        found.unwrap_or_else(|| panic!("no {pointer} in {}", self.0["summary"]))
    }

    /// A count by its place.
    #[track_caller]
    pub(crate) fn count(&self, pointer: &str) -> u64 {
        let found = self.0.pointer(pointer).and_then(Value::as_u64);
        found.unwrap_or_else(|| panic!("no {pointer} in {}", self.0["summary"]))
    }

    /// The whole document.
    pub(crate) fn json(&self) -> &Value {
        &self.0
    }

    /// The measured intervals of one end, `client` or `server`, in order.
    pub(crate) fn samples(&self, role: &str) -> Vec<&Value> {
        let all = self.0["samples"].as_array().expect("samples");
        all.iter().filter(|sample| sample["role"] == role && sample["warm_up"] != true).collect()
    }

    /// The report of one end, `client` or `server`.
    #[track_caller]
    pub(crate) fn report(&self, role: &str) -> &Value {
        let all = self.0["reports"].as_array().expect("reports");
        all.iter().find(|report| report["role"] == role).expect("a report of each end")
    }

    /// Bytes that one end received, interval by interval.
    pub(crate) fn received_bytes(&self, role: &str) -> Vec<u64> {
        let samples = self.samples(role);
        samples.iter().map(|sample| sample["received"]["bytes"].as_u64().unwrap_or(0)).collect()
    }
}

/// The median of some figures.
pub(crate) fn median(figures: &[f64]) -> f64 {
    assert!(!figures.is_empty(), "the median of nothing");
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Fails unless `ours` is within a share of `theirs`.
#[track_caller]
pub(crate) fn assert_near(what: &str, ours: f64, theirs: f64, share: f64) {
    let allowed = theirs.abs() * share;
    assert!((ours - theirs).abs() <= allowed, "{what}: {ours} is not within {allowed} of {theirs}");
}
