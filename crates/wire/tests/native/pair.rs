//! A client and a server that talk in memory under a virtual clock, each with a caller that does
//! what an engine would do.

use std::collections::VecDeque;

use linerate_wire::native::client::{Client, ClientConfig, ClientEvent};
use linerate_wire::native::message::FlowCount;
use linerate_wire::native::server::{Server, ServerConfig, ServerEvent};
use linerate_wire::native::{LeaseWish, Stage};
use linerate_wire::{Machine, Now};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1000 * MS;

/// One way over the link.
const DELAY_NS: u64 = 5 * MS;
/// The server's clock less the client's.
pub(crate) const OFFSET_NS: i64 = -7 * 3_600_000_000_000;
/// How long the client lets the load run.
const LOAD_NS: u64 = 2 * SECOND;
/// No conversation, however disturbed, lasts longer.
const HANG_NS: u64 = 400 * SECOND;

pub(crate) const TOKEN: [u8; 16] = [0xab; 16];
pub(crate) const COUNTS: [FlowCount; 2] =
    [FlowCount { flow: 0, datagrams: 10 }, FlowCount { flow: 1, datagrams: 11 }];

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

type Pass = Box<dyn Fn(Way, usize, Vec<u8>) -> Vec<Vec<u8>>>;

/// What the link makes of the frames and of the connection.
pub(crate) struct Link {
    /// What becomes of frame number `n` in a direction: nothing, itself, twice itself, ...
    pub(crate) pass: Pass,
    /// Bytes arrive in pieces of this size.
    pub(crate) piece_bytes: usize,
    /// After so many bytes in a direction the connection breaks for both ends.
    pub(crate) cut: Option<(Way, usize)>,
}

impl Default for Link {
    fn default() -> Self {
        Self { pass: Box::new(|_, _, frame| vec![frame]), piece_bytes: usize::MAX, cut: None }
    }
}

pub(crate) fn client_config() -> ClientConfig {
    ClientConfig {
        software: "linerate test".to_owned(),
        proof: Some([7; 32]),
        plan: "{\"a\":\"plan\"}".to_owned(),
        exclusive: true,
        stays: false,
        lease: LeaseWish::None,
    }
}

pub(crate) fn server_config() -> ServerConfig {
    ServerConfig { software: "linerate serve test".to_owned(), expected_proof: Some([7; 32]) }
}

pub(crate) fn now(monotonic_ns: u64) -> Now {
    let since = i64::try_from(monotonic_ns).unwrap_or(i64::MAX);
    Now { monotonic_ns, utc_ns: 1_700_000_000_000_000_000 + since }
}

fn server_now(monotonic_ns: u64) -> Now {
    let now = now(monotonic_ns);
    Now { utc_ns: now.utc_ns + OFFSET_NS, ..now }
}

/// What a caller will do, and when.
enum Todo {
    Finish,
    Queue(u32),
    Admit,
    Ready,
    Sample,
}

pub(crate) struct Pair {
    pub(crate) client: Client,
    pub(crate) server: Server,
    pub(crate) client_events: Vec<ClientEvent>,
    pub(crate) server_events: Vec<ServerEvent>,
    /// Frames that each way carried.
    pub(crate) frames: [usize; 2],
    /// Bytes that each way carried.
    pub(crate) bytes: [usize; 2],
    pub(crate) elapsed_ns: u64,
    link: Link,
    /// Bytes on their way, or the connection's end.
    in_flight: VecDeque<(u64, Way, Option<Vec<u8>>)>,
    todo: Vec<(u64, Todo)>,
    broken: bool,
    ended: [bool; 2],
}

impl Pair {
    pub(crate) fn new(link: Link) -> Self {
        Self::with(link, client_config(), server_config())
    }

    pub(crate) fn with(link: Link, client: ClientConfig, server: ServerConfig) -> Self {
        Self {
            client: Client::new(client, now(0)),
            server: Server::new(server, server_now(0)),
            client_events: Vec::new(),
            server_events: Vec::new(),
            frames: [0; 2],
            bytes: [0; 2],
            elapsed_ns: 0,
            link,
            in_flight: VecDeque::new(),
            todo: Vec::new(),
            broken: false,
            ended: [false; 2],
        }
    }

    /// Lets both talk until both are through. A hang is a panic.
    pub(crate) fn run(mut self) -> Self {
        loop {
            self.serve_callers();
            self.pump(Way::ToServer);
            self.pump(Way::ToClient);
            if self.client.is_over() && self.server.is_over() {
                return self;
            }
            let Some(next_ns) = self.next_ns() else { panic!("both wait for ever") };
            assert!(next_ns >= self.elapsed_ns || next_ns == 0, "time runs backwards");
            assert!(next_ns < HANG_NS, "hangs: {:?}", (self.client.stage(), self.server.stage()));
            self.elapsed_ns = next_ns.max(self.elapsed_ns);
            self.advance();
        }
    }

