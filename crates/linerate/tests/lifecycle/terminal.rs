//! What a terminal shows while a run goes on, and that it is given back as it was. `script` (util-linux) is the
//! terminal.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::ends::{LONGEST, Server, program};
use crate::skipped::skip;

/// To the other screen and back.
const RAISED: &str = "\u{1b}[?1049h";
const LOWERED: &str = "\u{1b}[?1049l";
/// How a line at the foot is taken away.
const CLEAR: &str = "\r\u{1b}[K";

/// A client on a terminal. The terminal's settings are printed before it begins and after it has ended.
struct OnTerminal {
    process: Child,
    keys: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    bytes: Vec<u8>,
}

impl OnTerminal {
    /// A client of this server; `None`: there is no terminal.
    fn start(server: &Server, words: &str) -> Option<Self> {
        let (command, flags) = words.split_once(' ').unwrap();
        let (port, key) = (server.port, &server.fingerprint);
        let client = format!("{command} 127.0.0.1 --port {port} --server-key {key} {flags}");
        Self::run(&client, server.home())
    }

    /// The program with these words; `None`: there is no terminal.
    fn run(words: &str, home: &Path) -> Option<Self> {
        if Command::new("script").arg("--version").output().is_err() {
            skip("there is no script(1), which makes the terminal");
            return None;
        }
        let program = env!("CARGO_BIN_EXE_linerate");
        // Ctrl-C is for the program alone.
        let told = "trap : INT; stty cols 80 rows 24; echo settings=$(stty -g)";
        let shell = format!(
            "{told}; sh -c 'echo pid=$$; exec {program} {words}'; echo exit=$?; echo settings=$(stty -g)"
        );
        let mut process = Command::new("script")
            .args(["-qefc", &shell, "/dev/null"])
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .env("HOME", home)
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = process.stdout.take().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut part) {
                let _nobody_waits = sender.send(part[..count].to_vec());
            }
        });
        let keys = process.stdin.take();
        Some(Self { process, keys, output, bytes: Vec::new() })
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Waits until the terminal has shown this.
    #[track_caller]
    fn await_text(&mut self, wanted: &str) {
        self.await_text_after(0, wanted);
    }

    /// Likewise, behind so many bytes.
    #[track_caller]
    fn await_text_after(&mut self, shown: usize, wanted: &str) {
        let deadline = Instant::now() + LONGEST;
        while !String::from_utf8_lossy(&self.bytes[shown..]).contains(wanted) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(part) => self.bytes.extend(part),
                Err(error) => panic!("`{wanted}` was not shown ({error}): {:?}", self.text()),
            }
        }
    }

    fn press(&mut self, key: &[u8]) {
        let keys = self.keys.as_mut().unwrap();
        keys.write_all(key).and_then(|()| keys.flush()).unwrap();
    }

    fn signal(&self, signal: Signal) {
        let text = self.text();
        let pid = text.split("pid=").nth(1).unwrap().lines().next().unwrap().trim().parse();
        kill_process(Pid::from_raw(pid.unwrap()).unwrap(), signal).unwrap();
    }

    /// All that was shown. The exit code says that the run was interrupted, and the settings are those from before.
    #[track_caller]
    fn finish(self) -> String {
        self.finish_with(130)
    }

    /// Likewise, with this exit code.
    #[track_caller]
    fn finish_with(mut self, exit_code: u8) -> String {
        let deadline = Instant::now() + LONGEST;
        loop {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(part) => self.bytes.extend(part),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it goes on: {:?}", self.text()),
            }
        }
        let text = self.text();
        assert!(text.contains(&format!("exit={exit_code}")), "{text:?}");
        let settings: Vec<&str> =
            text.split("settings=").skip(1).filter_map(|rest| rest.lines().next()).collect();
        assert_eq!(settings.len(), 2, "{text:?}");
        assert_eq!(settings[0], settings[1], "{text:?}");
        text
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // It has ended already, but where a test failed.
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

