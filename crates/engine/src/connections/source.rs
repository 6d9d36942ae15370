//! Where a client's connections come from: source addresses and ports, one after the other.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::Socket;

use super::finished::Call;
use super::{Dial, OpenSocket, Route, Routes, SourcePorts};
use crate::clock::monotonic_ns;
use crate::socket::{Binding, begin_connecting, bind_source, is_short_of_descriptors};

/// A connection on its way.
pub(super) struct Dialed {
    pub(super) socket: Socket,
    /// When its first packet left, or just before.
    pub(super) began_ns: u64,
    /// Whether it was still on its way when the call came back.
    pub(super) in_progress: bool,
}

/// Sources tried before the shard's other connections have a turn.
const TRIES_PER_TURN: u32 = 32;

/// The source addresses and ports of one shard's connections: every port of an address, then
/// every port of the next; without a range of ports, each address in turn.
pub(super) struct Source {
    server: SocketAddr,
    device: Option<String>,
    binds: Vec<SocketAddr>,
    open: OpenSocket,
    ports: Option<SourcePorts>,
    walk: Walk,
    /// In the place of the walk.
    routes: Option<RouteWalk>,
    search: Search,
    /// The next connection's socket, where it was made already.
    ahead: Option<Socket>,
    /// The call that was made last.
    call: Call,
}

/// The search for a source that is free. Sources that are taken are stepped over. When each was taken, all are tried
/// again later.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// How many in a row were taken.
    taken: u64,
    /// How often all were tried again.
    retries: u32,
    /// When the next one is tried; 0: now.
    next_ns: u64,
}

impl Search {
    /// One of so many sources is taken; says whether another one is tried. All are tried again so often, so long
    /// after each time.
    pub(crate) fn step_over(
        &mut self,
        count: u64,
        (most_retries, after): (u32, Duration),
        now_ns: u64,
    ) -> bool {
        self.taken += 1;
        if self.taken < count {
            return true;
        }
        let is_over = self.retries >= most_retries;
        *self = match is_over {
            true => Self::default(),
            false => Self {
                taken: 0,
                retries: self.retries + 1,
                next_ns: now_ns.saturating_add(after.as_nanos() as u64),
            },
        };
        !is_over
    }

    /// When the next source is tried; 0: now.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }
}

/// A shard's walk through routes. All shards take the numbers of their connections from one place, so that targets and
/// ports are used in turn. From a route whose port is taken a shard goes on by itself, one by one.
struct RouteWalk {
    routes: Routes,
    /// The number of the route that was tried last.
    number: u64,
}

impl RouteWalk {
    /// The route of the next connection, or the one after so many that were taken.
    fn next(&mut self, taken: u64) -> Route {
        self.number = match taken {
            0 => self.routes.next.fetch_add(1, Ordering::Relaxed),
            _ => self.number.wrapping_add(1),
        };
        (self.routes.find)(self.number)
    }

    /// A connection begins after so many routes that were taken. The next one tries those behind it.
    fn begun(&self, taken: u64) {
        if taken > 0 {
            self.routes.next.fetch_max(self.number.wrapping_add(1), Ordering::Relaxed);
        }
    }
}

/// A shard's walk through all sources, endless.
///
/// 1. Shards take every n-th each, so that they don't meet while there are others.
/// 2. A whole round has each source once: where a shard would be back where it was before it has
///    seen all, it goes on with those of the next shard.
struct Walk {
    sources: u64,
    from: u64,
    shards: u64,
    /// Steps after which a shard that takes every n-th is back where it was.
    lap: u64,
    steps: u64,
}

impl Walk {
    fn new(sources: u64, from: u64, shard: usize, shards: usize) -> Self {
        let shards = (shards as u64).max(1);
        let from = (from % sources).wrapping_add(shard as u64);
        let lap = sources / greatest_common_divisor(sources, shards);
        Self { sources, from, shards, lap, steps: 0 }
    }

