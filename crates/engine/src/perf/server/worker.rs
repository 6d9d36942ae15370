//! One thread of a server: the connections that came to it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use linerate_wire::perf::answer::{Demand, Request, Start};
use linerate_wire::perf::render_block;

use super::clients::Clients;
use super::delays::Delays;
use super::{ServerEvent, ServerPlan, ThreadContext};
use crate::perf::NO_CODE;
use crate::perf::streams::{LENT_BYTES, Push, Sender, Streams};
use crate::transport::multiplexer::{Link, LinkEvent, Multiplexer, Sending};

/// Streams of one connection at a time; what is opened beyond is given up.
const STREAM_LIMIT: usize = 10_000;
/// Answers of one thread that may wait for their delay; more are not delayed.
const DELAYED_LIMIT: usize = 100_000;
/// Answers repeat a block of this size, as the original's do.
const BLOCK_BYTES: usize = 64 << 10;
/// How soon a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(50);
/// Waits shorter than this are no pace for a poll set: they are spent awake.
const SHORT_WAIT_NS: u64 = 1_000_000;

/// How long a thread that ends waits for its connections to, and how often it looks.
const ENDINGS: Duration = Duration::from_millis(200);
const LOOK_AT_ENDINGS: Duration = Duration::from_millis(10);

pub(super) struct Worker<'a, M> {
    plan: &'a ServerPlan,
    context: ThreadContext,
    endpoint: M,
    /// What every answer repeats, once or several times.
    block: Arc<Vec<u8>>,
    links: HashMap<Link, Streams<Stream>>,
    /// Answers to streams without a way back that wait until the client lets us open streams for them.
    owed: HashMap<Link, VecDeque<Stream>>,
    delays: Option<Delays<(Link, u64)>>,
    delayed: usize,
}

/// A stream: first its request, then what is left of its answer.
#[derive(Default)]
pub(super) struct Stream {
    request: Request,
    /// Whether the answer has begun: a request that is still coming, or that waits, is not answered.
    answering: bool,
    answer_bytes: u64,
    sent_bytes: u64,
}

impl<'a, M: Multiplexer> Worker<'a, M> {
    pub(super) fn new(plan: &'a ServerPlan, context: ThreadContext, endpoint: M) -> Self {
        let blocks = if endpoint.lends() { LENT_BYTES / BLOCK_BYTES } else { 1 };
        let block = Arc::new(render_block(0, BLOCK_BYTES).repeat(blocks));
        let mut endpoint = endpoint;
        endpoint.lend(&block);
        Self {
            delays: plan.delay.map(|delay| Delays::new(delay, u64::from(context.number))),
            block,
            links: HashMap::new(),
            owed: HashMap::new(),
            delayed: 0,
            plan,
            context,
            endpoint,
        }
    }

    /// Serves until the server stops.
    pub(super) fn run(mut self) -> io::Result<()> {
        // One thread tells it for all of its kind.
        let refused = self.plan.placement.settle(self.context.number);
        if let Some(why) = refused.filter(|_| self.context.number == 0) {
            self.context.tell(ServerEvent::Refused(why));
        }
        while !self.context.stop.load(Ordering::Relaxed) {
            let due_ns = self.delays.as_ref().and_then(Delays::next_due_ns);
            let at_most = match due_ns {
                None => LOOK,
                Some(due_ns) if due_ns < SHORT_WAIT_NS => Duration::ZERO,
                Some(due_ns) => LOOK.min(Duration::from_nanos(due_ns - SHORT_WAIT_NS)),
            };
            self.endpoint.wait(at_most)?;
            while let Some((link, event)) = self.endpoint.poll_event() {
                self.handle_event(link, event);
            }
            while let Some((link, stream)) = self.delays.as_mut().and_then(Delays::poll_due) {
                self.delayed -= 1;
                self.answer(link, stream);
            }
        }
        self.tell(Clients::cut_off);
        let links: Vec<Link> = self.links.keys().copied().collect();
        for link in links {
            self.endpoint.close(link);
        }
        self.endpoint.flush();
        self.await_endings();
        Ok(())
    }

    /// Tells how the connections end that it has closed; one whose peer doesn't take what is still to leave may
    /// take longer than this waits.
    fn await_endings(&mut self) {
        let until = Instant::now() + ENDINGS;
        let mut goes_on = true;
        while goes_on {
            goes_on = !self.links.is_empty() && Instant::now() < until;
            goes_on &= self.endpoint.wait(LOOK_AT_ENDINGS).is_ok();
            while let Some((link, event)) = self.endpoint.poll_event() {
                if matches!(event, LinkEvent::Ended { .. }) {
                    self.handle_event(link, event);
                }
            }
        }
    }

    fn handle_event(&mut self, link: Link, event: LinkEvent) {
        match event {
            LinkEvent::Established => {
                self.links.insert(link, Streams::default());
                if let Some(clients) = &mut self.context.clients
                    && let Some(remote) = self.endpoint.remote(link)
                {
                    clients.begin(link, remote);
                }
            }
            LinkEvent::Received { stream, one_way, start, bytes, finished } => {
                self.tell(|clients| clients.record_received(link, bytes));
                self.handle_received(link, (stream, one_way), start, bytes, finished);
            }
            // The original gives the stream up both ways, whichever way the peer did.
            LinkEvent::Reset { stream, .. } | LinkEvent::Stopped { stream, .. } => {
                self.give_up(link, stream);
            }
            LinkEvent::Delivered { .. } => {}
            LinkEvent::Writable { stream: Some(stream) } => self.send_all(link, stream),
            LinkEvent::Writable { stream: None } => {
                self.answer_owed(link);
                self.send_waiting(link);
            }
            LinkEvent::Ended { ending } => {
                self.links.remove(&link);
                self.owed.remove(&link);
                if let Some(clients) = &mut self.context.clients {
                    clients.end(link);
                }
                if self.plan.tells_connections && ending.established {
                    self.context.tell(ServerEvent::ConnectionEnded(ending));
                }
            }
        }
    }

