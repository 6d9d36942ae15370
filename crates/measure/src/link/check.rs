//! What a description may say: every number within its limit, and nothing that contradicts itself.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::quantity::wrong;
use super::{Amount, BurstLoss, Corruption, Direction, Distribution, Link, LinkError, limits};
use crate::units::{render_bytes, render_duration_ns, render_rate};

impl Link {
    /// Whether all of it makes sense.
    ///
    /// # Errors
    ///
    /// [`LinkError`] names the first field that doesn't.
    pub fn check(&self) -> Result<(), LinkError> {
        within("mtu", u64::from(self.mtu_bytes), limits::MTU_BYTES, |bytes| format!("{bytes} B"))?;
        if self.name.as_ref().is_some_and(|name| name.chars().count() > limits::NAME_LETTERS) {
            let why = format!("longer than {} letters", limits::NAME_LETTERS);
            return Err(wrong("name", why));
        }
        self.to_right.check("to_right")?;
        self.to_left.check("to_left")?;
        if self.changes.len() > limits::CHANGES {
            let why = format!("{} of them, more than {}", self.changes.len(), limits::CHANGES);
            return Err(wrong("change", why));
        }
        for (number, change) in self.changes.iter().enumerate() {
            let at = render_duration_ns(change.at_ns);
            within("change.at", change.at_ns, limits::CHANGE_AT_NS, render_duration_ns)?;
            let before = number.checked_sub(1).and_then(|number| self.changes.get(number));
            if before.is_some_and(|before| {
                before.at_ns == change.at_ns
                    && (before.to_right.is_some() && change.to_right.is_some()
                        || before.to_left.is_some() && change.to_left.is_some())
            }) {
                let why = "two changes of one direction at one time: which one holds can't be told";
                return Err(wrong(&format!("change at {at}"), why));
            }
            for (name, direction) in [("to_right", &change.to_right), ("to_left", &change.to_left)]
            {
                if let Some(direction) = direction {
                    direction.check(&format!("change at {at}: {name}"))?;
                }
            }
            if change.to_right.is_none() && change.to_left.is_none() {
                let why =
                    "changes nothing: give [change.both], [change.to_right] or [change.to_left]";
                return Err(wrong(&format!("change at {at}"), why));
            }
        }
        Ok(())
    }
}

impl Direction {
    fn check(&self, place: &str) -> Result<(), LinkError> {
        let result = self.check_delay().and_then(|()| self.check_faults());
        let result = result.and_then(|()| self.check_queue());
        result.map_err(|LinkError(why)| LinkError(format!("{place}.{why}")))
    }

    fn check_delay(&self) -> Result<(), LinkError> {
        let delay = 0..=limits::DELAY_NS;
        within("delay", self.delay_ns, delay.clone(), render_duration_ns)?;
        if let Some(jitter) = self.jitter {
            within("jitter", jitter.width_ns, 1..=limits::DELAY_NS, render_duration_ns)?;
            if jitter.distribution != Distribution::Pareto && jitter.width_ns > self.delay_ns {
                let why = format!(
                    "{} is more than the delay of {}: a packet can't arrive before it was sent",
                    render_duration_ns(jitter.width_ns),
                    render_duration_ns(self.delay_ns)
                );
                return Err(wrong("jitter", why));
            }
        }
        if let Some(reorder) = self.reorder {
            within("reorder.by", reorder.by_ns, 1..=limits::DELAY_NS, render_duration_ns)?;
            share("reorder.share", reorder.share)?;
        }
        Ok(())
    }

    fn check_faults(&self) -> Result<(), LinkError> {
        share("loss", self.loss)?;
        share("duplicate", self.duplicate)?;
        if let Some(most) = self.losses_in_a_row_max {
            within("losses_in_a_row_max", most.into(), limits::LOSSES_IN_A_ROW, |n| n.to_string())?;
            if self.loss == 0.0 && self.burst_loss.is_none() {
                return Err(wrong("losses_in_a_row_max", "there is no loss that it could limit"));
            }
        }
        if let Some(BurstLoss { enter, leave, loss_good, loss_bad }) = self.burst_loss {
            share("burst_loss.enter", enter)?;
            share("burst_loss.leave", leave)?;
            share("burst_loss.loss_good", loss_good)?;
            share("burst_loss.loss_bad", loss_bad)?;
            if leave == 0.0 {
                let why = "0 would never leave the bad state: for that, write loss = \"100%\"";
                return Err(wrong("burst_loss.leave", why));
            }
        }
        self.corrupt.map_or(Ok(()), check_corruption)
    }

    fn check_queue(&self) -> Result<(), LinkError> {
        let Some(rate_bps) = self.rate_bps else {
            let idle = [("queue", self.queue), ("mark_at", self.mark_at)];
            return match idle.iter().find(|(_, amount)| amount.is_some()) {
                Some((name, _)) => Err(wrong(name, "nothing ever waits without a rate: give rate")),
                None => Ok(()),
            };
        };
        within("rate", rate_bps, limits::RATE_BPS, |bps| render_rate(bps as f64))?;
        for (name, amount) in [("queue", self.queue), ("mark_at", self.mark_at)] {
            match amount {
                Some(Amount::Packets(packets)) => {
                    within(name, packets, limits::QUEUE_PACKETS, |n| format!("{n} packets"))?;
                }
                Some(Amount::Bytes(bytes)) => {
                    within(name, bytes, limits::QUEUE_BYTES, render_bytes)?;
                }
                None => {}
            }
        }
        let never = match (self.queue, self.mark_at) {
            (Some(Amount::Packets(queue)), Some(Amount::Packets(mark))) => mark >= queue,
            (Some(Amount::Bytes(queue)), Some(Amount::Bytes(mark))) => mark >= queue,
            _ => false,
        };
        if never {
            return Err(wrong("mark_at", "not less than the queue: nothing would ever be marked"));
        }
        let longest_ns = self.delay_ns + self.jitter.map_or(0, |jitter| jitter.width_ns);
        let flight_bytes = u128::from(rate_bps) * u128::from(longest_ns) / 8_000_000_000;
        if flight_bytes > u128::from(limits::FLIGHT_BYTES) {
            let why = format!(
                "{} over {} is more in flight than the {} that are held: lower one of them",
                render_rate(rate_bps as f64),
                render_duration_ns(longest_ns),
                render_bytes(limits::FLIGHT_BYTES)
            );
            return Err(wrong("rate", why));
        }
        Ok(())
    }
}

fn check_corruption(corrupt: Corruption) -> Result<(), LinkError> {
    match (corrupt.bit_error_rate, corrupt.packets) {
        (Some(rate), None) => share("corrupt.bit_error_rate", rate),
        (None, Some(packets)) => share("corrupt.packets", packets),
        _ => Err(wrong("corrupt", "give either bit_error_rate or packets")),
    }
}

fn share(name: &str, value: f64) -> Result<(), LinkError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(wrong(name, format!("{value} is no share: 0 to 1")))
    }
}

fn within<T: Display>(
    name: &str,
    value: u64,
    range: RangeInclusive<u64>,
    render: impl Fn(u64) -> T,
) -> Result<(), LinkError> {
    if range.contains(&value) {
        return Ok(());
    }
    let (value, low, high) = (render(value), render(*range.start()), render(*range.end()));
    Err(wrong(name, format!("{value} is out of range: {low} to {high}")))
}
