//! A load that runs, as both ends conduct it.

use std::time::Duration;

use linerate_wire::iperf3::{Code, Parameters, Results};

use super::event::Start;
use super::figures::Shared;
use super::lull::{Lull, carried_ns};
use super::meter::Meter;
use super::streams::Streams;
use super::tail::{TAIL_NS, TAIL_SILENCE_NS};
use super::{Event, Failure, Observer, Report, sockets};
use crate::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns, utc_ns};
use crate::phase::Phase;
use crate::waker::Waker;

/// A stream that failed is told as the reason when the conversation has told none for so long.
const FAILURE_NS: u64 = SECOND_NS;
/// How long the other end may take nothing, at least.
const STALL_NS: u64 = 120 * SECOND_NS;
/// How long streams may take to end when the load is stopped.
const STOPPING_NS: u64 = SECOND_NS;
/// The conductor looks at least this often whether the user wants to stop.
pub(super) const LOOK_NS: u64 = 50 * MILLISECOND_NS;

/// A load that runs, and its figures.
pub(super) struct Running {
    pub(super) streams: Streams,
    meter: Meter,
    omit_ns: u64,
    time_ns: u64,
    /// When the load began.
    began_ns: u64,
    receive_timeout_ns: u64,
    /// When something was last seen to come, and all that had come by then.
    moved: (u64, u64),
    /// When something was last seen to leave or come, and all that had by then.
    last_carried: (u64, u64),
    /// When nothing has moved for so long, nothing will.
    stall_ns: u64,
    /// Knows which silence is the end.
    lull: Lull,
    /// When it was first seen that a stream had ended.
    ended_ns: Option<u64>,
}

impl Running {
    /// Opens the gate.
    pub(super) fn begin(
        mut streams: Streams,
        interval: Option<Duration>,
        receive_timeout: Duration,
        observer: &mut dyn Observer,
    ) -> Self {
        observer.handle(&Event::Started(Box::new(start(&streams))));
        warn(&streams, observer);
        let now_ns = monotonic_ns();
        streams.load.open(now_ns);
        let parameters = &streams.setup.parameters;
        let timeout = u64::try_from(receive_timeout.as_nanos()).unwrap_or(u64::MAX);
        Self {
            meter: Meter::begin(&streams, interval, now_ns),
            omit_ns: u64::from(parameters.omit_s) * SECOND_NS,
            time_ns: u64::from(parameters.time_s) * SECOND_NS,
            began_ns: now_ns,
            receive_timeout_ns: timeout,
            moved: (now_ns, 0),
            last_carried: (now_ns, 0),
            stall_ns: timeout.max(STALL_NS).saturating_add(2 * burst_ns(parameters)),
            lull: Lull::of(parameters),
            ended_ns: None,
            streams,
        }
    }

    /// Does what is due at this time.
    pub(super) fn tick(&mut self, now_ns: u64, observer: &mut dyn Observer) {
        let warm = self.streams.load.phase() == Phase::WarmUp;
        let begins = warm && now_ns >= self.began_ns.saturating_add(self.omit_ns);
        let sample = if begins {
            self.meter.end_omitted(&self.streams, now_ns)
        } else {
            if let Some(up_ns) = self.time_is_up_ns() {
                self.meter.wait_for_end(up_ns);
            }
            self.meter.tick(&self.streams, now_ns)
        };
        // Once the interval is cut: what comes from here on is of the next.
        self.streams.load.tick(now_ns);
        if let Some(sample) = sample {
            observer.handle(&Event::Sample(Box::new(sample)));
        }
        if begins {
            observer.handle(&Event::OmitEnded);
        }
        let received = self.received();
        if received != self.moved.1 {
            self.moved = (now_ns, received);
        }
        let carried = self.carried();
        if carried != self.last_carried.1 {
            self.last_carried = (now_ns, carried);
        }
        if self.ended_ns.is_none() && self.streams.load.any_ended() {
            self.ended_ns = Some(now_ns);
        }
    }

    /// When [`Running::tick`] is next of use.
    pub(super) fn next_tick(&self, now_ns: u64) -> u64 {
        let mut next_ns = self.meter.next_due().min(now_ns.saturating_add(LOOK_NS));
        if self.streams.load.phase() == Phase::WarmUp {
            next_ns = next_ns.min(self.began_ns.saturating_add(self.omit_ns));
        }
        // A server waits longer than that for its client.
        let up_ns = self.time_is_up_ns().filter(|up_ns| *up_ns > now_ns);
        next_ns.min(up_ns.unwrap_or(u64::MAX))
    }

    /// When the test's time is up, where it has one.
    pub(super) fn time_is_up_ns(&self) -> Option<u64> {
        let length_ns = self.omit_ns.saturating_add(self.time_ns);
        (self.time_ns > 0).then(|| self.began_ns.saturating_add(length_ns))
    }

    /// Whether this end is to end the test now, if it is the client.
    pub(super) fn is_complete(&self, now_ns: u64) -> bool {
        self.streams.goal_is_reached()
            || self.time_is_up_ns().is_some_and(|up_ns| now_ns >= up_ns)
            || self.is_lull_the_end(now_ns)
    }

