//! The help of each command, as a snapshot. `SNAPSHOTS=overwrite` writes them anew.

use super::run;

#[test]
fn help_of_each_command() {
    for command in [
        "",
        "self",
        "serve",
        "stream",
        "rr",
        "connect",
        "run",
        "link",
        "schema",
        "man",
        "completions",
    ] {
        let ended = run(&format!("{command} --help"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{command}");
        assert!(ended.stdout.starts_with("Examples:\n"), "{command}: examples come first");
        let name = if command.is_empty() { "linerate" } else { command };
        let path = format!("tests/command_line/snapshots/{name}.txt");
        let snapshot = snapbox::Data::read_from(path.as_ref(), None);
        snapbox::Assert::new().action_env("SNAPSHOTS").eq(ended.stdout, snapshot);
    }
}

#[test]
fn connect_offers_no_flag_that_it_always_refuses() {
    let help = run("connect --help").stdout;
    for flag in ["--udp", "--quic --datagram", "--quic --flows 2 --streams 2", "--busy-poll"] {
        let refused = run(&format!("connect 127.0.0.1 --dry-run {flag}"));
        assert_eq!(refused.exit_code, 2, "{flag}: {}", refused.stderr);
        assert!(refused.stderr.contains("leave it out"), "{flag}: {}", refused.stderr);
        let name = flag.split(' ').rfind(|word| word.starts_with("--")).unwrap_or(flag);
        assert!(!help.contains(&format!("{name} ")), "{name}: {help}");
    }
}

#[test]
fn without_a_command_there_is_help_and_an_error() {
    let ended = run("");
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.starts_with("Examples:\n"));
}

#[test]
fn the_version_is_the_packages() {
    let ended = run("--version");
    assert_eq!(ended.stdout, concat!("linerate ", env!("CARGO_PKG_VERSION"), "\n"));
}