    fn next_ns(&self) -> Option<u64> {
        let flights = self.in_flight.iter().map(|(at, ..)| *at);
        let todos = self.todo.iter().map(|(at, _)| *at);
        let timeouts = [self.client.next_time(), self.server.next_time()];
        flights.chain(todos).chain(timeouts.into_iter().flatten()).min()
    }

    /// Does everything that is due.
    fn advance(&mut self) {
        let at = self.elapsed_ns;
        while self.in_flight.front().is_some_and(|(due, ..)| *due <= at) {
            let Some((_, way, bytes)) = self.in_flight.pop_front() else { break };
            match (way, bytes) {
                (Way::ToServer, Some(bytes)) => self.server.handle_bytes(server_now(at), &bytes),
                (Way::ToClient, Some(bytes)) => self.client.handle_bytes(now(at), &bytes),
                (Way::ToServer, None) => self.server.handle_end(server_now(at)),
                (Way::ToClient, None) => self.client.handle_end(now(at)),
            }
            self.serve_callers();
        }
        if self.client.next_time().is_some_and(|due| due <= at) {
            self.client.handle_timeout(now(at));
        }
        if self.server.next_time().is_some_and(|due| due <= at) {
            self.server.handle_timeout(server_now(at));
        }
        let (due, later) = std::mem::take(&mut self.todo).into_iter().partition(|(d, _)| *d <= at);
        self.todo = later;
        let due: Vec<(u64, Todo)> = due;
        for (_, todo) in due {
            self.do_it(&todo);
        }
    }

    fn do_it(&mut self, todo: &Todo) {
        match todo {
            Todo::Finish => {
                self.client.sent(&COUNTS);
                self.client.finish();
            }
            Todo::Queue(place) => self.server.queue(*place),
            Todo::Admit => self.server.admit([0xcd; 16], TOKEN, "{\"a\":\"host\"}"),
            Todo::Ready => self.server.ready(),
            Todo::Sample => {
                self.server.sample(format!("{{\"at\":{}}}", self.elapsed_ns));
                if matches!(self.server.stage(), Stage::Running) {
                    self.todo.push((self.elapsed_ns + 500 * MS, Todo::Sample));
                }
            }
        }
    }

    fn serve_callers(&mut self) {
        let at = self.elapsed_ns;
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Ready => self.client.start(None),
                ClientEvent::Started { .. } => self.todo.push((at + LOAD_NS, Todo::Finish)),
                _ => {}
            }
            self.client_events.push(event);
        }
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Request { .. } => {
                    self.server.queue(2);
                    self.todo.push((at + 1500 * MS, Todo::Queue(1)));
                    self.todo.push((at + 2500 * MS, Todo::Admit));
                    self.todo.push((at + 2600 * MS, Todo::Ready));
                }
                ServerEvent::Start { .. } => {
                    self.server.started(server_now(at).utc_ns);
                    self.todo.push((at + 500 * MS, Todo::Sample));
                }
                ServerEvent::Finish => {
                    self.server.sent(&COUNTS);
                    self.server.result("{\"a\":\"report\"}".to_owned());
                }
                _ => {}
            }
            self.server_events.push(event);
        }
    }

    /// Puts what an end wants to write on the link, and its end behind it when it is over.
    fn pump(&mut self, way: Way) {
        loop {
            let (side, frame) = match way {
                Way::ToServer => (0, self.client.poll_message()),
                Way::ToClient => (1, self.server.poll_message()),
            };
            let Some(frame) = frame else { break };
            let passed = (self.link.pass)(way, self.frames[side], frame);
            self.frames[side] += 1;
            for frame in passed {
                self.carry(way, side, &frame);
            }
        }
        let (side, over) = match way {
            Way::ToServer => (0, self.client.is_over()),
            Way::ToClient => (1, self.server.is_over()),
        };
        if over && !self.broken && !std::mem::replace(&mut self.ended[side], true) {
            self.in_flight.push_back((self.elapsed_ns + DELAY_NS, way, None));
        }
    }

    fn carry(&mut self, way: Way, side: usize, frame: &[u8]) {
        if self.broken {
            return;
        }
        let room = match self.link.cut {
            Some((cut, after)) if cut == way => after.saturating_sub(self.bytes[side]),
            _ => usize::MAX,
        };
        let arriving = frame.get(..room.min(frame.len())).unwrap_or_default();
        self.bytes[side] += arriving.len();
        let at = self.elapsed_ns + DELAY_NS;
        for piece in arriving.chunks(self.link.piece_bytes) {
            self.in_flight.push_back((at, way, Some(piece.to_vec())));
        }
        if arriving.len() < frame.len() {
            self.broken = true;
            self.in_flight.push_back((at, Way::ToServer, None));
            self.in_flight.push_back((at, Way::ToClient, None));
        }
    }
}
