//! The driver of every control connection: it moves bytes between a channel and a machine.

use std::io;

use linerate_wire::{Machine, Sign};
use rustix::event::PollFd;

use super::channel::{Channel, Reading, wait};
use crate::clock::{MILLISECOND_NS, monotonic_ns, now};
use crate::socket::{tcp_is_retransmitting, tcp_status};
use crate::waker::Waker;

/// How often it is looked whether the path is dark.
const LOOK_NS: u64 = 250 * MILLISECOND_NS;

/// How a connection broke whose machine was not through. The machine was told of its end.
#[derive(Debug)]
pub(crate) enum Lost {
    /// Nothing more can be read, and it wasn't closed or reset.
    Reading(io::Error),
    /// Nothing more can be written.
    Writing(io::Error),
}

/// A machine and the connection that it speaks on.
pub(crate) struct Conversation<M, C> {
    pub(crate) machine: M,
    channel: C,
    /// Whether nothing more can be read.
    ended: bool,
    /// Whether nothing more can be written.
    broken: bool,
    /// Whether this end has said that it writes no more.
    closing: bool,
    /// When it is next looked whether the path is dark.
    next_look_ns: u64,
}

impl<M: Machine, C: Channel> Conversation<M, C> {
    pub(crate) fn new(machine: M, channel: C) -> Self {
        Self { machine, channel, ended: false, broken: false, closing: false, next_look_ns: 0 }
    }

    pub(crate) fn channel(&self) -> &C {
        &self.channel
    }

    /// Gives the machine what has arrived and what is due, and writes what it says, as far as the socket takes it.
    pub(crate) fn pump(&mut self) -> Result<(), Lost> {
        self.listen()?;
        self.handle_time();
        self.say()
    }

    /// Gives the machine what has arrived.
    pub(crate) fn listen(&mut self) -> Result<Reading, Lost> {
        let (arrived, reading) = self.read();
        self.handle(&arrived, reading)
    }

    /// What has arrived, and whether that is all.
    pub(crate) fn read(&mut self) -> (Vec<u8>, io::Result<Reading>) {
        let mut arrived = Vec::new();
        let reading = match self.ended {
            true => Ok(Reading::Ended),
            false => self.channel.read(&mut arrived),
        };
        (arrived, reading)
    }

    /// Gives the machine what was read, and how that ended.
    pub(crate) fn handle(
        &mut self,
        arrived: &[u8],
        reading: io::Result<Reading>,
    ) -> Result<Reading, Lost> {
        if !arrived.is_empty() {
            let rtt_us = tcp_status(self.channel.as_fd()).map_or(0, |tcp| tcp.rtt_us);
            self.machine.handle_sign(now(), Sign::RoundTrip(u64::from(rtt_us) * 1000));
            self.machine.handle_bytes(now(), arrived);
        }
        match reading {
            Ok(reading @ (Reading::Open | Reading::More)) => return Ok(reading),
            // A reset closes the connection.
            Ok(Reading::Ended) => self.lose(None),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.lose(None),
            Err(error) => self.lose(Some(Lost::Reading(error))),
        }?;
        Ok(Reading::Ended)
    }

    /// Tells the machine what is due.
    pub(crate) fn handle_time(&mut self) {
        let now_ns = monotonic_ns();
        if now_ns >= self.next_look_ns {
            self.next_look_ns = now_ns + LOOK_NS;
            // Nothing was acknowledged: the other end is gone, or the path is dark.
            if tcp_is_retransmitting(self.channel.as_fd()) {
                self.machine.handle_sign(now(), Sign::DarkPath);
            }
        }
        if self.is_overdue() {
            self.machine.handle_timeout(now());
        }
    }

    /// Whether the machine's time is up for something. What came while this end was busy elsewhere is no silence: read
    /// before [`Self::handle_time`].
    pub(crate) fn is_overdue(&self) -> bool {
        self.machine.next_time().is_some_and(|due_ns| due_ns <= monotonic_ns())
    }

    /// Writes what the machine says, as far as the socket takes it. What can't leave waits in the machine, which
    /// may drop some of it.
    pub(crate) fn say(&mut self) -> Result<(), Lost> {
        if self.broken {
            return Ok(());
        }
        let Err(error) = self.write() else { return Ok(()) };
        self.broken = true;
        // A peer that refuses may close before it has read everything: its reason, which is still to be read, says
        // more than the failed write.
        while !self.ended {
            let (arrived, reading) = self.read();
            self.machine.handle_bytes(now(), &arrived);
            self.ended = !matches!(reading, Ok(Reading::More));
        }
        self.lose(Some(Lost::Writing(error)))
    }

    fn write(&mut self) -> io::Result<()> {
        self.channel.flush()?;
        let mut message = Vec::new();
        while !self.channel.has_unwritten() && self.machine.poll_transmit(&mut message) {
            self.channel.queue(&message)?;
            self.channel.flush()?;
            message.clear();
        }
        Ok(())
    }

    /// No more can be read or written: the machine gets an event, unless it is done.
    fn lose(&mut self, lost: Option<Lost>) -> Result<(), Lost> {
        self.ended = true;
        let was_over = self.machine.is_over();
        self.machine.handle_end(now());
        lost.filter(|_| !was_over).map_or(Ok(()), Err)
    }

    /// Waits until there is something to read or write, one of the others is ready, the waker is used, the machine
    /// wants its time told, or the time (monotonic, ns) has come.
    pub(crate) fn wait(&self, waker: Option<&Waker>, others: &[PollFd<'_>], until_ns: u64) {
        let until_ns = self.machine.next_time().map_or(until_ns, |due_ns| due_ns.min(until_ns));
        wait(&self.channel, !self.ended, waker, others, until_ns);
    }

    /// Closes in order when the machine is through, as far as that goes without waiting; whether nothing is left to
    /// write, or can be.
    pub(crate) fn is_closed(&mut self) -> bool {
        if self.broken || !self.machine.is_over() || self.channel.has_unwritten() {
            return self.broken;
        }
        if !self.closing {
            self.closing = true;
            self.channel.end();
            // A peer that has gone reads nothing more.
            let _gone = self.channel.flush();
        }
        !self.channel.has_unwritten()
    }

    /// Writes what is left, closes in order, and waits so long for the other end to do so too: what it has said
    /// and nobody read would turn the last words into a reset.
    pub(crate) fn close(mut self, within_ns: u64) {
        let until_ns = monotonic_ns().saturating_add(within_ns);
        let mut unread = Vec::new();
        loop {
            let is_broken = self.write().is_err();
            if !self.closing && !self.channel.has_unwritten() {
                self.closing = true;
                self.channel.end();
                let _gone = self.channel.flush();
            }
            if is_broken || self.ended || monotonic_ns() >= until_ns {
                return;
            }
            wait(&self.channel, true, None, &[], until_ns);
            unread.clear();
            let reading = self.channel.read(&mut unread);
            self.ended = !matches!(reading, Ok(Reading::Open | Reading::More));
        }
    }
}

#[cfg(test)]
mod tests;
