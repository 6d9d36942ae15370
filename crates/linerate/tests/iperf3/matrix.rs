//! Every option in all pairings of ours and an installed original, over IPv4 and IPv6. The original
//! against itself says what the ends print.

use crate::skipped::skip;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use linerate::personality::iperf3::json::Json;
use serde_json::Value;

use super::cli::document;
use super::credentials::{PRIVATE_KEY, PUBLIC_KEY, USERS};
use super::matrix_cases::{Case, FILE_BYTES, OTHER_V4, Seen, TCP, TEXT, UDP};
use super::programs::{Process, Program, has_original, serve};
use super::shapes::{fields_in_order, line_shape};
use super::traces::{
    FLOW_LABEL, first_cpu, has_flow_label, has_processors_to_choose, is_kept_to_one_cpu, names,
};
use crate::quiet::free_port;

/// Tests at the same time: they are paced, and spend their time waiting.
const AT_ONCE: usize = 12;

/// Loopback's addresses, of the families that are there.
fn hosts() -> Vec<&'static str> {
    let is_there = |host: &&str| {
        let found = TcpListener::bind((*host, 0)).is_ok();
        if !found {
            skip(&format!("nothing can be bound to {host}"));
        }
        found
    };
    ["127.0.0.1", "::1"].into_iter().filter(is_there).collect()
}

/// What an end came to.
struct Ended {
    exit_code: i32,
    text: String,
    complaint: String,
}

/// Which program is the client and which the server.
#[derive(Clone, Copy)]
struct Pair {
    server: Program,
    client: Program,
    name: &'static str,
}

/// Whether an option shows in the system.
type Sight = Box<dyn Fn() -> bool>;

/// One run of a case.
struct Cell<'a> {
    case: &'a Case,
    host: &'static str,
    pair: Pair,
    /// Of its own, with files that are there.
    folder: tempfile::TempDir,
    /// For the client's first stream.
    client_port: u16,
}

