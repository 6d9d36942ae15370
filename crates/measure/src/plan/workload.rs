//! Workloads with their defaults, and what each flow's part of a workload is.

use super::{
    Closing, ConnectTransfer, Direction, End, Kind, Payload, QuicOptions, Rate, Schedule,
    SocketOptions, Threading, TlsOptions, Transport, Workload, limits,
};
use crate::media::{Frames, Media};

const DEFAULT_DURATION_NS: u64 = 10_000_000_000;
const DEFAULT_INTERVAL_NS: u64 = 1_000_000_000;
const DEFAULT_RR_TIMEOUT_NS: u64 = 200_000_000;
const DEFAULT_CONNECT_TIMEOUT_NS: u64 = 5_000_000_000;

/// Large writes: 16 KiB ones cost about half the throughput.
const DEFAULT_STREAM_SEND_BYTES: u32 = 128 * 1024;

/// What is sent isn't copied, but every packet looks for its place among the sends that weren't
/// acknowledged: few long ones take 3 % less of a processor than four times as many.
const DEFAULT_QUIC_SEND_BYTES: u32 = 512 * 1024;

/// Fits a QUIC packet of 1200 bytes, which every path carries, with 62 bytes to spare.
const DEFAULT_QUIC_DATAGRAM_BYTES: u32 = 1100;

/// Fits a 1500-byte MTU over IPv6 (40 bytes) and UDP (8 bytes), with 4 bytes to spare, so that
/// the same load works on IPv4 and IPv6 without fragments.
const DEFAULT_DATAGRAM_BYTES: u32 = 1448;

/// How close together the frames of different flows of a media load are due.
const TURN_NS: u64 = 1_000_000;

/// A media stream unless told otherwise: video of a call.
const DEFAULT_MEDIA_BPS: u64 = 2_000_000;
const DEFAULT_MEDIA: Media = Media { frames_per_s: 60, buffer_depth_ns: 200_000_000 };

impl Workload {
    /// Bulk transfer: one flow for 10 s at full speed, samples of 1 s, in calls of 128 KiB (TCP,
    /// TLS), 512 KiB (QUIC) or datagrams of 1448 bytes (UDP).
    pub fn stream(direction: Direction, transport: Transport) -> Self {
        let send_bytes = match transport {
            Transport::Tcp | Transport::Tls => DEFAULT_STREAM_SEND_BYTES,
            Transport::Quic => DEFAULT_QUIC_SEND_BYTES,
            Transport::Udp => DEFAULT_DATAGRAM_BYTES,
        };
        Self::with_kind(Kind::Stream { direction, send_bytes, media: None }, transport)
    }

    /// A media stream over UDP: 2 Mbit/s in 60 frames a second, played 200 ms after the first datagram, in datagrams
    /// of up to 1448 bytes; one flow for 10 s, samples of 1 s.
    pub fn media(direction: Direction) -> Self {
        let mut workload = Self::stream(direction, Transport::Udp);
        workload.rate = Some(Rate::EachFlow { bps: DEFAULT_MEDIA_BPS });
        if let Kind::Stream { media, .. } = &mut workload.kind {
            *media = Some(DEFAULT_MEDIA);
        }
        workload
    }

    /// Request and response: one flow for 10 s, samples of 1 s, one byte each way (UDP: 16, its
    /// header), responses to datagrams awaited for 200 ms.
    pub fn rr(transport: Transport) -> Self {
        let size_bytes = match transport {
            Transport::Tcp | Transport::Tls | Transport::Quic => 1,
            Transport::Udp => super::RR_HEADER_BYTES,
        };
        Self::with_kind(
            Kind::Rr {
                request_bytes: size_bytes,
                response_bytes: size_bytes,
                timeout_ns: DEFAULT_RR_TIMEOUT_NS,
                outstanding: None,
                active_flows: None,
                schedule: None,
            },
            transport,
        )
    }

