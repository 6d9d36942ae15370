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
use crate::network::Company;
use crate::skipped::skip;

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

/// A path is tried so often at most: one that came late is no path to judge by.
const ATTEMPTS: usize = 4;

impl Expectation {
    /// What was found instead, where it isn't as expected.
    fn check(&self, name: &str, run: &Value, link: &Value) -> Result<(), String> {
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
        if range.contains(&found) {
            return Ok(());
        }
        Err(format!("{name}: {place}: {found} is not in {range:?}; {}", link["accuracy"]))
    }
}

/// Whether the emulator says of itself that this machine held up more than one packet in a hundred.
fn was_late(link: &Value) -> bool {
    let count = |place: &str| link.pointer(place).and_then(Value::as_f64).unwrap_or(0.0);
    count("/accuracy/late") > count("/accuracy/delay_error_ns/count") / 100.0
}

/// Measures over the path once; `Ok(None)`: the emulator was too late for anything to be judged.
fn try_path(name: &str, case: &Case) -> Result<Option<()>, String> {
    let emulator = Emulator::start_in(Company::Alone, &toml::to_string(&case.link).unwrap())?;
    let words: Vec<&str> = case.measure.split_whitespace().collect();
    let run = Server::start(&emulator.network).measure(&words);
    let link = emulator.stop();
    let found: Result<(), String> =
        case.expect.iter().try_for_each(|expectation| expectation.check(name, run.json(), &link));
    match found {
        Ok(()) => Ok(Some(())),
        Err(_) if was_late(&link) => Ok(None),
        Err(difference) => panic!("{difference}"),
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
        let mut attempts = (0..ATTEMPTS).map(|_| try_path(&name, &case));
        match attempts.find(|attempt| !matches!(attempt, Ok(None))) {
            Some(Ok(_)) => {}
            Some(Err(why)) => return skip(&why),
            None => return skip(&format!("{name}: the emulator was late {ATTEMPTS} times")),
        }
    }
}
