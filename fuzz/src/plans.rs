//! Plans of matrices.

use linerate_lab::plan::{
    Fault, Known, Plan, Prepared, Ready, TaskSpec, Word, Work, Workloads, read_plan,
};
use linerate_measure::matrix::Iteration;
use linerate_measure::plan::Notation;

/// Two workloads with a few parameters each; a rate is refused where it isn't a number of M.
struct Stand;

impl Workloads for Stand {
    fn names(&self) -> Vec<String> {
        ["stream", "iperf3"].map(str::to_owned).to_vec()
    }

    fn parameters(&self, _: &str) -> Vec<String> {
        ["protocol", "rate", "time", "flows", "server.cpu"].map(str::to_owned).to_vec()
    }

    fn prepare(&self, workload: &str, iteration: &Iteration) -> Result<Prepared, Fault> {
        if iteration.value("rate").is_some_and(|rate| !rate.ends_with('M')) {
            return Err(Fault { parameter: Some("rate".to_owned()), why: "is no rate".to_owned() });
        }
        let words: Vec<Word> = vec![workload.into(), Known::Address.into(), Known::Port.into()];
        let task = TaskSpec::new(words, Ready::AtOnce);
        Ok(Prepared {
            work: Work { server: task.clone(), client: task },
            search: None,
            expected_ns: 10_000_000_000,
            longest_ns: None,
            figures: vec!["goodput_bps".to_owned()],
            needs_port: workload == "iperf3",
        })
    }
}

/// A plan as TOML and as JSON: what is refused names a field and why, what is accepted holds together, and reads back.
pub fn matrix_plan(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for notation in [Notation::Toml, Notation::Json] {
        match read_plan(text, notation, &Stand) {
            Err(error) => assert!(!error.place.is_empty() && !error.why.is_empty()),
            Ok(plan) => check(&plan),
        }
    }
}

fn check(plan: &Plan) {
    assert!(!plan.points.is_empty() && !plan.pairs.is_empty());
    assert!(plan.check_size().is_ok());
    for (place, pair) in plan.pairs.iter().enumerate() {
        assert_eq!(pair.number as usize, place + 1);
        assert!(plan.hosts.contains_key(&pair.client) && plan.hosts.contains_key(&pair.server));
        let collides = |other: &&linerate_lab::plan::Pair| {
            other.number != pair.number && other.server == pair.server && other.port == pair.port
        };
        assert!(pair.port == 0 || !plan.pairs.iter().any(|other| collides(&other)));
    }
    for point in &plan.points {
        assert!(point.work_of(0).is_some());
        for threshold in &point.thresholds {
            assert!(threshold.bound_at(&point.iteration).is_ok());
        }
    }
    let text = serde_json::to_string(plan).unwrap_or_default();
    assert!(serde_json::from_str::<Plan>(&text).is_ok_and(|again| again == *plan));
}
