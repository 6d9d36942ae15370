//! The written form of a link: TOML with quantities as text, in the grammar of [`crate::units`].

use serde::Deserialize;

use super::quantity::{Quantity, wrong};
use super::{
    Amount, BurstLoss, Change, Corruption, Direction, Distribution, Jitter, Link, LinkError,
    Reorder, limits,
};
use crate::units;

/// The largest packet where the description doesn't say.
const MTU_DEFAULT_BYTES: u32 = 1500;
/// The seed where the description doesn't say.
const SEED_DEFAULT: u64 = 1;

impl Link {
    /// Reads a description. `read_changes` is called with the name that `changes_from` gives, if
    /// it does, and returns that file's text.
    ///
    /// # Errors
    ///
    /// [`LinkError`] where the text isn't TOML, has fields that there aren't, or values that are
    /// out of their limits or contradict each other, and what `read_changes` says.
    pub fn parse(
        text: &str,
        read_changes: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Self, LinkError> {
        let mut written: LinkText = parse_toml(text)?;
        if let Some(name) = &written.changes_from {
            let text = read_changes(name).map_err(|why| wrong("changes_from", why))?;
            let more: ChangesText = parse_toml(&text)?;
            written.change.extend(more.change);
        }
        let link = written.resolve()?;
        link.check()?;
        Ok(link)
    }
}

fn parse_toml<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, LinkError> {
    if text.len() > limits::TEXT_BYTES {
        return Err(LinkError(format!("longer than {} bytes", limits::TEXT_BYTES)));
    }
    toml::from_str(text).map_err(|error| LinkError(error.to_string().trim_end().to_owned()))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkText {
    name: Option<String>,
    seed: Option<u64>,
    mtu: Option<Quantity>,
    both: Option<DirectionText>,
    to_right: Option<DirectionText>,
    to_left: Option<DirectionText>,
    #[serde(default)]
    change: Vec<ChangeText>,
    changes_from: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangesText {
    #[serde(default)]
    change: Vec<ChangeText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeText {
    at: Quantity,
    both: Option<DirectionText>,
    to_right: Option<DirectionText>,
    to_left: Option<DirectionText>,
}

/// One table for both directions, or one for each.
#[derive(Debug)]
struct Directions {
    both: Option<DirectionText>,
    to_right: Option<DirectionText>,
    to_left: Option<DirectionText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DirectionText {
    delay: Option<Quantity>,
    jitter: Option<Quantity>,
    distribution: Option<Distribution>,
    jitter_reorders: Option<bool>,
    loss: Option<Quantity>,
    losses_in_a_row_max: Option<Quantity>,
    burst_loss: Option<BurstLossText>,
    reorder: Option<ReorderText>,
    duplicate: Option<Quantity>,
    corrupt: Option<CorruptionText>,
    rate: Option<Quantity>,
    queue: Option<Quantity>,
    mark_at: Option<Quantity>,
    /// What ceases.
    off: Vec<Off>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Off {
    Jitter,
    LossesInARowMax,
    BurstLoss,
    Reorder,
    Corrupt,
    Rate,
    Queue,
    MarkAt,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BurstLossText {
    enter: Quantity,
    leave: Quantity,
    loss_good: Option<Quantity>,
    loss_bad: Option<Quantity>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReorderText {
    share: Quantity,
    by: Quantity,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CorruptionText {
    bit_error_rate: Option<Quantity>,
    packets: Option<Quantity>,
    #[serde(default)]
    repair_checksums: bool,
    least_packet: Option<Quantity>,
}

impl LinkText {
    fn resolve(self) -> Result<Link, LinkError> {
        let Self { name, seed, mtu, both, to_right, to_left, change, changes_from: _ } = self;
        let directions = Directions { both, to_right, to_left };
        let mtu_bytes = mtu.map(|mtu| mtu.bytes("mtu")).transpose()?;
        let (right, left) = directions.each("", Direction::default(), Direction::default())?;
        let mut link = Link {
            name,
            seed: seed.unwrap_or(SEED_DEFAULT),
            mtu_bytes: match mtu_bytes {
                None => MTU_DEFAULT_BYTES,
                Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
            },
            to_right: right.unwrap_or_default(),
            to_left: left.unwrap_or_default(),
            changes: Vec::new(),
        };
        let mut timed = Vec::with_capacity(change.len());
        for ChangeText { at, both, to_right, to_left } in change {
            timed.push((at.duration_ns("change.at")?, Directions { both, to_right, to_left }));
        }
        timed.sort_by_key(|(at_ns, _)| *at_ns);
        let (mut right, mut left) = (link.to_right.clone(), link.to_left.clone());
        for (at_ns, directions) in timed {
            let place = format!("change at {}: ", units::render_duration_ns(at_ns));
            let (to_right, to_left) = directions.each(&place, right.clone(), left.clone())?;
            right = to_right.clone().unwrap_or(right);
            left = to_left.clone().unwrap_or(left);
            link.changes.push(Change { at_ns, to_right, to_left });
        }
        Ok(link)
    }
}

impl Directions {
    /// What these tables make of the two directions; `None` where they don't speak of one.
    fn each(
        self,
        place: &str,
        right: Direction,
        left: Direction,
    ) -> Result<(Option<Direction>, Option<Direction>), LinkError> {
        let apply = |name: &str, text: &DirectionText, to: Direction| {
            text.apply(to).map_err(|LinkError(why)| LinkError(format!("{place}{name}.{why}")))
        };
        if let Some(both) = &self.both {
            if self.to_right.is_some() || self.to_left.is_some() {
                return Err(LinkError(format!(
                    "{place}[both] stands beside [to_right] or [to_left]: write either [both], or \
                     a table for each direction"
                )));
            }
            return Ok((Some(apply("both", both, right)?), Some(apply("both", both, left)?)));
        }
        let to_right = self.to_right.map(|text| apply("to_right", &text, right)).transpose()?;
        let to_left = self.to_left.map(|text| apply("to_left", &text, left)).transpose()?;
        Ok((to_right, to_left))
    }
}

impl DirectionText {
    /// The direction with these values in the place of its own.
    fn apply(&self, mut to: Direction) -> Result<Direction, LinkError> {
        for off in &self.off {
            match off {
                Off::Jitter => to.jitter = None,
                Off::LossesInARowMax => to.losses_in_a_row_max = None,
                Off::BurstLoss => to.burst_loss = None,
                Off::Reorder => to.reorder = None,
                Off::Corrupt => to.corrupt = None,
                Off::Rate => (to.rate_bps, to.queue, to.mark_at) = (None, None, None),
                Off::Queue => to.queue = None,
                Off::MarkAt => to.mark_at = None,
            }
        }
        if let Some(delay) = &self.delay {
            to.delay_ns = delay.duration_ns("delay")?;
        }
        self.apply_jitter(&mut to)?;
        self.apply_faults(&mut to)?;
        if let Some(rate) = &self.rate {
            to.rate_bps = Some(rate.rate_bps("rate")?);
        }
        if let Some(queue) = &self.queue {
            to.queue = Some(queue.amount("queue")?);
        }
        if let Some(mark_at) = &self.mark_at {
            to.mark_at = Some(mark_at.amount("mark_at")?);
        }
        if to.rate_bps.is_some() && to.queue.is_none() {
            to.queue = Some(Amount::Packets(limits::QUEUE_DEFAULT_PACKETS));
        }
        Ok(to)
    }

    fn apply_jitter(&self, to: &mut Direction) -> Result<(), LinkError> {
        if let Some(jitter) = &self.jitter {
            let width_ns = jitter.duration_ns("jitter")?;
            let (distribution, may_reorder) =
                to.jitter.map_or_else(Default::default, |was| (was.distribution, was.may_reorder));
            to.jitter = Some(Jitter { width_ns, distribution, may_reorder });
        }
        match (&mut to.jitter, self.distribution, self.jitter_reorders) {
            (_, None, None) => {}
            (Some(jitter), distribution, may_reorder) => {
                jitter.distribution = distribution.unwrap_or(jitter.distribution);
                jitter.may_reorder = may_reorder.unwrap_or(jitter.may_reorder);
            }
            (None, distribution, _) => {
                let name = if distribution.is_some() { "distribution" } else { "jitter_reorders" };
                return Err(wrong(name, "there is no jitter that it could shape: give jitter"));
            }
        }
        Ok(())
    }

    fn apply_faults(&self, to: &mut Direction) -> Result<(), LinkError> {
        if let Some(loss) = &self.loss {
            to.loss = loss.share("loss")?;
        }
        if let Some(most) = &self.losses_in_a_row_max {
            let most = most.count("losses_in_a_row_max")?;
            to.losses_in_a_row_max = Some(u32::try_from(most).unwrap_or(u32::MAX));
        }
        if let Some(text) = &self.burst_loss {
            let share = |name, of: &Option<Quantity>, otherwise| {
                of.as_ref().map_or(Ok(otherwise), |share| share.share(name))
            };
            to.burst_loss = Some(BurstLoss {
                enter: text.enter.share("burst_loss.enter")?,
                leave: text.leave.share("burst_loss.leave")?,
                loss_good: share("burst_loss.loss_good", &text.loss_good, 0.0)?,
                loss_bad: share("burst_loss.loss_bad", &text.loss_bad, 1.0)?,
            });
        }
        if let Some(text) = &self.reorder {
            to.reorder = Some(Reorder {
                share: text.share.share("reorder.share")?,
                by_ns: text.by.duration_ns("reorder.by")?,
            });
        }
        if let Some(duplicate) = &self.duplicate {
            to.duplicate = duplicate.share("duplicate")?;
        }
        if let Some(text) = &self.corrupt {
            to.corrupt = Some(text.resolve()?);
        }
        Ok(())
    }
}

impl CorruptionText {
    fn resolve(&self) -> Result<Corruption, LinkError> {
        let share =
            |name, of: &Option<Quantity>| of.as_ref().map(|share| share.share(name)).transpose();
        let least = self.least_packet.as_ref().map(|least| least.bytes("corrupt.least_packet"));
        Ok(Corruption {
            bit_error_rate: share("corrupt.bit_error_rate", &self.bit_error_rate)?,
            packets: share("corrupt.packets", &self.packets)?,
            repair_checksums: self.repair_checksums,
            least_packet_bytes: u32::try_from(least.transpose()?.unwrap_or(0)).unwrap_or(u32::MAX),
        })
    }
}
