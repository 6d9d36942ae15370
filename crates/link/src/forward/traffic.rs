//! A forwarder at work: it waits for sockets and for what is due, and moves both.

use std::io;
use std::os::fd::OwnedFd;

use linerate_measure::link::Link;
use linerate_measure::link::report::{Accuracy, Passed, Waiting};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventFlags};

use super::reach::{for_datagrams, for_streams};
use super::tcp::Connections;
use super::udp::Associations;
use super::{CLIENTS_MAX, Source};
use crate::packet_loop::time_until;
use crate::path::Path;
use crate::punctuality::Punctuality;
use crate::{Calendar, Pace, passed};
use linerate_system::cancel::Cancel;
use linerate_system::clock::monotonic_ns;

/// Events taken at once.
const EVENTS_MAX: usize = 256;

/// The two directions of UDP or TCP.
pub(super) struct Lane {
    pub(super) right: Path,
    pub(super) left: Path,
}

/// A forwarder at work.
pub(super) struct Running {
    pub(super) poll: OwnedFd,
    pub(super) udp: Option<(Associations, Lane)>,
    pub(super) tcp: Option<(Connections, Lane)>,
    pub(super) punctuality: Punctuality,
}

impl Running {
    pub(super) fn forward(&mut self, link: &Link, pace: &Pace, cancel: &Cancel) -> io::Result<()> {
        let begun_ns = monotonic_ns();
        let end_ns = pace.time_ns.map_or(u64::MAX, |time_ns| begun_ns.saturating_add(time_ns));
        let (datagrams, streams) = (for_datagrams(link), for_streams(link));
        let mut for_udp = Calendar::new(&datagrams, begun_ns);
        let mut for_tcp = Calendar::new(&streams, begun_ns);
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        let mut now_ns = begun_ns;
        while now_ns < end_ns && !cancel.requested() {
            for (lane, calendar) in [
                (self.udp.as_mut().map(|(_, lane)| lane), &mut for_udp),
                (self.tcp.as_mut().map(|(_, lane)| lane), &mut for_tcp),
            ] {
                if let Some(Lane { right, left }) = lane {
                    calendar.apply(now_ns, std::slice::from_mut(right), std::slice::from_mut(left));
                }
            }
            let mut wake_ns = match pace.waiting {
                Waiting::Spinning => 0,
                Waiting::Sleeping => self.next_time().unwrap_or(u64::MAX).min(end_ns),
            };
            for calendar in [&for_udp, &for_tcp] {
                wake_ns = wake_ns.min(calendar.next_time().unwrap_or(u64::MAX));
            }
            self.wait(&mut events, wake_ns)?;
            for event in events.drain(..) {
                let flags = event.flags;
                let gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
                self.handle(Source::of(event.data), gone)?;
            }
            self.deliver();
            now_ns = monotonic_ns();
        }
        Ok(())
    }

