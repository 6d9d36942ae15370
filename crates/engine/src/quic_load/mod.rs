//! Loads over QUIC.
//!
//! Each shard of the client has a UDP socket that is connected to one of the server's. The server's socket
//! is opened as the flow of any load over UDP is, with a cookie and the test's token. So the kernel hands
//! each packet to the shard that it is for, packets from other addresses don't arrive there, and the address
//! is validated before the first QUIC packet. Over its socket the shard makes or takes QUIC connections.
//!
//! A flow is a stream of one of these connections, with the steps and loops of every flow over a connection.
//! A connection that comes and goes has one stream, and its life is that of such connections over TCP.

mod acceptor;
mod carrier;
mod claims;
mod connected;
mod dialer;
mod flow;
mod flows;
mod opening;
mod sockets;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::{Kind, Workload};

use crate::connections::Agreement;
use crate::error::Error;
use crate::transport::quic::{
    Acknowledging, ClientSide, Congestion, Extras, LEAST_PAYLOAD_BYTES, MOST_JUMBO_CONNECTIONS,
    ServerSide, Settings,
};

pub(crate) use acceptor::QuicAcceptor;
pub(crate) use claims::Claims;
pub(crate) use dialer::QuicDialer;
pub(crate) use flows::QuicFlows;
use sockets::Sockets;

/// A connection on which no packet arrives for so long has ended: a client's death is noticed by then.
const IDLE: Duration = Duration::from_secs(4);
/// A connection that waits says so this often.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// The longest a loop sleeps.
const LONGEST_WAIT: Duration = Duration::from_millis(20);
/// What was said last may take so long to be acknowledged.
const LINGER: Duration = Duration::from_secs(1);
/// What a connection closes with when all is well.
const DONE: u32 = 0;
/// What it closes with on one that isn't of its test.
const FOREIGN: u32 = 1;
/// What it closes with where the connection's life has failed.
const FAILED: u32 = 2;

/// What a load over QUIC needs beside its workload.
#[derive(Clone)]
pub(crate) struct Quic {
    pub(crate) token: [u8; 16],
    pub(crate) settings: Settings,
    pub(crate) side: Side,
}

/// Which end it is.
#[derive(Clone)]
pub(crate) enum Side {
    Client { server: SocketAddr, client: ClientSide, agreement: Agreement },
    Server { server: ServerSide },
}

impl Quic {
    pub(crate) fn client(
        workload: &Workload,
        token: [u8; 16],
        server: SocketAddr,
        tls: &Arc<rustls::ClientConfig>,
        logs: Option<&Path>,
    ) -> Result<Self, Error> {
        let settings = settings(workload);
        let mut client = ClientSide::new(Arc::clone(tls), &settings, Extras::default())?;
        if let Some(directory) = logs {
            client = client.with_logs(directory)?;
        }
        let agreement = Agreement::new(workload.tls.handshake, workload.flows);
        Ok(Self { token, settings, side: Side::Client { server, client, agreement } })
    }

    pub(crate) fn server(
        workload: &Workload,
        token: [u8; 16],
        tls: &Arc<rustls::ServerConfig>,
    ) -> Result<Self, Error> {
        let settings = settings(workload);
        let server = ServerSide::new(Arc::clone(tls), &settings, Extras::default())?;
        Ok(Self { token, settings, side: Side::Server { server } })
    }
}

/// What a server lets a client have on its way in all connections of a load together: it must hold
/// that where something before it is missing.
const WINDOWS_BYTES: u64 = 512 << 20;
/// The least that a connection gets of it.
const LEAST_WINDOW_BYTES: u64 = 64 << 10;

/// What a connection may send at first, unless two of its packets are longer.
const LEAST_FIRST_BYTES: u64 = 14_720;

/// A connection that says less than this and goes is gone before it has used what it found out: without
/// the long packets that are tried there are a sixth more of them, and with answers of 400 kB still 7 %.
const BRIEF_BYTES: u64 = 512 << 10;

/// Whether connections are too short for finding out how long packets may be.
fn is_brief(workload: &Workload) -> bool {
    let said_bytes = match workload.kind {
        Kind::Connect { transfer: Some(transfer), .. } => transfer.bytes.bounds().1,
        Kind::Connect { request_bytes, response_bytes, .. } => {
            u64::from(request_bytes) + u64::from(response_bytes)
        }
        _ => return false,
    };
    workload.quic.mtu_most_bytes.is_none() && said_bytes < BRIEF_BYTES
}

