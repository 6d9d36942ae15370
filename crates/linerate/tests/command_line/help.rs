//! The help of each command, as a snapshot. `SNAPSHOTS=overwrite` writes them anew.

use super::{command, run};

#[test]
fn help_of_each_command() {
    for command in [
        "",
        "self",
        "serve",
        "stream",
        "media",
        "rr",
        "connect",
        "hunt",
        "loaded",
        "run",
        "results",
        "compare",
        "link",
        "proxy",
        "report",
        "web",
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
fn short_help_fits_a_screen_and_points_to_the_whole() {
    let home = tempfile::tempdir().unwrap();
    for name in ["stream", "media", "rr", "connect", "hunt", "loaded", "serve", "link", "proxy"] {
        let output = command(home.path(), &format!("{name} -h")).env("COLUMNS", "80").output();
        let short = String::from_utf8(output.unwrap().stdout).unwrap();
        let rows = short.lines().count();
        assert!((24..=40).contains(&rows), "{name}: {rows} rows\n{short}");
        assert!(short.lines().all(|line| line.chars().count() <= 80), "{short}");
        assert!(short.contains(&format!("linerate {name} --help")), "{short}");
        let whole = run(&format!("{name} --help")).stdout;
        assert!(whole.contains("Units:"), "{whole}");
        for line in short.lines().filter(|line| line.starts_with("      --")) {
            let flag = line.split_whitespace().next().unwrap();
            assert!(whole.contains(flag), "{name}: --help lacks {flag}");
        }
        assert_eq!(run(&format!("help {name}")).stdout, whole);
    }
}

#[test]
fn whole_help_has_headings_for_quic_and_tls() {
    for name in ["stream", "rr", "connect"] {
        let help = run(&format!("{name} --help")).stdout;
        let below = |heading: &str, flag: &str| {
            let (_, part) = help.split_once(&format!("\n{heading}")).unwrap();
            let part = part.split("\n\n").next().unwrap();
            assert!(part.contains(flag), "{name}: {flag} is not below {heading}: {help}");
        };
        below("QUIC:", "--initial-window");
        below("TLS", "--cipher");
        below("Load:", "--flows");
    }
    assert!(run("stream --help").stdout.contains("UDP floods"));
}

#[test]
fn media_offers_no_flag_that_it_always_refuses() {
    let help = run("media --help").stdout;
    for flag in
        ["--tcp", "--tls", "--quic", "--count 5", "--congestion bbr", "--mss 1000", "--mtu 2000"]
    {
        let refused = run(&format!("media 127.0.0.1 --dry-run {flag}"));
        assert_eq!(refused.exit_code, 2, "{flag}: {}", refused.stderr);
        let name = flag.split(' ').next().unwrap();
        assert!(!help.contains(&format!("{name} ")), "{name}: {help}");
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
