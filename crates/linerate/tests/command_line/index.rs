//! Runs that go to an index, by a server that stands in the test.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::matrix::Place;
use super::results::keep_matrix;
use super::{Ended, command, run_in};

/// What a server was sent.
#[derive(Default)]
struct Seen {
    /// Documents by index and name, with how often each came.
    documents: BTreeMap<(String, String), u32>,
    credentials: Vec<String>,
    is_closed: bool,
}

struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Server {
    /// A server on loopback that keeps what it gets, until the test ends.
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let kept = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that has gone needs no answer.
                let _gone = stream.map(|stream| answer(&stream, &kept));
            }
        });
        Self { address, seen }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many documents came whose index has this in its name.
    fn count(&self, of: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.documents.keys().filter(|(index, _)| index.contains(of)).count()
    }

    /// From now on it refuses everybody, or nobody.
    fn close(&self, is_closed: bool) {
        self.seen.lock().unwrap().is_closed = is_closed;
    }
}

/// Reads a request of HTTP: its head without the empty line, and its body. `None`: the client has gone.
pub(crate) fn read_request(stream: &TcpStream) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        head += &line;
    }
    let length = header(&head, "content-length").map_or(Some(0), |length| length.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).ok()?))
}

/// The value of a header.
pub(crate) fn header<'a>(head: &'a str, wanted: &str) -> Option<&'a str> {
    let mut pairs = head.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
}

fn answer(mut stream: &TcpStream, seen: &Mutex<Seen>) -> Option<()> {
    let (head, body) = read_request(stream)?;
    let path = head.split(' ').nth(1)?.to_owned();
    let mut seen = seen.lock().unwrap();
    seen.credentials.extend(header(&head, "authorization").map(str::to_owned));
    let (status, reply) = match path.as_str() {
        _ if seen.is_closed => ("403 Forbidden", json!({ "error": { "reason": "closed" } })),
        "/" => ("200 OK", json!({ "version": { "number": "2.19.1" } })),
        "/_bulk" => ("200 OK", keep(&mut seen, &body)),
        path if path.contains("_search") => ("200 OK", json!({ "hits": { "hits": [] } })),
        path if path.contains("_cat") => ("200 OK", json!([])),
        _ => ("200 OK", json!({})),
    };
    let reply = reply.to_string();
    let length = reply.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{reply}"
    )
    .ok()
}

fn keep(seen: &mut Seen, body: &str) -> Value {
    let lines: Vec<&str> = body.lines().collect();
    let mut items = Vec::new();
    for pair in lines.chunks(2) {
        let action: Value = serde_json::from_str(pair[0]).unwrap();
        let text = |field: &str| action["index"][field].as_str().unwrap().to_owned();
        let times = seen.documents.entry((text("_index"), text("_id"))).or_default();
        *times += 1;
        items.push(json!({ "index": { "status": if *times == 1 { 201 } else { 200 } } }));
    }
    json!({ "items": items })
}

#[track_caller]
pub(crate) fn assert_ended(ended: &Ended, exit_code: i32, said: &[&str]) {
    let all = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.exit_code, exit_code, "{all}");
    for said in said {
        assert!(all.contains(said), "{said}: {all}");
    }
}

#[test]
fn a_run_is_exported_once_however_often() {
    let home = tempfile::tempdir().unwrap();
    keep_matrix(&home.path().join("s.db"));
    std::fs::write(home.path().join("auth"), "Basic u:p\n").unwrap();
    let server = Server::new();
    let url = server.url();
    let words = format!("results export last --store s.db --opensearch {url} --auth-file auth");
    // 1 run, 1 tag, 2 iterations, 2 params, 2 samples, 2 periods, 2 series of 10 points.
    let first = "run 0a1b2c3d: 32 documents created, 0 updated, in v10dev";
    assert_ended(&run_in(home.path(), &words), 0, &[first]);
    assert_ended(&run_in(home.path(), &words), 0, &["0 documents created, 32 updated"]);
    assert_eq!((server.count(""), server.count("metric_data@2023.11")), (32, 20));
    assert!(server.seen.lock().unwrap().credentials.iter().all(|header| header == "Basic dTpw"));
    let words = format!("results export last --store s.db --opensearch {url} --cdm v8dev --hz 0.2");
    assert_ended(&run_in(home.path(), &words), 0, &["16 documents created", "in v8dev"]);
    assert_eq!(server.count("cdmv8dev-metric_data"), 4);
    server.close(true);
    assert_ended(&run_in(home.path(), &words), 1, &["HTTP status 403, closed", "permission"]);
}

