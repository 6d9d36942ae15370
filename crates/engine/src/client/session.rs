//! One conversation with a server, from the first word to the result.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::report::EndReport;
use linerate_measure::sample::Role;
use linerate_measure::{Kind, Plan, Transport};
use linerate_wire::Machine;
use linerate_wire::native::client::{Client, ClientConfig, ClientEvent};
use linerate_wire::native::message::RefusalCause;
use linerate_wire::native::{Fault, LeaseWish, Stage};
use rustix::event::{PollFd, PollFlags};

use super::clocks::Clocks;
use super::dial::{LOOK_NS, check_binds, check_source_ports, dial, local_addresses, unused_binds};
use super::greeting::{Greeting, greet};
use super::lease::LeaseToken;
use super::opener::Opener;
use super::received::{read_host, read_report};
use super::record::Record;
use super::start::{LaterStart, Start};
use crate::access::Access;
use crate::clock::{monotonic_ns, now, utc_ns};
use crate::connections::{Agreement, Dial, SourcePorts, sockets_with};
use crate::control::{
    Conversation, TlsChannel, data_client, fingerprint, key_log_note, proof, random,
};
use crate::error::Error;
use crate::event::{Cancel, Event, Sink};
use crate::load::{Connections, Load};
use crate::probe::raise_open_files_limit;
use crate::quic_load::Quic;
use crate::waker::Waker;

/// Before a connection is made again that was cut off: a server that is flooded from this address closes
/// the oldest that it hasn't answered, and soon has room.
const PAUSES_MS: [u64; 4] = [50, 100, 200, 400];

/// A conversation that goes on after a test.
pub(super) struct KeptConversation {
    server: SocketAddr,
    control: Conversation<Client, TlsChannel>,
}

/// A test's place among others at its server.
#[derive(Default)]
pub(super) struct Place<'a> {
    /// Where the conversation is kept that goes on from one test to the next.
    pub(super) kept: Option<&'a mut Option<KeptConversation>>,
    /// How the server is to count it.
    pub(super) wish: LeaseWish,
    /// Where the token goes of a lease that the server grants.
    pub(super) token: Option<&'a LeaseToken>,
}

impl KeptConversation {
    /// Takes what came since the last test, answers to pings or the end, and says what is due.
    pub(super) fn if_it_goes_on(mut self) -> Option<Self> {
        let _told = self.control.pump();
        // No test has a use for what the clocks were between two.
        while self.control.machine.poll_event().is_some() {}
        (self.control.machine.stage() == Stage::Delivering).then_some(self)
    }

    /// Ends the conversation.
    pub(super) fn close(self) {
        self.control.close(0);
    }
}

