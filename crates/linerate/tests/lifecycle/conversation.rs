//! A client made by hand, that can stop at any point of a conversation.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use linerate_wire::native::frame::{FrameReader, TO_CLIENT_LIMIT_BYTES, encode_frame};
use linerate_wire::native::opening::Opening;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::{Value, json};

use crate::any_certificate::tls_config;

/// A control conversation over TLS, as far as it was led.
pub(crate) struct Conversation {
    stream: StreamOwned<ClientConnection, TcpStream>,
    frames: FrameReader,
}

impl Conversation {
    /// Connects and agrees on TLS.
    pub(crate) fn connect(port: u16) -> Self {
        Self::over(connect(port))
    }

    /// Agrees on TLS.
    pub(crate) fn over(mut socket: TcpStream) -> Self {
        let mut session = tls_session(&[b"linerate"]);
        while session.is_handshaking() {
            session.complete_io(&mut socket).unwrap();
        }
        let frames = FrameReader::new(TO_CLIENT_LIMIT_BYTES);
        Self { stream: StreamOwned::new(session, socket), frames }
    }

    /// Says the first word, and hears the server's.
    pub(crate) fn greet(&mut self) {
        self.say(&json!({ "kind": "hello", "versions": [1], "software": "by hand" }));
        assert_eq!(self.hear()["kind"], "hello");
    }

    /// Asks for a test and is admitted; the token of its flows.
    pub(crate) fn ask(&mut self, workload: &Value) -> [u8; 16] {
        self.say(&json!({ "kind": "request", "plan": workload.to_string() }));
        let answer = self.hear();
        assert_eq!(answer["kind"], "admitted", "{answer}");
        let token = answer["token"].as_str().unwrap();
        let number = u128::from_str_radix(token, 16).unwrap();
        number.to_be_bytes()
    }

    pub(crate) fn say(&mut self, message: &Value) {
        let frame = encode_frame(message.to_string().as_bytes(), usize::MAX).unwrap();
        self.stream.write_all(&frame).unwrap();
        self.stream.flush().unwrap();
    }

    /// Says bytes that may be no frame, to a server that may be gone.
    #[allow(dead_code, reason = "for the tests of hostile peers")]
    pub(crate) fn say_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Says that nothing more is to come, and leaves it to the server to close.
    #[allow(dead_code, reason = "for the tests of hostile peers")]
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.stream.conn.send_close_notify();
        self.stream.flush()
    }

    /// The server's next message.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> Value {
        self.hear_or_end().expect("the server closed the conversation")
    }

    /// The server's next message; `None` when it has closed the conversation.
    pub(crate) fn hear_or_end(&mut self) -> Option<Value> {
        loop {
            if let Some(body) = self.frames.poll_frame().unwrap() {
                return Some(serde_json::from_slice(body).unwrap());
            }
            let mut bytes = [0; 4096];
            let length = self.stream.read(&mut bytes).ok().filter(|length| *length > 0)?;
            self.frames.handle_bytes(&bytes[..length]);
        }
    }

    /// Hears the server up to its next message of this kind.
    #[track_caller]
    pub(crate) fn await_kind(&mut self, kind: &str) {
        while self.hear()["kind"] != kind {}
    }

    /// The socket under it.
    pub(crate) fn socket(&self) -> &TcpStream {
        self.stream.get_ref()
    }
}

/// A workload as it crosses the wire: a stream or requests, by the fields that differ.
pub(crate) fn workload(kind: &Value, transport: &str, flows: u32) -> Value {
    json!({
        "kind": kind,
        "transport": transport,
        "end": { "by": "time", "duration_ns": 60_000_000_000_u64 },
        "flows": flows,
        "interval_ns": 1_000_000_000,
    })
}

/// The kind of a workload that streams.
pub(crate) fn stream(direction: &str) -> Value {
    json!({ "name": "stream", "direction": direction, "send_bytes": 1400 })
}

/// A plain connection to the server, on which no read waits for ever.
pub(crate) fn connect(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
}

/// A data connection that has said whose it is.
pub(crate) fn connect_data(port: u16, flow: u32, token: [u8; 16]) -> TcpStream {
    let mut socket = connect(port);
    socket.write_all(&Opening { flow, token }.encode()).unwrap();
    socket
}

/// A TLS session that takes any certificate.
pub(crate) fn tls_session(protocols: &[&[u8]]) -> ClientConnection {
    let name = ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into());
    ClientConnection::new(Arc::new(tls_config(protocols)), name).unwrap()
}
