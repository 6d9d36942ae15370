//! Two runs beside each other: what was asked differently, and what came out differently.

use std::collections::{BTreeMap, BTreeSet};

use linerate_measure::Run;
use linerate_measure::hunt::HuntRecord;
use linerate_measure::metric::Combine;
use linerate_measure::threshold::{hunted, metric_of};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StoreError;
use crate::model::{CellStatus, RecordedCell};
use crate::read::IterationRow;
use crate::store::{RunId, Store};

/// Two runs beside each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// What was asked in one way in the first run and in another in the second: the field, and both values.
    pub asked: Vec<(String, String, String)>,
    /// The iterations that both have.
    pub iterations: Vec<IterationComparison>,
    /// Parameters of iterations that only the first run has.
    pub only_first: Vec<String>,
    /// Parameters of iterations that only the second run has.
    pub only_second: Vec<String>,
}

/// An iteration of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IterationComparison {
    /// Its parameters, as text.
    pub params: String,
    /// Its figures, by name.
    pub figures: Vec<FigureComparison>,
}

/// A figure of two runs: means over samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureComparison {
    /// Its name in the documents' summary, the parts joined with dots.
    pub name: String,
    /// In the first run.
    pub first: Mean,
    /// In the second run.
    pub second: Mean,
    /// How much greater the second mean is, as a share of the first; absent where the first is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
}

/// A mean over samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// How many samples have the figure.
    pub samples: u32,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n - 1); absent for one sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
}

impl Mean {
    /// The mean of values; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let samples = u32::try_from(values.len()).ok().filter(|samples| *samples > 0)?;
        let mean = values.iter().sum::<f64>() / f64::from(samples);
        let deviation = (samples > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / f64::from(samples - 1)).sqrt()
        });
        Some(Self { samples, mean, deviation })
    }
}

/// Figures by name, a value for each sample.
type Figures = BTreeMap<String, Vec<f64>>;

/// The figures of a document: those of its summary; of a hunt, whose summary is that of one trial, the rate that it
/// found.
fn add_document(body: &Value, figures: &mut Figures) {
    let Some(hunt) = body.get("hunt").filter(|hunt| !hunt.is_null()) else {
        return add_numbers("", body.get("summary").unwrap_or(&Value::Null), figures);
    };
    let Ok(hunt) = HuntRecord::deserialize(hunt) else { return };
    if let Some(rate) = hunt.outcome.rate() {
        figures.entry(hunted(hunt.goal.unit).name.to_owned()).or_default().push(rate as f64);
    }
}

/// The numbers of a summary by name.
fn add_numbers(name: &str, value: &Value, figures: &mut Figures) {
    match value {
        Value::Number(number) => {
            if let Some(number) = number.as_f64() {
                figures.entry(name.to_owned()).or_default().push(number);
            }
        }
        Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                add_numbers(&name, value, figures);
            }
        }
        _ => {}
    }
}

/// The figures of one sample: those of its clients' documents, or where there is none of its servers'.
struct SampleFigures {
    position: u32,
    iteration: u32,
    of_clients: Figures,
    of_servers: Figures,
}

impl SampleFigures {
    fn new(cell: &RecordedCell) -> Self {
        let (of_clients, of_servers) = (Figures::new(), Figures::new());
        Self { position: cell.position, iteration: cell.iteration + 1, of_clients, of_servers }
    }

    fn push(&mut self, body: &Value) {
        let is_server = body.get("written_by").is_some_and(|role| role == "server");
        add_document(body, if is_server { &mut self.of_servers } else { &mut self.of_clients });
    }

    /// Adds one value for each figure. What adds up over flows or directions is added over pairs of hosts; of anything
    /// else their mean is taken.
    fn add_to(self, figures: &mut BTreeMap<u32, Figures>) {
        let own = if self.of_clients.is_empty() { self.of_servers } else { self.of_clients };
        let figures = figures.entry(self.iteration).or_default();
        for (name, values) in own {
            let adds = metric_of(&name).is_some_and(|metric| {
                metric.over_flows == Combine::Add || metric.over_directions == Combine::Add
            });
            let sum: f64 = values.iter().sum();
            let value = if adds { sum } else { sum / values.len() as f64 };
            figures.entry(name).or_default().push(value);
        }
    }
}

