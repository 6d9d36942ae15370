//! QUIC as the dialect has it: its options in the transport's terms.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::{Pacing, QuicVersion};
use rustls::{ClientConfig, ServerConfig};
use socket2::Socket;

use super::{Addresses, ClientPlan, QuicOptions, ServerPlan};
use crate::error::Error;
use crate::socket::{connect_datagram, everywhere};
use crate::transport::quic::{
    ClientSide, Congestion, Endpoint, Extras, MOST_JUMBO_CONNECTIONS, MultiplexedEndpoint,
    ServerSide, Settings, Stock, bind_shared,
};

/// Streams that a peer may open at first.
const FIRST_STREAMS: u32 = 16;

/// What a client may have on its way at first, as the original's of a stream: the window grows as it is read.
const FIRST_WINDOW_BYTES: u32 = 64 << 10;

/// Connections of one of a server's threads whose handshake isn't done.
const HALF_OPEN_CONNECTIONS: usize = 4096;

fn settings(options: &QuicOptions, streams: u32) -> Settings {
    Settings {
        congestion: match (options.bbr, options.hystart) {
            (true, _) => Congestion::Bbr,
            (false, true) => Congestion::CubicHystart,
            (false, false) => Congestion::Cubic,
        },
        ecn: options.ecn,
        dscp: options.dscp,
        streams,
        // As the original's default, first come, first served.
        turns: false,
        half_open_connections: HALF_OPEN_CONNECTIONS,
        pacing: if options.unpaced { Pacing::Off } else { Pacing::On },
        ids: options.ids,
        version: if options.draft_29 { QuicVersion::Draft29 } else { QuicVersion::V1 }.into(),
        ..Settings::default()
    }
}

/// Those of a client with so many connections at a time, which last or are followed by others.
fn client_settings(options: &QuicOptions, connections: u32, lasting: bool) -> Settings {
    Settings {
        // A server that is gone is noticed as soon as the original notices it. One that takes its time
        // to answer is asked now and then whether it is there.
        idle: Duration::from_secs(10),
        keep_alive: Some(Duration::from_secs(3)),
        jumbo: lasting && connections <= MOST_JUMBO_CONNECTIONS,
        mtu_most_bytes: options.mtu_most_bytes,
        // A client lets nobody open streams but those that answer one-way requests, which it has none of.
        ..settings(options, 0)
    }
}

/// The endpoint of one of a client's threads, whose connections have a socket each or one together.
///
/// # Errors
///
/// Where QUIC can't be set up as the plan has it, or logs can't be written.
pub(super) fn client<'a>(
    tls: &Arc<ClientConfig>,
    plan: &'a ClientPlan,
    number: u32,
    options: &QuicOptions,
) -> io::Result<MultiplexedEndpoint<'a>> {
    let settings = client_settings(options, plan.connections, !plan.repeats_connections);
    let counts = plan.tells.connections;
    let extras = Extras { clear_packets: options.clear, counts, ..Extras::default() };
    let client = ClientSide::new(Arc::clone(tls), &settings, extras);
    let client = client.and_then(|client| match &plan.logs {
        Some(directory) => client.with_logs(directory),
        None => Ok(client),
    });
    let client = Some(Rc::new(client.map_err(io::Error::other)?));
    let endpoint = Endpoint::new(&settings, None).map_err(io::Error::other)?;
    let mut endpoint = endpoint.counting(counts);
    let local = local_address(plan, number);
    let open = move || Ok(Arc::new(connect_datagram(local, plan.addresses.remote, None)?));
    let endpoint = if plan.own_ports {
        let endpoint = MultiplexedEndpoint::new(endpoint, client, 0);
        endpoint.apart(Box::new(open), plan.repeats_connections)
    } else {
        endpoint.add(open()?).map_err(io::Error::other)?;
        MultiplexedEndpoint::new(endpoint, client, 0)
    };
    Ok(endpoint.spinning(plan.placement.busy))
}

/// Where the connections of the thread of this number come from.
fn local_address(plan: &ClientPlan, number: u32) -> Option<SocketAddr> {
    let Addresses { remote, local, .. } = &plan.addresses;
    let any = everywhere(remote.ip());
    let local = local.get(number as usize % local.len().max(1)).copied()?;
    Some(if local.ip().is_unspecified() { SocketAddr::new(any, local.port()) } else { local })
}

/// A socket that a server's threads share the port of.
pub(super) fn bind_server(address: SocketAddr) -> Result<Socket, Error> {
    bind_shared(address).map_err(|source| Error::Io {
        operation: "listen for QUIC on",
        address: address.to_string(),
        source,
    })
}

/// The endpoint of one of a server's threads.
pub(super) fn server(
    tls: Arc<ServerConfig>,
    socket: Socket,
    plan: &ServerPlan,
    number: u32,
    stock: Stock,
) -> io::Result<MultiplexedEndpoint<'static>> {
    let options = &plan.quic;
    let settings = Settings {
        connection_window_bytes: FIRST_WINDOW_BYTES,
        ids: options.ids.numbered(number),
        migrates: true,
        jumbo: true,
        ..settings(options, FIRST_STREAMS)
    };
    // As the original: whether packets go in clear is the client's choice.
    let extras =
        Extras { clear_packets: true, counts: plan.tells_connections, ..Extras::default() };
    let accepts = ServerSide::new(tls, &settings, extras).map_err(io::Error::other)?;
    let endpoint = Endpoint::over(Arc::new(socket), &settings, Some(&accepts));
    let endpoint = endpoint.map_err(io::Error::other)?;
    let endpoint = endpoint.counting(plan.tells_connections);
    let endpoint = MultiplexedEndpoint::new(endpoint, None, FIRST_STREAMS);
    Ok(endpoint.stocked(FIRST_WINDOW_BYTES, stock).spinning(plan.placement.busy))
}

/// A client whose server may open streams too, with a socket for each connection or for all.
#[cfg(test)]
pub(super) fn test_client(
    tls: Arc<ClientConfig>,
    remote: SocketAddr,
    own_ports: bool,
) -> io::Result<MultiplexedEndpoint<'static>> {
    let open = move || {
        let kind = socket2::Domain::for_address(remote);
        Ok(Arc::new(Socket::new(kind, socket2::Type::DGRAM, None)?))
    };
    let settings = settings(&QuicOptions::default(), FIRST_STREAMS);
    let mut endpoint = Endpoint::new(&settings, None).map_err(io::Error::other)?;
    let client = ClientSide::new(tls, &settings, Extras::default()).map_err(io::Error::other)?;
    let client = Some(Rc::new(client));
    if own_ports {
        let endpoint = MultiplexedEndpoint::new(endpoint, client, FIRST_STREAMS);
        return Ok(endpoint.apart(Box::new(open), false));
    }
    endpoint.add(open()?).map_err(io::Error::other)?;
    Ok(MultiplexedEndpoint::new(endpoint, client, FIRST_STREAMS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_with_few_connections_that_last_looks_for_jumbo_frames() {
        let options = QuicOptions { mtu_most_bytes: Some(1_300), ..QuicOptions::default() };
        for (connections, lasting, jumbo) in
            [(1, true, true), (64, true, true), (65, true, false), (1, false, false)]
        {
            let settings = client_settings(&options, connections, lasting);
            assert_eq!(settings.jumbo, jumbo, "{connections} {lasting}");
            assert_eq!(settings.mtu_most_bytes, Some(1_300));
        }
    }
}
