//! One connection, without its socket: handshake, frames in, frames out.

use std::sync::Arc;

use linerate_wire::perf::answer::Start;
use linerate_wire::perf::frame::{
    DATA_LIMIT_BYTES, FrameReader, HEADER_BYTES, Kind, Level, PAYLOAD_LIMIT_BYTES, SEAL_BYTES,
    STREAM_LIMIT, StreamWord,
};
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, KeyChange, ServerConnection, Version};
use rustls::{ClientConfig, ServerConfig};

use super::keys::{FrameKey, Secrets};
use super::outbox::Outbox;
use crate::transport::multiplexer::Sending;

/// What both ends say in place of QUIC's transport parameters: one parameter of no meaning.
const PARAMETERS: [u8; 2] = [0, 0];
/// The name that every client asks for.
const SERVER_NAME: &str = "localhost";
/// The longest handshake that is put up with.
const HANDSHAKE_LIMIT_BYTES: usize = 256 << 10;

/// What a frame was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// The handshake went on.
    Handshake,
    /// The handshake is complete: streams may begin.
    Established,
    /// Data of a stream, or its end.
    Data { stream: u64, start: Start, bytes: usize, finished: bool },
    /// The other end gave a stream up.
    Abort { stream: u64 },
}

/// A connection.
pub(super) struct FramedTls {
    tls: Connection,
    server: bool,
    secrets: Arc<Secrets>,
    reader: FrameReader,
    outbox: Outbox,
    write_level: Level,
    handshake_keys: Option<(FrameKey, FrameKey)>,
    data_keys: Option<(FrameKey, FrameKey)>,
    handshake_bytes: usize,
    established: bool,
    next_stream: u32,
}

/// Why a connection can't go on, in a word.
pub(super) type Fault = &'static str;

impl FramedTls {
    /// The client's end; its first message is on its way.
    pub(super) fn client(config: &ClientConfig) -> Result<Self, Fault> {
        let secrets = Arc::<Secrets>::default();
        let mut config = config.clone();
        config.key_log = secrets.clone();
        let name = ServerName::try_from(SERVER_NAME).map_err(|_| "tls")?;
        let parameters = PARAMETERS.to_vec();
        let tls = ClientConnection::new(Arc::new(config), Version::V1, name, parameters);
        let mut session = Self::new(tls.map_err(|_| "tls")?.into(), false, secrets);
        session.say_handshake()?;
        Ok(session)
    }

    /// The server's end.
    pub(super) fn server(config: &ServerConfig) -> Result<Self, Fault> {
        let secrets = Arc::<Secrets>::default();
        let mut config = config.clone();
        config.key_log = secrets.clone();
        let tls = ServerConnection::new(Arc::new(config), Version::V1, PARAMETERS.to_vec());
        Ok(Self::new(tls.map_err(|_| "tls")?.into(), true, secrets))
    }

    fn new(tls: Connection, server: bool, secrets: Arc<Secrets>) -> Self {
        Self {
            tls,
            server,
            secrets,
            reader: FrameReader::default(),
            outbox: Outbox::default(),
            write_level: Level::Plain,
            handshake_keys: None,
            data_keys: None,
            handshake_bytes: 0,
            established: false,
            next_stream: 0,
        }
    }

    /// Where bytes from the socket go.
    pub(super) fn vacant(&mut self) -> &mut [u8] {
        self.reader.vacant()
    }

    pub(super) fn record_filled(&mut self, bytes: usize) {
        self.reader.record_filled(bytes);
    }

    /// Nothing has come for a while.
    pub(super) fn rest(&mut self) {
        self.reader.rest();
    }

    /// Whether frames wait that the socket has not taken.
    pub(super) fn has_unsent(&self) -> bool {
        !self.outbox.unsent().is_empty()
    }

