//! What clients ask for, and the tests that come of it.

use std::sync::Arc;

use linerate_measure::{Kind, Role, Transport, Workload};
use linerate_wire::native::message::RefusalCause;
use linerate_wire::native::server::ServerEvent;
use linerate_wire::native::{Fault, LeaseWish};
use linerate_wire::visible::visible_json;

use super::acceptor::{Incoming, NativeAcceptor};
use super::admission::Verdict;
use super::control::LeasePart;
use super::test::Test;
use crate::clock::{monotonic_ns, utc_ns};
use crate::connections::{Accept, SharedPort};
use crate::control::{data_server, random};
use crate::error::Error;
use crate::event::Event;
use crate::load::{Connections, Load};
use crate::probe::host_facts;
use crate::quic_load::Quic;

/// Why a test is refused whose lease isn't known.
const NO_LEASE: &str = "the measurement that this test belongs to has ended at the server, or isn't this client's: \
                        begin it again";

/// Connections that come and go: accepted before others have their turn.
const MOST_ACCEPTED_AT_ONCE: u32 = 32;

impl NativeAcceptor {
    pub(super) fn handle_events(&mut self, number: usize) {
        while let Some(Incoming::Control(control)) = self.clients.kept_mut(number)
            && let Some(event) = control.poll_event()
        {
            match event {
                ServerEvent::Request { plan, exclusive, lease } => {
                    self.handle_request(number, &plan, exclusive, lease);
                }
                ServerEvent::Start { at_utc_ns } => {
                    if let (Some(test), Some(machine)) =
                        (&mut control.test, &mut control.conversation.machine)
                    {
                        test.handle_start(at_utc_ns, monotonic_ns(), machine);
                    }
                }
                ServerEvent::PeerSent(counts) => {
                    if let Some(test) = &mut control.test {
                        test.handle_peer_sent(&counts);
                    }
                }
                ServerEvent::Finish => {
                    if let Some(test) = &mut control.test {
                        test.handle_finish(monotonic_ns());
                    }
                }
                ServerEvent::TurnedAway { cause } => {
                    let why = format!("turned away: {cause:?}").to_lowercase();
                    self.sink.offer(Event::Refused { client: control.client, why });
                }
                ServerEvent::Failed(fault) => self.handle_fault(number, &fault),
            }
        }
        self.conduct(number);
    }

    /// The conversation failed: whatever the client had ends at once.
    pub(super) fn handle_fault(&mut self, number: usize, fault: &Fault) {
        let why = format!("client lost: {fault}");
        self.end_test(number, &why);
        self.release_lease(number);
        self.depart(number);
    }

    fn handle_request(&mut self, number: usize, plan: &str, exclusive: bool, wish: LeaseWish) {
        let parsed = serde_json::from_str::<Workload>(&visible_json(plan))
            .map_err(|error| format!("the plan can't be read: {error}"))
            .and_then(|workload| match workload.check() {
                Ok(()) => Ok(workload),
                Err(error) => Err(error.to_string()),
            });
        let verdict = match (&parsed, self.join_lease(number, wish)) {
            (Err(why), _) => Verdict::Refused(RefusalCause::Plan, why.clone()),
            (Ok(_), Err(why)) => Verdict::Refused(RefusalCause::Busy, why.to_owned()),
            (Ok(workload), Ok(Some(holder))) => {
                self.admission.handle_request_within(holder, number, workload)
            }
            (Ok(workload), Ok(None)) => self.admission.handle_request(number, workload, exclusive),
        };
        let Some(Incoming::Control(control)) = self.clients.kept_mut(number) else { return };
        let Some(machine) = &mut control.conversation.machine else { return };
        match (verdict, parsed) {
            (Verdict::Refused(cause, why), _) => {
                self.sink.offer(Event::Refused { client: control.client, why: why.clone() });
                machine.refuse(cause, &why);
            }
            (Verdict::Queued(place), Ok(workload)) => {
                machine.queue(place);
                control.waiting = Some(Box::new(workload));
            }
            (Verdict::Admitted, Ok(workload)) => self.begin_test(number, &workload),
            (_, Err(_)) => {}
        }
    }

