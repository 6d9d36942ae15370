//! What the kernel says of a TCP connection.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use linerate_measure::sample::TcpStatus;

use super::option::read_option;

/// The kernel's view of a TCP connection (TCP_INFO, linux/tcp.h), with what congestion and flow control know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFigures {
    /// Time until what isn't acknowledged is sent again.
    pub rto_us: u32,
    /// Time that an acknowledgement is put off.
    pub ato_us: u32,
    /// The path's MTU.
    pub pmtu_bytes: u32,
    /// Slow start threshold of the receive window.
    pub receive_ssthresh_bytes: u32,
    /// Smoothed round-trip time.
    pub rtt_us: u32,
    /// Its variation.
    pub rtt_var_us: u32,
    /// Slow start threshold of the congestion window.
    pub send_ssthresh_segments: u32,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Segments that may be out of order and not lost.
    pub reordering_segments: u32,
    /// Segments sent again.
    pub retransmitted_segments: u32,
}

/// What the kernel has counted on a TCP connection; what it doesn't count is absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpCounts {
    /// Whether segments carry timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// Bytes sent, those sent again counted again.
    pub sent_bytes: Option<u64>,
    /// Bytes received.
    pub received_bytes: Option<u64>,
    /// Bytes sent again.
    pub retransmitted_bytes: Option<u64>,
    /// How often the connection recovered from a retransmission time-out.
    pub timeouts: Option<u64>,
    /// How often this end's first segment was sent again, until the connection stood.
    pub syn_retransmissions: Option<u64>,
}

/// `struct tcp_info` as far as linerate reads it (linux/tcp.h). Older kernels write less of it, so
/// each field is there only when the kernel wrote that far.
struct TcpInfo {
    bytes: [u8; 256],
    length: usize,
}

impl TcpInfo {
    fn read(socket: BorrowedFd<'_>) -> Option<Self> {
        let mut info = Self { bytes: [0; 256], length: 0 };
        info.length =
            read_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info.bytes).ok()?.min(256);
        Some(info)
    }

    fn u16_at(&self, offset: usize) -> Option<u16> {
        let field = self.bytes[..self.length].get(offset..offset + 2)?;
        Some(u16::from_ne_bytes(field.try_into().ok()?))
    }

    fn u32_at(&self, offset: usize) -> Option<u32> {
        let field = self.bytes[..self.length].get(offset..offset + 4)?;
        Some(u32::from_ne_bytes(field.try_into().ok()?))
    }

    fn u64_at(&self, offset: usize) -> Option<u64> {
        let field = self.bytes[..self.length].get(offset..offset + 8)?;
        Some(u64::from_ne_bytes(field.try_into().ok()?))
    }
}

/// Bytes that the peer has acknowledged and bytes that have come, as the kernel counts them; where
/// this end opened the connection, the first includes the SYN's one.
pub fn tcp_bytes(socket: BorrowedFd<'_>) -> Option<(u64, u64)> {
    let info = TcpInfo::read(socket)?;
    Some((info.u64_at(120)?, info.u64_at(128)?))
}

/// A sum that changes whenever data of either end comes through, in order or behind a gap: bytes acknowledged and
/// received, segments of data that came, segments that the peer has beyond a gap. A peer that takes nothing more
/// changes none of them.
pub fn tcp_movement(socket: BorrowedFd<'_>) -> Option<u64> {
    let info = TcpInfo::read(socket)?;
    let bytes = info.u64_at(120)?.wrapping_add(info.u64_at(128)?);
    let segments = info.u32_at(152).unwrap_or(0).wrapping_add(info.u32_at(28).unwrap_or(0));
    Some(bytes.wrapping_add(segments.into()))
}

/// What the kernel has counted on a connection; each is there only when the kernel counts it.
pub fn tcp_counts(socket: BorrowedFd<'_>) -> TcpCounts {
    let Some(info) = TcpInfo::read(socket) else { return TcpCounts::default() };
    TcpCounts {
        // The sixth byte has the options that both ends agreed on; the first of them is timestamps.
        timestamps: info.bytes[..info.length].get(5).map(|options| options & 1 != 0),
        sent_bytes: info.u64_at(200),
        received_bytes: info.u64_at(128),
        retransmitted_bytes: info.u64_at(208),
        timeouts: info.u16_at(242).map(u64::from),
        syn_retransmissions: None,
    }
}