/// A plan's fields by name, as text.
fn add_fields(name: &str, value: &Value, fields: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(inner) => {
            for (field, value) in inner {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                add_fields(&name, value, fields);
            }
        }
        Value::String(text) => drop(fields.insert(name.to_owned(), text.clone())),
        other => drop(fields.insert(name.to_owned(), other.to_string())),
    }
}

/// Parameters as text, in their order.
pub fn params_text(iteration: &IterationRow) -> String {
    let params = iteration.params.iter().map(|param| format!("{}={}", param.arg, param.value));
    params.collect::<Vec<_>>().join(" ")
}

impl Store {
    /// The figures of a run's documents by the number of their iteration, a value for each sample that was measured.
    fn figures(&self, run: RunId) -> Result<BTreeMap<u32, Figures>, StoreError> {
        let cells = self.cells(run)?;
        let mut figures: BTreeMap<u32, Figures> = BTreeMap::new();
        let mut sample: Option<SampleFigures> = None;
        self.each_document(run, |document| {
            let cell = cells.get(document.position as usize).filter(|cell| {
                cell.status == CellStatus::Done && cell.attempts == document.attempt
            });
            let Some(cell) = cell.filter(|_| document.kind == Run::SCHEMA) else { return Ok(()) };
            let body: Value = serde_json::from_str(&document.body)
                .map_err(|error| StoreError::Damaged(format!("a document is no JSON: {error}")))?;
            if sample.as_ref().is_none_or(|sample| sample.position != document.position)
                && let Some(whole) = sample.replace(SampleFigures::new(cell))
            {
                whole.add_to(&mut figures);
            }
            if let Some(sample) = &mut sample {
                sample.push(&body);
            }
            Ok::<_, StoreError>(())
        })?;
        if let Some(last) = sample {
            last.add_to(&mut figures);
        }
        Ok(figures)
    }

    /// Compares two runs of this store: iterations of the same parameters, or where each has one, these.
    ///
    /// # Errors
    /// Where the file can't be read or breaks its format.
    pub fn compare(&self, first: RunId, second: RunId) -> Result<Comparison, StoreError> {
        let (one, other) = (self.details(first)?, self.details(second)?);
        let (figures, other_figures) = (self.figures(first)?, self.figures(second)?);
        let mut comparison =
            Comparison { asked: asked(&one.plan, &other.plan), ..Comparison::default() };
        let is_single = one.iterations.len() == 1 && other.iterations.len() == 1;
        let mut left: Vec<&IterationRow> = other.iterations.iter().collect();
        for iteration in &one.iterations {
            let params = params_text(iteration);
            let place = left.iter().position(|other| is_single || params_text(other) == params);
            let Some(place) = place else {
                comparison.only_first.push(params);
                continue;
            };
            let pair = left.remove(place);
            let none = Figures::new();
            let of = (
                figures.get(&iteration.num).unwrap_or(&none),
                other_figures.get(&pair.num).unwrap_or(&none),
            );
            let params = if is_single { String::new() } else { params };
            comparison.iterations.push(IterationComparison { params, figures: pair_up(of) });
        }
        comparison.only_second = left.into_iter().map(params_text).collect();
        Ok(comparison)
    }
}

fn pair_up((first, second): (&Figures, &Figures)) -> Vec<FigureComparison> {
    let names = first.keys().filter(|name| second.contains_key(*name));
    let figures = names.filter_map(|name| {
        let first = Mean::of(first.get(name)?)?;
        let second = Mean::of(second.get(name)?)?;
        let change = (first.mean != 0.0).then(|| (second.mean - first.mean) / first.mean.abs());
        Some(FigureComparison { name: name.clone(), first, second, change })
    });
    figures.collect()
}