fn settings(workload: &Workload) -> Settings {
    let default = Settings::default();
    let quic = &workload.quic;
    let connects = matches!(workload.kind, Kind::Connect { .. });
    let connections = if connects { workload.flows } else { workload.quic_connections() };
    let most = u64::from(default.connection_window_bytes);
    let share = (WINDOWS_BYTES / u64::from(connections.max(1))).clamp(LEAST_WINDOW_BYTES, most);
    let share = u32::try_from(share).unwrap_or(u32::MAX);
    let stream_window_bytes =
        quic.stream_window_bytes.unwrap_or(default.stream_window_bytes.min(share));
    let congestion = workload.socket.congestion.as_deref().and_then(Congestion::parse);
    let idle = quic.idle_ns.map_or(IDLE, Duration::from_nanos);
    let short = |bytes: Option<u32>| bytes.and_then(|bytes| u16::try_from(bytes).ok());
    Settings {
        congestion: congestion.unwrap_or_default(),
        initial_window_bytes: quic.initial_window_bytes.map(u64::from).or_else(|| {
            // RFC 9002, section 7.2; a window that holds no packet would never open.
            quic.mtu_bytes.map(|mtu| u64::from(mtu) * 2).filter(|two| *two > LEAST_FIRST_BYTES)
        }),
        stream_window_bytes,
        connection_window_bytes: quic
            .connection_window_bytes
            .unwrap_or(share.max(stream_window_bytes)),
        // Those that come and go are remembered for some round trips.
        connections: connections as usize * if connects { 16 } else { 2 } + 1_024,
        half_open_connections: default.half_open_connections,
        handshake: default.handshake,
        idle,
        // Twice in the time, so that one may get lost.
        keep_alive: Some(KEEP_ALIVE.min(idle / 3)),
        streams: quic.streams,
        mtu_bytes: short(quic.mtu_bytes).or(is_brief(workload).then_some(LEAST_PAYLOAD_BYTES)),
        turns: matches!(workload.kind, Kind::Stream { .. }),
        acks: Acknowledging {
            packets: quic.ack_packets,
            delay: quic.ack_delay_ns.map(Duration::from_nanos),
            reordering: quic.ack_reordering,
        },
        offload: !workload.socket.no_offload,
        ecn: !quic.no_ecn,
        dscp: workload.socket.dscp.unwrap_or(0),
        datagrams: quic.datagrams,
        mtu_most_bytes: short(quic.mtu_most_bytes),
        // What goes in datagrams is known to be shorter. Connections that come and go would be over before
        // the search for longer packets had paid.
        jumbo: !quic.datagrams && !connects && connections <= MOST_JUMBO_CONNECTIONS,
        pacing: quic.pacing,
        version: quic.version.into(),
        ids: default.ids,
        // Each of its sockets is connected to one address.
        migrates: false,
    }
}

#[cfg(test)]
mod tests {
    mod lives;

    use linerate_measure::Transport;

    use super::*;

    /// The length that is set, and whether jumbo frames are looked for.
    fn lengths(workload: &Workload) -> (Option<u16>, bool) {
        let settings = settings(workload);
        (settings.mtu_bytes, settings.jumbo)
    }

    #[test]
    fn few_connections_that_last_look_for_jumbo_frames_and_brief_ones_for_nothing() {
        assert_eq!(lengths(&Workload::rr(Transport::Quic)), (None, true));
        let mut one_way = Workload::rr(Transport::Quic);
        one_way.quic.unidirectional = true;
        assert_eq!(lengths(&one_way), (None, true));
        let mut many = Workload::rr(Transport::Quic);
        many.flows = 128;
        assert_eq!(lengths(&many), (None, false));
        many.quic.streams = 2;
        assert_eq!(lengths(&many), (None, true));
        let mut connect = Workload::connect(Transport::Quic);
        assert_eq!(lengths(&connect), (Some(1_200), false));
        connect.quic.mtu_bytes = Some(1_300);
        assert_eq!(lengths(&connect), (Some(1_300), false));
        connect.quic.mtu_bytes = None;
        connect.quic.mtu_most_bytes = Some(1_300);
        assert_eq!(lengths(&connect), (None, false));
        let Kind::Connect { request_bytes, .. } = &mut connect.kind else { panic!("a connect") };
        *request_bytes = 1 << 20;
        connect.quic.mtu_most_bytes = None;
        assert_eq!(lengths(&connect), (None, false));
        let mut datagrams = Workload::rr(Transport::Quic);
        datagrams.use_quic_datagrams();
        assert_eq!(lengths(&datagrams), (None, false));
    }

    #[test]
    fn windows_are_what_is_asked_for_or_a_share_of_what_all_may_have() {
        let windows = |workload: &Workload| {
            let settings = settings(workload);
            (settings.stream_window_bytes, settings.connection_window_bytes)
        };
        let mut rr = Workload::rr(Transport::Quic);
        assert_eq!(windows(&rr), (8 << 20, 64 << 20));
        rr.flows = 512;
        assert_eq!(windows(&rr), (1 << 20, 1 << 20));
        rr.quic.stream_window_bytes = Some(2 << 20);
        assert_eq!(windows(&rr), (2 << 20, 2 << 20));
        rr.quic.connection_window_bytes = Some(20_000);
        assert_eq!(windows(&rr), (2 << 20, 20_000));
        rr.quic.connection_window_bytes = Some(16 << 20);
        assert_eq!(windows(&rr), (2 << 20, 16 << 20));
    }
}
