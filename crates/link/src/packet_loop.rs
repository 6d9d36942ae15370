//! One thread that moves packets of both directions between two descriptors, on time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use linerate_measure::link::Link;
use linerate_measure::link::report::Waiting;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::path::{Packet, Path};
use super::punctuality::Punctuality;
use super::{Calendar, Pace, paths};
use linerate_system::cancel::Cancel;
use linerate_system::clock::{MILLISECOND_NS, monotonic_ns};
use linerate_system::error::Error;
use linerate_system::poll::timespec;
use linerate_system::socket::RealTime;

/// Packets taken from one side before the other side and those that are due are looked at.
const READS_MAX: usize = 16;
/// Packets delivered before new ones are looked at.
const WRITES_MAX: usize = 32;
/// How long a request to stop may go unseen.
const SLEEP_MAX_NS: u64 = 50 * MILLISECOND_NS;

/// What came of it.
pub(super) struct Forwarded {
    pub(super) right: Path,
    pub(super) left: Path,
    pub(super) punctuality: Punctuality,
    pub(super) elapsed_ns: u64,
}

/// One side's descriptor, and the path that leads away from it.
struct Side {
    path: Path,
    /// When there was last nothing to read; `None` after sleep, of which nobody knows how late the
    /// thread woke.
    empty_ns: Option<u64>,
}

/// Moves packets until the time is over or a request to stop comes.
pub(super) fn forward(
    link: &Link,
    devices: &[OwnedFd; 2],
    pace: &Pace,
    cancel: &Cancel,
) -> io::Result<Forwarded> {
    let (right, left) = paths(link, link.mtu_bytes as usize, true);
    let begun_ns = monotonic_ns();
    let mut calendar = Calendar::new(link, begun_ns);
    let mut punctuality = Punctuality::new(pace.waiting, begun_ns);
    let end_ns = pace.time_ns.map_or(u64::MAX, |time_ns| begun_ns.saturating_add(time_ns));
    let mut sides = [right, left].map(|path| Side { path, empty_ns: None });
    let mut now_ns = begun_ns;
    while now_ns < end_ns && !cancel.requested() {
        if calendar.next_time().is_some_and(|at_ns| at_ns <= now_ns) {
            let [right, left] = &mut sides;
            let (right, left) = (&mut right.path, &mut left.path);
            calendar.apply(now_ns, std::slice::from_mut(right), std::slice::from_mut(left));
        }
        let mut idle = true;
        for (side, device) in sides.iter_mut().zip(devices) {
            idle &= side.take_packets(device, &mut punctuality)?;
        }
        for (number, side) in sides.iter_mut().enumerate() {
            idle &= side.deliver(number, &devices[1 - number], &mut punctuality)?;
        }
        if idle && pace.waiting == Waiting::Sleeping {
            let due_ns = sides.iter().filter_map(|side| side.path.next_time()).min();
            let wake_ns = due_ns.unwrap_or(u64::MAX).min(end_ns);
            let wake_ns = wake_ns.min(calendar.next_time().unwrap_or(u64::MAX));
            sleep(devices, wake_ns)?;
            sides.iter_mut().for_each(|side| side.empty_ns = None);
        }
        now_ns = monotonic_ns();
    }
    let [right, left] = sides.map(|side| side.path);
    Ok(Forwarded { right, left, punctuality, elapsed_ns: now_ns - begun_ns })
}

impl Side {
    /// Takes what has come; whether that was all.
    fn take_packets(
        &mut self,
        device: &OwnedFd,
        punctuality: &mut Punctuality,
    ) -> io::Result<bool> {
        for _ in 0..READS_MAX {
            let mut bytes = self.path.buffer();
            match rustix::io::read(device, &mut bytes[..]) {
                Ok(length) => {
                    let now_ns = monotonic_ns();
                    if let Some(empty_ns) = self.empty_ns {
                        punctuality.record_unseen(now_ns - empty_ns);
                    }
                    self.path.offer(now_ns, Packet { bytes, length, tag: 0 });
                }
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.path.recycle(bytes);
                    self.empty_ns = Some(monotonic_ns());
                    return Ok(true);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    /// Delivers what is due; whether that was all.
    fn deliver(
        &mut self,
        number: usize,
        device: &OwnedFd,
        punctuality: &mut Punctuality,
    ) -> io::Result<bool> {
        if self.path.next_time().is_none() {
            return Ok(true);
        }
        let mut now_ns = monotonic_ns();
        for _ in 0..WRITES_MAX {
            let Some(due) = self.path.take_due(now_ns) else { return Ok(true) };
            // The system takes a packet whole or not at all.
            match rustix::io::write(device, due.packet.content()) {
                Ok(_) => {
                    let length = due.packet.length;
                    punctuality.record_departure(number, due.due_ns, now_ns, length);
                }
                Err(Errno::BADFD) => return Err(Errno::BADFD.into()),
                Err(_) => self.path.record_undeliverable(due.packet.length),
            }
            self.path.recycle(due.packet.bytes);
            now_ns = monotonic_ns();
        }
        Ok(false)
    }
}

/// Sleeps until a packet comes or this time does.
fn sleep(devices: &[OwnedFd; 2], wake_ns: u64) -> io::Result<()> {
    let [one, other] = devices;
    let mut waiting =
        [one, other].map(|device| PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN));
    let time = time_until(wake_ns);
    match poll(&mut waiting, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// How long to sleep until a time: not so long that a request to stop would go unseen.
pub(super) fn time_until(wake_ns: u64) -> Timespec {
    let sleep_ns = wake_ns.saturating_sub(monotonic_ns()).min(SLEEP_MAX_NS);
    timespec(sleep_ns)
}

/// How the emulating thread runs, as long as this lives.
pub(super) struct Prepared {
    /// What the user should know.
    pub(super) notes: Vec<String>,
    _urgency: Option<RealTime>,
}

/// Prepares the calling thread: pins it, and lets it sleep to the nanosecond. One that sleeps takes the real-time class
/// where it may: other programs then don't delay packets.
///
/// # Errors
///
/// [`Error::Host`] where it can't be pinned.
pub(super) fn prepare_thread(pace: &Pace) -> Result<Prepared, Error> {
    let mut notes = Vec::new();
    if let Some(cpu) = pace.cpu {
        linerate_system::affinity::pin(cpu).map_err(|_| {
            Error::Host(format!(
                "the emulator can't be pinned to processor {cpu}: give one that this machine has \
                 and this process may use"
            ))
        })?;
    }
    if let Some(least) = std::num::NonZero::new(1)
        && let Err(error) = rustix::thread::set_current_timer_slack(Some(least))
    {
        notes.push(format!("the system may wake the emulator up to 50 µs late: {error}"));
    }
    // One that spins would leave nothing to anybody.
    let sleeps = pace.waiting == Waiting::Sleeping;
    let urgency = sleeps.then(RealTime::take_thread).and_then(Result::ok);
    Ok(Prepared { notes, _urgency: urgency })
}
