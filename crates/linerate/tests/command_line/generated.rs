//! What is generated from the same source as the parser and the types.

use super::{command, run, run_in};

#[test]
fn a_schema_for_each_document() {
    let all: serde_json::Value = serde_json::from_str(&run("schema").stdout).unwrap();
    for name in ["plan", "sample", "run", "link", "comparison", "repeats", "loaded"] {
        let one: serde_json::Value =
            serde_json::from_str(&run(&format!("schema {name}")).stdout).unwrap();
        assert_eq!(one, all[name]);
        assert!(one["properties"].is_object(), "{name}");
    }
    assert_eq!(run("schema bogus").exit_code, 2);
}

#[test]
fn a_man_page_for_each_command() {
    let home = tempfile::tempdir().unwrap();
    let ended = run_in(home.path(), "man pages");
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    for name in [
        "linerate",
        "linerate-self",
        "linerate-serve",
        "linerate-stream",
        "linerate-rr",
        "linerate-connect",
        "linerate-link",
        "linerate-iperf3",
        "linerate-netperf",
        "linerate-netserver",
        "linerate-secnetperf",
        "linerate-ctstraffic",
        "linerate-qperf",
        "linerate-crucible",
    ] {
        let page = std::fs::read_to_string(home.path().join(format!("pages/{name}.1"))).unwrap();
        assert!(page.contains(".TH"), "{name}");
        let described = page.matches("\n\\fB\\-\\-tag").count();
        assert!(described == 0 || page.contains("kept with the result; repeatable"), "{name}");
        let (_, examples) = page.split_once(".SH EXAMPLES\n.nf\n").unwrap();
        let program = name.replacen("linerate-", "linerate ", 1);
        assert!(examples.trim_start().starts_with(&program), "{name}: {examples}");
    }
    assert_eq!(run_in(home.path(), "man /dev/null/pages").exit_code, 1);
}

/// What a shell is offered behind these words, the last of which may be half typed.
fn offered(home: &std::path::Path, shell: &str, words: &[&str]) -> String {
    let mut asked = command(home, "--");
    asked.env("LINERATE_COMPLETE", shell).env("XDG_CONFIG_HOME", home);
    asked.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string()).env("_CLAP_IFS", "\n");
    let output = asked.args(words).output().unwrap();
    assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_shell_asks_the_program_for_completions() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("linerate")).unwrap();
    let list = "# hosts\nlab-7:5250 abc\n[fe80::1]:5250 def\n";
    std::fs::write(home.path().join("linerate/known_servers"), list).unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = run(&format!("completions {shell}"));
        assert_eq!(ended.exit_code, 0, "{shell}: {}", ended.stderr);
        assert!(ended.stdout.contains("LINERATE_COMPLETE"), "{shell}: {}", ended.stdout);
        for (words, candidate) in [
            (&["linerate", "stream", "h", "--busy"][..], "--busy-poll"),
            (&["linerate", "link", "--profile", "interop"], "interop-blackhole"),
            (&["linerate", "stream", "lab"], "lab-7:5250"),
            (&["linerate", "rr", ""], "[fe80::1]:5250"),
            (&["linerate", "connect", ""], "lab-7:5250"),
        ] {
            // A shell of colons' meaning has them escaped.
            let offered = offered(home.path(), shell, words).replace("\\:", ":");
            assert!(offered.contains(candidate), "{shell} {words:?}: {offered}");
        }
    }
    assert_eq!(run("completions bogus").exit_code, 2);
}

#[test]
fn a_dry_run_shows_the_plan_and_the_steps() {
    let ended = run("stream a --both --flows 2 --bytes 1000 --dry-run");
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["plan"]["workload"]["flows"], 2);
    let flows = document["flows"].as_array().unwrap();
    let directions: Vec<_> = flows.iter().map(|flow| &flow["direction"]).collect();
    assert_eq!(directions, ["up", "up", "down", "down"]);
    assert_eq!(flows[0]["client"][0]["step"], "send");
    assert_eq!(flows[0]["server"][0]["step"], "receive");
    assert_eq!(flows[3]["client"][0]["step"], "receive");

    let several = run("stream a --size 1000,2000 --dry-run");
    let documents: serde_json::Value = serde_json::from_str(&several.stdout).unwrap();
    assert_eq!(documents.as_array().unwrap().len(), 2);
}

#[test]
fn secrets_go_where_the_environment_says_if_there_are_any_and_no_option_says_more() {
    let home = tempfile::tempdir().unwrap();
    for (words, expected) in [
        ("stream a --quic", Some("of-all")),
        ("connect a --tls", Some("of-all")),
        ("rr a --tls --keylog own", Some("own")),
        ("stream a", None),
        ("rr a --udp", None),
    ] {
        let mut command = command(home.path(), &format!("{words} --dry-run"));
        let output = command.env("SSLKEYLOGFILE", "of-all").output().unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["plan"]["local"]["key_log"].as_str(), expected, "{words}");
    }
}
