//! What separate endpoints do in their turns: as much as one endpoint does for all of its connections, and only
//! where something has happened.

use std::cmp::Reverse;
use std::io;
use std::time::{Duration, Instant};

use super::super::endpoint::{Intake, Outlet};
use super::SeparateEndpoints;
use super::place::Stay;
use crate::transport::multiplexer::{Link, LinkEvent, Multiplexer};

/// How late a socket may close where nothing else happens, so that many close in one turn.
pub(super) const LATE: Duration = Duration::from_millis(10);

impl SeparateEndpoints<'_> {
    /// Whether there is something to do without waiting.
    pub(super) fn has_work(&self) -> bool {
        !self.queue.is_empty() || !self.events.is_empty()
    }

    /// Serves those that something has happened to, each once, as far as a turn goes.
    pub(super) fn send_out(&mut self) {
        let mut outlet = Outlet::default();
        for _ in 0..self.queue.len() {
            if outlet.is_spent() {
                return;
            }
            let Some(index) = self.queue.pop_front() else { return };
            self.serve(index, &mut outlet);
        }
    }

    fn serve(&mut self, index: u32, outlet: &mut Outlet) {
        let Some(place) = self.places.get_mut(index as usize) else { return };
        place.is_queued = false;
        // Until the turn after the one that tells of its end it may be asked what came of it.
        let was_told = place.stay.is_some();
        let Some((endpoint, _)) = &mut place.endpoint else { return };
        let sent = endpoint.send_out_within(outlet);
        if let Some(stay) = place.stay.as_mut().filter(|_| !endpoint.has_unsaid()) {
            stay.record_said(Instant::now());
        }
        if was_told && (sent.is_err() || place.is_over(Instant::now())) {
            return self.forget(index);
        }
        match sent.and_then(|()| self.watch(index)) {
            Ok(()) => self.collect(index),
            Err(error) => self.lose(index, &error),
        }
        self.schedule(index);
    }

    /// Takes over what has happened at a place, which is served again where that gives it something to say.
    pub(super) fn collect(&mut self, index: u32) {
        let Some(place) = self.places.get_mut(index as usize) else { return };
        let Some((endpoint, _)) = &mut place.endpoint else { return };
        let link = Link { index, generation: place.generation };
        while let Some((_, event)) = endpoint.poll_event() {
            if matches!(event, LinkEvent::Ended { .. }) && place.stay.is_none() {
                let stay = Stay::new(Instant::now());
                place.stay = Some(stay);
                self.stays.push_back((stay.ends(), link));
            }
            self.events.push_back((link, event));
        }
        if endpoint.is_busy() {
            self.touch(index);
        }
    }

    /// Something has happened there: it is served in the next turn.
    pub(super) fn touch(&mut self, index: u32) {
        if let Some(place) = self.places.get_mut(index as usize)
            && !std::mem::replace(&mut place.is_queued, true)
        {
            self.queue.push_back(index);
        }
    }

    /// Notes when a place is to be looked at next. An entry that is early is as good: who is looked at is noted
    /// again.
    fn schedule(&mut self, index: u32) {
        let Some(place) = self.places.get_mut(index as usize) else { return };
        let Some((endpoint, _)) = &place.endpoint else { return };
        if let Some(due) = endpoint.next_time()
            && place.due.is_none_or(|entry| due < entry)
        {
            place.due = Some(due);
            self.times.push(Reverse((due, index)));
        }
    }

    /// The earliest time that still means something.
    pub(super) fn next_time(&mut self) -> Option<Instant> {
        while let Some(Reverse((due, index))) = self.times.peek().copied() {
            if self.places.get(index as usize).is_some_and(|place| place.due == Some(due)) {
                return Some(due);
            }
            self.times.pop();
        }
        None
    }

    fn look_at_times(&mut self, now: Instant) {
        while let Some(due) = self.next_time()
            && due <= now
        {
            let Some(Reverse((_, index))) = self.times.pop() else { return };
            let Some(place) = self.places.get_mut(index as usize) else { continue };
            place.due = None;
            if let Some((endpoint, _)) = &mut place.endpoint {
                endpoint.look_at_times(now);
            }
            self.collect(index);
            self.touch(index);
        }
    }

    /// Closes sockets that might have closed so long ago.
    pub(super) fn look_at_stays(&mut self, now: Instant, late: Duration) {
        while let Some((ends, link)) = self.stays.front().copied()
            && ends + late <= now
        {
            self.stays.pop_front();
            let place = self.places.get(link.index as usize);
            let Some(place) = place.filter(|place| place.generation == link.generation) else {
                continue;
            };
            if place.is_over(now) {
                self.forget(link.index);
            } else if let Some(stay) = place.stay {
                self.stays.push_back((stay.ends().max(now + LATE), link));
            }
        }
    }

    /// Packets in where some have come, or come in so long; and timers.
    ///
    /// # Errors
    ///
    /// What the poll set says.
    pub(super) fn take_in(&mut self, at_most: Duration) -> io::Result<()> {
        if self.unread.is_empty() {
            self.ask(at_most)?;
        }
        let mut intake = Intake::told();
        while !intake.is_spent()
            && let Some(index) = self.unread.pop_front()
        {
            self.receive(index, &mut intake);
        }
        self.look.record_turn(intake.bytes());
        let now = Instant::now();
        self.look_at_times(now);
        // Before, that is done when there is nothing else to do.
        self.look_at_stays(now, LATE);
        Ok(())
    }

    fn receive(&mut self, index: u32, intake: &mut Intake) {
        let Some(place) = self.places.get_mut(index as usize) else { return };
        let Some((endpoint, _)) = &mut place.endpoint else { return };
        let before = intake.bytes();
        let taken = endpoint.take_in_within(intake);
        if intake.bytes() > before {
            self.heard = Some(index);
            if let Some(stay) = &mut place.stay {
                stay.record_heard(Instant::now());
            }
        }
        match taken {
            Ok(()) => self.collect(index),
            Err(error) => self.lose(index, &error),
        }
        self.touch(index);
    }

    /// A socket is of no use any more: its connection ends, and no other.
    fn lose(&mut self, index: u32, error: &io::Error) {
        let Some(place) = self.places.get_mut(index as usize) else { return };
        let Some((endpoint, own)) = &mut place.endpoint else { return };
        endpoint.fail(*own, error);
        place.stay = Some(Stay::none(Instant::now()));
        self.collect(index);
        self.touch(index);
    }

    /// Closes a socket, which takes it out of the poll set, too (epoll(7)).
    fn forget(&mut self, index: u32) {
        if let Some(place) = self.places.get_mut(index as usize) {
            *place = place.vacated();
            self.vacant.push(index);
            self.open -= 1;
            self.lacks_spare = false;
            self.alone.take_if(|alone| *alone == index);
        }
    }

    /// Closes the sockets of connections that have ended and have said so; whether there was one.
    pub(super) fn forget_ended(&mut self) -> bool {
        let before = self.open;
        for index in 0..self.places.len() {
            if self.places.get(index).is_some_and(|place| place.may_leave()) {
                self.forget(index as u32);
            }
        }
        self.open < before
    }
}
