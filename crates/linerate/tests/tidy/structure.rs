//! How much one type holds, over how many files it is spread, and how many types have its name.
//!
//! What exceeds a bound today is listed with its number and the reason. The lists are a ratchet: no
//! number grows, a change that lowers one writes it down, and a type that keeps the bound leaves its list.

use std::collections::{BTreeMap, BTreeSet};

use crate::assert_tidy;
use crate::source::without_comments_and_text;
use crate::workspace::files;

/// What a type may hold before it is several types.
const MOST_FIELDS: usize = 12;

/// Over how many files the methods of one type may be spread.
const MOST_FILES_OF_AN_IMPL: usize = 2;

/// In how many rooms of a crate one name may stand for a type of its own.
const MOST_ROOMS_OF_A_NAME: usize = 2;

/// The fields are a format, one by one: a document, a message, a row.
const FORMAT: &str = "a format";
/// The fields are what can be asked for: flags, or a plan made of them.
const OPTIONS: &str = "options";
/// State that should become several types.
const STATE: &str = "to be taken apart";

/// The checks of a plan stand with what they check.
const CHECKS: &str = "checks stand by subject";

/// What reads or moves a part of a store stands with that part.
const READERS: &str = "readers stand by subject";

/// Each dialect has one, in its own room.
const DIALECTS: &str = "a part of each dialect";
/// Types of different subjects that should have names of their own.
const NAMESAKES: &str = "to be named apart";

