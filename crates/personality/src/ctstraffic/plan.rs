//! What options mean: defaults, and what the dialect needs.

use linerate_measure::plan::{ConnectTransfer, TransferPattern};
use linerate_measure::step::{BytePattern, Close, Draws, Life, LifeContent, LifePace, LifeStep};
use linerate_measure::step::{Size, Text};
use linerate_wire::ctstraffic::media::datagram::DATAGRAM_MOST_BYTES;
use linerate_wire::ctstraffic::media::receiver::ReceiverSettings;
use linerate_wire::ctstraffic::media::shape::{ShapeError, StreamShape};
use linerate_wire::ctstraffic::{DEFAULT_PORT, Pattern, Role, Span};

use super::options::{Connect, Options, Protocol, ShutdownChoice};

const BUFFER_BYTES: u64 = 65_536;
const TOTAL_BYTES: u64 = 1 << 30;
const SEGMENT_BYTES: u32 = 1 << 20;
const RATE_PERIOD_MS: u64 = 100;
/// Receives that one call makes: calls for 256 KiB take less of the processors than calls for 64 KiB.
const RECEIVES_AT_ONCE: u32 = 4;
const DATAGRAM_BYTES: u32 = 1400;
const UDP_RECEIVE_BUFFER_BYTES: u32 = 1 << 20;

impl Options {
    /// Whether this is a server.
    pub fn is_server(&self) -> bool {
        !self.hosts.listen.is_empty()
    }

    /// Which end this is.
    pub fn role(&self) -> Role {
        if self.is_server() { Role::Server } else { Role::Client }
    }

    /// The server's port.
    pub fn port(&self) -> u16 {
        self.hosts.port.unwrap_or(DEFAULT_PORT)
    }

    /// Whether received data is compared.
    pub fn verifies_data(&self) -> bool {
        self.run.verify_data.unwrap_or(true)
    }

    /// Connections of a client at the same time.
    pub fn connections(&self) -> u32 {
        self.run.connections.unwrap_or(match self.run.protocol {
            Protocol::Tcp => 8,
            Protocol::Udp => 1,
        })
    }

    /// Connections that a client makes in all; `None`: without end.
    pub fn total_connections(&self) -> Option<u64> {
        let iterations = self.run.iterations.filter(|iterations| *iterations > 0)?;
        Some(iterations.saturating_mul(self.connections().into()))
    }

    /// Connections after which a server ends; `None`: never.
    pub fn server_exit_limit(&self) -> Option<u64> {
        self.run.server_exit_limit.filter(|limit| *limit > 0)
    }

    /// Connects of a client at the same time; `None`: any number.
    pub fn throttle(&self) -> Option<u32> {
        Some(self.run.throttle.unwrap_or(1000)).filter(|limit| *limit > 0)
    }

    /// Time between rows of status, ms.
    pub fn status_update_ms(&self) -> u32 {
        self.output.status_update_ms.unwrap_or(5000)
    }

    /// What is printed, 0 to 6.
    pub fn verbosity(&self) -> u8 {
        self.output.verbosity.unwrap_or(4)
    }

    /// The ends that send.
    pub fn pattern(&self) -> Pattern {
        self.transfer.pattern.unwrap_or_default()
    }

    /// Bytes of each send and receive of a TCP connection.
    pub fn buffer_bytes(&self) -> Span {
        self.transfer.buffer_bytes.unwrap_or(Span::of(BUFFER_BYTES))
    }

    /// Bytes of a TCP connection.
    pub fn total_bytes(&self) -> Span {
        self.transfer.total_bytes.unwrap_or(Span::of(TOTAL_BYTES))
    }

    /// Bytes of a client's turn, and of a server's, where both send in turns.
    pub fn segment_bytes(&self) -> (u32, u32) {
        let Self { transfer, .. } = self;
        let or_default = |bytes: Option<u32>| bytes.unwrap_or(SEGMENT_BYTES);
        (or_default(transfer.push_bytes), or_default(transfer.pull_bytes))
    }

    /// The period in which a limit of the rate is kept, ms.
    pub fn rate_period_ms(&self) -> u64 {
        self.transfer.rate_period_ms.unwrap_or(RATE_PERIOD_MS)
    }

    /// Receives in a row of one connection.
    pub fn outstanding_receives(&self) -> u32 {
        let default = if self.run.protocol == Protocol::Tcp { 1 } else { 2 };
        self.requests.outstanding_receives.unwrap_or(default)
    }

    /// Sends of a connection, in buffers, that may be outstanding; 0: as many as the kernel takes.
    pub fn outstanding_sends(&self) -> u32 {
        let is_rio = self.requests.io == Some(super::options::Io::RioIocp);
        self.requests.outstanding_sends.unwrap_or(if is_rio { 0 } else { 1 })
    }