/// Measures; fills the record as far as it comes, also where it fails. With a place for it, the conversation goes on
/// from the test before, and is kept for the next.
pub(super) fn measure(
    plan: &Plan,
    access: &Access,
    start: Option<&LaterStart>,
    sink: &Sink,
    cancel: &Cancel,
    (record, place): (&mut Record, Place<'_>),
) -> Result<(), Error> {
    let Place { kept: mut place, wish, token } = place;
    plan.check().map_err(|error| Error::Plan(error.to_string()))?;
    check_binds(plan)?;
    check_source_ports(plan)?;
    raise_open_files_limit();
    // One that has ended meanwhile is begun anew.
    let kept = place.as_mut().and_then(|place| place.take()?.if_it_goes_on());
    if let Some(kept) = kept {
        let mut session = NativeClientTest::again(plan, sink, cancel, record, kept)?;
        (session.start.later, session.lease) = (start, token);
        let outcome = session.converse();
        return session.close(outcome, access, place);
    }
    // That of a conversation that has ended is of no use any more.
    if let Some(token) = token {
        token.set(None);
    }
    let (mut pauses_ms, mut trusted) = (PAUSES_MS.into_iter(), None);
    loop {
        let (server, mut channel) = dial(plan, access.authority.as_ref(), cancel)?;
        let cut_off = match greet(&mut channel, server, &plan.host, cancel)? {
            Greeting::CutOff(error) => error,
            Greeting::Done => {
                check_key(&channel, access, &mut trusted)?;
                let config = client_config(plan, access, &channel, (place.is_some(), wish))?;
                let control = Conversation::new(Client::new(config, now()), channel);
                let kept = KeptConversation { server, control };
                let mut session = NativeClientTest::new(plan, sink, cancel, record, kept)?;
                (session.start.later, session.lease) = (start, token);
                match session.converse() {
                    Err(error) if session.progress.cut_off => error,
                    outcome => return session.close(outcome, access, place),
                }
            }
        };
        let Some(pause_ms) = pauses_ms.next() else { return Err(cut_off) };
        std::thread::sleep(Duration::from_millis(pause_ms));
        if cancel.requested() {
            return Err(Error::Interrupted);
        }
    }
}

/// What the client says of itself and asks for.
fn client_config(
    plan: &Plan,
    access: &Access,
    channel: &TlsChannel,
    (stays, lease): (bool, LeaseWish),
) -> Result<ClientConfig, Error> {
    let proof = match &access.shared_key {
        Some(key) => Some(proof(channel.session(), key)?),
        None => None,
    };
    Ok(ClientConfig {
        software: format!("linerate {}", env!("CARGO_PKG_VERSION")),
        proof,
        plan: workload_document(plan)?,
        exclusive: plan.exclusive,
        stays,
        lease,
    })
}

fn workload_document(plan: &Plan) -> Result<String, Error> {
    serde_json::to_string(&plan.workload)
        .map_err(|error| Error::Plan(format!("the plan can't be written as JSON: {error}")))
}

/// Asks whether the server's key is trusted, once for each that is shown.
fn check_key(
    channel: &TlsChannel,
    access: &Access,
    trusted: &mut Option<String>,
) -> Result<(), Error> {
    let certificate = channel.session().peer_certificates().and_then(|chain| chain.first());
    let shown = certificate.map(|certificate| fingerprint(certificate)).unwrap_or_default();
    if trusted.as_ref() != Some(&shown) {
        (access.trust)(&shown).map_err(Error::Refused)?;
        *trusted = Some(shown);
    }
    Ok(())
}

/// One conversation with a server.
pub(super) struct NativeClientTest<'a> {
    pub(super) plan: &'a Plan,
    pub(super) sink: &'a Sink,
    pub(super) cancel: &'a Cancel,
    pub(super) record: &'a mut Record,
    server: SocketAddr,
    pub(super) control: Conversation<Client, TlsChannel>,
    waker: Arc<Waker>,
    pub(super) load: Option<Load>,
    pub(super) opener: Option<Opener>,
    pub(super) clocks: Clocks,
    pub(super) progress: Progress,
    pub(super) start: Start<'a>,
    /// Where the token of its lease goes.
    lease: Option<&'a LeaseToken>,
    result: Option<EndReport>,
    pub(super) ended_ns: Option<u64>,
}

/// What has been said and taken in already.
#[derive(Default)]
pub(super) struct Progress {
    /// Whether the connection ended before the server's first word.
    cut_off: bool,
    pub(super) server_ready: bool,
    pub(super) armed: bool,
    pub(super) asked_start: bool,
    pub(super) finished: bool,
    pub(super) own_samples: u64,
    pub(super) server_samples: u64,
    pub(super) samples_left_out: u64,
}

impl<'a> NativeClientTest<'a> {
    fn new(
        plan: &'a Plan,
        sink: &'a Sink,
        cancel: &'a Cancel,
        record: &'a mut Record,
        KeptConversation { server, control }: KeptConversation,
    ) -> Result<Self, Error> {
        Ok(Self {
            plan,
            sink,
            cancel,
            record,
            server,
            control,
            waker: Arc::new(Waker::new()?),
            load: None,
            opener: None,
            clocks: Clocks::default(),
            progress: Progress::default(),
            start: Start { at_utc_ns: plan.start_at_utc_ns, ..Start::default() },
            lease: None,
            result: None,
            ended_ns: None,
        })
    }

    /// Another test of a conversation that goes on.
    fn again(
        plan: &'a Plan,
        sink: &'a Sink,
        cancel: &'a Cancel,
        record: &'a mut Record,
        mut kept: KeptConversation,
    ) -> Result<Self, Error> {
        kept.control.machine.ask(workload_document(plan)?, plan.exclusive);
        Self::new(plan, sink, cancel, record, kept)
    }