/// A type that exceeds a bound: its crate and its name, by how much, and why.
type Exception = (&'static str, &'static str, usize, &'static str);

#[rustfmt::skip]
const WIDE: &[Exception] = &[
    ("linerate", "LoadArgs", 34, OPTIONS),
    ("wire", "Parameters", 32, FORMAT),
    ("wire", "Request", 32, FORMAT),
    ("measure", "Summary", 38, FORMAT),
    ("linerate", "Row", 28, FORMAT),
    ("engine", "Load", 27, STATE),
    ("personality", "ClientOptions", 24, OPTIONS),
    ("engine", "EndPlan", 23, OPTIONS),
    ("engine", "Settings", 23, OPTIONS),
    ("engine", "ClientPlan", 17, OPTIONS),
    ("linerate", "ProxyArgs", 20, OPTIONS),
    ("engine", "Connection", 21, STATE),
    ("engine", "ServerTest", 19, STATE),
    ("engine", "TestPlan", 18, OPTIONS),
    ("linerate", "Document", 18, FORMAT),
    ("measure", "FlowReport", 20, FORMAT),
    ("measure", "FlowSum", 18, FORMAT),
    ("engine", "DataPlan", 17, OPTIONS),
    ("engine", "Job", 17, STATE),
    ("engine", "ServePlan", 17, OPTIONS),
    ("engine", "Ending", 15, FORMAT),
    ("engine", "FramedEndpoint", 16, STATE),
    ("linerate", "ServeArgs", 17, OPTIONS),
    ("linerate", "HuntArgs", 17, OPTIONS),
    ("measure", "EndReport", 20, FORMAT),
    ("engine", "AcceptLoop", 15, STATE),
    ("engine", "NativeClientTest", 17, STATE),
    ("engine", "Endpoint", 14, STATE),
    ("engine", "Test", 15, STATE),
    ("linerate", "Iterations", 16, STATE),
    ("link", "Path", 15, STATE),
    ("measure", "Counters", 15, FORMAT),
    ("measure", "LimitEvidence", 18, FORMAT),
    ("measure", "QuicOptions", 15, OPTIONS),
    ("measure", "QuicStatus", 19, FORMAT),
    ("measure", "Sample", 17, FORMAT),
    ("personality", "EndOptions", 15, OPTIONS),
    ("engine", "QuicStatistics", 14, FORMAT),
    ("engine", "Worker", 14, STATE),
    ("linerate", "LinkArgs", 14, OPTIONS),
    ("measure", "DirectionText", 14, FORMAT),
    ("wire", "Server", 14, STATE),
    ("personality", "MetricOptions", 14, OPTIONS),
    ("personality", "Options", 15, OPTIONS),
    ("engine", "ServeOptions", 13, OPTIONS),
    ("linerate", "OutputArgs", 13, OPTIONS),
    ("engine", "Slots", 13, STATE),
    ("engine", "TestOptions", 13, OPTIONS),
    ("linerate", "Context", 13, FORMAT),
    ("linerate", "JsonPrinter", 14, STATE),
    ("personality", "EngineParameters", 13, OPTIONS),
    ("personality", "RunOptions", 17, OPTIONS),
    ("personality", "SocketOptions", 13, OPTIONS),
    ("results", "RunRow", 13, FORMAT),
    ("wire", "Client", 13, STATE),
    ("wire", "Layout", 13, FORMAT),
    ("wire", "Results", 13, FORMAT),
    ("measure", "TcpStatus", 16, FORMAT),
    ("measure", "Run", 14, FORMAT),
    ("wire", "Setup", 13, FORMAT),
    ("measure", "Phase", 15, FORMAT),
];

#[rustfmt::skip]
const SPREAD: &[Exception] = &[
    ("engine", "Load", 7, STATE),
    ("engine", "NativeAcceptor", 3, STATE),
    ("engine", "Connection", 6, STATE),
    ("measure", "Workload", 5, CHECKS),
    ("measure", "Plan", 3, CHECKS),
    ("engine", "ClientTest", 4, STATE),
    ("engine", "Endpoint", 3, STATE),
    ("engine", "MultiplexedEndpoint", 3, STATE),
    ("results", "Store", 7, READERS),
];

#[rustfmt::skip]
const SHARED: &[Exception] = &[
    ("engine", "Progress", 5, NAMESAKES),
    ("engine", "Server", 5, DIALECTS),
    ("engine", "Stage", 5, NAMESAKES),
    ("engine", "Incoming", 4, NAMESAKES),
    ("engine", "Meter", 4, NAMESAKES),
    ("personality", "Options", 4, DIALECTS),
    ("wire", "Fault", 4, DIALECTS),
    ("engine", "Arrival", 3, NAMESAKES),
    ("engine", "Awaited", 3, NAMESAKES),
    ("engine", "Ending", 3, NAMESAKES),
    ("engine", "Event", 3, NAMESAKES),
    ("engine", "Hello", 3, NAMESAKES),
    ("engine", "Kept", 3, NAMESAKES),
    ("engine", "Listener", 3, NAMESAKES),
    ("engine", "Pending", 3, NAMESAKES),
    ("engine", "Reading", 3, NAMESAKES),
    ("engine", "Report", 3, DIALECTS),
    ("engine", "Sending", 3, NAMESAKES),
    ("engine", "ServerEvent", 3, DIALECTS),
    ("engine", "Slots", 3, NAMESAKES),
    ("engine", "Stream", 3, DIALECTS),
    ("engine", "Test", 3, DIALECTS),
    ("engine", "Told", 3, NAMESAKES),
    ("engine", "Worker", 3, NAMESAKES),
    ("measure", "Quantity", 3, NAMESAKES),
    ("personality", "Flag", 3, DIALECTS),
    ("personality", "ServerOptions", 3, DIALECTS),
    ("personality", "SocketOptions", 3, DIALECTS),
    ("wire", "Client", 3, DIALECTS),
    ("wire", "ClientEvent", 3, DIALECTS),
    ("wire", "Inbox", 3, DIALECTS),
    ("wire", "Request", 3, DIALECTS),
    ("wire", "Server", 3, DIALECTS),
    ("wire", "ServerEvent", 3, DIALECTS),
    ("wire", "Stage", 3, DIALECTS),
];

/// A source of a crate, without comments, text and tests.
struct Source {
    path: String,
    package: String,
    code: String,
}

fn sources() -> Vec<Source> {
    let is_test = |path: &str| path.ends_with("tests.rs") || path.contains("/tests/");
    let crates = files(&[".rs"]).into_iter().filter_map(|(path, text)| {
        let (package, place) = path.strip_prefix("crates/")?.split_once('/')?;
        let package = package.to_owned();
        let is_product = place.starts_with("src/") && !is_test(&path);
        is_product.then(|| Source { path, package, code: without_comments_and_text(&text) })
    });
    crates.collect()
}

/// A line without `pub` and the like.
fn unrestricted(line: &str) -> &str {
    let line = line.trim_start();
    match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')').map_or(line, |(_, rest)| rest),
        Some(rest) if rest.starts_with(' ') => rest,
        _ => line,
    }
    .trim_start()
}

/// The word that a text begins with.
fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Every struct with its fields counted. rustfmt writes a field a line, one step further in.
fn fields(code: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(rest) = unrestricted(line).strip_prefix("struct ") else { continue };
        let indent = line.len() - line.trim_start().len();
        let body = lines[at + 1..]
            .iter()
            .take_while(|line| line.len() <= indent || !line[indent..].starts_with('}'));
        let is_field = |line: &&&str| {
            let inner = line.len() - line.trim_start().len();
            let field = unrestricted(line);
            let name = first_word(field);
            let rest = &field[name.len()..];
            inner == indent + 4
                && !name.is_empty()
                && rest.starts_with(':')
                && !rest.starts_with("::")
        };
        if !line.trim_end().ends_with([';', '}']) {
            found.push((first_word(rest), body.filter(is_field).count()));
        }
    }
    found
}

/// The types that a source declares.
fn declared(code: &str) -> impl Iterator<Item = &str> {
    code.lines().filter_map(|line| {
        let line = unrestricted(line);
        let kind = ["struct ", "enum "].iter().find_map(|kind| line.strip_prefix(kind))?;
        Some(first_word(kind))
    })
}

