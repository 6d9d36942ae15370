//! The UDP port: tests that open streams of datagrams, and their sockets.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use linerate_wire::iperf3::Code;
use linerate_wire::iperf3::datagram::{HEADER_BYTES, Word, answer_again, answer_to};
use rustix::net::{RecvFlags, recvfrom};
use socket2::{Domain, Protocol, Socket, Type};

use super::awaited::Awaited;
use super::test::Arrival;
use crate::clock::{SECOND_NS, monotonic_ns};
use crate::iperf3::Failure;
use crate::iperf3::repeats::Repeats;
use crate::socket::{bind_beside, bind_datagram, plain};
use crate::waker::Waker;

/// Datagrams looked at before others have their turn.
const MOST_AT_ONCE: usize = 64;

/// Datagrams that a stream's socket may have caught before it was connected: more than a moment of anybody's flood.
const MOST_OTHERS: usize = 1024;

/// How long a port that never runs empty may hold greetings of a stream that has its socket.
const HELD_NS: u64 = SECOND_NS;

/// A greeting and its source address.
type Greeting = (SocketAddr, Word);

/// A stream whose client may lack the answer: it hasn't asked for the next one.
pub(super) struct Newest {
    from: SocketAddr,
    answer: [u8; 4],
    /// `None` where there was no descriptor to answer again with: the stream itself has one.
    socket: Option<Socket>,
    block_bytes: usize,
    repeats: Repeats,
}

impl Newest {
    fn answer_again(&self, bytes: usize) {
        if let Some(socket) = &self.socket {
            let _lost_again = socket.send(&answer_again(self.answer, bytes));
        }
    }

    /// Answers a repeated greeting; a copy that the network made isn't a repetition. Only linerate repeats greetings.
    /// The answer has no more bytes than the greeting, whose source address may be forged.
    fn handle_greeting(&self, said: Option<Word>) {
        if said.is_some_and(|said| said.is_again) {
            self.answer_again(HEADER_BYTES);
        }
    }

    /// Answers again where the client asks again, and after a while anyway, as an original never asks twice.
    fn see_to(&mut self, now_ns: u64) {
        for _ in 0..MOST_AT_ONCE {
            match self.socket.as_ref().map(next_greeting) {
                Some(Ok(greeting)) => self.handle_greeting(greeting.map(|(_, said)| said)),
                Some(Err(_)) | None => break,
            }
        }
        if self.repeats.is_due(now_ns) {
            self.answer_again(self.block_bytes);
        }
    }
}

/// A test that wants streams of datagrams.
pub(super) struct Claim {
    pub(super) test: u64,
    /// The client, as its control connection has proved it.
    pub(super) client: IpAddr,
    /// This end's address of the control connection, to which the client sends; its port is the
    /// streams' too.
    pub(super) local: SocketAddr,
    pub(super) awaited: Arc<Awaited>,
    /// How long the client may take from one stream to the next before the answer is said again.
    pub(super) answered_unasked_after_ns: u64,
    /// Bytes of a datagram of the test.
    pub(super) block_bytes: usize,
    pub(super) newest: Option<Newest>,
    pub(super) to: Sender<Arrival>,
    pub(super) waker: Arc<Waker>,
}

impl Claim {
    fn tell(&self, arrival: Arrival) {
        // Fails only if the test is over.
        let _over = self.to.send(arrival);
        self.waker.wake();
    }

    /// Opens a stream for a greeting, if one is expected; returns greetings of other clients that came meanwhile.
    /// `None`: no stream was opened.
    fn open(&mut self, from: SocketAddr, greeting: Word) -> Option<Vec<Greeting>> {
        if let Some(newest) = self.newest.as_ref().filter(|newest| newest.from == from) {
            newest.handle_greeting(Some(greeting));
            return None;
        }
        match self.awaited.count_in() {
            Ok(true) => match self.open_stream(from, answer_to(greeting.word)) {
                Ok((socket, others)) => {
                    self.tell(Arrival::Stream(socket));
                    return Some(others);
                }
                Err(error) => self.fail(&error),
            },
            Ok(false) => {}
            Err(failure) => self.tell(Arrival::Failed(failure)),
        }
        None
    }