    fn is_lull_the_end(&self, now_ns: u64) -> bool {
        // What comes while this looks ends the silence, but not yet what is known of it.
        self.lull.is_end(&self.streams, now_ns.saturating_sub(self.moved.0))
            && self.received() == self.moved.1
    }

    /// Why the test can't go on, where it can't.
    pub(super) fn failure(&self, now_ns: u64) -> Option<Failure> {
        let receives = self.streams.each.iter().any(|(stream, _)| !stream.sends);
        let silent_ns = now_ns.saturating_sub(self.moved.0);
        if receives && silent_ns >= self.receive_timeout_ns {
            return Some(Failure::of(Code::NO_MESSAGE));
        }
        if now_ns.saturating_sub(self.last_carried.0) >= self.stall_ns {
            let seconds = self.stall_ns / SECOND_NS;
            let why = format!("the other end has received nothing for {seconds} s");
            return Some(Failure::of(Code::STREAM_WRITE).because(why));
        }
        let ended_ns = self.ended_ns.filter(|ended_ns| now_ns >= ended_ns + FAILURE_NS)?;
        (ended_ns > 0).then(|| self.stream_failure())
    }

    fn stream_failure(&self) -> Failure {
        for (stream, shared) in &self.streams.each {
            let Some(error) = shared.flow.error() else { continue };
            let code = if stream.sends { Code::STREAM_WRITE } else { Code::STREAM_READ };
            // The original tells the system's words without their number.
            let said = error.split(" (os error").next().unwrap_or_default();
            return Failure::of(code).because(said);
        }
        Failure::of(Code::STREAM_CLOSED)
    }

    /// Received or sent bytes of all streams so far.
    pub(super) fn carried(&self) -> u64 {
        let streams = self.streams.each.iter();
        streams.map(|(_, shared)| shared.figures().bytes).fold(0, u64::wrapping_add)
    }

    fn received(&self) -> u64 {
        let receives = |shared: &&Shared| !shared.sends;
        let shared = self.streams.each.iter().map(|(_, shared)| shared).filter(receives);
        shared.map(|shared| shared.figures().bytes).fold(0, u64::wrapping_add)
    }

    /// Whether there is nothing more to wait for of what the other end says it sent before `since_ns`.
    pub(super) fn tail_is_over(&mut self, theirs: &Results, since_ns: u64, now_ns: u64) -> bool {
        let received = self.received();
        if received != self.moved.1 {
            self.moved = (now_ns, received);
        }
        let silent_ns = now_ns.saturating_sub(self.moved.0.max(since_ns));
        self.streams.load.all_ended()
            || self.streams.has_all_of(theirs)
            || silent_ns >= TAIL_SILENCE_NS
            || now_ns.saturating_sub(since_ns) >= TAIL_NS
    }

    /// Waits for the streams, which have been told to end. Tells the last interval, and says what came
    /// out at this end.
    pub(super) fn finish(
        &mut self,
        waker: &Waker,
        observer: &mut dyn Observer,
    ) -> (Results, Report) {
        let deadline_ns = monotonic_ns() + STOPPING_NS;
        while !self.streams.load.all_ended() {
            let now_ns = monotonic_ns();
            if now_ns >= deadline_ns {
                self.streams.load.abort();
                break;
            }
            waker.wait(deadline_ns.min(now_ns + LOOK_NS));
        }
        let end_ns = self.streams.ended_ns().max(self.meter.start_ns());
        if let Some(sample) = self.meter.end(&self.streams, end_ns) {
            observer.handle(&Event::Sample(Box::new(sample)));
        }
        self.meter.totals(&mut self.streams)
    }
}

/// How long a burst takes at the rate that is asked for.
fn burst_ns(parameters: &Parameters) -> u64 {
    let blocks = u64::from(parameters.burst_blocks.max(1));
    carried_ns(blocks.saturating_mul(parameters.block_bytes.into()), parameters.bandwidth_bps)
}

/// Tells what was asked for that the test goes on without.
fn warn(streams: &Streams, observer: &mut dyn Observer) {
    let (plain, all) = (streams.single_path_streams(), streams.each.len());
    if plain > 0 {
        observer.handle(&Event::Warning(format!(
            "{plain} of {all} streams are plain TCP: one of the ends, or something between them, does \
             not speak MPTCP"
        )));
    }
    if let Err(error) = streams.pace() {
        let text = format!("Unable to set socket pacing ({error}): --fq-rate has no effect");
        observer.handle(&Event::Warning(text));
    }
}

fn start(streams: &Streams) -> Start {
    let first = streams.each.first().and_then(|(_, shared)| shared.flow.socket.as_deref());
    let (send_buffer_bytes, receive_buffer_bytes) = first.map_or((0, 0), sockets::buffers);
    Start {
        role: streams.setup.role,
        parameters: streams.setup.parameters.clone(),
        streams: streams.each.iter().map(|(stream, _)| *stream).collect(),
        send_buffer_bytes,
        receive_buffer_bytes,
        utc_ns: utc_ns(),
    }
}