fn asked(one: &str, other: &str) -> Vec<(String, String, String)> {
    let fields = |plan: &str| {
        let mut fields = BTreeMap::new();
        let plan: Value = serde_json::from_str(plan).unwrap_or_default();
        add_fields("", &plan, &mut fields);
        fields
    };
    let (one, other) = (fields(one), fields(other));
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let get =
        |fields: &BTreeMap<String, String>, name| fields.get(name).cloned().unwrap_or_default();
    let differing = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
    differing.map(|name| (name.clone(), get(&one, name), get(&other, name))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        CellEnd, CellStatus, NewCell, NewDocument, NewIteration, NewParam, NewRun, Writer,
    };

    /// A run of these rates, two samples each, with these goodputs.
    fn keep(writer: &Writer, plan: Value, rates: &[(&str, [f64; 2])]) -> RunId {
        let iteration = |rate: &str| NewIteration {
            params: vec![NewParam {
                arg: "rate".into(),
                value: rate.into(),
                ..NewParam::default()
            }],
            ..NewIteration::default()
        };
        let cells = (0..rates.len() as u32)
            .flat_map(|iteration| (1..3).map(move |sample| NewCell { iteration, sample }));
        let run = NewRun {
            plan: plan.to_string(),
            iterations: rates.iter().map(|(rate, _)| iteration(rate)).collect(),
            cells: cells.collect(),
            ..NewRun::default()
        };
        let (id, _) = writer.begin_run(run).unwrap();
        let values = rates.iter().flat_map(|(_, values)| values);
        for (position, value) in (0..).zip(values) {
            let attempt = writer.begin_cell(id, position, 0).unwrap();
            let summary = json!({ "goodput_bps": value, "latency_ns": { "p99": 7 }, "from": "x" });
            let mut end = CellEnd::without_result(CellStatus::Done, "", 0);
            end.documents.push(NewDocument {
                host: String::new(),
                kind: Run::SCHEMA.to_owned(),
                body: json!({ "summary": summary }).to_string(),
            });
            writer.end_cell(attempt, end).unwrap();
        }
        id
    }

    #[test]
    fn iterations_of_equal_parameters_are_compared() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.db");
        let writer = Writer::open(&path).unwrap();
        let one = keep(
            &writer,
            json!({ "a": { "b": 1 }, "c": 2 }),
            &[("1G", [1.0, 3.0]), ("5G", [5.0, 5.0])],
        );
        let other = keep(
            &writer,
            json!({ "a": { "b": 4 }, "c": 2 }),
            &[("9G", [9.0, 9.0]), ("1G", [3.0, 3.0])],
        );
        writer.close().unwrap();
        let compared = Store::open_to_read(&path).unwrap().compare(one, other).unwrap();
        assert_eq!(compared.asked, [("a.b".to_owned(), "1".to_owned(), "4".to_owned())]);
        assert_eq!(
            (compared.only_first, compared.only_second),
            (vec!["rate=5G".to_owned()], vec!["rate=9G".to_owned()])
        );
        let [iteration] = &compared.iterations[..] else { panic!("{:?}", compared.iterations) };
        let [goodput, latency] = &iteration.figures[..] else { panic!("{iteration:?}") };
        assert_eq!(
            (goodput.name.as_str(), latency.name.as_str()),
            ("goodput_bps", "latency_ns.p99")
        );
        assert_eq!(goodput.first, Mean { samples: 2, mean: 2.0, deviation: Some(2.0f64.sqrt()) });
        assert_eq!((goodput.second.mean, goodput.change), (3.0, Some(0.5)));
    }

    #[test]
    fn a_hunts_figure_is_the_rate_that_it_found() {
        let goal = json!({
            "unit": "bits_per_second", "low": 1, "high": 9, "per_item": 8, "trial_ns": 1,
            "limits": { "loss_ratio": 0.0 },
        });
        let of = |outcome: Value| {
            let hunt = json!({ "goal": goal, "trials": [], "outcome": outcome });
            let mut figures = Figures::new();
            add_document(&json!({ "hunt": hunt, "summary": { "goodput_bps": 5.0 } }), &mut figures);
            figures
        };
        let found = of(json!({ "is": "found", "rate": 7, "failing_rate": 8 }));
        assert_eq!(found, [("hunt_rate_bps".to_owned(), vec![7.0])].into());
        assert_eq!(of(json!({ "is": "unsteady", "low": 1, "high": 9 })), Figures::new());
    }

    #[test]
    fn a_mean_of_one_has_no_deviation() {
        assert_eq!(Mean::of(&[]), None);
        assert_eq!(Mean::of(&[4.0]), Some(Mean { samples: 1, mean: 4.0, deviation: None }));
    }
}
