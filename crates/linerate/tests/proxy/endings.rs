//! What a proxy says, how it ends, and what it outlives.

use std::net::UdpSocket;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::fixture::Proxy;
use super::perf::{Server, command, results, run};

#[test]
fn the_beginning_says_what_becomes_of_encryption() {
    let proxy = Proxy::start(9, "");
    for part in ["QUIC, to 127.0.0.1:9\n", "key fingerprint ", "encryption ends here", "--ca FILE"]
    {
        assert!(proxy.beginning.contains(part), "{}", proxy.beginning);
    }
    for signal in [Signal::INT, Signal::TERM] {
        let summary = Proxy::start(9, "").stop(signal);
        assert_eq!(summary.exit_code, 0);
        assert!(summary.text.contains("0 connections, 0 refused, 0 failed"), "{}", summary.text);
    }
}

#[test]
fn a_target_that_is_down_is_a_sentence_and_serves_when_it_is_up() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let proxy = Proxy::start(port, "");
    let ended = run(&proxy.words("-up:100 -down:100 -maxruntime:5000"));
    assert_ne!(ended.exit_code, 0, "{}", ended.stdout);
    let mut server = command(&format!("-bind:127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut tries = (0..20).map(|_| run(&proxy.words("-up:100 -down:100")));
    assert!(tries.any(|ended| ended.exit_code == 0));
    server.kill().unwrap();
    server.wait().unwrap();
    let summary = proxy.stop(Signal::INT);
    let sentence = format!("the target 127.0.0.1:{port} refuses connections");
    assert!(summary.narration.contains(&sentence), "{}", summary.narration);
    assert!(!summary.text.contains(" 0 failed at the target"), "{}", summary.text);
}

#[test]
fn a_target_that_never_answers_is_a_sentence() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let proxy = Proxy::start(port, "--connect-timeout 300ms");
    let ended = run(&proxy.words("-up:100 -down:100 -maxruntime:5000"));
    assert_ne!(ended.exit_code, 0, "{}", ended.stdout);
    let summary = proxy.stop(Signal::INT);
    let sentence = format!("the target 127.0.0.1:{port} has not answered for 300ms");
    assert_eq!(summary.narration.matches(&sentence).count(), 1, "{}", summary.narration);
    assert!(summary.text.contains(" 1 failed at the target"), "{}", summary.text);
}

#[test]
fn a_client_above_a_limit_is_refused_by_the_limit_s_flag() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, "--max-per-client 1");
    run(&proxy.words("-conns:2 -down:1s"));
    let summary = proxy.stop(Signal::INT);
    let sentence = "its address has 1 connections (--max-per-client)";
    assert!(summary.narration.contains(sentence), "{}", summary.narration);
}

#[test]
fn a_proxy_outlives_clients_and_servers_that_are_killed() {
    let mut server = Server::start("");
    let proxy = Proxy::start(server.port, "");
    let words = proxy.words("-down:30s");
    let mut client = command(&words).stdout(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_millis(500));
    client.kill().unwrap();
    client.wait().unwrap();
    let ended = run(&proxy.words("-down:100000"));
    assert_eq!(results(&ended), ["Completed 1 connections and 1 streams!"]);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let ended = run(&proxy.words("-down:100000 -maxruntime:5000"));
    assert_ne!(ended.exit_code, 0, "{}", ended.stdout);
    let summary = proxy.stop(Signal::INT);
    assert_eq!(summary.exit_code, 0);
    assert!(summary.narration.contains("refuses connections"), "{}", summary.narration);
}

#[test]
fn memory_stays_flat_while_a_receiver_is_stopped() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, "--window 1Mi --buffer 64Ki");
    let words = proxy.words("-down:20s");
    let mut client = command(&words).stdout(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_millis(700));
    let pid = Pid::from_child(&client);
    let before = proxy.memory_bytes();
    kill_process(pid, Signal::STOP).unwrap();
    thread::sleep(Duration::from_secs(2));
    let after = proxy.memory_bytes();
    // The windows, the buffer, and what allocators keep.
    assert!(after < before + (16 << 20), "{before} bytes became {after}");
    client.kill().unwrap();
    client.wait().unwrap();
}
