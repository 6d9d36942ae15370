//! Runs in a real OpenSearch, whose address stands in `LINERATE_OPENSEARCH_URL`: `benches/searchserver` starts one.
//!
//! Runs have names of their own, and each test a month of its own, so a server may be used again.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::index::assert_ended;
use super::results::keep_matrix_of;
use super::run_in;
use super::skipped::skip;

const VARIABLE: &str = "LINERATE_OPENSEARCH_URL";

/// How long the server may take to make or remove an index on a busy machine.
const PATIENTLY: &str = "timeout=5m&master_timeout=5m";

/// How far answers of an index may be from those of the store, relatively.
const WITHIN: f64 = 0.001;

/// Documents of the stored run: a run, a tag, 2 iterations, 2 params, 2 samples, 2 periods, 2 series of 10 points.
const DOCUMENTS: u64 = 32;

/// One test at a time: each asks all months.
static ALONE: Mutex<()> = Mutex::new(());

struct Search {
    url: String,
    _alone: MutexGuard<'static, ()>,
}

impl Search {
    /// The server of the environment; `None`, where there is none and the test has said so.
    fn of_environment() -> Option<Self> {
        let url = std::env::var(VARIABLE).ok().filter(|url| !url.is_empty());
        if url.is_none() {
            skip(&format!("{VARIABLE} has no address of an OpenSearch"));
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        url.map(|url| Self { url, _alone })
    }

    /// Asks the server: its status and answer.
    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("Content-Type", "application/json")
            .body(if body.is_null() { String::new() } else { body.to_string() })
            .unwrap();
        let mut reply = ureq::Agent::new_with_config(config).run(request).unwrap();
        let text = reply.body_mut().read_to_string().unwrap();
        (reply.status().as_u16(), serde_json::from_str(&text).unwrap())
    }

    /// Asks until the server can answer: an index that is new may not have its shards yet.
    #[track_caller]
    fn succeed(&self, method: &str, path: &str, body: &Value) -> Value {
        let (mut status, mut answer) = self.ask(method, path, body);
        let began = Instant::now();
        while status == 503 && began.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(200));
            (status, answer) = self.ask(method, path, body);
        }
        assert!((200..300).contains(&status), "{method} {path}: {status}, {answer}");
        answer
    }

    /// How many documents of a run these indices have.
    #[track_caller]
    fn count(&self, indices: &str, run: &str) -> u64 {
        self.succeed("POST", &format!("/{indices}/_refresh"), &Value::Null);
        let query = json!({ "query": { "term": { "run.run-uuid": run } } });
        let answer = self.succeed("POST", &format!("/{indices}/_count"), &query);
        answer["count"].as_u64().unwrap()
    }

    /// Makes an index with a mapping of a test's own, of which the server may have one of an earlier test.
    fn make(&self, index: &str, properties: &Value) {
        self.remove(index);
        let mapping = json!({ "mappings": { "dynamic": "strict", "properties": properties } });
        self.succeed("PUT", &format!("/{index}?{PATIENTLY}"), &mapping);
    }

    fn remove(&self, index: &str) {
        let (status, answer) = self.ask("DELETE", &format!("/{index}?{PATIENTLY}"), &Value::Null);
        assert!([200, 404].contains(&status), "{answer}");
    }
}

/// A stored run, which began in this month of 2023 and goes to this index.
struct Kept {
    home: tempfile::TempDir,
    name: String,
    period: String,
}

