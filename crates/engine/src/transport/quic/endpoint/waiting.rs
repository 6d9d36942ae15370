//! How an endpoint waits: for the one socket that it has, or with a poll set.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::look::Look;
use super::port::{Port, Ports};
use crate::waiting::readiness;

/// Waits for a timer that are shorter end in time; others may be late by what the poll set's time-out is coarse, a
/// millisecond.
pub(super) const EXACT: Duration = Duration::from_millis(10);
/// Readiness taken at once.
const READY_AT_ONCE: usize = 64;

/// What an endpoint knows of its sockets' readiness.
#[derive(Default)]
pub(super) struct Waiting {
    /// Where there are several sockets, or were.
    set: Option<OwnedFd>,
    /// The only socket that there is, where the poll set doesn't know it: it is asked itself, which costs less.
    pub(super) alone: Option<u32>,
    /// Sockets that have something that wasn't taken in yet.
    pub(super) unread: VecDeque<u32>,
    /// Whether the sockets were asked since the last turn.
    is_asked: bool,
    /// Readiness as it was taken, kept for its memory.
    ready: Vec<epoll::Event>,
    /// Whether it looks before it sleeps.
    pub(super) looks: bool,
    pub(super) look: Look,
    /// The socket that packets came to last.
    pub(super) last_port: Option<u32>,
}

impl Waiting {
    /// Finds out which sockets have packets, unless that was done in the wait before.
    pub(super) fn ask_at_once(&mut self, ports: &Ports) -> io::Result<()> {
        let is_asked = std::mem::take(&mut self.is_asked);
        if is_asked || !self.unread.is_empty() {
            return Ok(());
        }
        match self.alone {
            Some(alone) => self.unread.push_back(alone),
            None => self.take_ready(ports, Duration::ZERO)?,
        }
        Ok(())
    }

    /// Waits for packets so long, and to the end of that where it is to be exact, or for what else is given; says
    /// whether that was it. It returns at once where sockets are known to have packets: the poll set would tell of
    /// the same sockets again.
    pub(super) fn ask(
        &mut self,
        ports: &Ports,
        wait: Duration,
        is_exact: bool,
        also: Option<BorrowedFd<'_>>,
    ) -> io::Result<bool> {
        self.is_asked = true;
        if !self.unread.is_empty() {
            return Ok(false);
        }
        if let Some(alone) = self.alone {
            return Ok(self.ask_alone(ports, alone, wait, also));
        }
        let last = self.last_port.and_then(|number| ports.get(number));
        let may_look = self.looks && wait > Look::LONGEST && last.is_some();
        if let Some(last) = last.filter(|_| may_look) {
            let Self { set, ready, look, .. } = self;
            // A set refuses to be asked without room for an answer.
            ready.reserve(READY_AT_ONCE);
            let ask = || match set {
                Some(set) => {
                    epoll::wait(set, spare_capacity(ready), Some(&timespec(Duration::ZERO)))
                        .and_then(|came| if came > 0 { Ok(()) } else { Err(Errno::AGAIN) })
                }
                None => Err(Errno::AGAIN),
            };
            if look.finds(last.socket(), ask) {
                self.note_ready(ports);
                return Ok(false);
            }
        }
        let wait = after_look(wait, may_look);
        if !is_exact && also.is_none() && self.set.is_some() {
            return self.take_ready(ports, wait).map(|()| false);
        }
        let set = self.set.as_ref().map(|set| PollFd::new(set, PollFlags::IN));
        let (came, rung) = poll_both(set, also, wait);
        if !came.is_empty() {
            self.take_ready(ports, Duration::ZERO)?;
        }
        Ok(rung)
    }

    /// Asks the one socket that there is.
    fn ask_alone(
        &mut self,
        ports: &Ports,
        number: u32,
        wait: Duration,
        also: Option<BorrowedFd<'_>>,
    ) -> bool {
        let Some(port) = ports.get(number) else { return false };
        let is_blocked = port.unsent.is_some();
        let may_look = self.looks && wait > Look::LONGEST && !is_blocked;
        if may_look && self.look.finds(port.socket(), || readiness(port.socket())) {
            self.unread.push_back(number);
            return false;
        }
        let room = if is_blocked { PollFlags::OUT } else { PollFlags::empty() };
        let own = PollFd::new(port.socket(), PollFlags::IN | room);
        let (came, rung) = poll_both(Some(own), also, after_look(wait, may_look));
        if !came.is_empty() {
            self.unread.push_back(number);
        }
        if came.contains(PollFlags::ERR) {
            port.packets.forget_errors();
        }
        rung
    }

