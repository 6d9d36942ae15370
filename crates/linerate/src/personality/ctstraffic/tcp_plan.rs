//! From options to the engine's plan of a client or a server over TCP.

use std::sync::Arc;
use std::time::Duration;

use linerate_engine::ctstraffic::{Route, TcpEnd, TcpPlan, TcpRoutes};
use linerate_personality::ctstraffic::addresses::{ClientAddresses, local_port};
use linerate_personality::ctstraffic::options::Options;
use linerate_wire::ctstraffic::Span;

use super::resolve::{Found, route_count, with_port};

/// What the engine is to do, with what was looked up.
pub(super) fn plan(options: &Options, found: &Found) -> TcpPlan {
    let milliseconds = |time: Option<u32>| time.map(|ms| Duration::from_millis(ms.into()));
    TcpPlan {
        end: match options.is_server() {
            true => {
                TcpEnd::Server { listen: found.listen.clone(), limit: options.server_exit_limit() }
            }
            false => TcpEnd::Client {
                connections: options.connections(),
                most_pending: options.throttle(),
                iterations: options.run.iterations.filter(|iterations| *iterations > 0),
                routes: routes(found.addresses.clone(), options.port(), options.hosts.local_ports),
            },
        },
        life: options.life(),
        transfer: options.native_transfer(),
        sockets: found.sockets(options),
        status_ns: u64::from(options.status_update_ms()) * 1_000_000,
        time_limit: milliseconds(options.run.time_limit_ms),
        pause_at_end: milliseconds(options.run.pause_at_end_ms),
        idle_timeout: milliseconds(options.own.idle_timeout_ms),
        cpus: found.processors.clone(),
        asks_kernel: options.output.tcp_info_file.is_some(),
    }
}

/// Both lists of addresses, and the local ports, are used in turn.
fn routes(addresses: ClientAddresses, port: u16, local_ports: Option<Span>) -> TcpRoutes {
    let count = route_count(&addresses, local_ports);
    let find = move |number| {
        let (bind, target) = addresses.pair_or_unspecified(number);
        Route {
            server: with_port(target, port),
            bind: Some(bind).filter(|bind| !bind.ip().is_unspecified()),
            port: local_ports.map(|ports| local_port(ports, number)),
        }
    };
    TcpRoutes { find: Arc::new(find), count }
}
