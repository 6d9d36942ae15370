//! One end of a test, as selectors see it.

use linerate_engine::netperf::EndPlan;
use linerate_measure::dialect::netperf::{End as EndFigures, FlowTotals};

use super::super::figures::{Cost, UNMEASURED};
use super::Origin;
use super::value::{count_or_unmeasured, fixed};

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Side {
    Local,
    Remote,
}

impl Side {
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Local => "LOCAL",
            Self::Remote => "REMOTE",
        }
    }

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Local => "Local",
            Self::Remote => "Remote",
        }
    }
}

/// One end of a test.
pub(in super::super) struct End<'a> {
    pub(super) origin: &'a Origin<'a>,
    pub(super) side: Side,
}

impl End<'_> {
    fn is_local(&self) -> bool {
        self.side == Side::Local
    }

    pub(super) fn figures(&self) -> EndFigures<'_> {
        let last = &self.origin.figures.last;
        if self.is_local() { last.local() } else { last.remote() }
    }

    pub(super) fn settings(&self) -> FlowTotals {
        self.figures().settings()
    }

    /// Bytes of its sends. The original shows 0 where this end's weren't asked for, and -1 at the server.
    pub(super) fn send_size(&self) -> i64 {
        self.size(self.settings().send_bytes)
    }

    /// Bytes of its receives, likewise.
    pub(super) fn receive_size(&self) -> i64 {
        self.size(self.settings().receive_bytes)
    }

    fn size(&self, bytes: Option<u32>) -> i64 {
        bytes.map_or(if self.is_local() { 0 } else { -1 }, i64::from)
    }

    pub(super) fn plan(&self) -> &EndPlan {
        let plan = &self.origin.request.plan;
        if self.is_local() { &plan.local } else { &plan.remote }
    }

    pub(super) fn cost(&self) -> Cost {
        let figures = &self.origin.figures;
        if self.is_local() { figures.local } else { figures.remote }
    }

    pub(super) fn sent_rate(&self) -> f64 {
        let rates = &self.origin.figures.rates;
        if self.is_local() { rates.local_sent } else { rates.remote_sent }
    }

    pub(super) fn received_rate(&self) -> f64 {
        let rates = &self.origin.figures.rates;
        if self.is_local() { rates.local_received } else { rates.remote_received }
    }

    /// Its processor, where one was asked for.
    pub(super) fn bound_cpu(&self) -> Option<u32> {
        let request = self.origin.request;
        if self.is_local() { request.plan.local.bind_cpu } else { request.server_cpu }
    }

    /// Its processors, as told (`-n`) or as counted.
    pub(super) fn cpu_count(&self) -> u32 {
        let told = self.plan().cpu_count;
        told.or(self.figures().cpu().map(|cpu| cpu.cpus)).unwrap_or(0)
    }

    /// TCP_CORK is this end's alone.
    pub(super) fn is_corked(&self) -> bool {
        self.is_local() && self.origin.request.plan.options.cork
    }

    fn is_told(&self) -> bool {
        self.is_local() || self.origin.figures.last.server_told
    }

    /// A count; -1: it wasn't told.
    pub(super) fn count(&self, of: fn(EndFigures<'_>) -> u64) -> Option<String> {
        count_or_unmeasured(Some(of(self.figures())).filter(|_| self.is_told()))
    }

    /// Bytes of a call, likewise.
    pub(super) fn per_call(
        &self,
        bytes_and_calls: fn(EndFigures<'_>) -> (u64, u64),
    ) -> Option<String> {
        fixed::<2>(match bytes_and_calls(self.figures()) {
            _ if !self.is_told() => UNMEASURED,
            (_, 0) => 0.0,
            (bytes, calls) => bytes as f64 / calls as f64,
        })
    }
}