    /// A socket for the stream of one client, and greetings of other clients that it received.
    fn open_stream(
        &mut self,
        from: SocketAddr,
        answer: [u8; 4],
    ) -> io::Result<(Socket, Vec<Greeting>)> {
        let (socket, others) = connected(self.local, from)?;
        socket.send(&answer)?;
        let repeats = Repeats::after(self.answered_unasked_after_ns);
        let (to_answer, block_bytes) = (socket.try_clone().ok(), self.block_bytes);
        self.newest = Some(Newest { from, answer, socket: to_answer, block_bytes, repeats });
        Ok((socket, others))
    }

    fn fail(&self, error: &io::Error) {
        self.tell(Arrival::Failed(Failure::system(Code::STREAM_LISTEN, error)));
    }
}

/// The UDP port, taken when it is first needed.
#[derive(Default)]
pub(super) struct UdpPort {
    socket: Option<Socket>,
    /// Tests that make streams now: one of each client address.
    current: Vec<Claim>,
    /// Tests that come after them.
    waiting: VecDeque<Claim>,
    /// Clients whose test has its last stream, and since when. The port may still hold greetings from before that
    /// stream had a socket: they are no streams of the next test.
    finished: Vec<(SocketAddr, u64)>,
}

impl UdpPort {
    /// The port; open already if a service manager handed it over.
    pub(super) fn new(socket: Option<Socket>) -> Self {
        Self { socket, ..Self::default() }
    }

    /// A test wants streams. It is told when its turn has come.
    pub(super) fn claim(&mut self, claim: Claim, address: SocketAddr, device: Option<&str>) {
        if self.socket.is_none() {
            match bind_datagram(address, device) {
                Ok(socket) => self.socket = Some(socket),
                Err(error) => return claim.fail(&error),
            }
        }
        self.waiting.push_back(claim);
        self.promote();
    }

    /// A test has all its streams, or is over.
    pub(super) fn release(&mut self, test: u64) {
        self.current.retain(|claim| claim.test != test);
        self.waiting.retain(|claim| claim.test != test);
        self.promote();
    }

    fn promote(&mut self) {
        for claim in std::mem::take(&mut self.waiting) {
            if self.current.iter().any(|other| other.client == claim.client) {
                self.waiting.push_back(claim);
            } else {
                claim.tell(Arrival::Turn);
                self.current.push(claim);
            }
        }
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Makes streams of the greetings that have come, and answers again where none comes after the newest.
    pub(super) fn handle_greetings(&mut self) {
        self.read_port();
        let now_ns = monotonic_ns();
        for newest in self.current.iter_mut().filter_map(|claim| claim.newest.as_mut()) {
            newest.see_to(now_ns);
        }
    }

    /// These have the last streams of a test. A flood may keep the port from running empty, so they are forgotten by
    /// time, too.
    fn finish(&mut self, from: impl Iterator<Item = SocketAddr>, now_ns: u64) {
        self.finished.retain(|(_, since_ns)| now_ns.saturating_sub(*since_ns) < HELD_NS);
        self.finished.extend(from.map(|from| (from, now_ns)));
    }

    fn read_port(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            match self.socket.as_ref().map(next_greeting) {
                Some(Ok(Some(greeting))) => self.greet(greeting),
                Some(Ok(None)) => {}
                Some(Err(_)) | None => {
                    self.finished.clear();
                    return;
                }
            }
        }
    }

    /// Answers a greeting, and those that are caught meanwhile.
    fn greet(&mut self, greeting: Greeting) {
        let mut greetings = vec![greeting];
        while let Some(greeting) = greetings.pop() {
            greetings.append(&mut self.answer(greeting));
        }
    }

    /// Answers a greeting, if its address has a test that opens streams; returns greetings of other clients that came
    /// meanwhile.
    fn answer(&mut self, (from, greeting): Greeting) -> Vec<Greeting> {
        if self.finished.iter().any(|(finished, _)| *finished == from) {
            return Vec::new();
        }
        let Some(claim) = self.current.iter_mut().find(|claim| claim.client == from.ip()) else {
            return Vec::new();
        };
        let before = claim.newest.as_ref().map(|newest| newest.from);
        let others = claim.open(from, greeting);
        // One that failed waits for its end: its client may not know yet.
        if others.is_some() && claim.awaited.is_complete() {
            let done = claim.test;
            self.finish(before.into_iter().chain([from]), monotonic_ns());
            self.release(done);
        }
        others.unwrap_or_default()
    }
}

