//! What happens on a connection, written down for tools that draw it (qlog 0.3: draft-ietf-quic-qlog-main-schema
//! and draft-ietf-quic-qlog-quic-events), a file for each connection.
//!
//! `quinn-proto` can write such files too, but without any frames, without beginning and end. The session
//! sees every packet before it is sealed and after it was opened, so that ours have them. A packet that is
//! held to be lost is not told.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::BytesMut;
use linerate_measure::sample::QuicStatus;
use quinn_proto::ConnectionId;
use quinn_proto::crypto::{CryptoError, PacketKey};
use rustix::fs::{Access, access};

mod frames;

use crate::error::Error;

/// Each record of a sequence of JSON texts begins so, and ends with a line's end (RFC 7464).
const RECORD: char = '\x1e';

/// The delay of an acknowledgement is in units of 2^3 µs unless an end says otherwise (RFC 9000, section 18.2),
/// which none of ours does.
pub(super) const ACK_DELAY_EXPONENT: u8 = 3;

/// The log of one connection. It has its name when it is whole; what could not be written whole goes.
#[derive(Debug)]
pub(super) struct Log {
    begun: Instant,
    to: Mutex<Writing>,
}

#[derive(Debug)]
struct Writing {
    file: BufWriter<File>,
    path: PathBuf,
    part: PathBuf,
    failed: bool,
    metrics: Option<Metrics>,
    closed: bool,
}

/// What is told of a connection's path when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Metrics {
    min_rtt_us: u32,
    rtt_us: u32,
    cwnd_bytes: u64,
    in_flight_bytes: u64,
}

/// Which packets a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketKind {
    Initial,
    Handshake,
    Early,
    Data,
}

impl PacketKind {
    fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Handshake => "handshake",
            Self::Early => "0RTT",
            Self::Data => "1RTT",
        }
    }
}

/// Makes the directory, if it isn't there.
///
/// # Errors
///
/// Where nothing can be written there.
pub(super) fn prepare(directory: &Path) -> Result<(), Error> {
    let writable = || Ok(access(directory, Access::WRITE_OK | Access::EXEC_OK)?);
    let tried: io::Result<()> = fs::create_dir_all(directory).and_then(|()| writable());
    tried.map_err(|error| {
        let directory = directory.display();
        Error::Host(format!("can't write qlog files to {directory}: {error}; give another --qlog"))
    })
}

impl Log {
    /// The log of a client's connection, which is named after the id that its first packets go to.
    pub(super) fn create(directory: &Path, first: &ConnectionId) -> io::Result<Arc<Self>> {
        let path = directory.join(format!("{first}_client.sqlog"));
        let part = path.with_extension("part");
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        let file = BufWriter::new(file);
        let writing = Writing { file, path, part, failed: false, metrics: None, closed: false };
        let log = Self { begun: Instant::now(), to: Mutex::new(writing) };
        log.write(&format!(
            "{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"linerate {}\",\
             \"trace\":{{\"vantage_point\":{{\"type\":\"client\"}},\"common_fields\":{{\
             \"ODCID\":\"{first}\",\"time_format\":\"relative\",\"reference_time\":0}}}}}}",
            env!("CARGO_PKG_VERSION"),
        ));
        Ok(Arc::new(log))
    }

    fn write(&self, record: &str) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        if !to.failed && writeln!(to.file, "{RECORD}{record}").is_err() {
            to.failed = true;
        }
    }

    fn record(&self, name: &str, data: &str) {
        let ms = self.begun.elapsed().as_secs_f64() * 1e3;
        self.write(&format!("{{\"time\":{ms:.3},\"name\":\"{name}\",\"data\":{data}}}"));
    }

    pub(super) fn record_start(&self, local: Option<SocketAddr>, remote: SocketAddr) {
        let version = if remote.is_ipv4() { "v4" } else { "v6" };
        let local = local.map_or(String::new(), |local| {
            format!("\"src_ip\":\"{}\",\"src_port\":{},", local.ip(), local.port())
        });
        let (ip, port) = (remote.ip(), remote.port());
        let data = format!(
            "{{\"ip_version\":\"{version}\",{local}\"dst_ip\":\"{ip}\",\"dst_port\":{port}}}"
        );
        self.record("connectivity:connection_started", &data);
    }

    /// The connection has ended; the first that says so is right.
    pub(super) fn record_close(&self, owner: &str, code: Option<u64>, reason: &str) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut to.closed, true) {
            return;
        }
        drop(to);
        let code = code.map_or(String::new(), |code| format!("\"application_code\":{code},"));
        let reason = serde_json::Value::from(reason);
        let data = format!("{{\"owner\":\"{owner}\",{code}\"reason\":{reason}}}");
        self.record("connectivity:connection_closed", &data);
    }

    /// Tells what is known of the path, where that has changed; before anything was acknowledged that is
    /// nothing.
    pub(super) fn record_metrics(&self, status: &QuicStatus) {
        let Some(in_flight_bytes) = status.in_flight_bytes else { return };
        let metrics = Metrics {
            min_rtt_us: status.min_rtt_us,
            rtt_us: status.rtt_us,
            cwnd_bytes: status.cwnd_bytes,
            in_flight_bytes,
        };
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        if to.metrics.replace(metrics) == Some(metrics) {
            return;
        }
        drop(to);
        let ms = |us: u32| f64::from(us) / 1e3;
        let data = format!(
            "{{\"min_rtt\":{:.3},\"smoothed_rtt\":{:.3},\"congestion_window\":{},\
             \"bytes_in_flight\":{}}}",
            ms(metrics.min_rtt_us),
            ms(metrics.rtt_us),
            metrics.cwnd_bytes,
            metrics.in_flight_bytes,
        );
        self.record("recovery:metrics_updated", &data);
    }

    fn record_packet(
        &self,
        (name, kind, number): (&str, PacketKind, u64),
        (payload, ack_delay_exponent): (&[u8], u8),
        length: usize,
    ) {
        let mut data = format!(
            "{{\"header\":{{\"packet_type\":\"{}\",\"packet_number\":{number}}},\
             \"raw\":{{\"length\":{length}}},\"frames\":[",
            kind.name(),
        );
        frames::render_frames(payload, ack_delay_exponent, &mut data);
        data.push_str("]}");
        self.record(name, &data);
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let whole = !self.failed && self.file.flush().is_ok();
        if !whole || fs::rename(&self.part, &self.path).is_err() {
            // What is left of it is not a log.
            let _gone = fs::remove_file(&self.part);
        }
    }
}

/// A key whose packets are written down.
pub(super) struct LoggedPacket {
    pub(super) inner: Box<dyn PacketKey>,
    pub(super) log: Arc<Log>,
    pub(super) kind: PacketKind,
    /// The unit of the delay of acknowledgements, as the peer says it.
    pub(super) ack_delay_exponent: u8,
}

impl PacketKey for LoggedPacket {
    fn encrypt(&self, packet: u64, bytes: &mut [u8], header_bytes: usize) {
        let end = bytes.len().saturating_sub(self.inner.tag_len());
        let payload = bytes.get(header_bytes..end).unwrap_or_default();
        let packet_sent = ("transport:packet_sent", self.kind, packet);
        self.log.record_packet(packet_sent, (payload, ACK_DELAY_EXPONENT), bytes.len());
        self.inner.encrypt(packet, bytes, header_bytes);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let length = header.len() + payload.len();
        self.inner.decrypt(packet, header, payload)?;
        let packet_received = ("transport:packet_received", self.kind, packet);
        self.log.record_packet(packet_received, (payload, self.ack_delay_exponent), length);
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