    fn next(&mut self) -> u64 {
        let step = self.steps;
        self.steps = (step + 1) % self.sources;
        (self.from + step * self.shards + step / self.lap) % self.sources
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Source {
    pub(super) fn new(dial: &Dial, shard: usize, shards: usize) -> Self {
        let addresses = dial.binds.len().max(1) as u64;
        let walk = match dial.source_ports {
            Some(SourcePorts { first, last, begin }) => {
                let ports = u64::from(last.saturating_sub(first)) + 1;
                Walk::new(ports * addresses, begin, shard, shards)
            }
            None => Walk::new(addresses, 0, shard, shards),
        };
        Self {
            server: dial.server,
            device: dial.device.clone(),
            binds: dial.binds.clone(),
            open: Arc::clone(&dial.open),
            ports: dial.source_ports,
            walk,
            routes: dial.routes.clone().map(|routes| RouteWalk { routes, number: 0 }),
            search: Search::default(),
            ahead: None,
            call: Call::default(),
        }
    }

    /// Begins a connection. A source that another socket has, or that is taken for this peer, is
    /// stepped over; when each of them was, none is left. `None`: there are some that are still to be
    /// tried.
    pub(super) fn connect(&mut self, blocks: bool) -> io::Result<Option<Dialed>> {
        if self.retries_at_ns() > monotonic_ns() {
            return Ok(None);
        }
        let routes = self.routes.as_ref().map(|walk| &walk.routes);
        let count = routes.map_or(self.walk.sources, |routes| routes.count);
        let retries = routes.map_or((0, Duration::ZERO), |routes| routes.retries);
        for _ in 0..TRIES_PER_TURN {
            let began_ns = monotonic_ns();
            let (server, socket) = match self.ahead.take() {
                Some(socket) => (self.server, Ok(socket)),
                None => self.bind(blocks),
            };
            let outcome = socket.and_then(|socket| {
                self.call = Call::Connect;
                begin_connecting(&socket, server).map(|in_progress| (socket, in_progress))
            });
            match outcome {
                Err(error) if is_taken(&error) => {
                    if !self.search.step_over(count, retries, began_ns) {
                        return Err(error);
                    }
                    if self.retries_at_ns() > began_ns {
                        return Ok(None);
                    }
                }
                outcome => {
                    if let Some(walk) = &self.routes {
                        walk.begun(self.search.taken);
                    }
                    self.search = Search::default();
                    let (socket, in_progress) = outcome?;
                    return Ok(Some(Dialed { socket, began_ns, in_progress }));
                }
            }
        }
        Ok(None)
    }

    /// The call that was made last.
    pub(super) fn call(&self) -> Call {
        self.call
    }

    /// When all sources are tried again that were taken; 0: now.
    pub(super) fn retries_at_ns(&self) -> u64 {
        self.search.next_ns
    }

    /// Makes the next connection's socket, which blocks, while the server works on this one: a fourteenth of the
    /// rate on two processors.
    pub(super) fn make_ahead(&mut self) {
        // What fails is tried again when it is needed, and fails then.
        self.ahead = self.bind(true).1.ok();
    }

    /// Whether that is still to be done. Not with one source for all of them, which takes a moment to be free again.
    pub(super) fn may_make_ahead(&self) -> bool {
        self.ahead.is_none()
            && self.routes.is_none()
            && (self.walk.sources > 1 || self.ports.is_none())
    }

    /// A socket at the source whose turn it is, and where it is to be connected to.
    fn bind(&mut self, blocks: bool) -> (SocketAddr, io::Result<Socket>) {
        let Route { server, bind, port } = self.next();
        self.call = Call::Socket;
        let bound = (self.open)(server, blocks).and_then(|socket| {
            self.call = Call::Bind;
            let binding = Binding { bind, device: self.device.clone() };
            bind_source(&socket, server, &binding, port)?;
            Ok(socket)
        });
        (server, bound)
    }

    fn next(&mut self) -> Route {
        if let Some(walk) = &mut self.routes {
            return walk.next(self.search.taken);
        }
        let place = self.walk.next();
        let (address, port) = match self.ports {
            Some(SourcePorts { first, last, .. }) => {
                let ports = u64::from(last.saturating_sub(first)) + 1;
                (place / ports, Some(first + (place % ports) as u16))
            }
            None => (place, None),
        };
        Route { server: self.server, bind: self.binds.get(address as usize).copied(), port }
    }
}

/// Whether no connection can be had from there now.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL))
}

/// The kind that results count a failed beginning under.
pub(super) fn kind_of(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL) => "ports_exhausted",
        _ if is_short_of_descriptors(error) => "descriptors_exhausted",
        None if error.kind() == io::ErrorKind::AddrNotAvailable => "address_unavailable",
        _ => crate::flow::error_kind(error),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::{Ipv4Addr, TcpListener};

