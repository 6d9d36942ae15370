//! The client's end of the load, from the first flow to the last.

use linerate_measure::sample::Sample;
use linerate_wire::{Machine, Sign};

use super::received::read_sample;
use super::session::NativeClientTest;
use crate::clock::{SECOND_NS, monotonic_ns, now, utc_ns};
use crate::error::Error;
use crate::event::Event;
use crate::load::Load;

/// After the last flow has ended here, the server's result is waited for at most so long, however large a one is on its
/// way: as long as the server gives it. One of which nothing arrives is given up earlier, by the conversation.
const RESULT_NS: u64 = 60 * SECOND_NS;

/// Each end takes a sample an interval. A server may have so many more than twice this end's: one
/// that has ever more of them would fill this end's memory.
const SPARE_SAMPLES: u64 = 64;

impl NativeClientTest<'_> {
    /// Does what is due in this end's load.
    pub(super) fn conduct(&mut self) -> Result<(), Error> {
        let Some(mut load) = self.load.take() else { return Ok(()) };
        let outcome = self.conduct_load(&mut load);
        self.load = Some(load);
        outcome
    }

    fn conduct_load(&mut self, load: &mut Load) -> Result<(), Error> {
        let now_ns = monotonic_ns();
        if let Some(opener) = &mut self.opener {
            if opener.advance(now_ns, load)? {
                self.control.machine.flow_stood(now());
            }
            if opener.is_done() {
                self.opener = None;
            }
        }
        if !load.is_open() {
            return self.begin(load, now_ns);
        }
        if load.peer_progressed(now_ns) {
            self.control.machine.handle_sign(now(), Sign::Life);
        }
        if let Some(sample) = load.tick(now_ns) {
            self.keep_own(sample);
        }
        if let Some(counts) = load.take_datagrams_sent() {
            self.control.machine.sent(&counts);
            if self.cancel.requested() {
                self.finish();
            }
        }
        if load.all_ended() {
            self.finish();
            let ended_ns = *self.ended_ns.get_or_insert(now_ns);
            if now_ns > ended_ns + RESULT_NS {
                return Err(Error::Peer(format!(
                    "the server's result did not come within {} s",
                    RESULT_NS / SECOND_NS
                )));
            }
        }
        Ok(())
    }

    /// Starts the server's load when all flows stand, and this end's when the server has started.
    fn begin(&mut self, load: &mut Load, now_ns: u64) -> Result<(), Error> {
        if load.has_failed() {
            return Err(Error::Host("a thread of the load failed before it began".to_owned()));
        }
        if let Some(why) = load.undelivered() {
            return Err(Error::Host(why.to_owned()));
        }
        // Nothing has begun, so nothing can have ended as planned, and the server waits for ever.
        if !self.progress.server_ready && load.any_ended() {
            if let Some(why) = load.why_ended() {
                let advice = self.plan.workload.quic.shorter_packets_advice();
                let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
                return Err(Error::Peer(format!(
                    "a flow ended before the load began: {why}{advice}"
                )));
            }
            return Err(Error::Peer(
                "a flow was closed by the server before the load began: the server has more \
                 connections than it keeps, or something on the path closes them; try again"
                    .to_owned(),
            ));
        }
        if self.progress.server_ready && !self.progress.asked_start && load.all_ready() {
            if load.all_ended() {
                let why = load.why_ended().unwrap_or_else(|| "for an unknown reason".to_owned());
                return Err(Error::Peer(format!("every flow ended before the load began: {why}")));
            }
            if !self.knows_start()? {
                return Ok(());
            }
            self.progress.asked_start = true;
            let offset_ns = self.clocks.offset.estimate().map_or(0, |estimate| estimate.offset_ns);
            let at = self.start.at_utc_ns.map(|at| at.saturating_add(offset_ns));
            self.control.machine.start(at);
        }
        let Some(opens_at_ns) = self.start.opens_at_ns else { return Ok(()) };
        if opens_at_ns <= now_ns {
            // The load's own time, not that of all that the opening takes.
            let utc_ns = utc_ns();
            self.start.opens_at_ns = None;
            load.open(now_ns);
            self.start.punctual.end();
            self.record.draft.environment.started_utc_ns = Some(utc_ns);
            let (run_id, plan) = (self.record.draft.run_id.clone(), Box::new(self.plan.clone()));
            self.sink.offer(Event::Started { run_id, plan, utc_ns });
        } else if self.start.at_utc_ns.is_some()
            && let Err(note) = self.start.punctual.handle_time(now_ns, opens_at_ns)
        {
            self.record.draft.notes.push(note);
        }
        Ok(())
    }

    /// Whether the start is known; one that is named later is waited for, armed.
    fn knows_start(&mut self) -> Result<bool, Error> {
        let Some(later) = self.start.later else { return Ok(true) };
        if !self.progress.armed {
            self.progress.armed = true;
            self.sink.offer(Event::Armed { run_id: self.record.draft.run_id.clone() });
        }
        match later.named() {
            None => Ok(false),
            Some(Ok(utc_ns)) => {
                self.start.at_utc_ns = Some(*utc_ns);
                Ok(true)
            }
            Some(Err(why)) => Err(Error::Plan(why.clone())),
        }
    }

    pub(super) fn handle_sample(&mut self, text: &str) {
        let most = SPARE_SAMPLES + 2 * self.progress.own_samples;
        match read_sample(text) {
            Some(sample) if self.progress.server_samples < most => {
                self.progress.server_samples += 1;
                if let Some(load) = &mut self.load {
                    load.handle_peer_sample(&sample, monotonic_ns());
                }
                self.keep(sample);
            }
            _ => self.progress.samples_left_out += 1,
        }
    }

    /// Keeps a sample of this end's.
    pub(super) fn keep_own(&mut self, sample: Sample) {
        self.progress.own_samples += 1;
        self.keep(sample);
    }

    fn keep(&mut self, sample: Sample) {
        self.sink.offer(Event::Sample(Box::new(sample.clone())));
        self.record.draft.samples.push(sample);
    }
}