impl Cell<'_> {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The words with the names of files; `end` has files of its own.
    fn words(&self, words: &str, end: &str) -> String {
        let bind = if self.host.contains(':') { self.host } else { OTHER_V4 };
        let mut whole = words
            .replace("{cpu}", &first_cpu())
            .replace("{host}", self.host)
            .replace("{bind}", bind)
            .replace("{cport}", &self.client_port.to_string())
            .replace("{label}", &FLOW_LABEL.to_string());
        for name in ["file", "public", "private", "users"] {
            whole = whole.replace(&format!("{{{name}}}"), &self.path(name));
        }
        for name in ["copy", "pid", "log"] {
            whole = whole.replace(&format!("{{{name}}}"), &self.path(&format!("{name}.{end}")));
        }
        let form = if matches!(self.case.seen, Seen::Text(_)) { "" } else { "-J" };
        format!("{whole} {form}")
    }

    fn run(&self) -> [Ended; 2] {
        make_files(self.folder.path());
        let (mut server, port) = serve(self.pair.server, &self.words(self.case.server, "server"));
        let words = self.words(self.case.client, "client");
        let words = format!("-c {} -p {port} {words}", self.host);
        let mut command = self.pair.client.command(&words);
        let mut client = Process::start(command.env("IPERF3_PASSWORD", "rossi"));
        self.watch(&mut client, &mut server);
        let told = self.end(&mut client, "client");
        if matches!(self.case.seen, Seen::Refused(_)) && self.pair.server == Program::Original {
            // It goes on after whom it has refused.
            let _gone = server.0.kill();
        }
        [told, self.end(&mut server, "server")]
    }

    /// Looks for what only the system shows, and only while the test runs.
    fn watch(&self, client: &mut Process, server: &mut Process) {
        let Case { client: asked, server: served, .. } = self.case;
        let (of_client, of_server) = (client.0.id(), server.0.id());
        let mut wanted: Vec<(&str, Sight)> = Vec::new();
        for (words, end, process) in [(asked, "client", of_client), (served, "server", of_server)] {
            if words.contains("{pid}") {
                let path = self.path(&format!("pid.{end}"));
                wanted.push(("-I", Box::new(move || names(&path, process))));
            }
        }
        let (at_client, at_server) = (
            asked.contains("-A {cpu}"),
            asked.contains("-A {cpu},{cpu}") || served.contains("-A {cpu}"),
        );
        // Without another processor every process is kept to one.
        let shows = (at_client || at_server) && has_processors_to_choose();
        if at_client && shows {
            wanted.push(("-A", Box::new(move || is_kept_to_one_cpu(of_client))));
        }
        if at_server && shows {
            wanted.push(("-A at the server", Box::new(move || is_kept_to_one_cpu(of_server))));
        }
        if asked.contains("{label}") {
            wanted.push(("-L", Box::new(has_flow_label)));
        }
        while !wanted.is_empty() {
            let ended = client.0.try_wait().unwrap().is_some();
            wanted.retain(|(_, seen)| !seen());
            let missing: Vec<&str> = wanted.iter().map(|(option, _)| *option).collect();
            assert!(
                !ended || missing.is_empty(),
                "{}: nothing is seen of {missing:?}",
                self.title()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(&self, process: &mut Process, end: &str) -> Ended {
        let mut text = process.text();
        if let Ok(logged) = std::fs::read_to_string(self.path(&format!("log.{end}"))) {
            assert_eq!(text, "", "{}", self.title());
            text = logged;
        }
        Ended { exit_code: process.wait(), text, complaint: process.complaint() }
    }

    fn title(&self) -> String {
        let Case { client, server, .. } = self.case;
        format!("{} [{}] -c {} {client} | -s {server}", self.pair.name, self.host, self.host)
    }

    /// Whether both ends did what was asked for, and print what the original prints.
    fn check(&self, ends: &[Ended; 2], reference: Option<&[Ended; 2]>) {
        let title = self.title();
        let [client, server] = ends;
        let all = format!("{title}: {}\n{}{}", client.text, client.complaint, server.text);
        if let Seen::Refused(why) = self.case.seen {
            // After an error in a document 3.12 ends with 0.
            assert!(client.exit_code == 1 || self.pair.client == Program::Original, "{all}");
            assert!(client.text.contains("\"error\":"), "{all}");
            if self.pair.server != Program::Original {
                assert!(client.text.contains(why), "{all}");
                assert_eq!(server.exit_code, 0, "{all}");
            }
            return;
        }
        assert_eq!((client.exit_code, server.exit_code), (0, 0), "{all}");
        match self.case.seen {
            Seen::Documents(seen) => {
                let documents = [document(&client.text), document(&server.text)];
                let [at_client, at_server] = &documents;
                assert_same_bytes(at_client, at_server, self.may_count_nothing(), &title);
                assert!(seen(at_client, at_server), "{all}");
                self.check_stream(at_client, at_server);
            }
            Seen::Text(lines) => {
                for line in lines {
                    assert!(client.text.contains(line), "no {line}: {all}");
                }
            }
            Seen::Refused(_) => {}
        }
        for (end, other) in ends.iter().zip(reference.into_iter().flatten()) {
            let mut shapes = [self.shape(&end.text), self.shape(&other.text)];
            let has_interval =
                |shape: &Vec<String>| shape.iter().any(|field| is_of_interval(field));
            if self.may_count_nothing() && !shapes.iter().all(has_interval) {
                // An original that has counted nothing has had no interval either.
                shapes.iter_mut().for_each(|shape| shape.retain(|field| !is_of_interval(field)));
            }
            assert_eq!(shapes[0], shapes[1], "{all}");
        }
    }

    /// Whether the end that receives may have counted nothing. The original stops reading when it hears on its control
    /// connection that the other end has sent its bytes, on a busy machine before it has read any, also where the other
    /// end is an original.
    fn may_count_nothing(&self) -> bool {
        let words: Vec<&str> = self.case.client.split(' ').collect();
        let receiver = if words.contains(&"-R") { self.pair.client } else { self.pair.server };
        let ends_by_bytes = ["-n", "-k", "-F"].iter().any(|end| words.contains(end));
        ends_by_bytes && receiver == Program::Original
    }

    /// What was carried, and from where.
    fn check_stream(&self, at_client: &Value, at_server: &Value) {
        let (title, Case { client, .. }) = (self.title(), self.case);
        if let Ok(copy) = std::fs::read(self.path("copy.server")) {
            let received = at_server["end"]["sum_received"]["bytes"].as_u64();
            assert_eq!(Some(copy.len() as u64), received, "{title}");
            let repeats = copy.starts_with(b"01234567890123456789");
            let asked = client.contains("--repeating-payload");
            assert!(repeats == asked || copy.is_empty(), "{title}");
        }
        if client.contains("{cport}") {
            let port = &at_client["start"]["connected"][0]["local_port"];
            assert_eq!(*port, self.client_port, "{title}");
        }
    }

    /// What doesn't differ between two runs: a document's fields in their order, or lines without their figures.
    fn shape(&self, text: &str) -> Vec<String> {
        if matches!(self.case.seen, Seen::Text(_)) {
            let lines: BTreeSet<String> = text.lines().map(line_shape).collect();
            return lines.into_iter().collect();
        }
        let mut found = Vec::new();
        fields_in_order(&Json::parse(text).unwrap(), "", &mut found);
        found
    }
}

fn is_of_interval(field: &str) -> bool {
    field.starts_with(".intervals")
}

fn make_files(folder: &Path) {
    let content = vec![7; usize::try_from(FILE_BYTES).unwrap()];
    std::fs::write(folder.join("file"), content).unwrap();
    for (name, text) in [("public", PUBLIC_KEY), ("private", PRIVATE_KEY), ("users", USERS)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// What one end says was moved, the other one was told, and it isn't nothing.
fn assert_same_bytes(client: &Value, server: &Value, may_count_nothing: bool, title: &str) {
    assert!(client.get("error").is_none() && server.get("error").is_none(), "{title}: {client}");
    let bytes = |document: &Value, name: &str| document["end"][name]["bytes"].as_u64();
    let both = client["end"].get("sum_sent_bidir_reverse").is_some();
    let reverse = client["start"]["test_start"]["reverse"] == 1 && !both;
    // Of what the server counted itself both documents tell.
    let counted = if reverse { "sum_sent" } else { "sum_received" };
    assert_eq!(bytes(client, counted), bytes(server, counted), "{title}: {client} {server}");
    // Each end begins by its own clock to count what isn't omitted.
    let omits = client["start"]["test_start"]["omit"] != 0;
    for way in ["", "_bidir_reverse"].iter().take(1 + usize::from(both)) {
        let [sent, received] =
            ["sum_sent", "sum_received"].map(|name| bytes(client, &format!("{name}{way}")));
        let most = sent.map(|sent| if omits { sent + sent / 5 } else { sent });
        assert!(sent > Some(0), "{title}: {sent:?} {received:?}");
        assert!(received > Some(0) || may_count_nothing, "{title}: {sent:?} {received:?}");
        assert!(received <= most, "{title}: {sent:?} {received:?}");
    }
}

/// Ours and the original in all pairings; the original against itself comes first.
fn pairs(release: &'static str) -> [Pair; 4] {
    let ours = Program::OursAs(release);
    let pair = |server, client, name| Pair { server, client, name };
    [
        pair(Program::Original, Program::Original, "theirs at both ends"),
        pair(ours, ours, "ours at both ends"),
        pair(Program::Original, ours, "our client"),
        pair(ours, Program::Original, "our server"),
    ]
}

/// A case with one host, in all pairings.
fn run_row(case: &Case, host: &'static str, pairs: [Pair; 4], same_shape: bool) {
    let folder = || tempfile::tempdir().unwrap();
    let cell = |pair| Cell { case, host, pair, folder: folder(), client_port: free_port() };
    let [reference, rest @ ..] = pairs.map(cell);
    let told = reference.run();
    reference.check(&told, None);
    for cell in rest {
        cell.check(&cell.run(), Some(&told).filter(|_| same_shape));
    }
}

/// Runs each case with each host.
fn run_all(cases: &[Case]) {
    if !has_original() {
        return;
    }
    let version = Command::new("iperf3").arg("--version").output().unwrap().stdout;
    let is_3_12 = version.starts_with(b"iperf 3.12");
    if !is_3_12 {
        skip("the installed iperf3 is not 3.12, whose output is compared here");
    }
    let pairs = pairs(if is_3_12 { "3.12" } else { "3.21" });
    let rows: Vec<(&Case, &'static str)> =
        hosts().into_iter().flat_map(|host| cases.iter().map(move |case| (case, host))).collect();
    let has_what_it_needs = |(case, host): &(&Case, &str)| {
        host.contains(':') || case.client.split_whitespace().all(|word| word != "-6")
    };
    let rows: Vec<_> = rows.into_iter().filter(has_what_it_needs).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((case, host)) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            run_row(case, host, pairs, is_3_12);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

#[test]
fn every_option_over_tcp_works_with_the_original_at_either_end() {
    run_all(TCP);
}

#[test]
fn every_option_over_udp_works_with_the_original_at_either_end() {
    run_all(UDP);
}

#[test]
fn text_output_has_the_originals_lines_at_either_end() {
    run_all(TEXT);
}

#[test]
fn a_limit_on_time_which_3_12_lacks_is_told_its_client() {
    if !has_original() {
        return;
    }
    for host in hosts() {
        let (mut server, port) = serve(Program::Ours, "--server-max-duration 5");
        let words = format!("-c {host} -p {port} -t 9");
        let mut client = Process::start(&mut Program::Original.command(&words));
        assert_eq!((client.wait(), server.wait()), (1, 0));
        let said = client.complaint();
        assert!(said.starts_with("iperf3: error - "), "{said}");
    }
}

#[test]
fn a_server_whom_nobody_asks_ends_when_it_was_told_to() {
    if !has_original() {
        return;
    }
    let ends = [Program::Original, Program::OursAs("3.12")].map(|program| {
        let (mut server, _) = serve(program, "--idle-timeout 1");
        server.wait()
    });
    assert_eq!(ends[0], ends[1]);
}
