//! Attach: the standard input and output of a pod's container over a WebSocket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use tungstenite::client::ClientRequestBuilder;
use tungstenite::handshake::HandshakeError;
use tungstenite::http::Uri;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket};

use super::rest::{Client, said, trouble_of};
use super::trouble::{ClusterError, Trouble};

/// A connection and the answer to the upgrade may take so long.
const TIMEOUT: Duration = Duration::from_secs(8);

/// The longest message, bytes; kubelets send at most 32 KiB.
const MAX_MESSAGE: usize = 1 << 20;

/// The protocols that are spoken, the better one first.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
/// Of the fifth version: the channel whose number follows has ended.
const CLOSE: u8 = 255;

/// An attached container.
pub(super) struct Attached {
    socket: WebSocket<Stream>,
    /// Whether the end of the standard input can be told apart from the end of all.
    has_close: bool,
}

/// What came from a container.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// How the container ended, as a `Status`.
    Ended(String),
    /// Nothing is there now.
    Nothing,
    /// Something that has no meaning here.
    Other,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(bytes),
            Self::Tls(tls) => tls.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

impl Attached {
    /// Attaches to the container of a pod.
    pub(super) fn open(
        client: &Client,
        namespace: &str,
        pod: &str,
        container: &str,
    ) -> Result<Self, ClusterError> {
        let path = format!(
            "/api/v1/namespaces/{namespace}/pods/{pod}/attach?container={container}&stdin=true\
             &stdout=true&stderr=true"
        );
        let config = |said: String| ClusterError::new(Trouble::Config, said);
        let server = &client.config().server;
        let url = match server.split_once("://") {
            Some(("https", rest)) => format!("wss://{rest}{path}"),
            Some(("http", rest)) => format!("ws://{rest}{path}"),
            _ => return Err(config(format!("the server {server} is no http or https URL"))),
        };
        let uri: Uri = url.parse().map_err(|error| config(format!("{server}: {error}")))?;
        let credential = client.access().credential().map_err(config)?;
        let stream = connect(client, &uri)?;
        let mut request = ClientRequestBuilder::new(uri);
        for protocol in PROTOCOLS {
            request = request.with_sub_protocol(protocol);
        }
        if let Some(token) = credential.token {
            request = request.with_header("Authorization", format!("Bearer {token}"));
        }
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        let shaken = tungstenite::client::client_with_config(request, stream, Some(limits));
        let (socket, answer) = shaken.map_err(|error| match error {
            HandshakeError::Failure(error) => refused(error, client, &path),
            HandshakeError::Interrupted(_) => unreachable("no answer to the upgrade in time"),
        })?;
        let protocol = answer.headers().get("Sec-WebSocket-Protocol");
        let has_close = protocol.is_some_and(|protocol| protocol == PROTOCOLS[0]);
        let tcp = socket.get_ref().tcp();
        tcp.set_nonblocking(true).map_err(|error| unreachable(&error.to_string()))?;
        Ok(Self { socket, has_close })
    }