    fn converse(&mut self) -> Result<(), Error> {
        while self.result.is_none() {
            while let Some(event) = self.control.machine.poll_event() {
                self.handle_event(event)?;
            }
            if self.result.is_some() {
                break;
            }
            self.handle_cancel()?;
            self.conduct()?;
            // The machine gets a broken connection as an event, and returns what that means.
            let _told = self.control.say();
            self.wait();
            if self.start.opens_at_ns.is_some_and(|at_ns| at_ns <= monotonic_ns()) {
                // First of all, whatever else has come.
                self.conduct()?;
            }
            let _told = self.control.pump();
        }
        Ok(())
    }

    /// Waits for something to happen.
    fn wait(&self) {
        let now_ns = monotonic_ns();
        let due_ns = [
            self.load.as_ref().and_then(|load| load.next_tick(now_ns)),
            self.opener.as_ref().and_then(Opener::next_time),
            self.start.opens_at_ns,
            self.start.opens_at_ns.and_then(|at_ns| self.start.punctual.due_ns(at_ns)),
            Some(now_ns + LOOK_NS),
        ];
        let until_ns = due_ns.into_iter().flatten().min().unwrap_or(now_ns);
        let mut others: Vec<PollFd<'_>> = self.opener.iter().flat_map(Opener::poll_set).collect();
        if let Some(start) =
            self.start.later.filter(|_| self.progress.armed && !self.progress.asked_start)
        {
            others.push(PollFd::new(start, PollFlags::IN));
        }
        self.control.wait(Some(&self.waker), &others, until_ns);
    }

    fn handle_cancel(&mut self) -> Result<(), Error> {
        if !self.cancel.requested() || self.progress.finished {
            return Ok(());
        }
        match &mut self.load {
            Some(load) if load.is_open() => {
                load.stop();
                // What has been asked for is still awaited, as when the time is up: a server that is
                // told now may cut it off, and it would count as lost or failed. So it is with the counts of
                // datagrams that were sent: without them it would wait for more.
                if !self.plan.workload.has_transactions() && !load.sends_datagrams() {
                    self.finish();
                }
                Ok(())
            }
            _ => {
                self.control.machine.finish();
                let _gone = self.control.say();
                Err(Error::Interrupted)
            }
        }
    }

    pub(super) fn finish(&mut self) {
        if !self.progress.finished {
            self.progress.finished = true;
            self.control.machine.finish();
        }
    }

    fn handle_event(&mut self, event: ClientEvent) -> Result<(), Error> {
        match event {
            ClientEvent::Welcomed { .. } => {}
            ClientEvent::Queued { place } => self.sink.offer(Event::Queued { place }),
            ClientEvent::Leased(token) => {
                if let Some(lease) = self.lease {
                    lease.set(Some(token));
                }
            }
            ClientEvent::Admitted { run_id, token, host } => {
                self.record.draft.run_id = run_id;
                self.record.draft.environment.server = read_host(&host);
                self.open_flows(token)?;
            }
            ClientEvent::ClockSample(sample) => {
                self.clocks.record(&sample, &mut self.record.draft);
            }
            ClientEvent::Ready => {
                self.progress.server_ready = true;
                if let (Some(opener), Some(load)) = (&mut self.opener, &mut self.load) {
                    opener.handle_ready(monotonic_ns(), load)?;
                }
            }
            ClientEvent::Started { .. } => self.handle_started(),
            ClientEvent::Sample(text) => self.handle_sample(&text),
            ClientEvent::PeerSent(counts) => {
                if let Some(load) = &mut self.load {
                    load.handle_peer_sent(&counts);
                }
            }
            ClientEvent::Result(text) => {
                self.result = Some(read_report(&text, self.plan.workload.total_flows())?);
                let opened_ns = self.load.as_ref().and_then(Load::opened_ns);
                self.record.load_ns = opened_ns.map(|at_ns| monotonic_ns().saturating_sub(at_ns));
            }
            ClientEvent::Refused { cause, text } => return Err(refused(cause, text)),
            ClientEvent::Failed(fault) => {
                self.progress.cut_off = matches!(fault, Fault::Closed { stage: Stage::Greeting });
                return Err(self.failed(&fault));
            }
        }
        Ok(())
    }

