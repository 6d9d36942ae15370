//! Whether what is asked of QUIC makes sense.

use super::{Checked, Contradiction, in_bytes, in_digits, refuse_first, refuse_if, within};
use crate::plan::{Closing, Kind, Pacing, Plan, QuicOptions, Transport, Workload, limits};
use crate::units::{quoted, render_duration_ns, render_rate};

impl Plan {
    pub(super) fn check_qlog(&self) -> Checked {
        let quic = self.workload.transport == Transport::Quic;
        refuse_if(self.local.qlog.is_some() && !quic, "qlog", || {
            "only a load over QUIC has qlog files: leave them out, or use QUIC".to_owned()
        })
    }
}

impl Workload {
    pub(super) fn check_quic(&self) -> Checked {
        let quic = &self.quic;
        if self.transport == Transport::Quic {
            within(
                "number of flows over QUIC",
                self.total_flows(),
                &limits::QUIC_FLOWS,
                in_digits,
            )?;
        }
        within("streams of a connection", quic.streams, &limits::STREAMS, in_digits)?;
        let numbers = [
            ("initial window", quic.initial_window_bytes, limits::INITIAL_WINDOW_BYTES),
            ("window of a stream", quic.stream_window_bytes, limits::STREAM_WINDOW_BYTES),
            (
                "window of a connection",
                quic.connection_window_bytes,
                limits::CONNECTION_WINDOW_BYTES,
            ),
            ("QUIC packet", quic.mtu_bytes, limits::QUIC_MTU_BYTES),
            ("longest QUIC packet", quic.mtu_most_bytes, limits::QUIC_MTU_BYTES),
        ];
        for (name, bytes, range) in numbers {
            bytes.map_or(Ok(()), |bytes| within(name, bytes, &range, in_bytes))?;
        }
        // Where it isn't asked for, a connection's is no less than a stream's.
        if let Some(bytes) = quic.connection_window_bytes.or(quic.stream_window_bytes) {
            let all_bytes = u64::from(bytes) * u64::from(self.quic_connections());
            within("windows of all connections", all_bytes, &limits::QUIC_WINDOWS_BYTES, in_bytes)?;
        }
        if let Some(packets) = quic.ack_packets {
            within("packets without acknowledgement", packets, &limits::ACK_PACKETS, in_digits)?;
        }
        if let Some(packets) = quic.ack_reordering {
            within("packets out of order", packets, &limits::ACK_REORDERING, in_digits)?;
        }
        let times = [
            ("idle time-out", quic.idle_ns, limits::IDLE_NS),
            ("delay of acknowledgements", quic.ack_delay_ns, limits::ACK_DELAY_NS),
        ];
        for (name, ns, range) in times {
            ns.map_or(Ok(()), |ns| within(name, ns, &range, render_duration_ns))?;
        }
        if let Pacing::Rate { bps } = quic.pacing {
            within("rate of packets", bps, &limits::RATE_BPS, |bps| render_rate(bps as f64))?;
        }
        if let (Some(window), Some(mtu)) = (quic.initial_window_bytes, quic.mtu_bytes) {
            refuse_if(u64::from(window) < u64::from(mtu) * 2, "initial window", || {
                format!(
                    "an initial window of {window} bytes is less than two packets of {mtu} bytes: make \
                     the window larger, or the packets smaller"
                )
            })?;
        }
        refuse_first(&self.contradictions_of_quic())?;
        self.check_quic_datagrams()?;
        let Some(name) = &self.socket.congestion else { return Ok(()) };
        let known = QuicOptions::CONGESTION.contains(&name.as_str());
        refuse_if(self.transport == Transport::Quic && !known, "congestion control", || {
            format!("QUIC has no congestion control {}: use cubic, reno or bbr", quoted(name))
        })
    }

