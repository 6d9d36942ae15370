//! The server's side of connections that come and go: takes each, sees it through its life, and closed.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use bytes::Bytes;
use linerate_measure::Workload;
use linerate_measure::step::Churn;
use socket2::Socket;

use super::connected::Connected;
use super::opening::ArrivingOpening;
use super::{FAILED, FOREIGN, Quic, Sockets};
use crate::buffers::Buffers;
use crate::clock::monotonic_ns;
use crate::connections::{LifeStream, Progress, Script, Timers};
use crate::flow::{Ending, FlowShared, Local, error_kind};
use crate::phase::Phase;
use crate::shard::Inlet;
use crate::tally::Tally;
use crate::transport::quic::{Cause, Dir, Event, Link, QuicStream, StreamId, Way, shared_pattern};

/// The part of a load of connections that one of the server's shards serves.
pub(crate) struct QuicAcceptor {
    pub(crate) quic: Quic,
    pub(crate) workload: Workload,
    pub(crate) step: Churn,
    /// Stands for all that this shard serves.
    pub(crate) shared: Arc<FlowShared>,
    pub(crate) inlet: Receiver<Socket>,
}

/// One connection.
struct Incoming {
    connected: Connected,
    stage: Stage,
}

/// How far it has come.
enum Stage {
    /// Its stream is awaited.
    Handshaking,
    Opening(StreamId, ArrivingOpening),
    Living(QuicStream, Progress),
    /// The client closes.
    Closing,
}

struct QuicAcceptLoop {
    token: [u8; 16],
    script: Script,
    pattern: Bytes,
    shared: Arc<FlowShared>,
    incoming: HashMap<Link, Incoming>,
    /// Of those that go on by themselves.
    timers: Timers<Link>,
    ending: Ending,
}

impl QuicAcceptor {
    /// Runs until the load has ended.
    pub(crate) fn run(self, waker: &Inlet, local: &mut Local) {
        let Self { quic, workload, step, shared, inlet } = self;
        shared.set_ready(local);
        let Ok(mut sockets) = Sockets::new(&quic, &workload, inlet) else {
            return shared.set_ended(Ending::default(), local);
        };
        let mut acceptor = QuicAcceptLoop {
            token: quic.token,
            script: Script::new(&step.life, &Buffers::default()),
            pattern: shared_pattern(&local.pattern),
            shared,
            incoming: HashMap::new(),
            timers: Timers::default(),
            ending: Ending::default(),
        };
        let mut resumed = Vec::new();
        while local.phase() < Phase::Drained && !sockets.is_released() {
            let _new_sockets = sockets.take_new(waker);
            let more_in = sockets.take_in();
            while let Some((link, event)) = sockets.poll_event() {
                acceptor.handle(link, event, &sockets, local);
            }
            acceptor.timers.take_due(monotonic_ns(), &mut resumed);
            resumed.drain(..).for_each(|link| acceptor.advance(link, local));
            let more_out = sockets.send_out();
            if !more_in && !more_out {
                let at_most_ns = acceptor.timers.wait_at_most_ns(monotonic_ns(), u64::MAX);
                sockets.wait(Duration::from_nanos(at_most_ns), waker, local.phase());
            }
        }
        acceptor.shared.tally.last_ns.set(monotonic_ns());
        acceptor.shared.set_ended(acceptor.ending, local);
        sockets.close();
    }
}

impl QuicAcceptLoop {
    fn handle(&mut self, link: Link, event: Event, sockets: &Sockets, local: &mut Local) {
        match event {
            Event::Accepted => {
                let Some(connected) = sockets.connected(link) else { return };
                self.incoming.insert(link, Incoming { connected, stage: Stage::Handshaking });
                if self.shared.tally.first_ns.value() == 0 {
                    self.shared.tally.first_ns.set(monotonic_ns());
                }
            }
            Event::StreamsOpened(Dir::Bi) | Event::Readable(_) | Event::Writable(_) => {
                self.advance(link, local);
            }
            Event::Closed(cause) => self.handle_close(link, &cause),
            _ => {}
        }
    }

    /// A connection goes on until it must wait.
    fn advance(&mut self, link: Link, local: &mut Local) {
        let Some(one) = self.incoming.get_mut(&link) else { return };
        let (script, tally) = (&mut self.script, &self.shared.tally);
        match one.advance(&self.token, script, &self.pattern, tally, local) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                // Its test is unknown until its opening is right.
                let has_lived = matches!(one.stage, Stage::Living(..));
                let code = if has_lived { FAILED } else { FOREIGN };
                one.connected.connection.borrow_mut().close(code, b"");
                self.incoming.remove(&link);
                self.count(&error);
            }
            _ => {
                if let Stage::Living(_, progress) = &mut one.stage
                    && let Some(resumes_ns) = progress.take_resumption()
                {
                    self.timers.add(resumes_ns, link);
                }
            }
        }
    }

    fn handle_close(&mut self, link: Link, cause: &Cause) {
        let one = self.incoming.remove(&link);
        if one.is_some_and(|one| !matches!(one.stage, Stage::Closing)) {
            self.count(&cause.error());
        }
    }

    fn count(&mut self, error: &io::Error) {
        *self.ending.errors.entry(error_kind(error)).or_insert(0) += 1;
    }
}

impl Incoming {
    fn advance(
        &mut self,
        token: &[u8; 16],
        script: &mut Script,
        pattern: &Bytes,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<()> {
        let connection = &self.connected.connection;
        loop {
            match &mut self.stage {
                Stage::Handshaking => {
                    let opened = connection.borrow_mut().accept_stream(Dir::Bi);
                    let Some(id) = opened else { return Ok(()) };
                    self.stage = Stage::Opening(id, ArrivingOpening::default());
                }
                Stage::Opening(id, opening) => {
                    let id = *id;
                    let opening = opening.read(connection, id)?;
                    if opening.token != *token {
                        return Err(io::ErrorKind::ConnectionRefused.into());
                    }
                    script.set_number(opening.flow);
                    let mut stream = self.connected.stream(id, Way::Both, pattern, false);
                    let progress = script.begin(0, 0);
                    if script.has_sent_all(&progress) {
                        stream.end_sending()?;
                    }
                    self.stage = Stage::Living(stream, progress);
                }
                Stage::Living(_, progress) if script.is_over(progress) => {
                    self.stage = Stage::Closing;
                    tally.transactions.add(1);
                }
                Stage::Living(stream, progress) => {
                    script.advance(progress, stream, tally, local, &mut ())?;
                }
                Stage::Closing => return Ok(()),
            }
        }
    }
}
