//! The start that is named to the clients of an attempt, each in its host's clock, and what happens to these clocks
//! afterwards.

use std::collections::{BTreeMap, BTreeSet};

use linerate_measure::units::render_duration_ns;

use crate::agent::Moment;
use crate::host::{HostClock, HostId};

/// The start of an attempt's clients.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// When it is, by the controller's clock (UTC); none where no client was told.
    pub(super) at_ns: Option<i64>,
    /// When it was named, by the controller's monotonic clock.
    named_ns: u64,
    /// The clocks in which it was named.
    clocks: BTreeMap<HostId, HostClock>,
    /// The hosts whose clocks were not measured yet in this attempt.
    unmeasured: BTreeSet<HostId>,
    /// The hosts whose clocks were set after the start was named, and by how much.
    set_clocks: BTreeMap<HostId, i64>,
}

impl Start {
    /// A host's clock is being measured for this attempt.
    pub(super) fn await_clock(&mut self, host: HostId) {
        self.unmeasured.insert(host);
    }

    /// A host's clock was measured: as each cell begins, and again where one of the clocks was set.
    pub(super) fn handle_clock(&mut self, host: HostId, clock: HostClock, now: Moment) {
        self.unmeasured.remove(&host);
        let Some(named) = self.clocks.get(&host) else { return };
        let since_ns = now.monotonic_ns.saturating_sub(self.named_ns);
        if named.offset.after_ns(since_ns).contradicts(clock.offset) {
            let by_ns = clock.offset.offset_ns.saturating_sub(named.offset.offset_ns);
            self.set_clocks.insert(host, by_ns);
        }
    }

    /// A host's clock is of no interest any more.
    pub(super) fn handle_lost(&mut self, host: HostId) {
        self.unmeasured.remove(&host);
    }

    /// Whether a start can be named in this host's clock.
    pub(super) fn knows(&self, host: HostId) -> bool {
        !self.unmeasured.contains(&host)
    }

    /// The start was named in these clocks. What they did before doesn't matter any more.
    pub(super) fn name(&mut self, at_ns: i64, clocks: BTreeMap<HostId, HostClock>, now: Moment) {
        self.set_clocks.clear();
        (self.at_ns, self.named_ns, self.clocks) = (Some(at_ns), now.monotonic_ns, clocks);
    }

    /// The clock in which the start was named to a host's clients.
    pub(super) fn clock(&self, host: HostId) -> Option<HostClock> {
        self.clocks.get(&host).copied()
    }

    /// Whether a host's clock was set, so that nothing says when its clients began.
    pub(super) fn was_set(&self, host: HostId) -> bool {
        self.set_clocks.contains_key(&host)
    }

    /// A sentence for each clock that was set.
    pub(super) fn doubts<'a>(
        &'a self,
        interval_ns: Option<u64>,
        name: impl Fn(HostId) -> &'a str + 'a,
    ) -> impl Iterator<Item = String> + 'a {
        // A start that is off by less is no doubt either; clocks that are being adjusted move by milliseconds.
        let least_ns = interval_ns.unwrap_or(0);
        let moved =
            self.set_clocks.iter().filter(move |(_, by_ns)| by_ns.unsigned_abs() > least_ns);
        moved.map(move |(&host, by_ns)| {
            format!(
                "the clock of {} and this machine's moved apart by {} while the cell ran: when its client began is \
                 not known",
                name(host),
                render_duration_ns(by_ns.unsigned_abs())
            )
        })
    }
}
