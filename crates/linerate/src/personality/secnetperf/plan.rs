//! What the options mean to the engine.

use linerate_engine::perf;
use linerate_engine::perf::{ConnectionIds, Mark, Placement};
use linerate_personality::secnetperf::options::{Delay, QuicOptions, ThreadOptions, Urgency};

pub(super) fn quic_options(options: &QuicOptions) -> perf::QuicOptions {
    perf::QuicOptions {
        clear: options.clear,
        bbr: options.bbr,
        ecn: options.ecn,
        dscp: options.dscp,
        unpaced: options.unpaced,
        ids: ConnectionIds {
            server: options.server_id,
            mark: options.mark.as_deref().and_then(Mark::new),
            ..ConnectionIds::default()
        },
        draft_29: options.draft_29,
        hystart: options.hystart,
        mtu_most_bytes: options.mtu_most_bytes,
    }
}

pub(super) fn placement(options: &ThreadOptions) -> Placement {
    Placement {
        pinned: options.pinned,
        processors: options.processors.clone(),
        urgency: match options.urgency {
            Urgency::Usual => perf::Urgency::Usual,
            Urgency::High => perf::Urgency::High,
            Urgency::Low => perf::Urgency::Low,
        },
        busy: options.busy,
    }
}

pub(super) fn delay(Delay { mean_us, varies }: Delay) -> perf::Delay {
    perf::Delay { mean_us, varies }
}