impl Kept {
    fn new(month: u32, index: Option<&str>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let begin: jiff::Timestamp = format!("2023-{month:02}-20T00:00:00Z").parse().unwrap();
        keep_matrix_of(&home.path().join("s.db"), "", begin.as_millisecond(), index);
        let shown = run_in(home.path(), "results show last --store s.db --json").stdout;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let period = text(&shown["iterations"][1]["samples"][0]["period"]["period"]);
        Self { name: text(&shown["run"]["run"]), period, home }
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    #[track_caller]
    fn export(&self, search: &Search, flags: &str, exit_code: i32, said: &[&str]) {
        let words = format!("results export last --store s.db --opensearch {} {flags}", search.url);
        assert_ended(&run_in(self.path(), &words), exit_code, said);
    }

    /// The windows' values of a metric, by label.
    #[track_caller]
    fn get(&self, words: &str) -> BTreeMap<String, Vec<f64>> {
        let all = "--source linerate --type rx-Gbps --output-format json";
        let ended = run_in(self.path(), &format!("crucible get metric {all} {words}"));
        assert_eq!(ended.exit_code, 0, "{words}: {}{}", ended.stdout, ended.stderr);
        let document = ended.stdout.find('{').and_then(|at| ended.stdout.get(at..)).unwrap();
        let answer: Value = serde_json::from_str(document).unwrap();
        let values = answer["values"].as_object().unwrap().iter();
        let values = values.map(|(label, windows)| {
            let windows = windows.as_array().unwrap().iter();
            (label.clone(), windows.map(|window| window["value"].as_f64().unwrap()).collect())
        });
        values.collect()
    }

    /// The index answers all kinds of questions as the store does.
    #[track_caller]
    fn assert_answers(&self, search: &Search) {
        let Self { name, period, .. } = self;
        for which in [format!("--run {name}"), format!("--period {period}")] {
            for how in ["", "--resolution 4", "--breakout cstype --resolution 3"] {
                let exact = self.get(&format!("{which} {how} --store s.db"));
                let found = self.get(&format!("{which} {how} --opensearch {}", search.url));
                assert!(exact.keys().eq(found.keys()), "{how}: {exact:?}, {found:?}");
                for (exact, found) in exact.values().zip(found.values()) {
                    assert_eq!(exact.len(), found.len(), "{how}");
                    let mut pairs = exact.iter().zip(found);
                    let near = |one: f64, other: f64| (one - other).abs() <= WITHIN * one.abs();
                    assert!(pairs.all(|(one, other)| near(*one, *other)), "{exact:?}, {found:?}");
                }
            }
        }
    }
}

#[test]
fn a_real_index_has_a_run_once_and_answers_as_the_store() {
    let Some(search) = Search::of_environment() else { return };
    let kept = Kept::new(7, None);
    let name = &kept.name;
    // Another writer's index of another month has none of the fields.
    search.make("cdm-v10dev-period@2001.01", &json!({}));
    kept.export(&search, "--cdm v10dev", 0, &["32 documents created, 0 updated, in v10dev"]);
    kept.export(&search, "", 0, &["0 documents created, 32 updated, in v10dev"]);
    assert_eq!(search.count("cdm-v10dev-*", name), DOCUMENTS);
    assert_eq!(search.count("cdm-v10dev-metric_data@2023.07", name), 20);
    kept.assert_answers(&search);
    // In another form it replaces its series.
    kept.export(&search, "--hz 0.2", 0, &["in v10dev"]);
    assert_eq!(search.count("cdm-v10dev-metric_data@*", name), 4);
    kept.export(&search, "--cdm v8dev", 0, &["32 documents created, 0 updated, in v8dev"]);
    assert_eq!(search.count("cdmv8dev-*", name), DOCUMENTS);
    // The newer version has no run of the name any more.
    let all = json!({ "query": { "term": { "run.run-uuid": name } } });
    let path = "/cdm-v10dev-*/_delete_by_query?conflicts=proceed&refresh=true";
    search.succeed("POST", path, &all);
    kept.assert_answers(&search);
    let result = |from: &str| {
        run_in(kept.path(), &format!("crucible get result --run {name} --compat {from}")).stdout
    };
    let from_index = result(&format!("--opensearch {}", search.url));
    assert_eq!(from_index, result("--store s.db"));
    assert!(from_index.contains("rx-Gbps"), "{from_index}");
}

/// A way to the server that cuts some of its connections.
struct Door {
    url: String,
    connections: Arc<AtomicU32>,
}

impl Door {
    /// The first connection is refused. The one with the first bulk request is cut after the server has answered it.
    fn to(search: &Search) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server: SocketAddr = search.url.strip_prefix("http://").unwrap().parse().unwrap();
        let connections = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&connections);
        thread::spawn(move || {
            let has_cut = Arc::new(AtomicU32::new(0));
            for client in listener.incoming().map_while(Result::ok) {
                if count.fetch_add(1, Ordering::SeqCst) == 0 {
                    continue;
                }
                let has_cut = Arc::clone(&has_cut);
                thread::spawn(move || {
                    carry(&client, &TcpStream::connect(server).unwrap(), &has_cut)
                });
            }
        });
        Self { url, connections }
    }
}

