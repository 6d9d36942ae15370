//! The help of each command, as a snapshot. `SNAPSHOTS=overwrite` writes them anew.

use super::run;

#[test]
fn help_of_each_command() {
    for command in ["", "self", "serve", "stream", "rr", "link", "schema", "man", "completions"] {
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