    /// Waits for events, until this time at most.
    fn wait(&self, events: &mut Vec<Event>, wake_ns: u64) -> io::Result<()> {
        // epoll_wait(2) counts in milliseconds where the kernel has no epoll_pwait2(2); ppoll(2)
        // counts in nanoseconds everywhere.
        let time = time_until(wake_ns);
        if time.tv_sec > 0 || time.tv_nsec > 0 {
            let mut waiting =
                [rustix::event::PollFd::new(&self.poll, rustix::event::PollFlags::IN)];
            match rustix::event::poll(&mut waiting, Some(&time)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let none = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(&self.poll, spare_capacity(events), Some(&none)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn handle(&mut self, source: Source, gone: bool) -> io::Result<()> {
        match source {
            Source::Datagrams | Source::Answers(_) => {
                let Some((associations, lane)) = &mut self.udp else { return Ok(()) };
                match source {
                    Source::Answers(tag) => associations.handle_answers(tag, &mut lane.left),
                    _ => associations.handle_datagrams(&self.poll, &mut lane.right)?,
                }
            }
            Source::Arrival | Source::End(..) => {
                let Some((connections, lane)) = &mut self.tcp else { return Ok(()) };
                match source {
                    Source::End(tag, end) => connections.handle_end(
                        &self.poll,
                        tag,
                        end,
                        gone,
                        [&mut lane.right, &mut lane.left],
                    ),
                    _ => connections.handle_arrivals(&self.poll)?,
                }
            }
        }
        Ok(())
    }

    fn deliver(&mut self) {
        if let Some((associations, lane)) = &mut self.udp {
            for (direction, path) in [&mut lane.right, &mut lane.left].into_iter().enumerate() {
                let mut now_ns = monotonic_ns();
                while let Some(due) = path.take_due(now_ns) {
                    let length = due.packet.length;
                    if associations.send(direction, &due.packet) {
                        self.punctuality.record_departure(direction, due.due_ns, now_ns, length);
                    } else {
                        path.record_undeliverable(length);
                    }
                    path.recycle(due.packet.bytes);
                    now_ns = monotonic_ns();
                }
            }
        }
        if let Some((connections, lane)) = &mut self.tcp {
            for (direction, path) in [&mut lane.right, &mut lane.left].into_iter().enumerate() {
                let mut now_ns = monotonic_ns();
                while let Some(due) = path.take_due(now_ns) {
                    let length = due.packet.length;
                    self.punctuality.record_departure(direction, due.due_ns, now_ns, length);
                    connections.send(&self.poll, direction, due.packet, path);
                    now_ns = monotonic_ns();
                }
            }
            connections.resume(&self.poll, [&mut lane.right, &mut lane.left]);
        }
    }

    fn next_time(&self) -> Option<u64> {
        let lanes = [self.udp.as_ref().map(|of| &of.1), self.tcp.as_ref().map(|of| &of.1)];
        let paths = lanes.into_iter().flatten().flat_map(|lane| [&lane.right, &lane.left]);
        paths.filter_map(Path::next_time).min()
    }

    pub(super) fn notes(&self, notes: &mut Vec<String>) {
        let udp = self.udp.as_ref().map_or(0, |(associations, _)| associations.turned_away());
        let tcp = self.tcp.as_ref().map_or(0, |(connections, _)| connections.turned_away());
        if udp > 0 {
            notes.push(format!("{udp} datagrams of clients beyond {CLIENTS_MAX} were dropped"));
        }
        if tcp > 0 {
            notes.push(format!("{tcp} connections beyond {CLIENTS_MAX} were refused"));
        }
    }

    pub(super) fn close(self) -> (Passed, Passed, Accuracy) {
        let accuracy = self.punctuality.accuracy();
        let spans = [0, 1].map(|direction| self.punctuality.span(direction));
        let lanes = [self.udp.map(|of| of.1), self.tcp.map(|of| of.1)];
        let (mut right, mut left) = (Passed::default(), Passed::default());
        for lane in lanes.into_iter().flatten() {
            add(&mut right, passed(lane.right, spans[0].length_ns(), spans[0].first_bytes, None));
            add(&mut left, passed(lane.left, spans[1].length_ns(), spans[1].first_bytes, None));
        }
        (right, left, accuracy)
    }
}

/// Adds what another path of the same direction passed in the same time.
fn add(to: &mut Passed, from: Passed) {
    let (all, more) = (&mut to.counters, from.counters);
    all.offered += more.offered;
    all.offered_bytes += more.offered_bytes;
    all.delivered += more.delivered;
    all.delivered_bytes += more.delivered_bytes;
    all.lost_at_random += more.lost_at_random;
    all.lost_in_queue += more.lost_in_queue;
    all.lost_in_emulator += more.lost_in_emulator;
    all.duplicated += more.duplicated;
    all.reordered += more.reordered;
    all.corrupted += more.corrupted;
    all.flipped_bits += more.flipped_bits;
    all.undeliverable += more.undeliverable;
    all.in_flight += more.in_flight;
    to.delivered_bps = match (to.delivered_bps, from.delivered_bps) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    };
    to.flips.extend(from.flips);
}
