//! What the options mean to the engine.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use linerate_engine::access::Identity;
use linerate_engine::qperf::{ClientPlan, QuicPlan, ServerPlan};
use linerate_engine::relay::{
    self, Carries, ProxyLimits, ProxyPlan, QuicSides, Sending, SideOptions,
};
use linerate_engine::resolve_host;
use linerate_measure::QuicVersion;
use linerate_personality::qperf::options::{Congestion, Options, Version};
use linerate_personality::target::{is_address, without_brackets};

use super::Failure;

fn quic(options: &Options) -> QuicPlan {
    QuicPlan {
        cubic: options.congestion == Congestion::Cubic,
        window_packets: options.window_packets,
        receive_bytes: options.buffers.quic_bytes,
        socket_bytes: options.buffers.udp_bytes,
        segments: options.segments,
        ack_delay: options.acks.max_delay_ms.map(|ms| Duration::from_millis(ms.into())),
        draft_29: options.version == Some(Version::Draft29),
        key_log: options.files.tls_log.clone(),
        events: options.files.events.clone(),
    }
}

/// How long an interval is, ns.
pub(super) fn interval_ns(options: &Options) -> u64 {
    (options.interval_s * 1e9).round() as u64
}

/// The plan of a client of this host.
pub(super) fn client(options: &Options, host: &str) -> Result<ClientPlan, Failure> {
    let runtime = Duration::from_secs(options.runtime_s.into());
    Ok(ClientPlan {
        remote: resolve(host, options.port)?,
        server_name: if is_address(host) { String::new() } else { host.to_owned() },
        quic: quic(options),
        runtime: (!options.ends_with_first_byte).then_some(runtime),
        interval_ns: interval_ns(options),
        logs: options.files.qlog.clone(),
        session: options.files.session.clone(),
    })
}

/// The plan of a server with this identity.
pub(super) fn server(options: &Options, identity: Identity) -> Result<ServerPlan, Failure> {
    let port = options.listen_port();
    let address = match &options.listen.address {
        Some(host) => resolve(host, port)?,
        None => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
    };
    Ok(ServerPlan {
        address,
        identity,
        quic: quic(options),
        interval_ns: interval_ns(options),
        session_cache: options.listen.session_cache.clone(),
    })
}

/// Clients that a proxy has at a time.
const MOST_CLIENTS: u32 = 10_000;
/// Streams of each kind that the peers of a proxy may have open, as HTTP/3 needs some of each.
const PROXY_STREAMS: u32 = 100;
/// How long a proxy's target may take to answer.
const TARGET_ANSWERS: Duration = Duration::from_secs(10);

/// The plan of a proxy to this host, with this identity.
pub(super) fn proxy(
    options: &Options,
    host: &str,
    identity: Identity,
) -> Result<ProxyPlan, Failure> {
    let port = options.listen_port();
    let bind = match &options.listen.address {
        Some(address) => resolve(address, port)?.ip(),
        None => Ipv4Addr::UNSPECIFIED.into(),
    };
    let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    Ok(ProxyPlan {
        bind: Some(bind.into()),
        port,
        target: resolve(host, options.port)?,
        // One, as the original: its lines come in order.
        threads: 1,
        limits: ProxyLimits {
            buffer_bytes: bytes(options.buffers.proxy_bytes).max(LEAST_BUFFER_BYTES),
            window_bytes: bytes(options.buffers.quic_bytes),
            streams: PROXY_STREAMS,
            connections: MOST_CLIENTS,
            connections_per_origin: MOST_CLIENTS,
        },
        connect_timeout: TARGET_ANSWERS,
        carries: Carries::Quic(Box::new(QuicSides {
            target_name: host.to_owned(),
            waits_for_target: options.proxy.waits_for_server,
            alpn: options.proxy.alpn.clone(),
            early_data: options.files.session.is_some(),
            identity,
            authority: None,
            sending: Sending {
                congestion: match options.congestion {
                    Congestion::Reno => relay::Congestion::Reno,
                    Congestion::Cubic => relay::Congestion::Cubic,
                },
                first_window_packets: Some(options.window_packets),
            },
            options: side_options(options),
            interval_ns: Some(interval_ns(options)),
        })),
    })
}

fn side_options(options: &Options) -> SideOptions {
    let version = options.version.map(|version| match version {
        Version::Rfc1 => QuicVersion::V1,
        Version::Draft29 => QuicVersion::Draft29,
    });
    // What doesn't fit the kernel's own number is more than it grants.
    let socket_bytes = usize::try_from(options.buffers.udp_bytes.min(i32::MAX as u64)).ok();
    let key_log = options.files.tls_log.clone().map(|path| (path, "-l"));
    let session_cache = options.listen.session_cache.clone();
    let (session, no_offload) = (options.files.session.clone(), !options.segments);
    SideOptions { socket_bytes, no_offload, version, key_log, session_cache, session }
}

/// Less would have many streams wait for each other.
const LEAST_BUFFER_BYTES: u32 = 16 << 10;

/// The first address of a host.
fn resolve(host: &str, port: u16) -> Result<SocketAddr, Failure> {
    let found = resolve_host(without_brackets(host), port, None);
    let unknown = |why: &dyn std::fmt::Display| {
        Failure::new(format!(
            "the host \"{host}\" is unknown ({why}): check the name, or give an address"
        ))
    };
    let addresses = found.map_err(|error| unknown(&error))?;
    addresses.first().copied().ok_or_else(|| unknown(&"it has no address"))
}
