//! A proxy at work between endpoints of a test.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustls::server::StoresServerSessions;
use socket2::{Domain, Socket, Type};

use super::*;
use crate::control::{Trusts, client_tls, make_identity, server_tls};
use crate::transport::multiplexer::Link;
use crate::transport::quic::{
    ClientSide, Dir, Endpoint, Event, Extras, PeerClose, ServerSide, Settings, SharedConnection,
    StreamId, StreamRead,
};

mod closes;
mod early;
mod streams;

/// The longest that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
const ALPN: &str = "test";

fn socket() -> (Arc<Socket>, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (Arc::new(socket), address)
}

fn plan(target: SocketAddr) -> ProxyPlan {
    ProxyPlan {
        bind: Some(std::net::IpAddr::from([127, 0, 0, 1]).into()),
        port: 0,
        target,
        threads: 1,
        limits: ProxyLimits {
            buffer_bytes: 64 << 10,
            window_bytes: 256 << 10,
            streams: 100,
            connections: 100,
            connections_per_origin: 100,
        },
        connect_timeout: LIMIT,
        carries: Carries::Quic(Box::new(QuicSides {
            target_name: "localhost".to_owned(),
            waits_for_target: false,
            alpn: Some(ALPN.to_owned()),
            early_data: false,
            identity: make_identity().unwrap(),
            authority: None,
            sending: Sending::default(),
            options: SideOptions::default(),
            interval_ns: None,
        })),
    }
}

/// The QUIC connections of a plan.
fn sides(plan: &mut ProxyPlan) -> &mut QuicSides {
    match &mut plan.carries {
        Carries::Quic(sides) => sides,
        Carries::Tcp => panic!("it is QUIC's"),
    }
}

fn settings() -> Settings {
    let (window, streams) = (256 << 10, 100);
    Settings {
        stream_window_bytes: window,
        connection_window_bytes: window,
        streams,
        datagrams: true,
        ..Settings::default()
    }
}

/// A peer of the proxy: an endpoint and what happened to it.
struct Peer {
    endpoint: Endpoint,
    events: Vec<(Link, Event)>,
}

impl Peer {
    fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, events: Vec::new() }
    }

    fn turn(&mut self) {
        self.endpoint.turn().unwrap();
        while let Some(event) = self.endpoint.poll_event() {
            self.events.push(event);
        }
    }

    fn link(&self, is_it: impl Fn(&Event) -> bool) -> Option<Link> {
        self.events.iter().find(|(_, event)| is_it(event)).map(|(link, _)| *link)
    }

    fn close(&self) -> Option<Option<PeerClose>> {
        self.events.iter().find_map(|(_, event)| match event {
            Event::Closed(cause) => Some(cause.close.clone()),
            _ => None,
        })
    }
}

/// A client and a server with a proxy between them.
struct World {
    proxy: Proxy,
    client_side: ClientSide,
    client: Peer,
    server: Peer,
}

impl World {
    fn new(change: impl FnOnce(&mut ProxyPlan)) -> Self {
        Self::with(&settings(), change)
    }

    fn with(server_settings: &Settings, change: impl FnOnce(&mut ProxyPlan)) -> Self {
        let (socket, address) = socket();
        let alpn = || vec![ALPN.as_bytes().to_vec()];
        let tls = Arc::new(server_tls(&make_identity().unwrap(), &[], alpn()).unwrap());
        let extras = || Extras { transport_close: true, ..Extras::default() };
        let server = ServerSide::new(tls, server_settings, extras()).unwrap();
        let server = Endpoint::over(socket, server_settings, Some(&server)).unwrap();
        let tls = Arc::new(client_tls(|_| Ok(Trusts::Unread), &[], alpn()).unwrap());
        let client_side = ClientSide::new(tls, &settings(), extras()).unwrap();
        let client = Endpoint::over(self::socket().0, &settings(), None).unwrap();
        let mut plan = plan(address);
        change(&mut plan);
        let proxy = Proxy::start(&plan).unwrap();
        Self { proxy, client_side, client: Peer::new(client), server: Peer::new(server) }
    }

    fn connect(&mut self) -> Link {
        let to = self.proxy.address();
        self.client.endpoint.connect(0, to, "localhost", &self.client_side).unwrap()
    }

    /// Gives both peers turns until this is there.
    fn until<T>(&mut self, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(Instant::now() < end, "nothing came of it: {:?}", self.client.events);
            self.client.turn();
            self.server.turn();
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// A connection from the client through the proxy to the server: its two ends.
    fn established(&mut self) -> (SharedConnection, SharedConnection) {
        let link = self.connect();
        let links = self.until(|world| {
            let near = world.client.link(|event| *event == Event::Established)?;
            Some((near, world.server.link(|event| *event == Event::Established)?))
        });
        assert_eq!(links.0, link);
        let of =
            |peer: &Peer, link| SharedConnection::clone(peer.endpoint.connection(link).unwrap());
        (of(&self.client, links.0), of(&self.server, links.1))
    }

    /// The next stream that the peer of this connection has opened.
    fn accepted(&mut self, at: &SharedConnection, dir: Dir) -> StreamId {
        self.until(|_| at.borrow_mut().accept_stream(dir))
    }

    /// Reads a stream to its end, or until it is reset.
    fn read(&mut self, at: &SharedConnection, id: StreamId) -> (Vec<u8>, StreamRead) {
        let mut bytes = Vec::new();
        let read = self.until(|_| {
            let read = at.borrow_mut().read(id, usize::MAX, &mut |piece| bytes.extend(piece));
            (!matches!(read, StreamRead::Blocked | StreamRead::Bytes(_))).then_some(read)
        });
        (bytes, read)
    }
}

/// Sends all of this and the end, as there is room.
fn send_all(world: &mut World, from: &SharedConnection, id: StreamId, bytes: &[u8]) {
    let mut sent = 0;
    world.until(|_| {
        sent += from.borrow_mut().send(id, &bytes[sent..]).unwrap_or(0);
        (sent == bytes.len()).then_some(())
    });
    from.borrow_mut().finish(id).unwrap();
}

/// An address where nothing answers: of a socket that nobody reads, or of none.
fn silent() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[test]
fn a_fault_of_the_last_write_of_clients_sessions_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("folder").join("cache");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let mut plan = plan(SocketAddr::from(([127, 0, 0, 1], 1)));
    sides(&mut plan).options.session_cache = Some(path.clone());
    let proxy = Proxy::start(&plan).unwrap();
    assert_eq!(proxy.save_sessions(), None);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let cache = Arc::clone(proxy.sessions.clients.as_ref().unwrap());
    assert!(StoresServerSessions::put(&*cache, vec![1], vec![2]));
    let faults = proxy.end().faults;
    assert_eq!(faults.len(), 1);
    assert!(faults[0].starts_with("can't write the session cache "), "{faults:?}");
}
