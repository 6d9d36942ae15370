//! Hostile servers: the client ends in time, with bounded memory, and reports why.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use linerate_wire::native::frame::{FrameReader, TO_SERVER_LIMIT_BYTES, encode_frame};
use linerate_wire::visible::is_visible;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::ends::{Client, Ended};
use crate::extent::is_long;

/// What a client may hold at most, whatever it is sent: a frame has up to 32 MiB, and is held
/// as it came, as text, and as what it says.
const MOST_BYTES: u64 = 300 << 20;

/// So much later may all of it be where the machine is busy.
const BUSY: Duration = Duration::from_secs(10);

/// A server made by hand, as far as it goes along.
pub(crate) struct Server {
    stream: StreamOwned<ServerConnection, TcpStream>,
    frames: FrameReader,
}

impl Server {
    pub(crate) fn say(&mut self, message: &Value) -> bool {
        self.say_bytes(&encode_frame(message.to_string().as_bytes(), usize::MAX).unwrap())
    }

    fn say_bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).is_ok()
    }

    /// Answers pings, and nothing else, until the client says this; `None` when it is gone.
    pub(crate) fn await_message(&mut self, kind: &str) -> Option<Value> {
        loop {
            while let Some(body) = self.frames.poll_frame().unwrap() {
                let message: Value = serde_json::from_slice(body).unwrap();
                if message["kind"] == kind {
                    return Some(message);
                }
                if message["kind"] == "ping" {
                    let sent_ns = &message["sent_ns"];
                    let pong = json!({
                        "kind": "pong", "sent_ns": sent_ns,
                        "received_ns": i64::MIN, "replied_ns": i64::MAX,
                    });
                    self.say(&pong);
                }
            }
            let mut bytes = [0; 4096];
            let length = self.stream.read(&mut bytes).ok().filter(|length| *length > 0)?;
            self.frames.handle_bytes(&bytes[..length]);
        }
    }

    fn greet(&mut self) -> Option<()> {
        self.await_message("hello")?;
        self.say(&json!({ "kind": "hello", "version": 1, "software": "\u{1b}[2Jx" }));
        self.await_message("request").map(drop)
    }

    fn admit(&mut self) -> Option<()> {
        self.greet()?;
        let hex = "0".repeat(32);
        self.say(&json!({ "kind": "admitted", "run_id": hex, "token": hex, "host": "{}" }));
        Some(())
    }

    fn make_ready(&mut self) -> Option<()> {
        self.admit()?;
        // The flow connects meanwhile, which nothing here would tell.
        thread::sleep(Duration::from_millis(300));
        self.say(&json!({ "kind": "ready" }));
        self.await_message("start").map(drop)
    }

    pub(crate) fn start(&mut self) -> Option<()> {
        self.make_ready()?;
        self.say(&json!({ "kind": "started", "utc_ns": i64::MIN }));
        Some(())
    }

    /// Silent, but there.
    pub(crate) fn stay(&mut self) -> Option<()> {
        self.await_message("no such message").map(drop)
    }
}

fn tls() -> Arc<ServerConfig> {
    let identity = linerate_engine::make_identity().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.private_key_der));
    let chain = vec![CertificateDer::from(identity.certificate_der)];
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"linerate".to_vec()];
    Arc::new(config)
}

/// What a server does on its control connection.
pub(crate) type Act = fn(&mut Server) -> Option<()>;

/// Does something with a data connection, or leads the conversation on a control connection.
fn receive(socket: TcpStream, config: Arc<ServerConfig>, act: Act, load: fn(TcpStream)) {
    let mut first = [0];
    if socket.peek(&mut first).is_ok_and(|length| length == 1) && first[0] == 0x16 {
        let session = ServerConnection::new(config).unwrap();
        let frames = FrameReader::new(TO_SERVER_LIMIT_BYTES);
        let mut server = Server { stream: StreamOwned::new(session, socket), frames };
        act(&mut server);
        // It never closes by itself.
        thread::sleep(Duration::from_secs(150));
    } else {
        load(socket);
    }
}

/// Takes what comes.
fn take_in(mut socket: TcpStream) {
    let _gone = std::io::copy(&mut socket, &mut std::io::sink());
}

/// The end of a client that measures this against such a server, and the most memory that it was
/// seen to hold.
pub(crate) fn met(load_words: &str, act: Act, load: fn(TcpStream)) -> (Ended, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap();
    let config = tls();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let config = Arc::clone(&config);
            thread::spawn(move || receive(socket, config, act, load));
        }
    });
    let home = TempDir::new().unwrap();
    let (command, flags) = load_words.split_once(' ').unwrap();
    let words = format!("{command} {host} {flags} --json --quiet");
    let mut client = Client::start(home.path(), &words);
    let (began, mut most) = (Instant::now(), 0);
    while client.is_running() && began.elapsed() < Duration::from_secs(140) {
        most = most.max(most_resident_bytes(client.pid()).unwrap_or(0));
        thread::sleep(Duration::from_millis(10));
    }
    (client.finish_within(Duration::from_secs(1)), most)
}

