//! `linerate report`: pages of files and of kept runs, and their documents again.

use std::fs;
use std::path::Path;

use super::results::keep_matrix;
use super::{Ended, run_in};

/// A run document as the program prints it: a client that finds no server.
fn failed_run(home: &Path) -> String {
    // The discard port of loopback's last address: nothing listens there.
    let ended = run_in(home, "stream 127.255.255.254 --port 9 --json --title <b>");
    assert_eq!(ended.exit_code, 3, "{}", ended.stderr);
    ended.stdout
}

fn succeed(home: &Path, words: &str) -> Ended {
    let ended = run_in(home, words);
    assert_eq!(ended.exit_code, 0, "{words}: {}{}", ended.stdout, ended.stderr);
    ended
}

#[test]
fn a_page_gives_its_document_and_its_plan_back() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let document = failed_run(home.path());
    fs::write(at("run.json"), &document).unwrap();
    let [json, html] = ["run.json", "run.html"].map(|name| at(name).display().to_string());
    succeed(home.path(), &format!("report {json} --output {html}"));
    let page = fs::read_to_string(&html).unwrap();
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("&lt;b&gt;") && !page.contains("<b>:")
    );
    assert!(page.contains("linerate report run.html --plan | linerate run -"), "{page}");
    assert!(!page.contains(&*home.path().to_string_lossy()));
    assert_eq!(succeed(home.path(), &format!("report {html} --extract")).stdout, document);
    let comparison =
        run_in(home.path(), &format!("compare {json} {json} --json --report {html}.html"));
    assert_eq!(comparison.exit_code, 1, "{}", comparison.stderr);
    let of_page = succeed(home.path(), &format!("report {html}.html --extract")).stdout;
    assert_eq!(of_page, comparison.stdout);
    // A page of a page is the same page.
    assert_eq!(
        succeed(home.path(), &format!("report {html}")).stdout,
        page.replace("report run.html", "report PAGE.html")
    );
    let plan = succeed(home.path(), &format!("report {html} --plan")).stdout;
    fs::write(at("plan.json"), &plan).unwrap();
    let again = run_in(home.path(), &format!("run {} --json", at("plan.json").display()));
    let [before, after] = [document, again.stdout]
        .map(|text| serde_json::from_str::<serde_json::Value>(&text).unwrap()["plan"].clone());
    assert_eq!(before, after);
}

#[test]
fn a_measuring_command_and_a_dialect_write_the_page_themselves() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    let (page, kept) = (at("x.html"), at("kept.db"));
    let words =
        format!("stream 127.255.255.254 --port 9 --size 1k,2k --report {page} --store={kept}");
    assert_eq!(run_in(home.path(), &words).exit_code, 3);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("1 kB") || html.contains("1000 B"), "{html}");
    let document = succeed(home.path(), &format!("report {page} --extract")).stdout;
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["schema"], "linerate.run/1");
    let of_store = succeed(home.path(), &format!("report last --store {kept} --extract")).stdout;
    let of_store: serde_json::Value = serde_json::from_str(&of_store).unwrap();
    assert_eq!(of_store["run_id"], document["run_id"]);

    let page = at("y.html");
    let mut command = super::command(home.path(), "iperf3 -c 127.255.255.254 -p 9");
    let output = command.env("LINERATE_RUN_DOCUMENT", &page).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("iperf3 -c 127.255.255.254 -p 9"), "{html}");
}

/// The page of a matrix, which its document came to under this name.
fn drawn_as(page: &str, name: &str) -> String {
    page.replace("data-name=\"0a1b2c3d.json\"", &format!("data-name=\"{name}.json\""))
}

#[test]
fn the_program_reads_its_own_pages_and_repeats() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    let (kept, page, repeats) = (at("kept.db"), at("matrix.html"), at("repeats.json"));
    keep_matrix(Path::new(&kept));
    let words = format!("report 0a1b2c3d --store {kept}");
    succeed(home.path(), &format!("{words} --output {page}"));
    let document = succeed(home.path(), &format!("{words} --extract")).stdout;
    assert_eq!(succeed(home.path(), &format!("report {page} --extract")).stdout, document);
    // A page of the page, and one of its document, have all that it has.
    let drawn = fs::read_to_string(&page).unwrap();
    assert_eq!(drawn.matches("class=\"spark\"").count(), 2);
    assert_eq!(succeed(home.path(), &format!("report {page}")).stdout, drawn_as(&drawn, "matrix"));
    fs::write(at("again.json"), &document).unwrap();
    let again = succeed(home.path(), &format!("report {}", at("again.json"))).stdout;
    assert_eq!(again, drawn_as(&drawn, "again"));
    let shown =
        succeed(home.path(), &format!("results show 0a1b2c3d --store {kept} --json")).stdout;
    fs::write(at("shown.json"), shown).unwrap();
    let shown = succeed(home.path(), &format!("report {}", at("shown.json"))).stdout;
    assert!(shown.contains("nightly") && !shown.contains("class=\"spark\""), "{shown}");
    assert!(shown.contains("Gbit/s"), "{shown}");

    let words = format!("stream 127.255.255.254 --port 9 --repeat 2 --json --output {repeats}");
    assert_eq!(run_in(home.path(), &words).exit_code, 3);
    let page = succeed(home.path(), &format!("report {repeats}")).stdout;
    assert!(page.contains("linerate report PAGE.html --plan"), "{page}");
}

#[test]
fn what_has_no_page_is_told() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    fs::write(at("none.json"), "{\"schema\": \"linerate.run/1\"}").unwrap();
    fs::write(at("none.html"), "<!DOCTYPE html>").unwrap();
    fs::write(at("empty.json"), "[]").unwrap();
    for (source, said) in [
        ("none.json", "holds no run, no comparison and no matrix"),
        ("empty.json", "holds no run, no comparison and no matrix"),
        ("none.html", "has no document"),
        ("nothing", "there is no file"),
    ] {
        let ended = run_in(home.path(), &format!("report {}", at(source)));
        assert_eq!((ended.exit_code, ended.stdout.as_str()), (2, ""), "{source}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{source}: {}", ended.stderr);
    }
}