    /// Lets the clients be counted, where they are.
    #[inline]
    fn tell(&self, record: impl FnOnce(&Clients)) {
        if let Some(clients) = &self.context.clients {
            record(clients);
        }
    }

    fn give_up(&mut self, link: Link, number: u64) {
        if self.links.get_mut(&link).and_then(|streams| streams.remove(number)).is_some() {
            self.endpoint.abort(link, number, NO_CODE);
        }
    }

    fn handle_received(
        &mut self,
        link: Link,
        (number, one_way): (u64, bool),
        start: Start,
        bytes: usize,
        finished: bool,
    ) {
        let Some(streams) = self.links.get_mut(&link) else { return };
        if streams.stream(number).is_none() {
            let owed = self.owed.get(&link).map_or(0, VecDeque::len);
            if streams.len() + owed >= STREAM_LIMIT {
                return self.endpoint.abort(link, number, NO_CODE);
            }
            streams.insert(number, Stream::default());
        }
        let Some(stream) = streams.stream(number) else { return };
        let Some(demand) = stream.request.handle_received(start, bytes, finished) else { return };
        let request_bytes = stream.request.received_bytes();
        match demand {
            Demand::Abort => return self.give_up(link, number),
            Demand::Bytes(answer_bytes) => stream.answer_bytes = answer_bytes,
        }
        if let (Some(clients), Demand::Bytes(bytes)) = (&self.context.clients, demand) {
            clients.record_request(link, request_bytes, bytes);
        }
        if one_way && demand == Demand::Bytes(0) {
            streams.remove(number);
            return self.tell(|clients| clients.record_answered(link));
        }
        let mut number = number;
        if one_way && let Some(stream) = streams.remove(number) {
            // The answer to a stream without a way back goes on one of ours.
            let Some(reply) = self.endpoint.open_one_way(link) else {
                self.owed.entry(link).or_default().push_back(stream);
                return;
            };
            streams.insert(reply, stream);
            number = reply;
        }
        self.begin_answer(link, number, demand);
    }

    /// Answers what there were no streams for, as far as the client has let more be opened.
    fn answer_owed(&mut self, link: Link) {
        while self.owed.get(&link).is_some_and(|owed| !owed.is_empty())
            && let Some(reply) = self.endpoint.open_one_way(link)
        {
            let owed = self.owed.get_mut(&link).and_then(VecDeque::pop_front);
            let (Some(stream), Some(streams)) = (owed, self.links.get_mut(&link)) else { return };
            let demand = Demand::Bytes(stream.answer_bytes);
            streams.insert(reply, stream);
            self.begin_answer(link, reply, demand);
        }
    }

    fn begin_answer(&mut self, link: Link, number: u64, demand: Demand) {
        match &mut self.delays {
            // An empty answer has nothing to wait for.
            Some(delays) if demand != Demand::Bytes(0) && self.delayed < DELAYED_LIMIT => {
                self.delayed += 1;
                delays.add((link, number));
            }
            _ => self.answer(link, number),
        }
    }

    fn answer(&mut self, link: Link, number: u64) {
        let stream = self.links.get_mut(&link).and_then(|streams| streams.stream(number));
        if let Some(stream) = stream {
            stream.answering = true;
            self.send_all(link, number);
        }
    }
}

impl<M: Multiplexer> Sender for Worker<'_, M> {
    type Stream = Stream;

    fn streams(&mut self, link: Link) -> Option<&mut Streams<Stream>> {
        self.links.get_mut(&link)
    }

    /// A finished answer is forgotten.
    fn send_block(&mut self, link: Link, number: u64) -> Push {
        let Some(streams) = self.links.get_mut(&link) else { return Push::Done };
        let Some(stream) = streams.stream(number).filter(|stream| stream.answering) else {
            return Push::Done;
        };
        let left_bytes = stream.answer_bytes - stream.sent_bytes;
        let offset = (stream.sent_bytes % BLOCK_BYTES as u64) as usize;
        let length = left_bytes.min((self.block.len() - offset) as u64) as usize;
        let bytes = self.block.get(offset..offset + length).unwrap_or_default();
        let finishes = length as u64 == left_bytes;
        // Over TCP an answer without data opens what it ends, as the original has it.
        let sending = Sending { bytes, opens: left_bytes == 0, finishes };
        let taken = self.endpoint.send(link, number, sending);
        let Some(taken) = taken else { return Push::Full };
        stream.sent_bytes += taken as u64;
        let push = Push::of(taken, length, finishes);
        if push == Push::Done {
            streams.remove(number);
        }
        if let Some(clients) = &self.context.clients {
            clients.record_sent(link, taken);
            if push == Push::Done {
                clients.record_answered(link);
            }
        }
        push
    }
}