    use linerate_measure::SocketOptions;

    use super::*;
    use crate::connections::{SourcePorts, sockets_with};

    #[test]
    fn each_round_of_a_walk_has_every_source_once() {
        for (sources, shards) in [(1, 1), (1, 3), (7, 2), (12, 4), (12, 8), (500, 6), (512, 512)] {
            for shard in 0..shards {
                let mut walk = Walk::new(sources, u64::MAX - 3, shard, shards);
                // From wherever in the walk one begins to count.
                for _ in 0..shard {
                    walk.next();
                }
                let round: BTreeSet<u64> = (0..sources).map(|_| walk.next()).collect();
                assert_eq!(round.len() as u64, sources, "{shard} of {shards}");
                assert!(round.last().unwrap() < &sources);
            }
        }
    }

    #[test]
    fn shards_do_not_meet_while_there_are_other_sources() {
        let mut walks: Vec<Walk> = (0..4).map(|shard| Walk::new(100, 61, shard, 4)).collect();
        let steps = (0..25).flat_map(|_| walks.iter_mut().map(Walk::next).collect::<Vec<_>>());
        assert_eq!(steps.collect::<BTreeSet<u64>>().len(), 100);
    }

    /// No other test binds these.
    const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 33), Ipv4Addr::new(127, 0, 0, 34)];

    #[test]
    fn ports_are_exhausted_when_each_of_every_address_was_tried() {
        let ports = 22_000..=22_039;
        let take = |address, port| TcpListener::bind((address, port)).unwrap();
        let mut taken: Vec<TcpListener> = ADDRESSES
            .into_iter()
            .flat_map(|address| ports.clone().map(move |port| take(address, port)))
            .collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let dial = Dial {
            binds: ADDRESSES.map(|address| SocketAddr::from((address, 0))).to_vec(),
            source_ports: Some(SourcePorts {
                first: *ports.start(),
                last: *ports.end(),
                begin: 11,
            }),
            ..Dial::new(server, sockets_with(SocketOptions::default()))
        };
        let mut source = Source::new(&dial, 0, 1);
        // 80 tries, 32 in a turn.
        for _ in 0..2 {
            assert!(source.connect(false).unwrap().is_none());
            assert!(source.connect(false).unwrap().is_none());
            assert_eq!(kind_of(&source.connect(false).err().unwrap()), "ports_exhausted");
        }
        // The last one that the walk comes to.
        let free = taken.remove(10).local_addr().unwrap();
        let mut turns = (0..3).map(|_| source.connect(false).unwrap());
        let dialed = turns.find_map(|dialed| dialed).unwrap();
        assert_eq!(dialed.socket.local_addr().unwrap().as_socket(), Some(free));
    }

    /// Two shards that connect from a range of four ports, with the routes that they share.
    fn sources_of_two_shards(server: SocketAddr, first: u16) -> [Source; 2] {
        let find = move |number: u64| Route {
            server,
            bind: Some(SocketAddr::from((ADDRESSES[0], 0))),
            port: Some(first + (number.wrapping_add(1) % 4) as u16),
        };
        let retries = (1, Duration::from_millis(1));
        let routes = Routes { find: Arc::new(find), next: Arc::default(), count: 4, retries };
        let dial = Dial {
            routes: Some(routes),
            ..Dial::new(server, sockets_with(SocketOptions::default()))
        };
        [0, 1].map(|shard| Source::new(&dial, shard, 2))
    }

    #[test]
    fn routes_of_all_shards_are_used_in_turn_and_taken_ones_stepped_over() {
        let first = 22_100;
        let _taken = TcpListener::bind((ADDRESSES[0], first + 1)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let mut sources = sources_of_two_shards(server, first);
        let mut connected = Vec::new();
        let mut connect = |shard: usize| {
            let socket = sources[shard].connect(false).unwrap()?.socket;
            let port = socket.local_addr().unwrap().as_socket().unwrap().port();
            connected.push(socket);
            Some(port - first)
        };
        assert_eq!([0, 1, 1].map(&mut connect), [Some(2), Some(3), Some(0)]);
        // Each of the four was tried.
        assert_eq!(connect(0), None);
    }
}
