//! A client and a server of HTTP/3.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use h3::client::SendRequest;
use h3::server::RequestResolver;
use h3_quinn::OpenStreams;

use http::{Method, Request, Response, StatusCode};
use quinn::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, VarInt};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;

use crate::any_certificate::tls_config;

/// The longest that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(40);
/// What a body is sent in.
const BLOCK_BYTES: usize = 32 << 10;
/// The path of a request whose answer the server gives up after a part, with this code (RFC 9114, section 8.1).
pub(crate) const REFUSED: &str = "/refused";
pub(crate) const REQUEST_REJECTED: u64 = 0x10b;

/// Runs to its end what is to be done over QUIC.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LIMIT, work).await.expect("it takes too long") })
}

/// A server: `GET /N` is answered with N bytes, `POST` with what was sent. Where it listens.
pub(crate) fn serve(protocols: &[&str]) -> (Endpoint, u16) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    tls.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let crypto = QuicServerConfig::try_from(tls).unwrap();
    let config = ServerConfig::with_crypto(Arc::new(crypto));
    let endpoint = Endpoint::server(config, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let port = endpoint.local_addr().unwrap().port();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            tokio::spawn(async move {
                let Ok(connection) = incoming.await else { return };
                answer_all(connection).await;
            });
        }
    });
    (endpoint, port)
}

async fn answer_all(connection: Connection) {
    let connection = h3_quinn::Connection::new(connection);
    let mut connection = h3::server::Connection::new(connection).await.unwrap();
    while let Ok(Some(resolver)) = connection.accept().await {
        tokio::spawn(answer(resolver));
    }
}

async fn answer(resolver: RequestResolver<h3_quinn::Connection, Bytes>) {
    let (request, mut stream) = resolver.resolve_request().await.unwrap();
    let mut body = BytesMut::new();
    while let Some(mut piece) = stream.recv_data().await.unwrap() {
        body.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
    }
    let path = request.uri().path();
    let refused = path == REFUSED;
    if request.method() == Method::GET {
        let bytes = path.trim_start_matches('/').parse().unwrap_or(100);
        body = BytesMut::zeroed(bytes);
    }
    let head = Response::builder().status(StatusCode::OK).body(()).unwrap();
    stream.send_response(head).await.unwrap();
    if refused {
        stream.send_data(body.freeze()).await.unwrap();
        return stream.stop_stream(h3::error::Code::from(REQUEST_REJECTED));
    }
    let mut body = body.freeze();
    while !body.is_empty() {
        let piece = body.split_to(body.len().min(BLOCK_BYTES));
        stream.send_data(piece).await.unwrap();
    }
    stream.finish().await.unwrap();
}

/// A connection of a client: what its requests go over.
pub(crate) struct Client {
    endpoint: Endpoint,
    pub(crate) connection: Connection,
    requests: SendRequest<OpenStreams, Bytes>,
}

impl Client {
    /// One to this port of this machine that offers these protocols; else why there is none.
    pub(crate) async fn connect(port: u16, protocols: &[&str]) -> Result<Self, String> {
        let protocols: Vec<&[u8]> = protocols.iter().map(|name| name.as_bytes()).collect();
        let crypto = QuicClientConfig::try_from(tls_config(&protocols)).unwrap();
        let endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let config = ClientConfig::new(Arc::new(crypto));
        let to = SocketAddr::from(([127, 0, 0, 1], port));
        let connecting = endpoint.connect_with(config, to, "localhost").unwrap();
        let connection = connecting.await.map_err(|error| error.to_string())?;
        let (mut driver, requests) = h3::client::new(h3_quinn::Connection::new(connection.clone()))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(async move { driver.wait_idle().await });
        Ok(Self { endpoint, connection, requests })
    }

    /// One that offers HTTP/3.
    pub(crate) async fn of_http3(port: u16) -> Self {
        Self::connect(port, &["h3"]).await.unwrap()
    }

    /// A request with this body; the body of its answer, or why there is none.
    pub(crate) async fn exchange(&self, path: &str, body: Option<Bytes>) -> Result<Bytes, String> {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let uri = format!("https://localhost{path}");
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let mut requests = self.requests.clone();
        let stream = requests.send_request(request).await.map_err(|error| error.to_string())?;
        let (mut sending, mut receiving) = stream.split();
        let sends = async move {
            let mut body = body.unwrap_or_default();
            while !body.is_empty() {
                let piece = body.split_to(body.len().min(BLOCK_BYTES));
                sending.send_data(piece).await?;
            }
            sending.finish().await
        };
        let receives = async move {
            let head = receiving.recv_response().await?;
            assert_eq!(head.status(), StatusCode::OK);
            let mut came = BytesMut::new();
            while let Some(mut piece) = receiving.recv_data().await? {
                came.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
            }
            Ok(came.freeze())
        };
        let (sent, came) = tokio::join!(sends, receives);
        let failed = |error: h3::error::StreamError| error.to_string();
        sent.map_err(failed)?;
        came.map_err(failed)
    }

    /// Closes the connection as HTTP/3 does.
    pub(crate) async fn close(self) {
        self.connection.close(VarInt::from_u32(0x100), b"done");
        self.endpoint.wait_idle().await;
    }

    /// The protocol that TLS has agreed on.
    pub(crate) fn protocol(&self) -> Option<Vec<u8>> {
        let data = self.connection.handshake_data()?;
        let data = data.downcast::<HandshakeData>().ok()?;
        data.protocol
    }
}
