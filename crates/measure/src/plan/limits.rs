//! The limits that [`Workload::check`](super::Workload::check) and
//! [`Plan::check`](super::Plan::check) hold numbers against. Each range includes both its ends.

use std::ops::RangeInclusive;

/// Flows in each direction.
pub const FLOWS: RangeInclusive<u64> = 1..=1_000_000;
/// Threads at each end.
pub const THREADS: RangeInclusive<u64> = 1..=1024;
/// Bytes of one send call, request or response on TCP and TLS.
pub const MESSAGE_BYTES: RangeInclusive<u64> = 1..=16 * 1024 * 1024;
/// The most payload of one UDP datagram over IPv4: 65,535 less 20 (RFC 791) and 8 (RFC 768).
pub const DATAGRAM_MAX_BYTES: u64 = 65_507;
/// Measured time: 1 ms to 30 days.
pub const DURATION_NS: RangeInclusive<u64> = 1_000_000..=30 * 86_400 * 1_000_000_000;
/// Warm-up: less than a day.
pub const OMIT_NS: RangeInclusive<u64> = 0..=86_400 * 1_000_000_000 - 1;
/// Length of a sample: 10 ms to 1 h.
pub const INTERVAL_NS: RangeInclusive<u64> = 10_000_000..=3_600 * 1_000_000_000;
/// Rate: 1 kbit/s to 10 Tbit/s.
pub const RATE_BPS: RangeInclusive<u64> = 1_000..=10_000_000_000_000;
/// Frames per second of a media stream.
pub const FRAMES_PER_S: RangeInclusive<u64> = 1..=10_000;
/// How long a receiver of a media stream holds frames back: 1 ms to 1 min.
pub const BUFFER_DEPTH_NS: RangeInclusive<u64> = 1_000_000..=60 * 1_000_000_000;
/// The size of a media stream's datagrams: a frame can be split into datagrams with a header each.
pub const MEDIA_DATAGRAM_BYTES: RangeInclusive<u64> = 48..=DATAGRAM_MAX_BYTES;
/// Bytes of a frame of a media stream: a header, to 32 MiB.
pub const FRAME_BYTES: RangeInclusive<u64> = 24..=32 << 20;
/// Frames that the receiver of a media stream keeps account of: one datagram may have it look at all of them.
pub const FRAMES_KEPT_OF_FLOW: RangeInclusive<u64> = 1..=1 << 16;
/// Frames that the receivers of a media load keep account of, all flows of a direction together.
pub const FRAMES_KEPT: RangeInclusive<u64> = 1..=4 << 20;
/// The datagrams of those frames.
pub const DATAGRAMS_KEPT: RangeInclusive<u64> = 1..=256 << 20;
/// Time-out of a transaction: 1 ms to 60 s.
pub const TIMEOUT_NS: RangeInclusive<u64> = 1_000_000..=60 * 1_000_000_000;
/// Differentiated-services code point: six bits (RFC 2474).
pub const DSCP: RangeInclusive<u64> = 0..=63;
/// TCP_MAXSEG: what Linux takes (tcp(7)), up to 65,535 less 40 bytes of headers.
pub const MSS_BYTES: RangeInclusive<u64> = 88..=65_495;
/// Socket buffers: what fits the int of SO_SNDBUF and SO_RCVBUF.
pub const WINDOW_BYTES: RangeInclusive<u64> = 1..=0x7fff_ffff;
/// Letters of a congestion control's name (TCP_CA_NAME_MAX, 16 with the closing zero).
pub const CONGESTION_LETTERS: RangeInclusive<usize> = 1..=15;
/// Flows over QUIC, both directions together: a server keeps something of each before it comes.
pub const QUIC_FLOWS: RangeInclusive<u64> = 1..=100_000;
/// Streams of a QUIC connection.
pub const STREAMS: RangeInclusive<u64> = 1..=10_000;
/// The congestion window that a QUIC connection begins with.
pub const INITIAL_WINDOW_BYTES: RangeInclusive<u64> = 2_400..=0x4000_0000;
/// Flow control of a QUIC stream: a receiver holds 1,024 separate pieces of one, which a larger
/// window could leave it with.
pub const STREAM_WINDOW_BYTES: RangeInclusive<u64> = 1_024..=67_108_864;
/// Flow control of a QUIC connection, all its streams together: up to 1 GiB, 10 Gbit/s over 0.8 s.
pub const CONNECTION_WINDOW_BYTES: RangeInclusive<u64> = 1_024..=0x4000_0000;
/// The windows that are asked for of a load's QUIC connections, together: a receiver may have to hold that.
pub const QUIC_WINDOWS_BYTES: RangeInclusive<u64> = 1_024..=8 << 30;
/// Packets that a receiver may leave without an acknowledgement.
pub const ACK_PACKETS: RangeInclusive<u64> = 1..=1_000;
/// Packets out of order that it may let pass; 0: any number.
pub const ACK_REORDERING: RangeInclusive<u64> = 0..=1_000;
/// How long it may keep one back: 1 ms, the least that it agrees to, to 1 s.
pub const ACK_DELAY_NS: RangeInclusive<u64> = 1_000_000..=1_000_000_000;
/// The idle time-out of a QUIC connection: 100 ms to 10 min.
pub const IDLE_NS: RangeInclusive<u64> = 100_000_000..=600 * 1_000_000_000;
/// UDP payload of a QUIC packet: the least that every path must carry (RFC 9000, section 14), to what
/// IPv4 can.
pub const QUIC_MTU_BYTES: RangeInclusive<u64> = 1_200..=65_507;
/// What a QUIC packet has beside the datagram in it: flags (1), connection id (8), packet number (4) and
/// tag (16) of the packet (RFC 9000, section 17.3.1; RFC 9001, section 5.3), type (1) and length (8) of
/// the frame (RFC 9221, section 4).
pub const QUIC_DATAGRAM_OVERHEAD_BYTES: u64 = 38;
/// The UDP payload up to which QUIC with datagrams finds out by itself what the path carries.
pub const QUIC_MTU_FOUND_BYTES: u64 = 1_452;
/// Bytes of the name of a protocol (RFC 7301, section 3.1).
pub const ALPN_BYTES: RangeInclusive<usize> = 1..=255;
/// Ports: 0 names none.
pub const PORT: RangeInclusive<u64> = 1..=65_535;
/// Bytes of a host's name (RFC 1035, section 2.3.4, less the length byte and the root) or address.
pub const HOST_BYTES: RangeInclusive<usize> = 1..=253;
/// Bytes of a network device's name (IFNAMSIZ, 16 with the closing zero).
pub const DEVICE_BYTES: RangeInclusive<usize> = 1..=15;
/// Processors that a plan names.
pub const CPUS: usize = 4096;
/// Local addresses that a plan names.
pub const BINDS: usize = 256;
/// Tags of a plan.
pub const TAGS: usize = 64;
/// Bytes of a title, a tag's key or a tag's value.
pub const REMARK_BYTES: usize = 1024;
/// Connections that come and go: how many at once.
pub const CONNECTIONS_AT_ONCE: RangeInclusive<u64> = 1..=1_000_000;
/// Bytes that one of them transfers: up to 1 PB.
pub const TRANSFER_BYTES: RangeInclusive<u64> = 1..=1_000_000_000_000_000;
/// Bytes of an end's turn in a transfer.
pub const TURN_BYTES: RangeInclusive<u64> = 1..=u32::MAX as u64;
/// How long one of them is held open: up to a day.
pub const HOLD_NS: RangeInclusive<u64> = 0..=86_400 * 1_000_000_000;
/// Requests on their way at once in a flow.
pub const OUTSTANDING: RangeInclusive<u64> = 1..=65_536;
/// Requests or connections per second, all flows together: one in 17 minutes to 10^9.
pub const PER_S: RangeInclusive<f64> = 0.001..=1e9;
