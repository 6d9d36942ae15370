//! The original, where it is installed: qperf on PATH, or the program that `LINERATE_QPERF_ORIGINAL` names.

use std::ffi::OsString;
use std::io::Read;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::fixture::{Ended, LIMIT, Running, Server, folder, run};
use super::skipped::skip;

/// The original, if there is one. It is in no distribution, so that a machine for tests may go without.
fn original() -> Option<OsString> {
    let program = std::env::var_os("LINERATE_QPERF_ORIGINAL").unwrap_or_else(|| "qperf".into());
    let started = Command::new(&program).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if started.is_ok() {
        return Some(program);
    }
    if std::env::var_os("CI").is_none() {
        skip("the original qperf is not installed");
    }
    None
}

/// The original's server, which ends when it is dropped.
struct Original(Child);

impl Original {
    /// What it has said when it is stopped.
    fn stop(mut self) -> String {
        self.0.kill().unwrap();
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Original {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// The original's server in this folder, and its port.
fn original_server(original: &OsString, folder: &Path) -> (Original, u16) {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(original);
    command.args(["-s", "127.0.0.1", "-p", &free.to_string()]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = Original(command.spawn().unwrap());
    std::thread::sleep(Duration::from_millis(300));
    (server, free)
}

#[test]
fn our_client_measures_the_original_s_server() {
    let Some(original) = original() else { return };
    let folder = folder();
    let (server, free) = original_server(&original, folder.path());
    for words in ["-t 1", "-e", "-t 1 --quic-version draft-29"] {
        let ended = run(&format!("-c 127.0.0.1 -p {free} {words}"), folder.path());
        assert_eq!(ended.exit_code, 0, "{words}: {}", ended.stderr);
        assert!(ended.stdout.contains("time to first byte:"), "{words}: {}", ended.stdout);
    }
    let said = server.stop();
    let close = "transport close:code=0x0;frame=0;reason=runtime_reached";
    assert_eq!(said.matches(close).count(), 3, "{said}");
}

#[test]
fn the_original_s_client_and_server_have_our_proxy_between_them() {
    let Some(original) = original() else { return };
    let folder = folder();
    let server = original_server(&original, folder.path());
    let proxy = Server::proxy(&format!("-P 127.0.0.1 -p {}", server.1));
    measure(original, &proxy);
    let said = proxy.stop().0.stdout;
    assert!(said.contains("binding 0 stream 0 opened"), "{said}");
    assert!(said.contains("binding 0 removed"), "{said}");
    let said = server.0.stop();
    assert!(said.contains("transport close:code=0x0;frame=0;reason="), "{said}");
}

/// A run of the original's client.
fn measure(original: OsString, server: &Server) -> Ended {
    let mut command = Command::new(original);
    command.args(["-c", "127.0.0.1", "-t", "1", "-p", &server.port.to_string()]);
    let ended = Running::start(command).wait();
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    ended
}

#[test]
fn the_original_s_client_acknowledges_as_seldom_as_it_is_asked_to() {
    let Some(original) = original() else { return };
    for (words, packets, asks) in
        [("", 8, true), ("--max-ack-delay 18446744073709551615", 1, false)]
    {
        let server = Server::start(&format!("--events events {words}"));
        measure(original.clone(), &server);
        let (_served, folder) = server.stop();
        let text = std::fs::read_to_string(folder.path().join("events")).unwrap();
        let count = |name: &str| text.matches(&format!("{{\"type\":\"{name}\"")).count();
        assert_eq!(count("ack-frequency-send") > 0, asks, "{words}");
        let (sent, came) = (count("packet-sent"), count("packet-received"));
        let seldom = sent / came.max(1);
        assert!(seldom >= packets && (asks || seldom < 8), "{words}: {came} for {sent}");
    }
}

#[test]
fn the_original_s_client_measures_our_server() {
    let Some(original) = original() else { return };
    let server = Server::start("");
    let ended = measure(original, &server);
    assert!(ended.stdout.contains("second 0: "), "{}", ended.stdout);
    let (served, _folder) = server.stop();
    let close = "closed by remote: transport close: code=0x0; frame=0; reason=\n";
    assert!(served.stdout.contains(close), "{} within {LIMIT:?}", served.stdout);
}
