//! What the documents must and may not say.

use std::collections::BTreeSet;
use std::process::Command;

use crate::assert_tidy;
use crate::workspace::{files, root};

#[test]
fn no_path_of_one_machine() {
    let everywhere = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let in_documents = [concat!("/t", "mp/")];
    let endings = [".rs", ".md", ".toml", ".c", ".h", ".py", ".sh", "run", "compare"];
    let mut offences = Vec::new();
    for (path, text) in files(&endings) {
        let banned = everywhere.iter().chain(in_documents.iter().filter(|_| path.ends_with(".md")));
        for word in banned {
            for (number, line) in text.lines().enumerate() {
                if line.contains(word) {
                    offences.push(format!("{path}:{}: {word}", number + 1));
                }
            }
        }
    }
    assert_tidy("a path that only one machine has:", &offences);
}

#[test]
fn every_flag_is_documented() {
    let mut documents = String::new();
    for (path, text) in files(&[".md"]) {
        if path == "README.md" || path.starts_with("docs/") {
            documents += &text;
        }
    }
    let documented = long_flags(&documents);
    let mut offences = Vec::new();
    let commands = commands();
    assert!(commands.len() >= 5, "`linerate --help` was not understood: {commands:?}");
    for command in &commands {
        let flags = long_flags(&help(&[command, "--help"]));
        assert!(
            flags.contains("--help"),
            "`linerate {command} --help` was not understood: {flags:?}"
        );
        for flag in flags.difference(&documented) {
            offences.push(format!("linerate {command} {flag}"));
        }
    }
    assert_tidy("a flag that neither README.md nor docs/ mentions:", &offences);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut offences = Vec::new();
    for (path, text) in files(&[".md"]) {
        let document = root().join(&path);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let external = target.contains("://") || target.starts_with("mailto:");
            if !external && !file.is_empty() && !document.with_file_name(file).exists() {
                offences.push(format!("{path}: {target}"));
            }
        }
    }
    assert_tidy("a link that leads nowhere:", &offences);
}

#[test]
fn readme_and_ci_run_the_same_tests() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap_or_default();
    let command = "cargo test --workspace --no-fail-fast";
    let mut offences = Vec::new();
    for name in ["README.md", "CONTRIBUTING.md", ".ci/run"] {
        let said = read(name).lines().any(|line| {
            let line = line.trim();
            line == command || line.ends_with(&format!("run {command}"))
        });
        if !said {
            offences.push(format!("{name} has no line `{command}`"));
        }
    }
    assert_tidy("one command runs all tests:", &offences);
}

/// The commands that `linerate --help` lists.
fn commands() -> Vec<String> {
    help(&["--help"])
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.trim().is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("     "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Every `--flag` in a text.
fn long_flags(text: &str) -> BTreeSet<String> {
    text.match_indices("--")
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '-'))
        .map(|(at, _)| {
            let name = text[at + 2..].chars();
            name.take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-').collect()
        })
        .filter(|name: &String| name.starts_with(|c: char| c.is_ascii_lowercase()))
        .map(|name| format!("--{}", name.trim_end_matches('-')))
        .collect()
}

#[test]
fn every_metric_has_its_row_in_the_page_of_results() {
    let page = std::fs::read_to_string(root().join("docs/results.md")).unwrap();
    for metric in linerate_measure::metric::METRICS {
        let rules = [metric.over_flows, metric.over_time, metric.over_directions];
        let [flows, time, directions] = rules.map(linerate_measure::metric::Combine::name);
        let (name, unit, counts) = (metric.name, metric.unit.name(), metric.counts);
        let row = format!("| `{name}` | {unit} | {counts} | {flows} | {time} | {directions} |\n");
        assert!(page.contains(&row), "docs/results.md lacks {row}");
    }
}

#[test]
fn every_dialect_is_in_the_page_of_results() {
    use linerate_measure::Dialect;

    let page = std::fs::read_to_string(root().join("docs/results.md")).unwrap();
    let row = page.lines().find(|line| line.starts_with("| `dialect` |")).expect("a row `dialect`");
    let mut offences = Vec::new();
    for name in Dialect::ALL.map(Dialect::name) {
        if !row.contains(&format!("`{name}`")) {
            offences.push(format!("the row `dialect` lacks {name}"));
        }
        let has_figures = page.contains(&format!("\nExtensions of `{name}`:\n"));
        let has_none = page.contains(&format!("{name} has no extension."));
        if name != "native" && !has_figures && !has_none {
            offences.push(format!("no word on the extensions of {name}"));
        }
    }
    assert_tidy("docs/results.md doesn't describe a dialect:", &offences);
}

/// Tables, code and links can't be wrapped.
#[test]
fn lines_of_documents_have_at_most_100_characters() {
    let mut offences = Vec::new();
    for (path, text) in files(&[".md"]) {
        for (number, line) in prose(&text) {
            let words = line.trim_start().trim_start_matches("* ");
            let is_one_link = line.starts_with("![") || !words.contains(' ');
            if line.chars().count() > 100 && !line.starts_with('|') && !is_one_link {
                offences.push(format!("{path}:{number}"));
            }
        }
    }
    assert_tidy("a line of more than 100 characters:", &offences);
}

#[test]
fn documents_of_more_than_five_headings_list_their_contents() {
    let mut offences = Vec::new();
    for (path, text) in files(&[".md"]) {
        let headings: Vec<&str> =
            prose(&text).filter_map(|(_, line)| line.strip_prefix("## ")).collect();
        let lacks = |heading: &&&str| !text.contains(&format!("](#{})", anchor(heading)));
        if headings.len() > 5 {
            offences
                .extend(headings.iter().filter(lacks).map(|heading| format!("{path}: {heading}")));
        }
    }
    assert_tidy("a heading that the list of contents lacks:", &offences);
}

/// A document's lines that aren't code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let is_fence = line.starts_with("```");
        is_fenced ^= is_fence;
        (!is_fenced && !is_fence && !line.starts_with("    ")).then_some((at + 1, line))
    })
}

/// The name that a heading has in links.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}
