//! Selectors of pacing, latency, socket options and the run itself.

use super::super::latency::Statistics;
use super::value::{
    brand, congestion, deprecated, fill_file, integer, latency_us, mean_us, percentile_us, service,
    text,
};
use super::{Selector, row};

/// In the order of `all`.
pub(super) const OPTIONS: &[Selector] = &[
    row("LOCAL_INTERVAL_USECS", "Local|Interval|Usecs", |o| {
        integer(o.figures.last.local.interval_us)
    }),
    row("LOCAL_INTERVAL_BURST", "Local|Interval|Burst", |o| {
        integer(o.figures.last.local.interval_burst)
    }),
    row("REMOTE_INTERVAL_USECS", "Remote|Interval|Usecs", |o| {
        integer(o.figures.last.remote.interval_us)
    }),
    row("REMOTE_INTERVAL_BURST", "Remote|Interval|Burst", |o| {
        integer(o.figures.last.remote.interval_burst)
    }),
    row("LOCAL_SECURITY_TYPE_ID", "Local|OS|Security|Type ID", |_| integer(0)),
    row("LOCAL_SECURITY_TYPE", "Local|OS|Security|Type", |_| deprecated()),
    row("LOCAL_SECURITY_ENABLED_NUM", "Local|OS|Security|Enabled Num", |_| integer(0)),
    row("LOCAL_SECURITY_ENABLED", "Local|OS|Security|Enabled", |_| deprecated()),
    row("LOCAL_SECURITY_SPECIFIC", "Local|OS|Security|Specific", |_| deprecated()),
    row("REMOTE_SECURITY_TYPE_ID", "Remote|OS|Security|Type", |_| integer(0)),
    row("REMOTE_SECURITY_TYPE", "Remote|OS|Security|Type", |_| deprecated()),
    row("REMOTE_SECURITY_ENABLED_NUM", "Remote|OS|Security|Enabled", |_| integer(0)),
    row("REMOTE_SECURITY_ENABLED", "Remote|OS|Security|Enabled", |_| deprecated()),
    row("REMOTE_SECURITY_SPECIFIC", "Remote|OS|Security|Specific", |_| deprecated()),
    row("RESULT_BRAND", "Result|Tag", brand),
    row("UUID", "Test|UUID", |o| text(&o.uuid)),
    row("MIN_LATENCY", "Minimum|Latency|Microseconds", |o| latency_us(o, Statistics::least_us)),
    row("MAX_LATENCY", "Maximum|Latency|Microseconds", |o| latency_us(o, Statistics::greatest_us)),
    row("P50_LATENCY", "50th|Percentile|Latency|Microseconds", |o| percentile_us(o, 0.50)),
    row("P90_LATENCY", "90th|Percentile|Latency|Microseconds", |o| percentile_us(o, 0.90)),
    row("P99_LATENCY", "99th|Percentile|Latency|Microseconds", |o| percentile_us(o, 0.99)),
    row("MEAN_LATENCY", "Mean|Latency|Microseconds", |o| mean_us(o, Statistics::mean_us)),
    row("STDDEV_LATENCY", "Stddev|Latency|Microseconds", |o| mean_us(o, Statistics::deviation_us)),
    row("LOCAL_SOCKET_PRIO", "Local|Socket|Priority", |o| integer(o.figures.last.local.priority)),
    row("REMOTE_SOCKET_PRIO", "Remote|Socket|Priority", |o| {
        integer(o.figures.last.remote.priority)
    }),
    row("LOCAL_SOCKET_TOS", "Local|Socket|TOS", |o| service(o.figures.last.local.service)),
    row("REMOTE_SOCKET_TOS", "Remote|Socket|TOS", |o| service(o.figures.last.remote.service)),
    row("LOCAL_CONG_CONTROL", "Local|Congestion|Control|Algorithm", |o| {
        congestion(&o.figures.last.local)
    }),
    row("REMOTE_CONG_CONTROL", "Remote|Congestion|Control|Algorithm", |o| {
        congestion(&o.figures.last.remote)
    }),
    row("LOCAL_FILL_FILE", "Local|Fill|File", |o| fill_file(&o.request.plan.local)),
    row("REMOTE_FILL_FILE", "Remote|Fill|File", |o| fill_file(&o.request.plan.remote)),
    row("COMMAND_LINE", "Command|Line", |o| text(&format!("\"{}\"", o.request.command_line))),
];