/// The types that a source has methods for which belong to no trait.
fn own_methods(code: &str) -> Vec<&str> {
    let heads = code.match_indices("\nimpl").filter_map(|(at, _)| {
        let head = code[at + 5..].split('{').next()?;
        // What is generic stands in angle brackets behind the word.
        let mut depth = 0;
        let end = head.find(|c: char| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0 && c == ' '
        })?;
        let head = head[end..].trim();
        let is_of_trait = head.split_whitespace().any(|word| word == "for");
        let name = head.split(['<', ' ']).next()?.rsplit("::").next()?;
        (!is_of_trait).then_some(name)
    });
    heads.collect()
}

/// Parts at the beginning that two paths share.
fn shared(a: &str, b: &str) -> usize {
    let parts = |path: &str| path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    let (a, b): (Vec<String>, Vec<String>) = (parts(a), parts(b));
    a.iter().zip(&b).take_while(|(a, b)| a == b).count()
}

/// What is above the bound and above its number in the list, and what is listed and keeps the bound.
fn compare(
    found: &BTreeMap<(String, String), usize>,
    most: usize,
    listed: &[Exception],
) -> Vec<String> {
    let mut offences = Vec::new();
    for ((package, name), count) in found.iter().filter(|(_, count)| **count > most) {
        let known = listed.iter().find(|entry| (entry.0, entry.1) == (package, name));
        match known {
            Some((.., listed, _)) if count <= listed => {}
            Some((.., listed, why)) => {
                offences.push(format!("{package} {name}: {count}, listed with {listed} ({why})"));
            }
            None => offences.push(format!("{package} {name}: {count}, at most {most}")),
        }
    }
    for (package, name, ..) in listed {
        let key = ((*package).to_owned(), (*name).to_owned());
        if found.get(&key).is_none_or(|count| *count <= most) {
            offences.push(format!("{package} {name} keeps the bound: take it from the list"));
        }
    }
    offences
}

#[test]
fn a_type_holds_a_dozen_fields() {
    let mut found = BTreeMap::new();
    for Source { package, code, .. } in sources() {
        for (name, count) in fields(&code) {
            let most = found.entry((package.clone(), name.to_owned())).or_insert(0);
            *most = count.max(*most);
        }
    }
    assert!(found.len() > 300, "the structs were not found: {}", found.len());
    assert_tidy("fields of a struct, counted:", &compare(&found, MOST_FIELDS, WIDE));
}

#[test]
fn the_methods_of_a_type_stand_together() {
    let sources = sources();
    let mut homes: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for Source { path, package, code } in &sources {
        for name in declared(code) {
            homes.entry((package, name)).or_default().push(path);
        }
    }
    let mut spread: BTreeMap<(&str, &str, &str), BTreeSet<&str>> = BTreeMap::new();
    for Source { path, package, code } in &sources {
        for name in own_methods(code) {
            // Several types of a crate may have one name: the nearest is meant.
            let Some(homes) = homes.get(&(package.as_str(), name)) else { continue };
            let nearest = homes.iter().max_by_key(|home| (**home == path, shared(home, path)));
            if let Some(home) = nearest {
                spread.entry((package, name, home)).or_default().insert(path);
            }
        }
    }
    let mut found = BTreeMap::new();
    for ((package, name, _), paths) in spread {
        let most = found.entry((package.to_owned(), name.to_owned())).or_insert(0);
        *most = paths.len().max(*most);
    }
    assert!(found.len() > 300, "the methods were not found: {}", found.len());
    assert_tidy(
        "files over which the methods of a type are spread:",
        &compare(&found, MOST_FILES_OF_AN_IMPL, SPREAD),
    );
}

#[test]
fn a_name_stands_for_types_of_few_rooms() {
    let mut rooms: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for Source { path, package, code } in sources() {
        let Some((_, place)) = path.split_once("/src/") else { continue };
        let room = place.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        for name in declared(&code) {
            let key = (package.clone(), name.to_owned());
            rooms.entry(key).or_default().insert(room.to_owned());
        }
    }
    let found = rooms.into_iter().map(|(key, rooms)| (key, rooms.len())).collect();
    assert_tidy(
        "rooms of a crate in which a name stands for a type of its own:",
        &compare(&found, MOST_ROOMS_OF_A_NAME, SHARED),
    );
}

#[test]
fn fields_and_methods_are_found() {
    let code = "\npub struct A {\n    pub a: u8,\n    pub(crate) b: std::io::Error,\n}\n\nstruct B;\nstruct C { d: u8 }\n\
                \nimpl A {\n    fn a() {}\n}\nimpl<'a, T: Into<u8>> D<'a, T> {}\nimpl Clone for E {}\n";
    assert_eq!(fields(code), [("A", 2)]);
    assert_eq!(declared(code).collect::<Vec<_>>(), ["A", "B", "C"]);
    assert_eq!(own_methods(code), ["A", "D"]);
}
