//! Measurements over emulated paths, each described by a file in `paths/`: the link, what to
//! measure over it, and what must come out. A new test is a new file.
//!
//! `[link]` is a description as docs/link.md has it. `measure` is what a client does. Each
//! `[[expect]]` names a figure by its place in the `run` document or the `link` report and says
//! that it is at least `low`, at most `high`, or, with `of`, `share` and `deviations`, so many
//! standard deviations of the binomial distribution at most from that share of another figure of
//! the same document.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::emulator::Emulator;
use crate::ends::Server;
use crate::skipped;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    measure: String,
    link: toml::Table,
    expect: Vec<Expectation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectation {
    run: Option<String>,
    link: Option<String>,
    low: Option<f64>,
    high: Option<f64>,
    of: Option<String>,
    share: Option<f64>,
    deviations: Option<f64>,
}

impl Expectation {
    fn check(&self, name: &str, run: &Value, link: &Value) {
        let (document, place) = match (&self.run, &self.link) {
            (Some(place), None) => (run, place),
            (None, Some(place)) => (link, place),
            _ => panic!("{name}: an expectation names a place in `run` or in `link`"),
        };
        let figure = |place: &str| {
            let found = document.pointer(place).and_then(Value::as_f64);
            found.unwrap_or_else(|| panic!("{name}: no {place} in {run:#}\n{link:#}"))
        };
        let found = figure(place);
        let (mut low, mut high) = (self.low, self.high);
        if let (Some(of), Some(share)) = (&self.of, self.share) {
            let count = figure(of);
            let allowed = self.deviations.unwrap() * (count * share * (1.0 - share)).sqrt();
            (low, high) = (Some(count * share - allowed), Some(count * share + allowed));
        }
        assert!(low.is_some() || high.is_some(), "{name}: {place}: nothing is expected");
        let range = low.unwrap_or(f64::MIN)..=high.unwrap_or(f64::MAX);
        let accuracy = &link["accuracy"];
        assert!(range.contains(&found), "{name}: {place}: {found} is not in {range:?}; {accuracy}");
    }
}

#[test]
fn every_path_does_what_its_file_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/namespaces/paths");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let case: Case = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let emulator = match Emulator::start(&toml::to_string(&case.link).unwrap()) {
            Ok(emulator) => emulator,
            Err(why) => return skipped(&why),
        };
        let words: Vec<&str> = case.measure.split_whitespace().collect();
        let run = Server::start(&emulator.network).measure(&words);
        let link = emulator.stop();
        for expectation in &case.expect {
            expectation.check(&name, run.json(), &link);
        }
    }
}