    /// Whether TCP connections have keepalive: those of a server always.
    pub fn has_keepalive(&self) -> bool {
        let is_asked = self.sockets.keepalive || self.sockets.keepalive_idle_ms.is_some();
        self.run.protocol == Protocol::Tcp && (is_asked || self.is_server())
    }

    /// Bytes of receive buffers; `None`: the kernel's own.
    pub fn receive_buffer_bytes(&self) -> Option<u32> {
        let is_udp_client = self.run.protocol == Protocol::Udp && !self.is_server();
        let default = is_udp_client.then_some(UDP_RECEIVE_BUFFER_BYTES);
        self.sockets.receive_buffer_bytes.or(default)
    }

    /// What this end does on each TCP connection, as a load takes it.
    pub fn life(&self) -> Life {
        let bytes = size(self.total_bytes());
        let (send_bytes, receive_bytes) = self.segment_bytes();
        let data = match self.pattern() {
            Pattern::Push => LifeStep::Send { bytes },
            Pattern::Pull => LifeStep::Receive { bytes },
            Pattern::Duplex => LifeStep::Duplex { bytes },
            Pattern::PushPull => {
                LifeStep::Alternate { bytes, send_bytes, receive_bytes, sends_first: true }
            }
        };
        let steps = vec![
            LifeStep::ReceiveText { text: Text::Id },
            data,
            LifeStep::ReceiveText { text: Text::Fixed { bytes: "DONE" } },
        ];
        let close = match self.transfer.shutdown {
            _ if self.requests.connect == Some(Connect::Name) => Close::Reset,
            Some(ShutdownChoice::Rude) => Close::Reset,
            Some(ShutdownChoice::Random) => Close::Drawn,
            Some(ShutdownChoice::Graceful) | None => Close::Graceful,
        };
        let client = Life {
            unit_bytes: Some(size(self.buffer_bytes())),
            receives_at_once: RECEIVES_AT_ONCE,
            content: LifeContent::Pattern {
                pattern: BytePattern::Count,
                send_offset: 0,
                receive_offset: 0,
                stride: 0,
                verify: self.verifies_data(),
            },
            pace: self.life_pace(),
            draws: Draws::Each,
            ..Life::new(steps, close)
        };
        if self.is_server() { client.mirrored(Close::AfterPeer) } else { client }
    }

    /// The transfer of a TCP connection as a native plan has it, which has no rates.
    pub fn native_transfer(&self) -> ConnectTransfer {
        let (push_bytes, pull_bytes) = self.segment_bytes();
        ConnectTransfer {
            pattern: match self.pattern() {
                Pattern::Push => TransferPattern::Push,
                Pattern::Pull => TransferPattern::Pull,
                Pattern::PushPull => TransferPattern::PushPull,
                Pattern::Duplex => TransferPattern::Duplex,
            },
            push_bytes,
            pull_bytes,
            buffer_bytes: Some(size(self.buffer_bytes())),
            ..ConnectTransfer::new(size(self.total_bytes()))
        }
    }

    fn life_pace(&self) -> Option<LifePace> {
        let transfer = &self.transfer;
        if let Some(rate) = transfer.rate_limit {
            let slice_ns = self.rate_period_ms().max(1).saturating_mul(1_000_000);
            return Some(LifePace::Rate { bytes_per_s: size(rate), slice_ns });
        }
        let (sends, delay_ms) = (transfer.burst_count?, transfer.burst_delay_ms?);
        Some(LifePace::Bursts { sends: sends.into(), delay_ns: u64::from(delay_ms) * 1_000_000 })
    }

    /// The frames of a media stream; `None` with TCP, and where an option is missing.
    pub fn stream_shape(&self) -> Option<Result<StreamShape, ShapeError>> {
        let stream = &self.stream;
        let (bits, rate, length) = (stream.bits_per_s?, stream.frame_rate?, stream.length_s?);
        let datagram_bytes = stream.datagram_bytes.unwrap_or(DATAGRAM_BYTES);
        Some(StreamShape::derive(bits, rate, length, datagram_bytes.min(DATAGRAM_MOST_BYTES)))
    }

    /// Seconds that a client holds frames back.
    pub fn depth_s(&self) -> u32 {
        self.stream.depth_s.unwrap_or(1)
    }

    /// How a client receives a media stream; `None` with TCP. A command line that was read has no
    /// other reason for `None`.
    pub fn receiver_settings(&self) -> Option<ReceiverSettings> {
        let shape = self.stream_shape()?.ok()?;
        let buffered_frames = shape.buffered_frames(self.depth_s()).ok()?;
        Some(ReceiverSettings { shape, buffered_frames, is_strict: self.own.strict })
    }
}

fn size(span: Span) -> Size {
    match span {
        Span { low, high } if low == high => Size::Fixed(low),
        Span { low, high } => Size::Range { low_bytes: low, high_bytes: high },
    }
}

#[cfg(test)]
mod tests;