    /// A datagram goes in one packet.
    fn check_quic_datagrams(&self) -> Checked {
        let longest = match self.kind {
            _ if !self.quic.datagrams => 0,
            Kind::Stream { send_bytes, .. } => send_bytes,
            Kind::Rr { request_bytes, response_bytes, .. }
            | Kind::Connect { request_bytes, response_bytes, .. } => {
                request_bytes.max(response_bytes)
            }
        };
        let packet = self.quic.mtu_bytes.or(self.quic.mtu_most_bytes);
        let packet = packet.map_or(limits::QUIC_MTU_FOUND_BYTES, u64::from);
        let most = packet.saturating_sub(limits::QUIC_DATAGRAM_OVERHEAD_BYTES);
        refuse_if(u64::from(longest) > most, "datagram size", || {
            format!(
                "a QUIC packet of {packet} bytes holds a datagram of at most {most} bytes, not \
                 {longest}: make the datagrams smaller, or the packets larger (--mtu)"
            )
        })
    }

    fn contradictions_of_quic(&self) -> [Contradiction; 9] {
        let quic = self.transport == Transport::Quic;
        let (closes_otherwise, connects) = match self.kind {
            Kind::Connect { close, .. } => (close != Closing::Fin, true),
            _ => (false, false),
        };
        [
            (
                !quic && !self.quic.is_default(),
                first_option(&self.quic),
                "options of QUIC with another transport: leave them out, or use QUIC",
            ),
            (
                quic && closes_otherwise,
                "close",
                "QUIC connections end only by the client's close: leave it out, or use TCP or TLS",
            ),
            (
                quic && connects && self.quic.streams > 1,
                "streams of a connection",
                "connections that come and go have one request and one stream each: leave it out, or \
                 measure rr",
            ),
            (
                self.quic.unidirectional && (self.has_transactions() || self.quic.datagrams),
                "streams of one direction",
                "streams of one direction carry neither requests with responses nor datagrams: leave it \
                 out, or measure a stream",
            ),
            (
                quic && connects && self.quic.datagrams,
                "datagrams",
                "connections that come and go carry their request in a stream, not in datagrams: leave \
                 it out, or measure rr",
            ),
            (
                quic && self.socket.mss_bytes.is_some(),
                "MSS",
                "QUIC has no MSS: set the size of a packet instead, or use TCP or TLS",
            ),
            (
                quic && self.socket.no_delay,
                "no delay",
                "no delay has no effect with QUIC, which never delays data: leave it out, or use TCP or TLS",
            ),
            (
                quic && self.quic.mtu_bytes.is_some() && self.quic.mtu_most_bytes.is_some(),
                "QUIC packet",
                "a fixed packet size excludes a limit for the search of one: leave one of them out",
            ),
            (
                quic && self.quic.streams > self.total_flows(),
                "streams of a connection",
                "more streams of a connection than flows: ask for at most as many streams as flows",
            ),
        ]
    }
}

/// The first field of QUIC's options that isn't the default.
fn first_option(quic: &QuicOptions) -> &'static str {
    let default = QuicOptions::default();
    let fields = [
        (quic.streams != default.streams, "streams of a connection"),
        (quic.initial_window_bytes.is_some(), "initial window"),
        (quic.stream_window_bytes.is_some(), "window of a stream"),
        (quic.connection_window_bytes.is_some(), "window of a connection"),
        (quic.mtu_bytes.is_some(), "QUIC packet"),
        (quic.mtu_most_bytes.is_some(), "longest QUIC packet"),
        (quic.ack_packets.is_some(), "packets without acknowledgement"),
        (quic.ack_delay_ns.is_some(), "delay of acknowledgements"),
        (quic.ack_reordering.is_some(), "packets out of order"),
        (quic.no_ecn, "no ECN"),
        (quic.version != default.version, "QUIC version"),
        (quic.pacing != default.pacing, "rate of packets"),
        (quic.idle_ns.is_some(), "idle time-out"),
        (quic.datagrams, "datagrams"),
        (quic.unidirectional, "streams of one direction"),
    ];
    fields.into_iter().find(|(is_set, _)| *is_set).map_or("options of QUIC", |(_, field)| field)
}