    fn open_flows(&mut self, token: [u8; 16]) -> Result<(), Error> {
        let (workload, cpus) = (&self.plan.workload, &self.plan.local.cpus);
        let key_log = self.plan.local.key_log.as_deref();
        let tls = match self.control.channel().session().peer_certificates() {
            Some([certificate, ..]) if workload.has_keys() => {
                Some(data_client(certificate.clone().into_owned(), workload, key_log)?)
            }
            _ => None,
        };
        let quic = match &tls {
            Some(tls) if workload.transport == Transport::Quic => {
                let logs = self.plan.local.qlog.as_deref();
                let quic = Quic::client(workload, token, self.server, tls, logs)?;
                Some(Connections::Quic(Box::new(quic)))
            }
            _ => None,
        };
        let connects = matches!(workload.kind, Kind::Connect { .. });
        let dials = (connects && quic.is_none()).then(|| -> Result<_, Error> {
            // By chance: those that the last run has used wait in TIME-WAIT for a minute.
            let begin = u64::from_ne_bytes(random()?);
            let ports = self.plan.local.source_ports;
            Ok(Connections::Dial(Dial {
                token: Some(token),
                device: self.plan.local.bind_device.clone(),
                binds: local_addresses(self.plan)?,
                source_ports: ports.map(|(first, last)| SourcePorts { first, last, begin }),
                tls: tls.clone(),
                agreement: Agreement::new(workload.tls.handshake, workload.flows),
                ..Dial::new(self.server, sockets_with(workload.socket.clone()))
            }))
        });
        let dials = dials.transpose()?;
        let mut load = Load::prepare(Role::Client, workload, cpus, &self.waker, dials.or(quic))?;
        self.record.draft.notes.extend(unused_binds(self.plan, load.quic_sockets()));
        self.record.draft.notes.extend(self.plan.local.key_log.as_deref().map(key_log_note));
        let now_ns = monotonic_ns();
        let mut opener =
            Opener::new(self.plan, self.server, token, tls, load.quic_sockets(), now_ns);
        opener.advance(monotonic_ns(), &mut load)?;
        self.load = Some(load);
        self.opener = Some(opener);
        Ok(())
    }

    fn handle_started(&mut self) {
        let wait_ns = self.start.at_utc_ns.map_or(0, |at| at.saturating_sub(utc_ns()));
        self.start.opens_at_ns =
            Some(monotonic_ns().saturating_add(u64::try_from(wait_ns).unwrap_or(0)));
    }

    fn failed(&self, fault: &Fault) -> Error {
        Error::Peer(format!("the measurement against {} failed: {fault}", self.server))
    }

    /// Ends the load and keeps what was counted, whatever the outcome, and the conversation where it goes on.
    fn close(
        mut self,
        outcome: Result<(), Error>,
        access: &Access,
        place: Option<&mut Option<KeptConversation>>,
    ) -> Result<(), Error> {
        self.record.draft.notes.extend(access.doubt.clone());
        let measuring_ns = self.load.as_ref().and_then(Load::measuring_ns);
        if let Some(load) = self.load.take()
            && load.is_open()
        {
            let (sample, report) = load.finish(monotonic_ns());
            if let Some(sample) = sample {
                self.keep_own(sample);
            }
            self.record.draft.client = Some(report);
        }
        self.record.draft.server = self.result.take();
        if let Some(from_ns) = measuring_ns {
            let to_ns = self.ended_ns.unwrap_or_else(monotonic_ns);
            self.clocks.conclude((from_ns, to_ns), self.record);
        }
        if self.progress.samples_left_out > 0 {
            self.record.draft.notes.push(format!(
                "{} samples of the server were left out: they were invalid, or more than the intervals",
                self.progress.samples_left_out
            ));
        }
        match place {
            Some(place) if self.control.machine.stage() == Stage::Delivering => {
                *place = Some(KeptConversation { server: self.server, control: self.control });
            }
            _ => self.control.close(0),
        }
        outcome
    }
}

fn refused(cause: RefusalCause, text: String) -> Error {
    match cause {
        RefusalCause::Key => Error::Refused(text),
        RefusalCause::Busy | RefusalCause::Limit => Error::Busy(text),
        RefusalCause::Plan => Error::Plan(text),
        RefusalCause::Host => {
            Error::Host(format!("the server's machine can't run this test: {text}"))
        }
        RefusalCause::Version | RefusalCause::Protocol => Error::Peer(text),
    }
}