#[test]
fn a_line_at_the_foot_shows_the_run_and_is_gone_at_its_end() {
    let server = Server::start("");
    let words = "stream --time 60s --interval 200ms --rate 10M";
    let Some(mut client) = OnTerminal::start(&server, words) else { return };
    client.await_text("bit/s so far");
    client.press(&[3]);
    let text = client.finish();
    let (before, after) = text.rsplit_once("so far").unwrap();
    assert!(before.contains(&format!("{CLEAR}0 of 60 s")), "{text:?}");
    assert!(after.contains(CLEAR), "{text:?}");
    assert!(after.contains("interrupted:"), "{text:?}");
}

#[test]
fn a_line_at_the_foot_shows_what_a_server_does_and_is_gone_at_its_end() {
    let home = tempfile::TempDir::new().unwrap();
    let words = "serve --bind 127.0.0.1 --port 0";
    let Some(mut server) = OnTerminal::run(words, home.path()) else { return };
    server.await_text(&format!("{CLEAR}no test"));
    let text = server.text();
    let port = text.split("listening on 127.0.0.1:").nth(1).unwrap();
    let port: u16 = port.split(',').next().unwrap().parse().unwrap();
    let mut client = program(home.path())
        .args(["stream", "127.0.0.1", "--insecure", "--quiet", "--time", "60s", "--rate", "10M"])
        .args(["--port", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    server.await_text("bit/s, sent 0 bit/s");
    client.kill().and_then(|()| client.wait()).unwrap();
    server.await_text("client lost");
    // What is printed takes the line away, and it comes back below.
    let shown = server.bytes.len();
    server.await_text_after(shown, "no test");
    server.press(&[3]);
    let text = server.finish_with(0);
    let (before, after) = text.rsplit_once("no test").unwrap();
    assert!(before.contains(&format!("{CLEAR}1 test for")), "{text:?}");
    assert!(after.contains(CLEAR), "{text:?}");
}

#[test]
fn a_quiet_server_has_no_line() {
    let home = tempfile::TempDir::new().unwrap();
    let words = "serve --bind 127.0.0.1 --port 0 --quiet --idle-timeout 1s";
    let Some(server) = OnTerminal::run(words, home.path()) else { return };
    let text = server.finish_with(0);
    assert!(text.contains("listening on") && !text.contains("no test"), "{text:?}");
}

#[test]
fn the_screen_of_live_is_given_back_and_the_partial_result_printed() {
    let server = Server::start("");
    for ending in ["q", "ctrl-c", "sigterm", "sigint"] {
        let words = "stream --live --time 60s --interval 200ms --rate 10M";
        let Some(mut client) = OnTerminal::start(&server, words) else { return };
        client.await_text("greatest");
        assert!(client.text().contains(RAISED), "{ending}: {:?}", client.text());
        client.press(b"2");
        client.await_text("limited by");
        match ending {
            "q" => client.press(b"q"),
            "ctrl-c" => client.press(&[3]),
            "sigterm" => client.signal(Signal::TERM),
            _ => client.signal(Signal::INT),
        }
        let text = client.finish();
        let (screen, after) = text.split_once(LOWERED).unwrap();
        assert!(!screen.contains("interrupted:"), "{ending}: {text:?}");
        assert!(after.contains("goodput"), "{ending}: {text:?}");
        assert!(after.contains("the screen of --live took"), "{ending}: {text:?}");
        assert!(after.contains("interrupted:"), "{ending}: {text:?}");
        assert!(!after.contains(RAISED), "{ending}: {text:?}");
    }
}

#[test]
fn live_without_a_terminal_is_refused() {
    let home = tempfile::TempDir::new().unwrap();
    for command in ["stream", "rr", "connect", "media"] {
        let arguments = [command, "127.0.0.1", "--live"];
        let ended = program(home.path()).env("TERM", "xterm").args(arguments).output().unwrap();
        assert_eq!(ended.status.code(), Some(2));
        let told = String::from_utf8(ended.stderr).unwrap();
        assert!(told.contains("--live draws on the terminal at standard error"), "{told}");
        assert!(ended.stdout.is_empty());
    }
}
