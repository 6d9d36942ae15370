//! Whether what is asked of QUIC makes sense.

use super::{Checked, in_bytes, in_digits, refuse_first, refuse_if, within};
use crate::plan::{Closing, Kind, Pacing, Plan, QuicOptions, Transport, Workload, limits};
use crate::units::{quoted, render_duration_ns, render_rate};

impl Plan {
    pub(super) fn check_qlog(&self) -> Checked {
        let quic = self.workload.transport == Transport::Quic;
        refuse_if(self.local.qlog.is_some() && !quic, || {
            "qlog files of a load without QUIC: leave them out, or ask for QUIC".to_owned()
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
            refuse_if(u64::from(window) < u64::from(mtu) * 2, || {
                format!(
                    "an initial window of {window} bytes for packets of {mtu}: ask for at least two \
                     packets, or for shorter ones"
                )
            })?;
        }
        refuse_first(&self.contradictions_of_quic())?;
        self.check_quic_datagrams()?;
        let Some(name) = &self.socket.congestion else { return Ok(()) };
        let known = QuicOptions::CONGESTION.contains(&name.as_str());
        refuse_if(self.transport == Transport::Quic && !known, || {
            format!(
                "QUIC here has no congestion control {}: ask for cubic, reno or bbr",
                quoted(name)
            )
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
        refuse_if(u64::from(longest) > most, || {
            format!(
                "datagrams of {longest} bytes over QUIC, whose packets of {packet} bytes hold {most}: \
                 ask for shorter ones, or for longer packets (--mtu)"
            )
        })
    }

    fn contradictions_of_quic(&self) -> [(bool, &'static str); 9] {
        let quic = self.transport == Transport::Quic;
        let (closes_otherwise, connects) = match self.kind {
            Kind::Connect { close, .. } => (close != Closing::Fin, true),
            _ => (false, false),
        };
        [
            (
                !quic && !self.quic.is_default(),
                "options of QUIC with another transport: leave them out, or ask for QUIC",
            ),
            (
                quic && closes_otherwise,
                "a reset, or a server that closes, with QUIC, whose connections wait in no port: \
                 leave it out, or ask for TCP or TLS",
            ),
            (
                quic && connects && self.quic.streams > 1,
                "several streams of connections that come and go, each with one request: leave it \
                 out, or measure rr",
            ),
            (
                self.quic.unidirectional && (self.has_transactions() || self.quic.datagrams),
                "streams of one direction for what needs both, or none: leave it out, or measure a stream",
            ),
            (
                quic && connects && self.quic.datagrams,
                "datagrams of connections that come and go, each with one request in a stream: leave \
                 it out, or measure rr",
            ),
            (
                quic && self.socket.mss_bytes.is_some(),
                "an MSS with QUIC, which has none: set the size of a packet instead, or ask for TCP \
                 or TLS",
            ),
            (
                quic && self.socket.no_delay,
                "no delay with QUIC, which never delays: leave it out, or ask for TCP or TLS",
            ),
            (
                quic && self.quic.mtu_bytes.is_some() && self.quic.mtu_most_bytes.is_some(),
                "packets of one length and a longest length to look for: leave one of them out",
            ),
            (
                quic && self.quic.streams > self.total_flows(),
                "more streams of a connection than flows: ask for at most as many streams as flows",
            ),
        ]
    }
}
