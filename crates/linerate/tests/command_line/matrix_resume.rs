//! Matrices whose controller dies: they go on where they were, and nothing is lost or done twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use linerate_results::Store;
use serde_json::Value;

use crate::matrix::Place;

const PLAN: &str = "[schedule]\nsamples = 3\nmax_failures = 100\n[[cells]]\nworkload = \"stream\"\n\
                    bytes = [\"10k\", \"20k\", \"30k\"]\n";
const CELLS: u64 = 9;

/// How often the controller is killed; `LINERATE_TEST_KILLS` asks for more.
fn kills() -> u64 {
    let asked = std::env::var("LINERATE_TEST_KILLS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(4)
}

fn start(mut command: Command) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child =
        command.arg("--ndjson").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

/// What was seen of a run, over all its controllers.
#[derive(Default)]
struct Seen {
    run: Option<String>,
    /// Cells whose end was told.
    over: BTreeSet<u64>,
    /// Point and sample of each position.
    cells: BTreeMap<u64, (u64, u64)>,
    is_finished: bool,
}

impl Seen {
    /// Reads records until so many were read, or there are no more.
    fn follow(&mut self, lines: impl BufRead, most: u64) {
        let mut last = None;
        for line in lines.lines().map_while(Result::ok).take(usize::try_from(most).unwrap()) {
            // The last line of a controller that was killed may be cut.
            let Ok(record) = serde_json::from_str::<Value>(&line) else { return };
            let position = record["position"].as_u64();
            match record["record"].as_str().unwrap() {
                "run_began" => {
                    let run = record["run"].as_str().unwrap().to_owned();
                    assert_eq!(*self.run.get_or_insert(run.clone()), run);
                }
                "cell_began" => {
                    let position = position.unwrap();
                    assert!(!self.over.contains(&position), "cell {position} again");
                    assert!(last.is_none_or(|last| last <= position), "the order changed");
                    last = Some(position);
                    let cell =
                        (record["point"].as_u64().unwrap(), record["sample"].as_u64().unwrap());
                    assert_eq!(*self.cells.entry(position).or_insert(cell), cell);
                }
                "cell_ended" if record["status"] != "again" => {
                    assert!(self.over.insert(position.unwrap()), "told twice: {line}");
                }
                "finished" => self.is_finished = true,
                _ => {}
            }
        }
    }
}

#[test]
fn a_killed_controller_is_resumed_and_every_cell_is_done_once() {
    let mut place = Place::with_plan(PLAN);
    let (mut seen, mut killed, mut state) = (Seen::default(), 0, 1_u64);
    loop {
        let (mut child, lines) = match seen.run.clone() {
            Some(run) => start(place.matrix(&["--resume", &run])),
            None => start(place.matrix(&[])),
        };
        // From the first record to about three cells, some 30 records, later.
        let most = 1 + linerate_measure::random::next_word(&mut state) % 30;
        let most = if killed < kills() { most } else { u64::from(u32::MAX) };
        seen.follow(lines, most);
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        if seen.is_finished {
            assert_eq!(u64::try_from(seen.over.len()).unwrap(), CELLS);
            if killed >= kills() {
                break;
            }
            // Another run, for the kills that are left.
            check_store(&place, &seen);
            place = Place::with_plan(PLAN);
            seen = Seen::default();
            continue;
        }
        assert!(
            killed < kills(),
            "{:?}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        killed += 1;
    }
    check_store(&place, &seen);
}

/// The store has every cell once, done, in the order that was seen.
fn check_store(place: &Place, seen: &Seen) {
    let store = Store::open_to_read(&place.path("results.db")).unwrap();
    store.check().unwrap();
    let row = store.find_exactly(seen.run.as_ref().unwrap()).unwrap();
    let cells = store.cells(row.id).unwrap();
    assert_eq!(u64::try_from(cells.len()).unwrap(), CELLS);
    let mut once = BTreeSet::new();
    for cell in &cells {
        assert_eq!(cell.status, linerate_results::CellStatus::Done, "{cell:?}");
        assert!(once.insert((cell.iteration, cell.sample)));
        if let Some((point, sample)) = seen.cells.get(&u64::from(cell.position)) {
            let own = (u64::from(cell.iteration), u64::from(cell.sample));
            assert_eq!((*point, *sample), own);
        }
    }
    let mut documents = BTreeMap::new();
    store
        .each_document(row.id, |document| {
            *documents.entry(document.position).or_insert(0) += 1;
            Ok::<_, linerate_results::StoreError>(())
        })
        .unwrap();
    assert!(documents.values().all(|count| *count == 1), "{documents:?}");
    assert_eq!(u64::try_from(documents.len()).unwrap(), CELLS);
}

#[test]
fn a_run_is_resumed_by_its_own_plan_and_by_one_process_alone() {
    let place = Place::with_plan(PLAN);
    let order = ["--order", "sample"];
    let (mut child, mut lines) = start(place.matrix(&order));
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let record: Value = serde_json::from_str(&line).unwrap();
    let run = record["run"].as_str().unwrap().to_owned();
    let refused = place.matrix(&["--resume", &run]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    let holder = format!("process {}", child.id());
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains(&holder), "{said}");
    child.kill().unwrap();
    child.wait().unwrap();
    let assert_refused = |flags: &[&str]| {
        let refused = place.matrix(flags).args(["--resume", &run]).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("was begun with another plan"), "{said}");
    };
    assert_refused(&[]);
    std::fs::write(place.path("plan.toml"), PLAN.replace("30k", "31k")).unwrap();
    assert_refused(&order);
    std::fs::write(place.path("plan.toml"), PLAN).unwrap();
    let resumed = place.matrix(&order).args(["--resume", &run]).output().unwrap();
    let said = String::from_utf8_lossy(&resumed.stderr);
    assert!(matches!(resumed.status.code(), Some(0 | 6)), "{said}");
}
