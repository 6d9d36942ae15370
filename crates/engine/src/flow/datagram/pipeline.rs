//! Many requests on their way at once as datagrams, and requests that keep to a schedule.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;

use linerate_wire::native::datagram::RrHeader;
use linerate_wire::step::{Exchange, StepEnd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use super::DatagramSettings;
use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Ending, Local, Stage, Turn};
use crate::phase::Phase;
use crate::tally::Tally;
use crate::timetable::Timetable;

/// Sends requests as long as there is room for more on their way, each when it is due, and takes
/// their responses in any order.
///
/// The rules are those of [`Pipeline`](crate::flow::pipeline::Pipeline), and one more: a request
/// whose response hasn't come in time is lost, and makes room.
pub(super) struct DatagramPipeline {
    tag: u32,
    request: Vec<u8>,
    outstanding: usize,
    timetable: Option<Timetable>,
    timeout_ns: u64,
    left: u64,
    /// The sequence number of the oldest request that is remembered.
    oldest_seq: u64,
    requests: VecDeque<Request>,
    stopped: bool,
    never_sent: u64,
    lost: u64,
}

/// A request that was sent.
struct Request {
    due_ns: u64,
    sent_ns: u64,
    warm_up: bool,
    answered: bool,
}

impl DatagramPipeline {
    pub(super) fn new(settings: DatagramSettings, step: &Exchange) -> Self {
        Self {
            tag: settings.tag,
            request: vec![0; step.request_bytes as usize],
            outstanding: step.outstanding as usize,
            timetable: step.schedule.as_ref().map(Timetable::new),
            timeout_ns: step.timeout_ns.unwrap_or(u64::MAX),
            left: match step.end {
                StepEnd::Count { count } => count,
                _ => u64::MAX,
            },
            oldest_seq: 0,
            requests: VecDeque::new(),
            stopped: false,
            never_sent: 0,
            lost: 0,
        }
    }

    pub(super) fn leave(self, ending: &mut Ending) {
        ending.datagrams.transactions_lost = Some(self.lost);
        ending.transactions_unsent = self.timetable.map(|_| self.never_sent);
    }

    pub(super) fn turn(
        &mut self,
        socket: &Socket,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        for _ in 0..CALLS_PER_TURN {
            let drained = self.receive(socket, tally, local)?;
            let phase = local.phase();
            if phase == Phase::Hold {
                return Ok(Stage::Goes(Turn::Held));
            }
            let now_ns = monotonic_ns();
            self.give_up_overdue(now_ns);
            let has_room = self.send_due(socket, now_ns, phase, tally)?;
            if self.stopped && self.requests.is_empty() {
                tally.last_ns.set(now_ns);
                return Ok(Stage::Over);
            }
            if drained {
                return Ok(Stage::Goes(Turn::Wait { until_ns: self.next_time_ns(has_room) }));
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    /// Sends what is due and has room; says whether the socket would take more.
    fn send_due(
        &mut self,
        socket: &Socket,
        now_ns: u64,
        phase: Phase,
        tally: &Tally,
    ) -> io::Result<bool> {
        if phase >= Phase::Stop || self.left == 0 {
            self.stop(now_ns);
            return Ok(true);
        }
        if tally.first_ns.value() == 0 {
            tally.first_ns.set(now_ns);
        }
        if let Some(timetable) = &mut self.timetable {
            timetable.begin(now_ns);
        }
        let warm_up = phase == Phase::WarmUp;
        while self.left > 0 && self.requests.len() < self.outstanding {
            let due_ns = self.timetable.as_ref().map_or(now_ns, Timetable::due_ns);
            if due_ns > now_ns {
                return Ok(true);
            }
            let seq = self.oldest_seq + self.requests.len() as u64;
            // A request has room for its header: the plan's limits see to it.
            let _has_room =
                RrHeader { response: false, tag: self.tag, seq, warm_up }.encode(&mut self.request);
            match rustix::net::send(socket.as_fd(), &self.request, SendFlags::empty()) {
                Ok(sent) => tally.record_sent(sent),
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            if let Some(timetable) = &mut self.timetable {
                timetable.take();
            }
            self.requests.push_back(Request { due_ns, sent_ns: now_ns, warm_up, answered: false });
            self.left -= 1;
        }
        Ok(true)
    }

    fn stop(&mut self, now_ns: u64) {
        if !self.stopped {
            self.stopped = true;
            if let Some(timetable) = &mut self.timetable {
                self.never_sent = timetable.take_due_before(now_ns, self.left);
            }
        }
    }

    /// Takes what has come; says whether nothing is left to take.
    fn receive(&mut self, socket: &Socket, tally: &Tally, local: &mut Local) -> io::Result<bool> {
        for _ in 0..CALLS_PER_TURN {
            match rustix::net::recv(socket.as_fd(), &mut local.receive_buffer, RecvFlags::empty()) {
                Ok((length, _)) => {
                    if local.phase() >= Phase::Drained {
                        self.requests.clear();
                        return Ok(true);
                    }
                    self.handle_datagram(length, tally, local);
                }
                Err(Errno::AGAIN) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    fn handle_datagram(&mut self, length: usize, tally: &Tally, local: &mut Local) {
        let Ok(header) = RrHeader::decode(&local.receive_buffer[..length]) else { return };
        if !header.response || header.tag != self.tag {
            return;
        }
        // An answer to a request that was given up already has no place any more.
        let place = header.seq.checked_sub(self.oldest_seq).and_then(|n| usize::try_from(n).ok());
        let Some(request) = place.and_then(|place| self.requests.get_mut(place)) else { return };
        if request.answered {
            return;
        }
        request.answered = true;
        let now_ns = monotonic_ns();
        let latency_ns = now_ns.saturating_sub(request.due_ns);
        tally.record_received(length);
        tally.record_transaction(latency_ns, request.warm_up);
        if !request.warm_up {
            local.latencies.total.record_ns(latency_ns);
            if let Some(service) = &mut local.latencies.service {
                service.record_ns(now_ns.saturating_sub(request.sent_ns));
            }
        }
        while self.requests.front().is_some_and(|request| request.answered) {
            self.forget_oldest();
        }
    }

    fn give_up_overdue(&mut self, now_ns: u64) {
        while let Some(request) = self.requests.front() {
            let overdue = now_ns >= request.sent_ns.saturating_add(self.timeout_ns);
            if !request.answered && !overdue {
                return;
            }
            self.lost += u64::from(!request.answered && !request.warm_up);
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        self.requests.pop_front();
        self.oldest_seq += 1;
    }

    /// When the next request is due, or a response overdue.
    fn next_time_ns(&self, has_room: bool) -> Option<u64> {
        let overdue_ns =
            self.requests.front().map(|request| request.sent_ns.saturating_add(self.timeout_ns));
        let may_send = has_room && !self.stopped && self.requests.len() < self.outstanding;
        let due_ns = self.timetable.as_ref().filter(|_| may_send).map(Timetable::due_ns);
        [overdue_ns, due_ns].into_iter().flatten().min()
    }
}
