//! How separate endpoints wait: with a poll set, or with the one socket that there is.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::super::endpoint::{Look, timespec};
use super::super::multiplexed::MultiplexedEndpoint;
use super::SeparateEndpoints;
use super::turn::LATE;
use crate::waiting::readiness;

/// Waits for a timer that are shorter end in time; others may be late by what the poll set's time-out is coarse, a
/// millisecond.
const EXACT: Duration = Duration::from_millis(10);

impl SeparateEndpoints<'_> {
    /// Has the poll set know the socket that is to have this place, and the one that was alone until now.
    pub(super) fn enlist(&mut self, index: u32, endpoint: &MultiplexedEndpoint) -> io::Result<()> {
        if self.open == 0 {
            self.alone = Some(index);
            return Ok(());
        }
        if let Some(alone) = self.alone
            && let Some(place) = self.places.get_mut(alone as usize)
            && let Some((first, _)) = &place.endpoint
        {
            let data = EventData::new_u64(alone.into());
            epoll::add(&self.poll, first.as_fd(), data, interest(first))?;
            place.awaits_room = first.is_blocked();
        }
        self.alone = None;
        let data = EventData::new_u64(index.into());
        Ok(epoll::add(&self.poll, endpoint.as_fd(), data, interest(endpoint))?)
    }

    /// Has the poll set tell of room where, and as long as, a socket has none.
    pub(super) fn watch(&mut self, index: u32) -> io::Result<()> {
        let Some(place) = self.places.get_mut(index as usize) else { return Ok(()) };
        let Some((endpoint, _)) = &place.endpoint else { return Ok(()) };
        let is_blocked = endpoint.is_blocked();
        if is_blocked != place.awaits_room && self.alone != Some(index) {
            let data = EventData::new_u64(index.into());
            epoll::modify(&self.poll, endpoint.as_fd(), data, interest(endpoint))?;
            place.awaits_room = is_blocked;
        }
        Ok(())
    }

    /// Asks the poll set where something has come; waits for that where there is nothing else to do.
    pub(super) fn ask(&mut self, at_most: Duration) -> io::Result<()> {
        let (wait, is_exact) =
            if self.has_work() { Default::default() } else { self.idle(at_most) };
        if let Some(alone) = self.alone {
            self.ask_alone(alone, wait);
            return Ok(());
        }
        let Self { poll: set, places, ready, look, heard, .. } = self;
        let heard = heard.and_then(|index| places.get(index as usize));
        let heard = heard.and_then(|place| place.endpoint.as_ref());
        let mut ask = |wait: Duration| {
            let came = epoll::wait(&*set, spare_capacity(ready), Some(&timespec(wait)))?;
            if came > 0 { Ok(()) } else { Err(Errno::AGAIN) }
        };
        let may_look = wait > Look::LONGEST;
        let found = may_look
            && heard.is_some_and(|(last, _)| look.finds(last.socket(), || ask(Duration::ZERO)));
        if !found {
            let wait = after_look(wait, may_look);
            if is_exact {
                let mut polled = [PollFd::new(&*set, PollFlags::IN)];
                // Interrupted by a signal: as if the time were over.
                let _interrupted = poll(&mut polled, Some(&timespec(wait)));
            }
            match ask(if is_exact { Duration::ZERO } else { wait }) {
                // A signal: the caller looks whether it was one to stop.
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.unread.extend(self.ready.drain(..).map(|event| event.data.u64() as u32));
        Ok(())
    }

    /// How long nothing needs to be done, and whether that is to end in time.
    fn idle(&mut self, at_most: Duration) -> (Duration, bool) {
        let now = Instant::now();
        let left = |due: Instant| due.saturating_duration_since(now);
        let stay = self.stays.front().map(|(ends, _)| left(*ends + LATE));
        let wait = stay.map_or(at_most, |stay| at_most.min(stay));
        match self.next_time().map(left) {
            Some(due) if due < wait => (due, !due.is_zero() && due < EXACT),
            _ => (wait, false),
        }
    }

    /// Asks the one socket that there is, as the endpoint of many connections does; without a question where
    /// there is something else to do, too.
    fn ask_alone(&mut self, index: u32, wait: Duration) {
        let has_work = self.has_work();
        let place = self.places.get(index as usize);
        let Some((endpoint, _)) = place.and_then(|place| place.endpoint.as_ref()) else { return };
        let (socket, look) = (endpoint.socket(), &mut self.look);
        let is_blocked = endpoint.is_blocked();
        let may_look = wait > Look::LONGEST && !is_blocked;
        let came = has_work || may_look && look.finds(socket, || readiness(socket)) || {
            let wait = after_look(wait, may_look);
            let room = if is_blocked { PollFlags::OUT } else { PollFlags::empty() };
            let mut polled = [PollFd::new(socket, PollFlags::IN | room)];
            // Interrupted by a signal: as if the time were over.
            poll(&mut polled, Some(&timespec(wait))).is_ok_and(|ready| ready > 0)
        };
        if came {
            self.unread.push_back(index);
        }
    }
}

/// What the poll set is to tell of a socket.
fn interest(endpoint: &MultiplexedEndpoint) -> EventFlags {
    let room = if endpoint.is_blocked() { EventFlags::OUT } else { EventFlags::empty() };
    EventFlags::IN | room
}

/// What is left of a wait after a look in vain: no timer is late for that.
fn after_look(wait: Duration, looked: bool) -> Duration {
    if looked { wait.saturating_sub(Look::LONGEST) } else { wait }
}
