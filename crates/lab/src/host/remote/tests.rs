use std::process::Stdio;

use super::script::{PUT, render_put};
use super::*;

fn binary(arch: &str, sha256: &str) -> Executable {
    Executable { path: "/bin/true".into(), sha256: sha256.to_owned(), arch: arch.to_owned() }
}

fn host(spec: SshHost) -> RemoteHost {
    let own = binary("x86_64", "aa");
    let binaries = Binaries { own, others: vec![binary("aarch64", "bb")] };
    RemoteHost::new(spec, Arc::new(binaries)).unwrap()
}

fn spec() -> SshHost {
    SshHost { address: "user@host".to_owned(), ..SshHost::default() }
}

fn last(stdout: &str, stderr: &str, code: i32) -> LastWords {
    let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
    LastWords { stdout, stderr, code: Some(code), ended: true }
}

#[test]
fn texts_of_ssh_become_sentences() {
    let no = AtomicBool::new(false);
    for (text, kind) in [
        ("user@host: Permission denied (publickey).", HostErrorKind::PermissionDenied),
        ("Host key verification failed.", HostErrorKind::HostKey),
        (
            "No ED25519 host key is known for h and you have requested strict checking.",
            HostErrorKind::HostKey,
        ),
        ("ssh: connect to host h port 22: Connection refused", HostErrorKind::Refused),
        ("ssh: Could not resolve hostname h: Name or service not known", HostErrorKind::Unresolved),
        ("ssh: connect to host h port 22: No route to host", HostErrorKind::Unreachable),
        ("Bad configuration option: x", HostErrorKind::Ssh),
    ] {
        let error = host(spec()).mend(&last("", text, 255), &no).unwrap_err();
        assert_eq!(error.kind, kind, "{text}");
        assert!(error.to_string().contains(text) && !error.way_out().is_empty());
    }
    for (text, code, kind) in [
        ("sudo: a password is required", 1, HostErrorKind::Sudo),
        ("sh: 1: exec: /u/x: Permission denied", 126, HostErrorKind::NotRunnable),
        ("libgcc_s.so.1: cannot open shared object file", 127, HostErrorKind::NotRunnable),
    ] {
        let error = host(spec()).mend(&last("", text, code), &no).unwrap_err();
        assert_eq!(error.kind, kind, "{text}");
    }
}

#[test]
fn hosts_without_a_binary_are_named_by_their_architecture() {
    let no = AtomicBool::new(false);
    let error = |said: &str| host(spec()).mend(&last(said, "", 0), &no).unwrap_err();
    let mips = error("Welcome!\nlinerate-missing: Linux mips64\n");
    assert!(mips.to_string().contains("--binary mips64-linux=PATH"), "{mips}");
    let mac = error("linerate-missing: Darwin arm64\n");
    assert_eq!(mac.kind, HostErrorKind::NotLinux { uname: "Darwin arm64".to_owned() });
    let nothing = error("Welcome!\nbye\n");
    assert!(nothing.to_string().contains("Welcome! / bye"), "{nothing}");
}

#[test]
fn directories_that_a_shell_would_read_are_refused() {
    for directory in
        ["", "x", "~user/x", "/a'b", "/a\"b", "/$HOME", "/a`b`", "/a\\b", "/a!b", "/a\nb"]
    {
        let binary_dir = Some(directory.to_owned());
        let spec = SshHost { binary_dir, ..spec() };
        let own = binary("x86_64", "aa");
        let binaries = Arc::new(Binaries { own, others: Vec::new() });
        assert!(RemoteHost::new(spec, binaries).is_err(), "{directory:?}");
    }
    let spec = SshHost { address: "-oProxyCommand=x".to_owned(), ..SshHost::default() };
    let binaries = Binaries { own: binary("x86_64", "aa"), others: Vec::new() };
    assert!(RemoteHost::new(spec, Arc::new(binaries)).is_err());
}

/// Runs a line of the host's shell on this machine, as sshd would.
fn run(
    shell: &str,
    script: &str,
    home: &std::path::Path,
    input: &std::path::Path,
) -> (String, i32) {
    let output = Command::new(shell)
        .args(["-c", script])
        .env("HOME", home)
        .stdin(Stdio::from(std::fs::File::open(input).unwrap()))
        .output()
        .unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code().unwrap())
}

#[test]
fn a_binary_that_is_missing_is_put_and_then_executed() {
    let home = tempfile::tempdir().unwrap();
    let arch = rustix::system::uname().machine().to_string_lossy().into_owned();
    let program = home.path().join("program");
    std::fs::write(&program, "#!/bin/sh\necho \"$0 $*\"\ncat\n").unwrap();
    let sha256 = "c".repeat(64);
    let own = Executable { path: program.clone(), sha256: sha256.clone(), arch: arch.clone() };
    let binaries = Binaries { own: own.clone(), others: Vec::new() };
    for (place, directory) in [(None, ".cache/linerate/bin"), (Some("~/a b/c"), "a b/c")] {
        let spec = SshHost { binary_dir: place.map(str::to_owned), ..spec() };
        let script = render_run(&spec, &binaries);
        let (printed, _) = run("sh", &script, home.path(), &program);
        assert_eq!(printed, format!("\nlinerate-missing: Linux {arch}\n"));

        // A transfer that was cut off leaves nothing.
        let bytes = program.metadata().unwrap().len();
        let cut = render_put(&spec, &own, bytes + 1);
        assert_eq!(run("sh", &cut, home.path(), &program), (String::new(), 1));
        let place = home.path().join(directory);
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);

        let put = render_put(&spec, &own, bytes);
        assert_eq!(run("sh", &put, home.path(), &program), (format!("\n{PUT}\n"), 0));
        let (printed, code) = run("sh", &script, home.path(), &program);
        let path = place.join(format!("linerate-{sha256}"));
        assert!(
            printed.starts_with(&format!("{} agent\n#!/bin/sh\n", path.display())),
            "{printed}"
        );
        assert_eq!(code, 0);
    }
}