/// The most memory that a process has held so far (proc(5)); `None` when it has ended.
fn most_resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// How a server betrays, in how many seconds at most its client ends, with which code and words.
type Case = (&'static str, Act, u64, i32, &'static str);

fn endless_samples(server: &mut Server) -> Option<()> {
    server.start()?;
    let sample = json!({
        "schema": "linerate.sample/1", "role": "server", "index": 0, "from_ns": 0, "to_ns": 1,
        "utc_ns": 0, "flows": vec![json!({ "flow": 0 }); 64],
    });
    let frame = json!({ "kind": "sample", "sample": sample.to_string() }).to_string();
    let frames = encode_frame(frame.as_bytes(), usize::MAX).unwrap().repeat(20);
    while server.say_bytes(&frames) {}
    None
}

fn huge_result(server: &mut Server) -> Option<()> {
    let report = format!("{{\"flows\":[{}]}}", vec!["{\"flow\":1}"; 500_000].join(","));
    server.start()?;
    server.await_message("finish")?;
    server.say(&json!({ "kind": "result", "report": report }));
    server.stay()
}

const CASES: [Case; 11] = [
    ("silent after TLS", |server| server.await_message("hello").and(None), 14, 1, "for 10 s"),
    (
        "garbage after TLS",
        |server| server.say_bytes(&[0xff; 4_000]).then_some(()),
        4,
        1,
        "doesn't speak linerate's protocol",
    ),
    (
        "silent after the greeting",
        |server| {
            server.await_message("hello")?;
            server.say(&json!({ "kind": "hello", "version": 1, "software": "x" }));
            None
        },
        9,
        1,
        "for 5 s",
    ),
    (
        "never answers the request",
        |server| server.greet().and_then(|()| server.stay()),
        14,
        1,
        "10 s",
    ),
    ("never starts", |server| server.make_ready().and_then(|()| server.stay()), 16, 1, "10 s"),
    (
        "claims a long frame",
        |server| {
            server.greet()?;
            server.say_bytes(&(32 * 1024 * 1024 + 1_u32).to_be_bytes()).then_some(())
        },
        4,
        1,
        "33554433",
    ),
    ("samples for ever", endless_samples, 40, 1, "result"),
    ("a huge result", huge_result, 20, 1, "too many for 1 flow"),
    (
        "a sentence with commands to the terminal",
        |server| {
            server.greet()?;
            let text = "\u{1b}]0;x\u{7}\u{9b}2Jno\u{202e}".repeat(100);
            server.say(&json!({ "kind": "refused", "cause": "busy", "text": text })).then_some(())
        },
        4,
        5,
        "]0;x..2Jno.",
    ),
    (
        "a failure that turns the text",
        |server| {
            server.start()?;
            server.say(&json!({ "kind": "error", "text": "\u{202e}on\u{2066}" })).then_some(())
        },
        4,
        1,
        ".on.",
    ),
    (
        "goes on, but without a result",
        |server| server.start().and_then(|()| server.stay()),
        40,
        1,
        "result",
    ),
];

#[test]
fn a_client_ends_in_time_whatever_its_server_does() {
    let setup: Case =
        ("never ready", |server| server.admit().and_then(|()| server.stay()), 130, 1, "120 s");
    thread::scope(|scope| {
        for case in CASES.into_iter().chain(is_long().then_some(setup)) {
            scope.spawn(move || {
                let (how, act, most_s, exit_code, words) = case;
                let (ended, bytes) = met("stream --up --rate 1M --time 500ms", act, take_in);
                eprintln!("{how}: {:?}, {} MiB", ended.took, bytes >> 20);
                assert!(ended.took < Duration::from_secs(most_s) + BUSY, "{how}: {:?}", ended.took);
                assert!(bytes < MOST_BYTES, "{how}: {bytes} bytes");
                let document = ended.document(exit_code);
                let message = document.message();
                assert!(message.contains(words), "{how}: no {words:?} in {message}");
                assert!(bytes > 0, "{how}: its memory was not seen");
                let shown = ended.stderr.trim_end_matches('\n');
                let hidden = |letter| !is_visible(letter);
                assert!(!shown.contains(hidden), "{how}: {shown:?}");
                assert!(!message.contains(hidden), "{how}: {message:?}");
            });
        }
    });
}
