//! The server's side of connections that come and go: takes each, answers its one request, sees it
//! closed.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use linerate_measure::Workload;
use linerate_measure::step::{Churn, Step, flow_steps};
use linerate_wire::native::opening::{OPENING_BYTES, Opening};
use socket2::Socket;

use super::dialer::as_length;
use super::{FOREIGN, LONGEST_WAIT, Quic, Sockets};
use crate::clock::monotonic_ns;
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::phase::Phase;
use crate::shard::Inlet;
use crate::tally::Tally;
use crate::transport::quic::{Dir, Event, Link, SharedConnection, StreamId};

/// The part of a load of connections that one of the server's shards serves.
pub(crate) struct QuicAcceptor {
    pub(crate) quic: Quic,
    pub(crate) workload: Workload,
    /// One, which stands for all that this shard serves.
    pub(crate) flows: Vec<Arc<FlowShared>>,
    pub(crate) inlet: Receiver<Socket>,
}

/// One connection.
struct Incoming {
    connection: SharedConnection,
    stream: Option<StreamId>,
    opening: [u8; OPENING_BYTES],
    received: usize,
    sent: usize,
    answered: bool,
}

struct Host {
    token: [u8; 16],
    step: Churn,
    shared: Arc<FlowShared>,
    incoming: HashMap<Link, Incoming>,
    ending: Ending,
}

impl QuicAcceptor {
    /// Runs until the load has ended.
    pub(crate) fn run(self, waker: &Inlet, local: &mut Local) {
        let Some(shared) = self.flows.into_iter().next() else { return };
        let Some(Step::Accept(step)) = flow_steps(&self.workload, 0).server.pop() else {
            return shared.set_ended(Ending::default(), local);
        };
        shared.set_ready(local);
        let Ok(mut sockets) = Sockets::new(&self.quic, &self.workload, self.inlet) else {
            return shared.set_ended(Ending::default(), local);
        };
        let token = self.quic.token;
        let (incoming, ending) = (HashMap::new(), Ending::default());
        let mut host = Host { token, step, shared, incoming, ending };
        while local.phase() < Phase::Drained && !sockets.is_released() {
            let _associations = sockets.take_new(waker);
            let more_in = sockets.take_in();
            while let Some((link, event)) = sockets.poll_event() {
                host.handle(link, event, &sockets, local);
            }
            let more_out = sockets.send_out();
            if !more_in && !more_out {
                sockets.wait(LONGEST_WAIT, waker, local.phase());
            }
        }
        host.shared.tally.last_ns.set(monotonic_ns());
        host.shared.set_ended(host.ending, local);
        sockets.close();
    }
}

impl Host {
    fn handle(&mut self, place: Link, event: Event, sockets: &Sockets, local: &Local) {
        match event {
            Event::Accepted => {
                if let Some(connection) = sockets.endpoint.connection(place).cloned() {
                    let incoming = Incoming {
                        connection,
                        stream: None,
                        opening: [0; OPENING_BYTES],
                        received: 0,
                        sent: 0,
                        answered: false,
                    };
                    self.incoming.insert(place, incoming);
                    if self.shared.tally.first_ns.value() == 0 {
                        self.shared.tally.first_ns.set(monotonic_ns());
                    }
                }
            }
            Event::StreamsOpened(Dir::Bi) | Event::Readable(_) | Event::Writable(_) => {
                let Some(incoming) = self.incoming.get_mut(&place) else { return };
                if let Err(error) =
                    incoming.advance(self.token, &self.step, &self.shared.tally, local)
                    && error.kind() != io::ErrorKind::WouldBlock
                {
                    *self.ending.errors.entry(error_kind(&error)).or_insert(0) += 1;
                    incoming.connection.borrow_mut().close(FOREIGN, b"");
                    self.incoming.remove(&place);
                }
            }
            Event::Closed(cause) => {
                let unanswered = self.incoming.remove(&place).filter(|incoming| !incoming.answered);
                if unanswered.is_some() {
                    let kind = error_kind(&cause.error());
                    *self.ending.errors.entry(kind).or_insert(0) += 1;
                }
            }
            _ => {}
        }
    }
}

impl Incoming {
    fn advance(
        &mut self,
        token: [u8; 16],
        step: &Churn,
        tally: &Tally,
        local: &Local,
    ) -> io::Result<()> {
        let mut connection = self.connection.borrow_mut();
        if self.stream.is_none() {
            self.stream = connection.accept_stream(Dir::Bi);
        }
        let Some(id) = self.stream else { return Ok(()) };
        let (response, request) = step.life.amounts();
        let asked = OPENING_BYTES + as_length(request);
        while self.received < asked {
            let (opening, received) = (&mut self.opening, &mut self.received);
            let before = *received;
            let (_, finished) = connection.receive(id, asked - before, &mut |piece| {
                for byte in piece {
                    if let Some(place) = opening.get_mut(*received) {
                        *place = *byte;
                    }
                    *received += 1;
                }
            })?;
            let payload = |bytes: usize| bytes.saturating_sub(OPENING_BYTES);
            let bytes = payload(*received) - payload(before);
            if bytes > 0 {
                tally.record_received(bytes);
            }
            if *received >= OPENING_BYTES && before < OPENING_BYTES {
                let is_ours = Opening::decode(opening).is_ok_and(|one| one.token == token);
                if !is_ours {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
            }
            if finished && *received < asked {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let response = as_length(response);
        while self.sent < response {
            let length = (response - self.sent).min(local.receive_buffer.len());
            let sent = connection.send(id, local.pattern.slice(0, length))?;
            tally.record_sent(sent);
            self.sent += sent;
        }
        if !self.answered {
            self.answered = true;
            tally.transactions.add(1);
            connection.finish(id)?;
        }
        Ok(())
    }
}