    /// Connections: one at a time for 10 s, samples of 1 s, one byte each way, the client closes in
    /// order, 5 s for each.
    pub fn connect(transport: Transport) -> Self {
        Self::with_kind(
            Kind::Connect {
                request_bytes: 1,
                response_bytes: 1,
                timeout_ns: DEFAULT_CONNECT_TIMEOUT_NS,
                close: Closing::Fin,
                transfer: None,
                hold_ns: 0,
                schedule: None,
            },
            transport,
        )
    }

    fn with_kind(kind: Kind, transport: Transport) -> Self {
        Self {
            kind,
            transport,
            end: End::Time { duration_ns: DEFAULT_DURATION_NS },
            omit_ns: 0,
            flows: 1,
            threading: Threading::default(),
            rate: None,
            payload: Payload::default(),
            interval_ns: DEFAULT_INTERVAL_NS,
            socket: SocketOptions::default(),
            quic: QuicOptions::default(),
            tls: TlsOptions::default(),
        }
    }

    /// What connections that come and go carry in the place of a request and a response, where they do.
    pub fn transfer(&self) -> Option<&ConnectTransfer> {
        match &self.kind {
            Kind::Connect { transfer, .. } => transfer.as_ref(),
            Kind::Stream { .. } | Kind::Rr { .. } => None,
        }
    }

    /// The direction of a stream; `None` for request and response.
    pub fn direction(&self) -> Option<Direction> {
        match self.kind {
            Kind::Stream { direction, .. } => Some(direction),
            Kind::Rr { .. } | Kind::Connect { .. } => None,
        }
    }

    /// The directions one by one; request and response count as up.
    pub fn directions(&self) -> Vec<Direction> {
        match self.direction() {
            Some(Direction::Both) => vec![Direction::Up, Direction::Down],
            Some(direction) => vec![direction],
            None => vec![Direction::Up],
        }
    }

    /// What makes a stream a media stream; `None`: the load is another.
    pub fn frames(&self) -> Option<Media> {
        match self.kind {
            Kind::Stream { media, .. } => media,
            Kind::Rr { .. } | Kind::Connect { .. } => None,
        }
    }

    /// Datagrams of a frame of a media stream, at least one, and bytes of each: the frame's part of
    /// the rate in as few datagrams as it takes, all of one size. So a frame may have less bytes
    /// than its part of the rate, by up to one for each datagram.
    pub fn frame_datagrams(&self) -> Option<(u64, u32)> {
        let media = self.frames()?;
        let Kind::Stream { send_bytes, .. } = self.kind else { return None };
        let frame_bytes = self.rate_per_flow_bps()? / 8 / u64::from(media.frames_per_s.max(1));
        let datagrams = frame_bytes.div_ceil(u64::from(send_bytes.max(1))).max(1);
        Some((datagrams, u32::try_from(frame_bytes / datagrams).unwrap_or(send_bytes)))
    }

    /// Bytes of one send call of a stream, or of one datagram's payload; `None` for request and response.
    pub fn unit_bytes(&self) -> Option<u32> {
        let Kind::Stream { send_bytes, .. } = self.kind else { return None };
        Some(self.frame_datagrams().map_or(send_bytes, |(_, bytes)| bytes))
    }

    /// The frames of one flow of a media stream. Those of the flows of a direction are spread over a frame's time,
    /// in whole milliseconds: a thread that has many flows sends those of a millisecond when it wakes up once.
    pub fn frames_of(&self, flow: u32) -> Option<Frames> {
        let Media { frames_per_s, buffer_depth_ns } = self.frames()?;
        let (datagrams, _) = self.frame_datagrams()?;
        let flows = self.flows.max(1);
        let frame_ns = 1_000_000_000 / u64::from(frames_per_s.max(1));
        Some(Frames {
            per_s: frames_per_s,
            datagrams: u32::try_from(datagrams).unwrap_or(u32::MAX),
            buffer_depth_ns,
            first_ns: frame_ns * u64::from(flow % flows) / u64::from(flows) / TURN_NS * TURN_NS,
        })
    }

    /// When requests or connections are to begin; `None` in a closed loop, and for a stream.
    pub fn schedule(&self) -> Option<Schedule> {
        match self.kind {
            Kind::Rr { schedule, .. } | Kind::Connect { schedule, .. } => schedule,
            Kind::Stream { .. } => None,
        }
    }