/// Carries a connection, until an end goes or the first bulk request has its answer.
fn carry(client: &TcpStream, server: &TcpStream, has_cut: &AtomicU32) {
    let is_cut = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 65536];
            let (mut from, mut to) = (client, server);
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                let sent = &buffer[..length];
                if sent.starts_with(b"POST /_bulk") && has_cut.swap(1, Ordering::SeqCst) == 0 {
                    is_cut.store(1, Ordering::SeqCst);
                }
                if to.write_all(sent).is_err() {
                    break;
                }
            }
            let _closed = server.shutdown(Shutdown::Both);
        });
        let mut buffer = [0; 65536];
        let (mut from, mut to) = (server, client);
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if is_cut.load(Ordering::SeqCst) == 1 || to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _closed = client.shutdown(Shutdown::Both);
    });
}

#[test]
fn a_real_index_that_was_away_gets_everything_once() {
    let Some(search) = Search::of_environment() else { return };
    let door = Door::to(&search);
    // The controller died after the last cell and had sent nothing.
    let kept = Kept::new(6, Some(&door.url));
    let outbox = |words: &str| run_in(kept.path(), &format!("results outbox --store s.db {words}"));
    let listed: Value = serde_json::from_str(&outbox("--json").stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 3);
    assert_ended(&outbox(&format!("--send {}", door.url)), 0, &["3 parts of runs sent"]);
    assert_ended(&outbox(""), 0, &["nothing waits for an index"]);
    assert!(door.connections.load(Ordering::SeqCst) > 2, "no connection was cut");
    assert_eq!(search.count("cdm-v10dev-*,cdmv8dev-*", &kept.name), DOCUMENTS);
    kept.assert_answers(&search);
}

#[test]
fn a_real_index_names_what_its_mapping_refuses() {
    let Some(search) = Search::of_environment() else { return };
    let kept = Kept::new(5, None);
    let (periods, tags) = ("cdm-v10dev-period@2023.05", "cdm-v10dev-tag@2023.05");
    // A field of another type: nothing is written.
    search.make(tags, &json!({ "tag": { "properties": { "val": { "type": "long" } } } }));
    let said = ["can't take documents", "tag.val is of type long and not keyword"];
    kept.export(&search, "--cdm v10dev", 1, &said);
    search.remove(tags);
    // Dates of another format: the fields that lack are added, and documents are refused by themselves.
    let year = json!({ "type": "date", "format": "yyyy" });
    search.make(periods, &json!({ "period": { "properties": { "begin": year } } }));
    let said = ["30 documents created", "refused 2 documents", periods, "period.begin"];
    kept.export(&search, "--cdm v10dev", 1, &said);
    assert_eq!(search.count("cdm-v10dev-*", &kept.name), DOCUMENTS - 2);
    search.remove(periods);
    kept.export(&search, "--cdm v10dev", 0, &["2 documents created, 30 updated"]);
    assert_eq!(search.count("cdm-v10dev-*", &kept.name), DOCUMENTS);
    kept.assert_answers(&search);
    // The mappings that were made are strict.
    let other = json!({ "tag": { "another": "word" } });
    let (status, answer) = search.ask("POST", &format!("/{tags}/_doc"), &other);
    assert_eq!(status, 400, "{answer}");
    assert_eq!(answer["error"]["type"], "strict_dynamic_mapping_exception", "{answer}");
}