    /// The socket, to wait for.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().tcp().as_fd()
    }

    /// What has come.
    pub(super) fn receive(&mut self) -> Result<Received, ClusterError> {
        let message = match self.socket.read() {
            Ok(message) => message,
            Err(tungstenite::Error::Io(error)) if would_block(&error) => {
                return Ok(Received::Nothing);
            }
            Err(error) => return Err(unreachable(&error.to_string())),
        };
        Ok(match message {
            Message::Binary(bytes) => sort(&bytes),
            Message::Text(text) => sort(text.as_bytes()),
            Message::Close(frame) => {
                let said = frame.map(|frame| frame.reason.to_string()).unwrap_or_default();
                return Err(unreachable(&format!("the attach was closed: {said}")));
            }
            _ => Received::Other,
        })
    }

    /// Sends to the standard input. False: it is on its way, and [`Self::flush`] sends the rest.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<bool, ClusterError> {
        let mut message = Vec::with_capacity(bytes.len() + 1);
        message.push(STDIN);
        message.extend_from_slice(bytes);
        self.write(message)
    }

    /// Ends the standard input; with an old server all of the attach.
    pub(super) fn end_input(&mut self) -> Result<bool, ClusterError> {
        match self.has_close {
            true => self.write(vec![CLOSE, STDIN]),
            false => {
                let closed = self.socket.close(None);
                self.done(closed)
            }
        }
    }

    /// Sends what is left.
    pub(super) fn flush(&mut self) -> Result<bool, ClusterError> {
        let flushed = self.socket.flush();
        self.done(flushed)
    }

    fn write(&mut self, message: Vec<u8>) -> Result<bool, ClusterError> {
        let sent = self.socket.send(Message::binary(message));
        self.done(sent)
    }

    fn done(&self, result: Result<(), tungstenite::Error>) -> Result<bool, ClusterError> {
        match result {
            Ok(()) => Ok(true),
            Err(tungstenite::Error::Io(error)) if would_block(&error) => Ok(false),
            Err(error) => Err(unreachable(&error.to_string())),
        }
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// What a message of a channel means.
fn sort(message: &[u8]) -> Received {
    match message.split_first() {
        Some((&STDOUT, rest)) if !rest.is_empty() => Received::Stdout(rest.to_vec()),
        Some((&STDERR, rest)) if !rest.is_empty() => Received::Stderr(rest.to_vec()),
        Some((&STATUS, rest)) if !rest.is_empty() => {
            Received::Ended(String::from_utf8_lossy(rest).into_owned())
        }
        _ => Received::Other,
    }
}

fn unreachable(said: &str) -> ClusterError {
    ClusterError::new(Trouble::Unreachable, said)
}

/// Why there was no upgrade. The answer to one may come without its body, so the server is asked again.
fn refused(error: tungstenite::Error, client: &Client, path: &str) -> ClusterError {
    let tungstenite::Error::Http(answer) = error else { return unreachable(&error.to_string()) };
    let status = answer.status().as_u16();
    let body = String::from_utf8_lossy(answer.body().as_deref().unwrap_or_default()).into_owned();
    let is_whole = serde_json::from_str::<serde_json::Value>(&body).is_ok();
    match client.get(path) {
        Err(error) if !is_whole && error.trouble == trouble_of(status, &error.said) => error,
        _ => {
            let said = said(status, &body);
            ClusterError::new(trouble_of(status, &said), said)
        }
    }
}

fn connect(client: &Client, uri: &Uri) -> Result<Stream, ClusterError> {
    let io_error = |error: io::Error| unreachable(&error.to_string());
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_tls = uri.scheme_str() == Some("wss");
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let mut last = unreachable(&format!("{bare} has no address"));
    for address in (bare, port).to_socket_addrs().map_err(io_error)? {
        let tcp = match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(tcp) => tcp,
            Err(error) => {
                last = io_error(error);
                continue;
            }
        };
        tcp.set_nodelay(true).map_err(io_error)?;
        tcp.set_read_timeout(Some(TIMEOUT)).map_err(io_error)?;
        tcp.set_write_timeout(Some(TIMEOUT)).map_err(io_error)?;
        if !is_tls {
            return Ok(Stream::Plain(tcp));
        }
        let config = |said: String| ClusterError::new(Trouble::Config, said);
        let mut tls = (*client.access().tls().map_err(config)?).clone();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(bare.to_owned()).map_err(|e| config(e.to_string()))?;
        let connection = ClientConnection::new(Arc::new(tls), name);
        let connection = connection.map_err(|error| config(error.to_string()))?;
        return Ok(Stream::Tls(Box::new(StreamOwned::new(connection, tcp))));
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sorted_by_channel() {
        assert_eq!(sort(b"\x01hello"), Received::Stdout(b"hello".to_vec()));
        assert_eq!(sort(b"\x02oh"), Received::Stderr(b"oh".to_vec()));
        assert_eq!(sort(b"\x03{}"), Received::Ended("{}".to_owned()));
        // Each channel begins with an empty message.
        for nothing in
            [&b"\x01"[..], b"\x02", b"\x00", b"\x00x", b"\x03", b"\x04{}", b"\xff\x00", b""]
        {
            assert_eq!(sort(nothing), Received::Other);
        }
    }
}
