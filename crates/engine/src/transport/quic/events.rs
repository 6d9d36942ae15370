//! What happens on connections, an object of JSON a line, with quicly's names: its converter makes qlog of them.
//!
//! The session sees every packet before it is sealed and after it was opened. [`TracedControl`] sees what the
//! congestion control is told.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use quinn_proto::congestion::Controller;
use quinn_proto::crypto::{CryptoError, PacketKey};

mod control;
mod frames;
mod sent;

use super::frames::{Frame, take_frame};
use super::qlog::PacketKind;
use crate::clock::{MILLISECOND_NS, utc_ns};
use crate::error::Error;
use control::TracedControl;
use frames::Lines;
use sent::SentPackets;

/// The bit of a first byte that says that a header is long (RFC 9000, section 17.2).
const LONG_HEADER: u8 = 0x80;

/// The events of all connections of an endpoint.
#[derive(Debug)]
pub(crate) struct EventLog {
    path: PathBuf,
    to: Mutex<Writing>,
    connections: AtomicU64,
    /// The connection that began last, until its congestion control begins.
    begun: Mutex<Begun>,
}

/// A connection's number, and what becomes of its packets.
type Begun = Option<(u64, Arc<Mutex<SentPackets>>)>;

#[derive(Debug)]
struct Writing {
    file: BufWriter<File>,
    /// Why something is lost.
    failed: Option<io::Error>,
}

impl EventLog {
    /// A file that has nothing else.
    ///
    /// # Errors
    ///
    /// Where it can't be written.
    pub(crate) fn create(path: &Path) -> Result<Arc<Self>, Error> {
        let file = File::create(path).map_err(|error| {
            Error::Host(format!("can't write events to {}: {error}", path.display()))
        })?;
        let to = Mutex::new(Writing { file: BufWriter::new(file), failed: None });
        let (path, connections) = (path.to_owned(), AtomicU64::new(0));
        Ok(Arc::new(Self { path, to, connections, begun: Mutex::default() }))
    }

    /// The log of the next connection.
    pub(super) fn connection(self: &Arc<Self>) -> ConnectionEvents {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let sent = Arc::default();
        *self.begun() = Some((number, Arc::clone(&sent)));
        ConnectionEvents { log: Arc::clone(self), number, sent }
    }

    /// The congestion control of the connection that began last, written down. `quinn-proto` makes a connection's
    /// session first and its congestion control next, and one thread makes the connections of a log.
    pub(super) fn traced_control(
        self: &Arc<Self>,
        inner: Box<dyn Controller>,
    ) -> Box<dyn Controller> {
        let Some((number, sent)) = self.begun().take() else { return inner };
        let events = ConnectionEvents { log: Arc::clone(self), number, sent };
        Box::new(TracedControl::new(inner, events))
    }

    fn begun(&self) -> MutexGuard<'_, Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is there to be written; why something is lost, where that is so.
    pub(crate) fn finish(&self) -> Result<(), String> {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        let flushed = to.file.flush();
        let result = to.failed.take().map_or(flushed, Err);
        result.map_err(|error| format!("can't write events to {}: {error}", self.path.display()))
    }

    fn write(&self, lines: &str) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        if to.failed.is_none()
            && let Err(error) = to.file.write_all(lines.as_bytes())
        {
            to.failed = Some(error);
        }
    }
}

/// The events of one connection.
#[derive(Clone, Debug)]
pub(super) struct ConnectionEvents {
    log: Arc<EventLog>,
    number: u64,
    sent: Arc<Mutex<SentPackets>>,
}

impl ConnectionEvents {
    /// The same key, its packets written down.
    pub(super) fn traced(&self, inner: Box<dyn PacketKey>, kind: PacketKind) -> Box<dyn PacketKey> {
        Box::new(TracedPacket { inner, events: self.clone(), kind })
    }

    /// The server didn't take what was sent before the handshake was done.
    pub(super) fn record_early_refused(&self) {
        self.sent().forget_early();
    }

    fn sent(&self) -> MutexGuard<'_, SentPackets> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines(&self, kind: PacketKind) -> Lines {
        let time_ms = utc_ns() / MILLISECOND_NS.cast_signed();
        Lines::new(self.number, time_ms, kind)
    }
}

/// A key whose packets are written down.
struct TracedPacket {
    inner: Box<dyn PacketKey>,
    events: ConnectionEvents,
    kind: PacketKind,
}

impl TracedPacket {
    /// The packets that the frames of one that came acknowledge.
    fn record_acked(&self, lines: &mut Lines, payload: &[u8]) {
        let (mut rest, mut sent) = (payload, self.events.sent());
        while let Some(frame) = take_frame(&mut rest) {
            let Frame::Ack(ack) = frame else { continue };
            for (number, is_late) in sent.take_acked(self.kind, &ack) {
                lines.record_acked(number, is_late);
            }
        }
    }
}

impl PacketKey for TracedPacket {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_bytes: usize) {
        let mut lines = self.events.lines(self.kind);
        let header = bytes.get(..header_bytes).unwrap_or_default();
        let first = header.first().copied().unwrap_or(0);
        lines.record_prepared(first, destination(header));
        let end = bytes.len().saturating_sub(self.inner.tag_len());
        let content = lines.record_frames(true, bytes.get(header_bytes..end).unwrap_or_default());
        lines.record_sent(packet, bytes.len(), content.is_ack_only());
        self.events.log.write(lines.text());
        let in_flight_bytes = if content.is_in_flight() { bytes.len() as u64 } else { 0 };
        self.events.sent().record_sent(self.kind, packet, in_flight_bytes);
        self.inner.encrypt(packet, bytes, header_bytes);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.inner.decrypt(packet, header, payload)?;
        let mut lines = self.events.lines(self.kind);
        lines.record_received(packet, payload.len());
        lines.record_frames(false, payload);
        self.record_acked(&mut lines, payload);
        self.events.log.write(lines.text());
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

/// The connection id that a packet with a long header goes to. A short header doesn't say how long its own is.
fn destination(header: &[u8]) -> &[u8] {
    let is_long = header.first().is_some_and(|first| first & LONG_HEADER != 0);
    let length = header.get(5).filter(|_| is_long).map_or(0, |length| usize::from(*length));
    header.get(6..6 + length).unwrap_or_default()
}