    pub(super) fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// What the next complete frame was.
    pub(super) fn poll_incoming(&mut self) -> Result<Option<Incoming>, Fault> {
        let Some(frame) = self.reader.poll_frame().map_err(|_| "frame")? else {
            return Ok(None);
        };
        let keys = match frame.header.level {
            Level::Plain => None,
            Level::Handshake => Some(self.handshake_keys.as_ref().ok_or("key level")?),
            // Nothing may be read with the last keys before the handshake has proved the peer.
            Level::Data if !self.established => return Err("key level"),
            Level::Data => Some(self.data_keys.as_ref().ok_or("key level")?),
        };
        let payload = match keys {
            Some((_, open)) => &*open.open(frame.header_bytes, frame.sealed).ok_or("seal")?,
            None => frame.sealed.get(..usize::from(frame.header.payload_bytes)).unwrap_or_default(),
        };
        match frame.header.kind {
            Kind::Handshake => {
                // Frames of nothing count too: they cost time, and there is no end to them.
                self.handshake_bytes += HEADER_BYTES + SEAL_BYTES + payload.len();
                if self.handshake_bytes > HANDSHAKE_LIMIT_BYTES {
                    return Err("handshake");
                }
                self.tls.read_hs(payload).map_err(|_| "tls")?;
                self.say_handshake().map(Some)
            }
            // Unsealed data could come from any host.
            Kind::Stream if frame.header.level != Level::Data => Err("key level"),
            Kind::Stream => {
                let (word, data) = StreamWord::decode(payload).map_err(|_| "frame")?;
                let stream = u64::from(word.stream);
                if word.aborts {
                    return Ok(Some(Incoming::Abort { stream }));
                }
                let (start, bytes, finished) = (Start::of(data), data.len(), word.finishes);
                Ok(Some(Incoming::Data { stream, start, bytes, finished }))
            }
        }
    }

    /// Sends what the handshake has to say, in frames of the level that it is at, and takes the keys that
    /// it has come to.
    fn say_handshake(&mut self) -> Result<Incoming, Fault> {
        loop {
            let mut said = Vec::new();
            let change = self.tls.write_hs(&mut said);
            for part in said.chunks(PAYLOAD_LIMIT_BYTES) {
                let key = match self.write_level {
                    Level::Plain => None,
                    Level::Handshake => self.handshake_keys.as_ref(),
                    Level::Data => self.data_keys.as_ref(),
                };
                let key = key.map(|(seal, _)| seal);
                if !self.outbox.push(self.write_level, Kind::Handshake, key, (&[], part)) {
                    return Err("key level");
                }
            }
            let level = match change {
                Some(KeyChange::Handshake { .. }) => Level::Handshake,
                Some(KeyChange::OneRtt { .. }) => Level::Data,
                None if said.is_empty() => break,
                None => continue,
            };
            let suite = self.tls.negotiated_cipher_suite().ok_or("tls")?.suite();
            let keys = self.secrets.keys(level, self.server, suite).ok_or("tls")?;
            match level {
                Level::Data => self.data_keys = Some(keys),
                _ => self.handshake_keys = Some(keys),
            }
            self.write_level = level;
        }
        if !self.established && !self.tls.is_handshaking() && self.data_keys.is_some() {
            self.established = true;
            self.reader.expect_bulk();
            return Ok(Incoming::Established);
        }
        Ok(Incoming::Handshake)
    }

    /// The number of a new stream: 1 and up, so that none is 0, which the original answers as 1.
    pub(super) fn open_stream(&mut self) -> Option<u64> {
        if !self.established {
            return None;
        }
        self.next_stream = if self.next_stream >= STREAM_LIMIT { 1 } else { self.next_stream + 1 };
        Some(u64::from(self.next_stream))
    }

    /// Queues a piece of a stream; how much of it, `None` while there is no room.
    pub(super) fn send(
        &mut self,
        stream: u64,
        sending: Sending<'_>,
    ) -> Result<Option<usize>, Fault> {
        if !self.outbox.has_room() || !self.established {
            return Ok(None);
        }
        let mut rest = sending.bytes;
        let mut opens = sending.opens;
        loop {
            let (data, later) = rest.split_at(rest.len().min(DATA_LIMIT_BYTES));
            let finishes = sending.finishes && later.is_empty();
            self.push_stream(
                stream,
                StreamWord { opens, finishes, ..StreamWord::default() },
                data,
            )?;
            (rest, opens) = (later, false);
            if rest.is_empty() {
                break;
            }
        }
        self.outbox.record_data(stream, sending.bytes.len() as u64);
        Ok(Some(sending.bytes.len()))
    }

    /// Gives a stream up. These frames are not counted against the queue's limit; while they wait,
    /// the connection doesn't read what would make more.
    pub(super) fn abort(&mut self, stream: u64) -> Result<(), Fault> {
        self.push_stream(stream, StreamWord { aborts: true, ..StreamWord::default() }, &[])
    }

    fn push_stream(&mut self, stream: u64, word: StreamWord, data: &[u8]) -> Result<(), Fault> {
        let stream = u32::try_from(stream).map_err(|_| "stream")?;
        let word = StreamWord { stream, ..word }.encode();
        let seal = self.data_keys.as_ref().map(|(seal, _)| seal);
        if self.outbox.push(Level::Data, Kind::Stream, seal, (&word, data)) {
            Ok(())
        } else {
            Err("key level")
        }
    }
}