/// Whether something that was sent has been sent again and is not acknowledged yet, or probes are not answered.
pub fn tcp_is_retransmitting(socket: BorrowedFd<'_>) -> bool {
    let info = TcpInfo::read(socket);
    let tries = info.as_ref().and_then(|info| info.bytes[..info.length].get(2..4));
    tries.is_some_and(|tries| tries.iter().any(|times| *times > 0))
}

/// How long ago data or an acknowledgement last came from the peer, and whether it has acknowledged everything.
pub fn tcp_last_heard(socket: BorrowedFd<'_>) -> Option<(Duration, bool)> {
    let info = TcpInfo::read(socket)?;
    let heard_ms = info.u32_at(52)?.min(info.u32_at(56)?);
    Some((Duration::from_millis(heard_ms.into()), info.u32_at(24)? == 0))
}

/// Segments sent again so far: of a connection that has just come to stand, those of its handshake.
pub fn tcp_retransmissions(socket: BorrowedFd<'_>) -> Option<u64> {
    TcpInfo::read(socket)?.u32_at(100).map(u64::from)
}

/// Reads what netperf shows.
pub fn tcp_figures(socket: BorrowedFd<'_>) -> Option<TcpFigures> {
    let info = TcpInfo::read(socket)?;
    Some(TcpFigures {
        rto_us: info.u32_at(8)?,
        ato_us: info.u32_at(12)?,
        pmtu_bytes: info.u32_at(60)?,
        receive_ssthresh_bytes: info.u32_at(64)?,
        rtt_us: info.u32_at(68)?,
        rtt_var_us: info.u32_at(72)?,
        send_ssthresh_segments: info.u32_at(76)?,
        cwnd_segments: info.u32_at(80)?,
        reordering_segments: info.u32_at(88)?,
        retransmitted_segments: info.u32_at(100)?,
    })
}

/// Reads TCP_INFO; `None` where the socket isn't TCP or the kernel refuses.
pub fn tcp_status(socket: BorrowedFd<'_>) -> Option<TcpStatus> {
    let info = TcpInfo::read(socket)?;
    Some(TcpStatus {
        mss_bytes: info.u32_at(16)?,
        pmtu_bytes: info.u32_at(60)?,
        rtt_us: info.u32_at(68)?,
        rtt_var_us: info.u32_at(72)?,
        cwnd_segments: info.u32_at(80)?,
        retransmitted_segments: info.u32_at(100)?,
        // The kernel's "not yet known" is all ones.
        min_rtt_us: info.u32_at(148).filter(|min| *min != u32::MAX),
        delivery_rate_bps: info.u64_at(160).map(|bytes| bytes.saturating_mul(8)),
        busy_us: info.u64_at(168),
        rwnd_limited_us: info.u64_at(176),
        sndbuf_limited_us: info.u64_at(184),
        snd_wnd_bytes: info.u32_at(228),
        reordering_seen: info.u32_at(220),
        notsent_bytes: info.u32_at(144),
        receive_queue_bytes: unread_bytes(socket),
        unacked_segments: info.u32_at(24),
    })
}

/// Bytes that a TCP socket has to send yet, and bytes that wait to be read from it.
pub fn tcp_queues(socket: BorrowedFd<'_>) -> Option<(u32, u32)> {
    Some((TcpInfo::read(socket)?.u32_at(144)?, unread_bytes(socket)?))
}

/// Bytes that a TCP socket has taken and its peer has not acknowledged (SIOCOUTQ, tcp(7)); `None` where the kernel
/// doesn't tell.
pub fn tcp_unacknowledged_bytes(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one `int` to the pointer, which describes `bytes`; the descriptor is borrowed, so it is
    // open.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    u64::try_from(bytes).ok().filter(|_| result == 0)
}

fn unread_bytes(socket: BorrowedFd<'_>) -> Option<u32> {
    let bytes = rustix::io::ioctl_fionread(socket).ok()?;
    Some(u32::try_from(bytes).unwrap_or(u32::MAX))
}
