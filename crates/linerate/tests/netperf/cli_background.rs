//! netserver in the background, and under its own name.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::server_process::{Netserver, netperf, port_of};
use super::service::PATIENCE;

fn run(program: &Path, words: &str) -> Output {
    Command::new(program).args(words.split_whitespace()).output().unwrap()
}

#[test]
fn netserver_goes_to_the_background_once_it_listens() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("netserver");
    symlink(env!("CARGO_BIN_EXE_linerate"), &link).unwrap();
    // `output` waits for the end of both pipes: the daemon must not hold them.
    let output = run(&link, "-4 -L 127.0.0.1 -p 0");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let line = String::from_utf8(output.stdout).unwrap();
    let port = port_of(&line);
    let ended = netperf(&format!("-H 127.0.0.1 -p {port} -t TCP_RR -l -10"));
    let pid = pid_of_listener(port);
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
}

#[test]
fn netserver_in_the_background_keeps_neither_directory_nor_output_of_its_caller() {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args("netserver -d -4 -L 127.0.0.1 -p 0".split_whitespace())
        .current_dir(directory.path())
        .env("TMPDIR", ".")
        .output()
        .unwrap();
    let port = port_of(&String::from_utf8(output.stdout).unwrap());
    let pid = Pid::from_raw(pid_of_listener(port)).unwrap();
    let link =
        |name: &str| std::fs::read_link(format!("/proc/{}/{name}", pid.as_raw_nonzero())).unwrap();
    let asked = Instant::now();
    while link("fd/1") != Path::new("/dev/null") {
        assert!(asked.elapsed() < PATIENCE, "{:?}", link("fd/1"));
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!((link("cwd"), link("fd/0")), ("/".into(), "/dev/null".into()));
    let files = || std::fs::read_dir(directory.path()).unwrap().count();
    // Its log, named by a path that begins where the caller was.
    assert_eq!(files(), 1);
    kill_process(pid, Signal::TERM).unwrap();
    while kill_process(pid, Signal::CONT).is_ok() && !is_zombie(pid) {
        assert!(asked.elapsed() < PATIENCE, "the netserver goes on");
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(files(), 0, "an empty log file is removed");
}

#[test]
fn netserver_in_the_background_logs_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    for (level, clients) in [("-d", 1), ("-v 2", 1), ("-d", 0)] {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args("netserver -4 -L 127.0.0.1 -p 0".split_whitespace())
            .args(level.split_whitespace())
            .env("TMPDIR", directory.path())
            .output()
            .unwrap();
        let port = port_of(&String::from_utf8(output.stdout).unwrap());
        let stderr = String::from_utf8(output.stderr).unwrap();
        let path = stderr.strip_prefix("netserver: ").and_then(|rest| rest.split(' ').next());
        let path = Path::new(path.unwrap());
        assert_eq!(path.parent(), Some(directory.path()), "{stderr}");
        for _ in 0..clients {
            let ended = netperf(&format!("-H 127.0.0.1 -p {port} -t TCP_RR -l -10"));
            assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
        }
        let pid = Pid::from_raw(pid_of_listener(port)).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let asked = Instant::now();
        while kill_process(pid, Signal::CONT).is_ok() && !is_zombie(pid) {
            assert!(asked.elapsed() < PATIENCE, "{level}: the netserver goes on");
            thread::sleep(Duration::from_millis(10));
        }
        let told = std::fs::read_to_string(path).ok();
        assert_eq!(told.is_some_and(|told| told.contains("127.0.0.1")), clients > 0, "{level}");
        // An empty log file is removed.
        assert_eq!(path.exists(), clients > 0, "{level}");
    }
}

/// Whether the process has ended and its parent hasn't waited for it.
fn is_zombie(pid: Pid) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    state.is_ok_and(|state| state.contains(") Z "))
}

/// The process whose command line asks for a background netserver and that has a socket which
/// listens on this port.
fn pid_of_listener(port: u16) -> i32 {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let listener = format!(":{port:04X} 00000000:0000 0A");
    let inode = table
        .lines()
        .find(|line| line.contains(&listener))
        .and_then(|line| line.split_whitespace().nth(9))
        .unwrap_or_else(|| panic!("nothing listens on {port}"));
    let socket = format!("socket:[{inode}]");
    let holds = |pid: i32| {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"));
        descriptors.is_ok_and(|descriptors| {
            descriptors.flatten().any(|entry| {
                std::fs::read_link(entry.path()).is_ok_and(|to| to == Path::new(&socket))
            })
        })
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.find(|pid| holds(*pid)).unwrap_or_else(|| panic!("nobody holds {socket}"))
}

#[test]
fn a_port_in_use_is_told_in_the_foreground_and_in_the_background() {
    let server = Netserver::start("");
    let program = Path::new(env!("CARGO_BIN_EXE_linerate"));
    for mode in ["", "-D "] {
        let output = run(program, &format!("netserver {mode}-4 -L 127.0.0.1 -p {}", server.port));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with("Unable to start netserver with  '127.0.0.1' port"), "{stderr}");
    }
}

#[test]
fn netserver_tells_wrong_options_and_its_version() {
    let program = Path::new(env!("CARGO_BIN_EXE_linerate"));
    for (words, sentence) in [
        ("-x", "netserver: invalid option -- 'x'\n\nUsage: netserver [options]"),
        ("-p 70000", "netserver: -p: '70000' is no port"),
        ("-n x", "netserver: -n: 'x' is no number"),
        ("-h", "\nUsage: netserver [options]\n\nOptions:\n    -d "),
    ] {
        let output = run(program, &format!("netserver {words}"));
        assert_eq!(output.status.code(), Some(1), "{words}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with(sentence), "{words}: {stderr}");
    }
    let output = run(program, "netserver -V");
    assert_eq!(output.stdout, b"Netperf version 2.7.1\n");
}

#[test]
fn netserver_serves_the_connection_on_its_standard_input() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let client =
        thread::spawn(move || netperf(&format!("-H 127.0.0.1 -p {port} -t TCP_RR -l -10")));
    let (connection, _) = listener.accept().unwrap();
    let served = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("netserver")
        .stdin(OwnedFd::from(connection))
        .output()
        .unwrap();
    let ended = client.join().unwrap();
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""));
    assert_eq!((served.status.code(), served.stdout.len()), (Some(0), 0), "{served:?}");
}

#[test]
fn netserver_under_inetd_tells_a_file_what_happens_and_the_client_nothing() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    for (options, files) in [("", 0), ("-d", 1)] {
        let directory = tempfile::tempdir().unwrap();
        let client =
            thread::spawn(move || netperf(&format!("-H 127.0.0.1 -p {port} -t TCP_RR -l -10")));
        let (connection, _) = listener.accept().unwrap();
        // As inetd does: the connection is standard error, too.
        let stderr = OwnedFd::from(connection.try_clone().unwrap());
        let served = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .arg("netserver")
            .args(options.split_whitespace())
            .env("TMPDIR", directory.path())
            .stdin(OwnedFd::from(connection))
            .stderr(stderr)
            .output()
            .unwrap();
        let ended = client.join().unwrap();
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{options}");
        assert_eq!(served.status.code(), Some(0), "{options}");
        let told: Vec<String> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect();
        assert_eq!(told.len(), files, "{options}: {told:?}");
        assert!(told.iter().all(|told| told.contains(": left, tests: 1")), "{told:?}");
    }
}
