//! From options to the engine's plan of a client or a server over TCP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_engine::ctstraffic::{Route, TcpEnd, TcpPlan, TcpRoutes, TcpSockets};
use linerate_personality::ctstraffic::Refusal;
use linerate_personality::ctstraffic::addresses::{ClientAddresses, local_port};
use linerate_personality::ctstraffic::options::Options;
use linerate_wire::ctstraffic::Span;

use super::resolve::{device, processors, with_port};

/// The addresses of a run.
pub(super) enum Hosts {
    /// Where a server listens.
    Server(Vec<SocketAddr>),
    /// Where a client connects to, and from where.
    Client(ClientAddresses),
}

/// What the engine is to do.
pub(super) fn plan(options: &Options, hosts: &Hosts) -> Result<TcpPlan, Refusal> {
    let milliseconds = |time: Option<u32>| time.map(|ms| Duration::from_millis(ms.into()));
    Ok(TcpPlan {
        end: match hosts {
            Hosts::Server(listen) => {
                TcpEnd::Server { listen: listen.clone(), limit: options.server_exit_limit() }
            }
            Hosts::Client(addresses) => TcpEnd::Client {
                connections: options.connections(),
                most_pending: options.throttle(),
                iterations: options.run.iterations.filter(|iterations| *iterations > 0),
                routes: routes(addresses.clone(), options.port(), options.hosts.local_ports)?,
            },
        },
        life: options.life(),
        transfer: options.native_transfer(),
        sockets: TcpSockets {
            keepalive: options.has_keepalive(),
            keepalive_idle: milliseconds(options.sockets.keepalive_idle_ms),
            receive_buffer_bytes: options.receive_buffer_bytes(),
            send_buffer_bytes: options.sockets.send_buffer_bytes,
            dscp: options.sockets.dscp,
            device: device(&options.hosts)?,
        },
        status_ns: u64::from(options.status_update_ms()) * 1_000_000,
        time_limit: milliseconds(options.run.time_limit_ms),
        pause_at_end: milliseconds(options.run.pause_at_end_ms),
        idle_timeout: milliseconds(options.own.idle_timeout_ms),
        cpus: processors(options.run.cpu_group)?,
        asks_kernel: options.output.tcp_info_file.is_some(),
    })
}

/// Both lists of addresses, and the local ports, are used in turn.
fn routes(
    addresses: ClientAddresses,
    port: u16,
    local_ports: Option<Span>,
) -> Result<TcpRoutes, Refusal> {
    // Addresses that were matched have a pair for each number.
    let fallback = addresses.pair(0).ok_or_else(|| Refusal::new("-target"))?;
    let ports = local_ports.map_or(1, |ports| ports.high.saturating_sub(ports.low) + 1);
    let count = ports.saturating_mul(addresses.binds.len().max(1) as u64);
    let find = move |number| {
        let (bind, target) = addresses.pair(number).unwrap_or(fallback);
        Route {
            server: with_port(target, port),
            bind: Some(bind).filter(|bind| !bind.ip().is_unspecified()),
            port: local_ports.map(|ports| local_port(ports, number)),
        }
    };
    Ok(TcpRoutes { find: Arc::new(find), count })
}