    /// Has the poll set know the socket that is to have this number, and the one that was alone until now.
    pub(super) fn enlist(&mut self, ports: &mut Ports, number: u32, port: &Port) -> io::Result<()> {
        if ports.open() == 0 {
            self.alone = Some(number);
            return Ok(());
        }
        let set = match self.set.take() {
            Some(set) => set,
            None => epoll::create(CreateFlags::CLOEXEC)?,
        };
        let set = self.set.insert(set);
        if let Some(alone) = self.alone
            && let Some(first) = ports.at_mut(alone)
        {
            let data = EventData::new_u64(alone.into());
            epoll::add(&*set, first.socket(), data, interest(first))?;
            first.awaits_room = first.unsent.is_some();
        }
        self.alone = None;
        let data = EventData::new_u64(number.into());
        Ok(epoll::add(&*set, port.socket(), data, interest(port))?)
    }

    /// Has the poll set tell of room where, and as long as, a socket has none.
    pub(super) fn watch(&self, ports: &mut Ports, number: u32) -> io::Result<()> {
        let Some(port) = ports.at_mut(number) else { return Ok(()) };
        let is_blocked = port.unsent.is_some();
        if let Some(set) = &self.set
            && is_blocked != port.awaits_room
            && self.alone != Some(number)
        {
            let data = EventData::new_u64(number.into());
            epoll::modify(set, port.socket(), data, interest(port))?;
            port.awaits_room = is_blocked;
        }
        Ok(())
    }

    /// Asks the poll set, and waits for it so long.
    fn take_ready(&mut self, ports: &Ports, wait: Duration) -> io::Result<()> {
        let Some(set) = &self.set else { return Ok(()) };
        self.ready.reserve(READY_AT_ONCE);
        match epoll::wait(set, spare_capacity(&mut self.ready), Some(&timespec(wait))) {
            // A signal: the caller looks whether it was one to stop.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.note_ready(ports);
        Ok(())
    }

    fn note_ready(&mut self, ports: &Ports) {
        for event in self.ready.drain(..) {
            let (number, flags) = (event.data.u64() as u32, event.flags);
            self.unread.push_back(number);
            // Errors that no call has told would have every wait return at once.
            if flags.contains(EventFlags::ERR)
                && let Some(port) = ports.get(number)
            {
                port.packets.forget_errors();
            }
        }
    }
}

/// Waits for a descriptor, and for another one; what came to the first, and whether something came to the other. A
/// signal ends it as if the time were over.
fn poll_both(
    own: Option<PollFd<'_>>,
    also: Option<BorrowedFd<'_>>,
    wait: Duration,
) -> (PollFlags, bool) {
    let time = timespec(wait);
    match (own, also.map(|also| PollFd::from_borrowed_fd(also, PollFlags::IN))) {
        (Some(own), Some(also)) => {
            let mut polled = [own, also];
            let _interrupted = poll(&mut polled, Some(&time));
            let [own, also] = polled;
            (own.revents(), !also.revents().is_empty())
        }
        (Some(only), None) => {
            let mut polled = [only];
            let _interrupted = poll(&mut polled, Some(&time));
            let [only] = polled;
            (only.revents(), false)
        }
        (None, also) => {
            let mut polled = also.map_or_else(Vec::new, |also| vec![also]);
            let came = poll(&mut polled, Some(&time)).is_ok_and(|ready| ready > 0);
            (PollFlags::empty(), came)
        }
    }
}

/// What the poll set is to tell of a socket.
fn interest(port: &Port) -> EventFlags {
    let room = if port.unsent.is_some() { EventFlags::OUT } else { EventFlags::empty() };
    EventFlags::IN | room
}

/// What is left of a wait after a look in vain: no timer is late for that.
fn after_look(wait: Duration, looked: bool) -> Duration {
    if looked { wait.saturating_sub(Look::LONGEST) } else { wait }
}

/// A wait as the kernel takes it.
fn timespec(wait: Duration) -> Timespec {
    Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) }
}
