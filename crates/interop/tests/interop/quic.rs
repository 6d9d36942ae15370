//! Clients and servers of the dialect on s2n-quic.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::tls::rustls as tls;
use s2n_quic::stream::{BidirectionalStream, ReceiveStream, SendStream};
use s2n_quic::{Client, Connection, Server};
use tokio::sync::oneshot;

use crate::request::{ENDLESS, wanted_bytes};
use crate::trust;

/// The longest that anything may take on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(40);
/// What an answer is sent in.
const BLOCK_BYTES: u64 = 32 << 10;

/// Runs to its end what is to be done over QUIC.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LIMIT, work).await.expect("it takes too long") })
}

/// A connection to a server on this machine. The client has to be kept as long as it.
pub(crate) async fn connect(port: u16) -> (Client, Connection) {
    let tls = tls::Client::from(trust::client());
    let builder = Client::builder().with_tls(tls).unwrap();
    let client = builder.with_io("127.0.0.1:0").unwrap().start().unwrap();
    let to = Connect::new(SocketAddr::from(([127, 0, 0, 1], port))).with_server_name("localhost");
    let connection = client.connect(to).await.unwrap();
    (client, connection)
}

/// How a stream ended: so many bytes and the end, or a reset with its code.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
    Finished(u64),
    Reset(u64),
}

/// Reads a stream to its end.
pub(crate) async fn end_of(receive: &mut ReceiveStream) -> End {
    let mut bytes = 0;
    loop {
        match receive.receive().await {
            Ok(Some(piece)) => bytes += piece.len() as u64,
            Ok(None) => return End::Finished(bytes),
            Err(s2n_quic::stream::Error::StreamReset { error, .. }) => {
                return End::Reset(error.into());
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Says this on a stream of its own, and what came back.
pub(crate) async fn exchange(handle: &mut Handle, request: Vec<u8>) -> End {
    let stream = handle.open_bidirectional_stream().await.unwrap();
    let (mut receive, mut send) = stream.split();
    send.send(request.into()).await.unwrap();
    send.finish().unwrap();
    end_of(&mut receive).await
}

/// What a server does with its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// What they ask for.
    Answers,
    /// It answers a part, and resets them.
    Resets,
    /// It stops the request at its first byte, and answers as if it had been whole.
    StopsRequests,
}

/// What has come to a server.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) connections: AtomicU64,
    pub(crate) streams: AtomicU64,
    /// Bytes of requests that came to their end.
    pub(crate) uploaded_bytes: AtomicU64,
    /// Answers that their client has stopped.
    pub(crate) stopped: AtomicU64,
}

impl Seen {
    pub(crate) fn count(count: &AtomicU64) -> u64 {
        count.load(Ordering::Relaxed)
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// A server in a thread of its own; ended when dropped.
pub(crate) struct PerfServer {
    pub(crate) port: u16,
    pub(crate) seen: Arc<Seen>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PerfServer {
    pub(crate) fn start(manner: Manner) -> Self {
        let seen = Arc::<Seen>::default();
        let (sender, port) = std::sync::mpsc::channel();
        let (end, ended) = oneshot::channel();
        let counted = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let tls = tls::Server::from(trust::server());
                let builder = Server::builder().with_tls(tls).unwrap();
                let mut server = builder.with_io("127.0.0.1:0").unwrap().start().unwrap();
                sender.send(server.local_addr().unwrap().port()).unwrap();
                let serving = async move {
                    while let Some(connection) = server.accept().await {
                        add(&counted.connections, 1);
                        tokio::spawn(serve(connection, manner, Arc::clone(&counted)));
                    }
                };
                tokio::select! {
                    () = serving => {}
                    _ = ended => {}
                }
            });
        });
        let port = port.recv_timeout(LIMIT).unwrap();
        Self { port, seen, end: Some(end), thread: Some(thread) }
    }
}

impl Drop for PerfServer {
    fn drop(&mut self) {
        drop(self.end.take());
        let thread = self.thread.take().unwrap().join();
        assert!(thread.is_ok() || std::thread::panicking(), "the server's thread broke off");
    }
}

async fn serve(connection: Connection, manner: Manner, seen: Arc<Seen>) {
    let mut connection = connection;
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        add(&seen.streams, 1);
        tokio::spawn(answer(stream, manner, Arc::clone(&seen)));
    }
}

async fn answer(stream: BidirectionalStream, manner: Manner, seen: Arc<Seen>) {
    let (mut receive, mut send) = stream.split();
    let (mut header, mut bytes) = (Vec::new(), 0);
    while let Ok(Some(piece)) = receive.receive().await {
        bytes += piece.len() as u64;
        let missing = 8_usize.saturating_sub(header.len()).min(piece.len());
        header.extend_from_slice(&piece[..missing]);
        if manner == Manner::StopsRequests {
            // It may have come to its end already.
            let _whole = receive.stop_sending(5_u8.into());
            break;
        }
    }
    add(&seen.uploaded_bytes, bytes);
    let Some(wanted) = wanted_bytes(&header) else {
        let _gone = send.reset(0_u8.into());
        return;
    };
    if manner == Manner::Resets {
        let _gone = send.send(vec![0; 100].into()).await;
        let _gone = send.reset(3_u8.into());
        return;
    }
    if !send_answer(&mut send, wanted).await {
        add(&seen.stopped, 1);
    }
}

/// Sends so many bytes and the end; says whether all were wanted to the last.
async fn send_answer(send: &mut SendStream, wanted_bytes: u64) -> bool {
    let mut left = wanted_bytes;
    while left > 0 {
        let now = left.min(BLOCK_BYTES);
        if send.send(vec![0x55; now as usize].into()).await.is_err() {
            return false;
        }
        left -= if wanted_bytes == ENDLESS { 0 } else { now };
    }
    send.close().await.is_ok()
}
