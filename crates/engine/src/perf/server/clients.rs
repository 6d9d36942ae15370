//! What the clients of one thread do, connection by connection and address by address.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use linerate_measure::Transport;
use linerate_wire::perf::{HEADER_BYTES, UNLIMITED};

use super::Message;
use crate::clock::monotonic_ns;
use crate::tally::Counter;
use crate::transport::multiplexer::Link;

/// Whose counts they are: the clients of one address over one transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClientKey {
    pub(super) address: IpAddr,
    pub(super) transport: Transport,
}

/// What the connections of one address do on one thread, from its first until none is left: the thread writes, the
/// observer of the test reads.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct ClientCounts {
    pub(super) key: ClientKey,
    /// The thread's number.
    pub(super) thread: u32,
    pub(super) received_bytes: Counter,
    pub(super) sent_bytes: Counter,
    /// Connections that stood.
    pub(super) connections: Counter,
    /// Connections that stand, and the most of them at a time.
    pub(super) open: [Counter; 2],
    /// Streams whose answer was given whole.
    pub(super) streams: Counter,
    pub(super) asked: Asked,
    /// When the first connection stood and when the last one ended, on the monotonic clock.
    pub(super) first_ns: Counter,
    pub(super) last_ns: Counter,
    closed: AtomicBool,
    cut_off: AtomicBool,
}

/// What requests ask for.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Requests that are more than a header.
    pub(super) uploads: Counter,
    /// Requests for an answer that has an end.
    pub(super) downloads: Counter,
    /// Requests for an answer without an end.
    pub(super) endless: Counter,
}

impl ClientCounts {
    fn new(key: ClientKey, thread: u32, now_ns: u64) -> Self {
        let counts = Self {
            key,
            thread,
            received_bytes: Counter::default(),
            sent_bytes: Counter::default(),
            connections: Counter::default(),
            open: [Counter::default(), Counter::default()],
            streams: Counter::default(),
            asked: Asked::default(),
            first_ns: Counter::default(),
            last_ns: Counter::default(),
            closed: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
        };
        counts.first_ns.set(now_ns);
        // The observer may look before the first connection is counted.
        counts.last_ns.set(now_ns);
        counts
    }

    /// Whether the thread writes no more. What it has written is then seen.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether the server has ended its connections.
    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }
}

/// The clients of one thread.
pub(super) struct Clients {
    transport: Transport,
    thread: u32,
    by_link: HashMap<Link, Arc<ClientCounts>>,
    /// Those that have a connection.
    by_address: HashMap<IpAddr, Arc<ClientCounts>>,
    /// To the thread that observes tests.
    sender: Sender<Message>,
}

impl Clients {
    pub(super) fn new((transport, thread): (Transport, u32), sender: Sender<Message>) -> Self {
        Self { transport, thread, by_link: HashMap::new(), by_address: HashMap::new(), sender }
    }

    /// A connection stands.
    pub(super) fn begin(&mut self, link: Link, remote: SocketAddr) {
        let address = remote.ip().to_canonical();
        let (transport, thread, sender) = (self.transport, self.thread, &self.sender);
        let counts = self.by_address.entry(address).or_insert_with(|| {
            let key = ClientKey { address, transport };
            let counts = Arc::new(ClientCounts::new(key, thread, monotonic_ns()));
            // Fails only when the server is ending.
            let _unheard = sender.send(Message::Client(Arc::clone(&counts)));
            counts
        });
        counts.connections.add(1);
        let [open, most_open] = &counts.open;
        open.add(1);
        most_open.set(most_open.value().max(open.value()));
        self.by_link.insert(link, Arc::clone(counts));
    }

    /// A connection has ended.
    pub(super) fn end(&mut self, link: Link) {
        let Some(counts) = self.by_link.remove(&link) else { return };
        let [open, _] = &counts.open;
        open.set(open.value().saturating_sub(1));
        counts.last_ns.set(monotonic_ns());
        if open.value() == 0 {
            self.by_address.remove(&counts.key.address);
            counts.closed.store(true, Ordering::Release);
        }
    }

    /// The server ends the connections that there are.
    pub(super) fn cut_off(&self) {
        self.by_address.values().for_each(|counts| counts.cut_off.store(true, Ordering::Relaxed));
    }

    pub(super) fn record_received(&self, link: Link, bytes: usize) {
        if let Some(counts) = self.by_link.get(&link) {
            counts.received_bytes.add(bytes as u64);
        }
    }

    pub(super) fn record_sent(&self, link: Link, bytes: usize) {
        if let Some(counts) = self.by_link.get(&link) {
            counts.sent_bytes.add(bytes as u64);
        }
    }

    /// A request of so many bytes is complete, and wants an answer of so many.
    pub(super) fn record_request(&self, link: Link, request_bytes: u64, answer_bytes: u64) {
        let Some(counts) = self.by_link.get(&link) else { return };
        counts.asked.uploads.add(u64::from(request_bytes > HEADER_BYTES as u64));
        match answer_bytes {
            0 => {}
            UNLIMITED => counts.asked.endless.add(1),
            _ => counts.asked.downloads.add(1),
        }
    }

    /// A stream was answered.
    pub(super) fn record_answered(&self, link: Link) {
        if let Some(counts) = self.by_link.get(&link) {
            counts.streams.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn link(index: u32) -> Link {
        Link { index, generation: 0 }
    }

    #[test]
    fn connections_of_an_address_share_counts_while_one_of_them_stands() {
        let (sender, receiver) = channel();
        let mut clients = Clients::new((Transport::Quic, 0), sender);
        let remote = SocketAddr::from(([127, 0, 0, 1], 1));
        clients.begin(link(0), remote);
        clients.begin(link(1), SocketAddr::from(([127, 0, 0, 1], 2)));
        clients.record_received(link(0), 20);
        clients.record_request(link(0), 20, 5);
        clients.record_sent(link(1), 5);
        clients.record_answered(link(1));
        clients.end(link(0));
        let next = || match receiver.try_recv().unwrap() {
            Message::Client(counts) => counts,
            Message::Event(event) => panic!("{event:?}"),
        };
        let counts = next();
        assert!(receiver.try_recv().is_err() && !counts.is_closed());
        clients.end(link(1));
        assert!(counts.is_closed());
        let [open, most_open] = &counts.open;
        let seen = [&counts.connections, open, most_open, &counts.streams];
        assert_eq!(seen.map(Counter::value), [2, 0, 2, 1]);
        let seen = [&counts.received_bytes, &counts.sent_bytes, &counts.asked.uploads];
        assert_eq!(seen.map(Counter::value), [20, 5, 1]);
        assert_eq!((counts.asked.downloads.value(), counts.asked.endless.value()), (1, 0));
        clients.begin(link(2), remote);
        assert!(!next().is_closed(), "others begin anew");
    }
}