    /// Whether flows go in datagrams, each of which may be lost: UDP's or QUIC's.
    pub fn has_datagrams(&self) -> bool {
        self.transport == Transport::Udp || self.quic.datagrams
    }

    /// Makes the flows of a load over QUIC go in datagrams, of the sizes that are the default there.
    pub fn use_quic_datagrams(&mut self) {
        self.quic.datagrams = true;
        match &mut self.kind {
            Kind::Stream { send_bytes, .. } => *send_bytes = DEFAULT_QUIC_DATAGRAM_BYTES,
            Kind::Rr { request_bytes, response_bytes, .. } => {
                (*request_bytes, *response_bytes) =
                    (super::RR_HEADER_BYTES, super::RR_HEADER_BYTES);
            }
            Kind::Connect { .. } => {}
        }
    }

    /// Requests that may be on their way at once in each flow.
    pub fn outstanding(&self) -> u32 {
        let Kind::Rr { outstanding, schedule, .. } = self.kind else { return 1 };
        let most = u32::try_from(*limits::OUTSTANDING.end()).unwrap_or(u32::MAX);
        outstanding.unwrap_or(if schedule.is_some() { most } else { 1 })
    }

    /// Flows that may have a request on its way at a time; `None`: all of them.
    pub fn active_flows(&self) -> Option<u32> {
        match self.kind {
            Kind::Rr { active_flows, .. } => active_flows,
            Kind::Stream { .. } | Kind::Connect { .. } => None,
        }
    }

    /// Whether the load is requests and responses, over connections that stay or not.
    pub fn has_transactions(&self) -> bool {
        !matches!(self.kind, Kind::Stream { .. })
    }

    /// Whether small sends over a connection leave at once: what is asked of a stream, and always so for requests
    /// and responses, of which a last part would otherwise wait for an acknowledgement.
    pub fn no_delay(&self) -> bool {
        self.socket.no_delay || self.has_transactions()
    }

    /// Number of flows, both directions together.
    pub fn total_flows(&self) -> u32 {
        match self.direction() {
            Some(Direction::Both) => self.flows.saturating_mul(2),
            _ => self.flows,
        }
    }

    /// Number of flows that have a connection, or QUIC stream, of their own: all of them, or where they are duplex
    /// the first half, of which each carries the one so much further on too.
    pub fn opened_flows(&self) -> u32 {
        if self.payload.duplex { self.flows } else { self.total_flows() }
    }

    /// Which way the bytes of flow number `flow` go: [`Direction::Up`] or [`Direction::Down`],
    /// never [`Direction::Both`]. Where both directions run, the first [`Workload::flows`] flows
    /// go up and the others down. Requests go up, so a flow of request and response is `Up`.
    pub fn flow_direction(&self, flow: u32) -> Direction {
        match self.direction() {
            Some(Direction::Down) => Direction::Down,
            Some(Direction::Both) if flow >= self.flows => Direction::Down,
            _ => Direction::Up,
        }
    }

    /// Flow number `flow`'s even share of `total`, an amount for one direction; the remainder
    /// goes to the first flows of the direction, one each.
    pub fn shares(&self, total: u64, flow: u32) -> u64 {
        let flows = u64::from(self.flows.max(1));
        let place = u64::from(flow) % flows;
        total / flows + u64::from(place < total % flows)
    }

    /// The connection that carries flow number `flow` of a load over QUIC.
    pub fn connection_of(&self, flow: u32) -> u32 {
        flow / self.quic.streams.max(1)
    }

    /// Connections of a load over QUIC whose flows stay.
    pub fn quic_connections(&self) -> u32 {
        self.opened_flows().div_ceil(self.quic.streams.max(1))
    }

    /// The pace of each flow in bits of payload per second, rounded down to a whole bit but never
    /// to zero; `None`: as fast as it goes.
    pub fn rate_per_flow_bps(&self) -> Option<u64> {
        match self.rate? {
            Rate::AllFlows { bps } => Some((bps / u64::from(self.flows.max(1))).max(1)),
            Rate::EachFlow { bps } => Some(bps),
        }
    }
}