/// The next datagram, where it greets: in every release's words, and any will do. What is longer is data that came
/// late for a stream which has ended.
fn next_greeting(socket: &Socket) -> io::Result<Option<Greeting>> {
    // One byte more than a greeting has, so that data shows.
    let mut datagram = [0_u8; HEADER_BYTES + 1];
    let (_, length, from) = recvfrom(socket.as_fd(), datagram.as_mut_slice(), RecvFlags::empty())?;
    let from = from.and_then(|from| SocketAddr::try_from(from).ok()).map(plain);
    Ok(from.zip(datagram.get(..length).and_then(Word::of)))
}

/// A socket for the stream of one client, and greetings of other clients that it received before it was connected:
/// until then the kernel may give it any datagram of the port.
fn connected(local: SocketAddr, from: SocketAddr) -> io::Result<(Socket, Vec<Greeting>)> {
    let socket = Socket::new(Domain::for_address(from), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    bind_beside(&socket, local)?;
    socket.connect(&from.into())?;
    let mut others = Vec::new();
    for _ in 0..MOST_OTHERS {
        match next_greeting(&socket) {
            Ok(Some(other)) if other.0 != from => others.push(other),
            Ok(_) => {}
            Err(_) => return Ok((socket, others)),
        }
    }
    // What else it holds would be taken for the stream's data.
    Err(io::Error::from_raw_os_error(libc::ENOBUFS))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::mpsc::{Receiver, channel};

    use linerate_wire::iperf3::datagram::GREETING;
    use linerate_wire::iperf3::{Parameters, Protocol};

    use super::*;
    use crate::iperf3::descriptors::{Pool, Reserved};

    static POOL: Pool = Pool::new(|| 2000);
    const ANY: &str = "127.0.0.1:0";

    /// A port, and the tests of one client's that want so many streams each.
    struct TestServer {
        port: UdpPort,
        arrivals: Vec<Receiver<Arrival>>,
        address: SocketAddr,
    }

    impl TestServer {
        fn with_tests(streams: &[u32]) -> Self {
            let address = UdpSocket::bind(ANY).unwrap().local_addr().unwrap();
            let mut port = UdpPort::default();
            let arrivals = streams.iter().zip(0..).map(|(&parallel, test)| {
                let parameters =
                    Parameters { parallel, protocol: Protocol::Udp, ..Parameters::default() };
                let reserved = Reserved::from_pool(&POOL, &parameters, false).unwrap();
                let (to, arrivals) = channel();
                let claim = Claim {
                    test,
                    client: address.ip(),
                    local: address,
                    awaited: Arc::new(Awaited::new(parallel as usize, reserved)),
                    answered_unasked_after_ns: 10 * SECOND_NS,
                    block_bytes: 1000,
                    newest: None,
                    to,
                    waker: Arc::new(Waker::new().unwrap()),
                };
                port.claim(claim, address, None);
                arrivals
            });
            Self { arrivals: arrivals.collect(), port, address }
        }

        /// A client's socket that has said so many greetings.
        fn greeted(&self, times: usize) -> UdpSocket {
            let socket = UdpSocket::bind(ANY).unwrap();
            socket.connect(self.address).unwrap();
            for _ in 0..times {
                socket.send(&GREETING).unwrap();
            }
            socket
        }

        /// What each test has been told: `t` that it is its turn, `s` of a stream.
        fn told(&self) -> Vec<String> {
            let letter = |arrival: Arrival| match arrival {
                Arrival::Turn => 't',
                Arrival::Stream(_) => 's',
                Arrival::Failed(failure) => panic!("{failure:?}"),
            };
            let all = |test: &Receiver<Arrival>| test.try_iter().map(letter).collect();
            self.arrivals.iter().map(all).collect()
        }
    }

    #[test]
    fn finished_addresses_are_forgotten_in_time() {
        let mut port = UdpPort::default();
        let address = |number: u64| SocketAddr::from(([127, 0, 0, 1], number as u16));
        for number in 0..1000 {
            port.finish([address(number)].into_iter(), number * HELD_NS / 10);
        }
        let kept: Vec<SocketAddr> = port.finished.iter().map(|(from, _)| *from).collect();
        assert_eq!(kept, (990..1000).map(address).collect::<Vec<_>>());
    }

    #[test]
    fn a_greeting_said_twice_makes_no_stream_of_the_next_test() {
        let mut served = TestServer::with_tests(&[2, 1]);
        let _first = served.greeted(2);
        let _last = served.greeted(3);
        served.port.handle_greetings();
        assert_eq!(served.told(), ["tss", "t"]);
        let _next = served.greeted(1);
        served.port.handle_greetings();
        assert_eq!(served.told(), ["", "s"]);
    }
}