#[test]
fn a_matrix_goes_on_where_its_index_refuses_and_is_sent_later() {
    let port = crate::quiet::free_port();
    let place = Place::with_plan(&format!(
        r#"
[topology]
port = {port}
[schedule]
samples = 2
[[cells]]
workload = "stream"
time = "500ms"
interval = "100ms"
rate = "10M"
"#
    ));
    let server = Server::new();
    server.close(true);
    let url = server.url();
    let output = place.matrix(&["--quiet", "--index", &url]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 6)), "{said}");
    assert!(said.contains("closed") && said.contains("kept in the store and wait"), "{said}");
    assert!(said.contains("3 parts of runs wait"), "{said}");
    let results = |words: &str| {
        let words = format!("results --store results.db {words}");
        run_in(place.path("").as_path(), &words)
    };
    assert_ended(&results("outbox"), 0, &["cell 0", "cell 1", "waiting", &url]);
    let listed: Value = serde_json::from_str(&results("outbox --json").stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 3);
    // The run goes on without its index, for which it waits still.
    let run = listed[0]["run"].as_str().unwrap();
    let resumed = place.matrix(&["--quiet", "--resume", run]).output().unwrap();
    let said = String::from_utf8_lossy(&resumed.stderr).into_owned();
    assert!(matches!(resumed.status.code(), Some(0 | 6)), "{said}");
    let way_out =
        format!("3 parts of it wait for that index: `linerate results outbox --send {url}`");
    assert!(said.contains(&way_out) && said.contains(run), "{said}");
    server.close(false);
    assert_ended(&results(&format!("outbox --send {url}")), 0, &["3 parts of runs sent"]);
    assert_ended(&results("outbox"), 0, &["nothing waits for an index"]);
    assert_eq!(
        (server.count("-run@"), server.count("-sample@"), server.count("-period@")),
        (1, 2, 2)
    );
    assert!(server.count("metric_data") > 0);
    // An index that is there gets everything while the run goes on, and nothing is left.
    let other = Server::new();
    let output = place.matrix(&["--quiet", "--index", &other.url()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 6)), "{said}");
    assert!(!said.contains("wait"), "{said}");
    assert_eq!((other.count("-run@"), other.count("-sample@")), (1, 2));
    assert_ended(&results("outbox"), 0, &["nothing waits for an index"]);
}

#[test]
fn what_can_not_be_an_index_is_named() {
    let home = tempfile::tempdir().unwrap();
    keep_matrix(&home.path().join("s.db"));
    let export = |words: &str| {
        run_in(home.path(), &format!("results export last --store s.db --opensearch {words}"))
    };
    assert_ended(&export("search:9200"), 2, &["--opensearch search:9200", "https://"]);
    assert_ended(&export("http://u:secret@h"), 2, &["--auth-file", "LINERATE_INDEX_AUTH"]);
    assert_ended(&export("http://h --ca ca.pem"), 2, &["--ca needs an address of https"]);
    assert_ended(&export("http://h --cdm v6dev"), 2, &["v6dev", "v10dev"]);
    assert_ended(&export("http://h --hz 0"), 2, &["--hz", "0.001"]);
    let mut with_variable = command(home.path(), "results export last --store s.db");
    let output = with_variable
        .args(["--opensearch", "http://h"])
        .env("LINERATE_INDEX_AUTH", "secret")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("LINERATE_INDEX_AUTH: give `Basic"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    let get = "crucible get metric --run r --source s --type t --opensearch h";
    assert_ended(&run_in(home.path(), get), 2, &["--opensearch h", "https://"]);
    std::fs::write(home.path().join("plan.toml"), "[[cells]]\nworkload = \"stream\"\n").unwrap();
    let matrix = run_in(home.path(), "matrix plan.toml --ca ca.pem");
    assert_ended(&matrix, 2, &["--ca, --auth-file and --cdm need --index URL"]);
}
