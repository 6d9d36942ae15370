//! One end is gone, or says nothing: the other ends, and serves on.

use std::io::Read;
use std::net::TcpListener;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::fixture::{Server, command, results, wait};

#[test]
fn a_server_survives_clients_that_are_killed() {
    let server = Server::start("");
    for carriage in ["", "-tcp:1"] {
        for words in ["-down:30s", "-up:30s", "-scenario:rps"] {
            let words = server.words(&format!("{carriage} {words}"));
            let mut client = command(&words).stdout(Stdio::piped()).spawn().unwrap();
            // It has begun as soon as it says so; a moment later it is in the midst.
            client.stdout.as_mut().unwrap().read_exact(&mut [0; 9]).unwrap();
            thread::sleep(Duration::from_millis(100));
            client.kill().unwrap();
            client.wait().unwrap();
        }
        let ended = server.client(&format!("{carriage} -down:100000"));
        assert_eq!(results(&ended), ["Completed 1 connections and 1 streams!"], "{carriage}");
    }
}

#[test]
fn a_client_ends_when_its_server_is_killed() {
    // A killed process's sockets are closed by the kernel, which TCP tells the client at once. QUIC's
    // client would wait for its idle time: it is given a shorter end.
    for (carriage, end) in [("-tcp:1", ""), ("", "-maxruntime:2000")] {
        let mut server = Server::start("");
        let words = server.words(&format!("{carriage} -down:60s {end}"));
        let mut client =
            command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        client.stdout.as_mut().unwrap().read_exact(&mut [0; 9]).unwrap();
        thread::sleep(Duration::from_millis(300));
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        let ended = wait(client, &words);
        assert_eq!(ended.exit_code, 5, "{carriage}: {}", ended.stdout);
        assert!(ended.stdout.ends_with("App Main returning status 5\n"), "{}", ended.stdout);
    }
}

#[test]
fn rates_of_a_run_whose_server_died_are_over_the_time_until_then() {
    thread::scope(|scope| {
        for words in [
            "-rstream:1 -up:512 -down:4000 -run:8s",
            "-tcp:1 -rstream:1 -up:512 -down:4000 -run:8s",
            "-rconn:1 -up:512 -down:4000 -run:8s",
            "-tcp:1 -rconn:1 -up:512 -down:4000 -run:8s",
            "-down:8s -maxruntime:9000",
            "-up:8s -maxruntime:9000",
            "-tcp:1 -down:8s",
            "-tcp:1 -up:8s",
        ] {
            scope.spawn(move || {
                let mut server = Server::start("");
                let words = server.words(&format!("{words} --json"));
                // The client may run for a while before the call that starts it returns.
                let began = Instant::now();
                let client = command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
                thread::sleep(Duration::from_secs(2));
                server.child.kill().unwrap();
                server.child.wait().unwrap();
                let alive = began.elapsed();
                let ended = wait(client.unwrap(), &words);
                assert_eq!(ended.exit_code, 5, "{words}: {}", ended.stdout);
                let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
                let figure = |name: &str| document[name].as_f64().unwrap();
                assert!(figure("broken_off") >= 1.0, "{words}: {document}");
                let measured_s = figure("measured_us") / 1e6;
                // What had come is taken when the client has a processor, on a busy machine later. The run's own time
                // would be four times as long.
                assert!(measured_s <= alive.as_secs_f64() + 2.0, "{words}: {document}");
                let per_s = figure("streams") / measured_s;
                let told = figure("streams_per_second");
                assert!((told - per_s).abs() <= per_s / 1000.0, "{words}: {document}");
                if !words.contains("-r") {
                    assert_eq!(figure("streams"), 0.0, "{words}: it was cut off: {document}");
                }
            });
        }
    });
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let words = format!("-target:127.0.0.1 -port:{port} -tcp:1");
    let client = command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let ended = wait(client, &words);
    assert_eq!(ended.exit_code, 111, "{}", ended.stdout);
}

#[test]
fn a_server_that_falls_silent_in_the_midst_is_given_up_after_ten_seconds() {
    thread::scope(|scope| {
        for words in
            ["-down:60s", "-up:60s", "-down:60s -share:1", "-scenario:rps", "-tcp:1 -up:60s"]
        {
            scope.spawn(move || {
                let server = Server::start("");
                let words = server.words(words);
                let mut client =
                    command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
                client.stdout.as_mut().unwrap().read_exact(&mut [0; 9]).unwrap();
                thread::sleep(Duration::from_millis(500));
                // As it stands: no socket of its is closed, and nobody says that it is gone.
                let pid = Pid::from_child(&server.child);
                kill_process(pid, Signal::STOP).unwrap();
                let (began, mut narration) = (Instant::now(), client.stderr.take().unwrap());
                let ended = wait(client, &words);
                let took = began.elapsed();
                assert!(took > Duration::from_secs(8), "{words}: too soon, after {took:?}");
                assert!(took < Duration::from_secs(16), "{words}: only after {took:?}");
                assert_eq!(ended.exit_code, 5, "{words}: {}", ended.stdout);
                let mut said = String::new();
                narration.read_to_string(&mut said).unwrap();
                assert!(said.contains("1 connections failed: timed out"), "{words}: {said}");
            });
        }
    });
}
