//! A client and a server that talk in memory under a virtual clock, each with a caller that does what
//! an engine would do.

use linerate_wire::iperf3::client::{Client, ClientEvent};
use linerate_wire::iperf3::results::{CpuPercent, ServerOutput};
use linerate_wire::iperf3::server::{Server, ServerEvent};
use linerate_wire::iperf3::{COOKIE_BYTES, Cookie, Parameters, Results, StreamResult, stream_id};
use linerate_wire::{Machine, Now};

pub(crate) const SECOND: u64 = 1_000_000_000;
/// No conversation lasts longer.
const HANG_NS: u64 = 300 * SECOND;

pub(crate) fn cookie() -> Cookie {
    Cookie::of_random([9; 36])
}

/// What an end counted, made up so that the ends differ.
pub(crate) fn results(streams: usize, seed: u64) -> Results {
    let stream = |index: usize| StreamResult {
        id: stream_id(index),
        bytes: seed * 1000 + index as u64,
        retransmits: index.is_multiple_of(2).then_some(seed),
        jitter_s: 0.000_25,
        errors: 3,
        omitted_errors: Some(1),
        packets: 400 + seed,
        omitted_packets: Some(2),
        omitted_bytes: index.is_multiple_of(3).then_some(seed),
        start_time_s: Some(0.0),
        end_time_s: Some(1.5),
    };
    Results {
        cpu_percent: CpuPercent { total: 12.5, user: 2.5, system: 10.0 },
        sender_has_retransmits: -1,
        congestion_used: Some("cubic".to_owned()),
        server_output: Some(ServerOutput::Text("two\nlines".to_owned())),
        streams: (0..streams).map(stream).collect(),
    }
}

/// How the link treats a conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Bytes arrive in pieces of this size.
    pub(crate) piece_bytes: usize,
    /// After so many bytes to the server, or to the client, the connection ends for both.
    pub(crate) cut: [usize; 2],
    /// Whether a cut is heard of; otherwise nothing comes any more.
    pub(crate) silent: bool,
}

pub(crate) const WHOLE: Link =
    Link { piece_bytes: usize::MAX, cut: [usize::MAX; 2], silent: false };

/// What became of a conversation.
pub(crate) struct Outcome {
    pub(crate) client: Vec<ClientEvent>,
    pub(crate) server: Vec<ServerEvent>,
    /// Bytes to the server, behind the cookie, and to the client.
    pub(crate) bytes: [usize; 2],
    pub(crate) elapsed_ns: u64,
}

struct Pair {
    client: Client,
    server: Server,
    parameters: Parameters,
    now_ns: u64,
    told: Outcome,
    broken: bool,
}

/// Lets both talk until neither has anything to say or to wait for.
pub(crate) fn talk(parameters: &Parameters, link: Link) -> Outcome {
    let mut client = Client::new(cookie(), 0);
    let first = client.poll_message().unwrap();
    assert_eq!(first.len(), COOKIE_BYTES);
    let told = Outcome { client: Vec::new(), server: Vec::new(), bytes: [0; 2], elapsed_ns: 0 };
    let mut pair = Pair {
        client,
        server: Server::new(0),
        parameters: parameters.clone(),
        now_ns: 0,
        told,
        broken: false,
    };
    while !(pair.client.is_over() && pair.server.is_over()) {
        if pair.step(link) {
            continue;
        }
        pair.pass_time();
        assert!(pair.now_ns < HANG_NS, "it hangs: {:?} {:?}", pair.told.client, pair.told.server);
    }
    while pair.step(link) {}
    pair.told.elapsed_ns = pair.now_ns;
    pair.told
}

impl Pair {
    /// Does everything that can be done now; says whether there was anything.
    fn step(&mut self, link: Link) -> bool {
        let mut moved = false;
        while let Some(bytes) = self.client.poll_message() {
            moved = true;
            self.carry(&bytes, 0, link);
        }
        while let Some(bytes) = self.server.poll_message() {
            moved = true;
            self.carry(&bytes, 1, link);
        }
        while let Some(event) = self.client.poll_event() {
            moved = true;
            self.answer_client(&event);
            self.told.client.push(event);
        }
        while let Some(event) = self.server.poll_event() {
            moved = true;
            self.answer_server(&event);
            self.told.server.push(event);
        }
        moved
    }

    fn carry(&mut self, bytes: &[u8], way: usize, link: Link) {
        let room = link.cut[way].saturating_sub(self.told.bytes[way]);
        let (arrives, lost) = bytes.split_at(room.min(bytes.len()));
        self.told.bytes[way] += bytes.len();
        if !self.broken {
            for piece in arrives.chunks(link.piece_bytes) {
                match way {
                    0 => self.server.handle_bytes(Now::at(self.now_ns), piece),
                    _ => self.client.handle_bytes(Now::at(self.now_ns), piece),
                }
            }
        }
        if (!lost.is_empty() || room == bytes.len()) && link.cut[way] != usize::MAX && !self.broken
        {
            self.broken = true;
            if !link.silent {
                self.client.handle_end(Now::at(0));
                self.server.handle_end(Now::at(0));
            }
        }
    }

    fn answer_client(&mut self, event: &ClientEvent) {
        match event {
            ClientEvent::ParametersWanted => self.client.send_parameters(&self.parameters),
            ClientEvent::Go => {
                self.now_ns += 2 * SECOND;
                self.client.end_test(self.now_ns);
            }
            ClientEvent::ResultsWanted => {
                self.client.send_results(&results(self.parameters.total_streams(), 7));
            }
            _ => {}
        }
    }

    fn answer_server(&mut self, event: &ServerEvent) {
        match event {
            ServerEvent::Asked(_) => {
                self.server.create_streams();
                // In memory the streams are there at once.
                self.server.start();
            }
            ServerEvent::Ended => self.server.exchange_results(self.now_ns),
            ServerEvent::Results(_) => {
                let own = results(self.parameters.total_streams(), 8);
                self.server.send_results(self.now_ns, &own);
            }
            _ => {}
        }
    }

    /// To the next time that anybody waits for. Where nobody does, the kernel's keepalive tells both
    /// after a while.
    fn pass_time(&mut self) {
        let next = [self.client.next_time(), self.server.next_time()];
        match next.into_iter().flatten().min() {
            Some(at_ns) => {
                self.now_ns = self.now_ns.max(at_ns);
                self.client.handle_timeout(Now::at(self.now_ns));
                self.server.handle_timeout(Now::at(self.now_ns));
            }
            None => {
                self.now_ns += 25 * SECOND;
                self.client.handle_end(Now::at(0));
                self.server.handle_end(Now::at(0));
            }
        }
    }
}