    /// The holder of the lease that a request belongs to: another client, or the one that asks. `None`: it is counted by
    /// itself.
    fn join_lease(
        &mut self,
        number: usize,
        wish: LeaseWish,
    ) -> Result<Option<usize>, &'static str> {
        let none_more = self.lifetime.takes_no_more(!self.tests.is_empty(), number);
        let address_of = |number| self.clients.kept(number).map(Incoming::address);
        let part = match wish {
            LeaseWish::None => LeasePart::None,
            LeaseWish::Begin => LeasePart::Wants,
            LeaseWish::Join(token) => {
                let holder = self.admission.holder(&token);
                let holder = holder.filter(|holder| address_of(*holder) == address_of(number));
                LeasePart::Within(holder.ok_or(NO_LEASE)?)
            }
        };
        let Some(Incoming::Control(control)) = self.clients.kept_mut(number) else {
            return Ok(None);
        };
        if !matches!(control.lease, LeasePart::Holds(_)) {
            control.lease = part;
        }
        match control.lease {
            LeasePart::Holds(_) => Ok(Some(number)),
            LeasePart::Within(holder) => Ok(Some(holder)),
            LeasePart::None | LeasePart::Wants => none_more.map_or(Ok(None), Err),
        }
    }

    /// A test was admitted whose client wants its place kept. Where there is no token, it has none, and its other tests
    /// are counted by themselves.
    fn grant_lease(&mut self, number: usize) {
        let Some(Incoming::Control(control)) = self.clients.kept_mut(number) else { return };
        if control.lease == LeasePart::Wants
            && let Some(machine) = &mut control.conversation.machine
            && let Ok(token) = random()
        {
            machine.grant_lease(token);
            control.lease = LeasePart::Holds(token);
            self.admission.hold(number, token);
        }
    }

    /// A client that may have a lease is gone, or about to be. Tests that belong to it go on, and take its place until
    /// they end; no more of them begin.
    pub(super) fn release_lease(&mut self, number: usize) {
        if let Some(Incoming::Control(control)) = self.clients.kept_mut(number)
            && let LeasePart::Holds(_) = std::mem::take(&mut control.lease)
        {
            self.admission.release(number);
        }
    }

    fn begin_test(&mut self, number: usize, workload: &Workload) {
        let prepared = self.prepare(number, workload);
        if prepared.is_ok() {
            self.grant_lease(number);
        }
        let Some(Incoming::Control(control)) = self.clients.kept_mut(number) else { return };
        let Some(machine) = &mut control.conversation.machine else { return };
        match prepared {
            Ok((run_id, token, load)) => {
                let host = serde_json::to_string(&host_facts()).unwrap_or_default();
                machine.admit(run_id, token, &host);
                let run_id: String = run_id.iter().map(|byte| format!("{byte:02x}")).collect();
                self.sink.offer(Event::TestStarted {
                    run_id: run_id.clone(),
                    utc_ns: utc_ns(),
                    client: control.client,
                    workload: Box::new(workload.clone()),
                });
                let bounds = (self.options.max_time_ns, self.admission.is_alone(number));
                let test = Test::new(token, run_id, load, bounds, &self.waker, monotonic_ns());
                control.test = Some(test);
                self.tests.insert(token, number);
                self.leave_or_take_listener();
                self.set_first_window();
            }
            Err(error) => {
                machine.refuse(RefusalCause::Host, &error.to_string());
                self.depart(number);
            }
        }
    }

    fn prepare(
        &mut self,
        number: usize,
        workload: &Workload,
    ) -> Result<([u8; 16], [u8; 16], Load), Error> {
        let token = random()?;
        let mut granted = workload.clone();
        let refused = match workload.threading.busy_poll {
            true => self.admission.handle_busy_poll(number).err(),
            false => None,
        };
        granted.threading.busy_poll &= refused.is_none();
        let connections = self.connections(&granted, token)?;
        let cpus = &self.options.cpus;
        let mut load = Load::prepare(Role::Server, &granted, cpus, &self.waker, connections)?;
        load.handle_other_tests(0);
        if let Some(why) = refused {
            load.note(why);
        }
        Ok((random()?, token, load))
    }

    /// Where the connections of a load come from that come and go.
    fn connections(
        &self,
        workload: &Workload,
        token: [u8; 16],
    ) -> Result<Option<Connections>, Error> {
        if workload.transport == Transport::Quic {
            let quic = Quic::server(workload, token, &data_server(&self.tls.data, workload))?;
            return Ok(Some(Connections::Quic(Box::new(quic))));
        }
        Ok(matches!(workload.kind, Kind::Connect { .. }).then(|| {
            Connections::Accept(Accept {
                loops: Arc::clone(&self.listener.loops),
                options: workload.socket.clone(),
                tls: (workload.transport == Transport::Tls)
                    .then(|| data_server(&self.tls.data, workload)),
                at_once: workload.flows.min(MOST_ACCEPTED_AT_ONCE),
                shared: Some(SharedPort {
                    token,
                    incoming: Arc::default(),
                    pending: Arc::default(),
                    most_incoming: self.admission.most_coming_and_going(workload),
                    first_thread: self.listener.unclaimed.0.clone(),
                    first_thread_waker: Arc::clone(&self.waker),
                }),
                ..Accept::new(Arc::clone(&self.listener.socket))
            })
        }))
    }

    /// Ends the number's test, if it has one, and frees all it had. Why it failed, where it has, says more than how
    /// it came to be over.
    pub(super) fn end_test(&mut self, number: usize, how: &str) {
        if let Some(Incoming::Control(control)) = self.clients.kept_mut(number)
            && let Some(mut test) = control.test.take()
        {
            self.tests.remove(&test.token);
            let figures = test.figures(monotonic_ns());
            self.sink.offer(Event::TestEnded {
                run_id: test.run_id.clone(),
                utc_ns: utc_ns(),
                how: test.failure().unwrap_or(how).to_owned(),
                figures,
            });
            let place = control.place(number);
            self.lifetime.note_end(place, test.workload(), figures);
            self.leave_or_take_listener();
        }
    }

    /// A client has left its place. The next one in the queue begins its test.
    pub(super) fn depart(&mut self, number: usize) {
        if let Some(next) = self.admission.handle_departure(number) {
            let waiting = match self.clients.kept_mut(next) {
                Some(Incoming::Control(control)) => control.waiting.take(),
                _ => None,
            };
            if let Some(workload) = waiting {
                self.begin_test(next, &workload);
            }
        }
        let places: Vec<usize> = self.admission.waiting().collect();
        for (index, waiting) in places.into_iter().enumerate() {
            if let Some(Incoming::Control(control)) = self.clients.kept_mut(waiting)
                && let Some(machine) = &mut control.conversation.machine
            {
                machine.queue(u32::try_from(index + 1).unwrap_or(u32::MAX));
            }
        }
    }
}
