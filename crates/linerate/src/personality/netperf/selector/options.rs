//! Selectors of pacing, latency, socket options and the run itself.

use super::super::latency::Statistics;
use super::value::{
    brand, congestion, deprecated, fill_file, full_latency_us, integer, latency_us, mean_us,
    service, text,
};
use super::{EndRow, Rows, WholeRow, of_end, row};

/// In the order of `all`.
pub(super) const OPTIONS: &[Rows] = &[
    Rows::Ends(PACE),
    Rows::Whole(RUN),
    Rows::Ends(PRIORITY),
    Rows::Ends(SERVICE),
    Rows::Ends(CONGESTION),
    Rows::Ends(FILL),
    Rows::Whole(COMMAND),
];

const PACE: &[EndRow] = &[
    of_end("INTERVAL_USECS", "Interval|Usecs", |e| integer(e.settings().interval_us)),
    of_end("INTERVAL_BURST", "Interval|Burst", |e| integer(e.settings().interval_burst)),
];

/// The headings of both ends' security differ.
const RUN: &[WholeRow] = &[
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
    row("MIN_LATENCY", "Minimum|Latency|Microseconds", |o| latency_us(o, Statistics::least_ns)),
    row("MAX_LATENCY", "Maximum|Latency|Microseconds", |o| latency_us(o, Statistics::greatest_ns)),
    row("P50_LATENCY", "50th|Percentile|Latency|Microseconds", |o| {
        latency_us(o, |s| s.percentile_ns(0.50))
    }),
    row("P90_LATENCY", "90th|Percentile|Latency|Microseconds", |o| {
        latency_us(o, |s| s.percentile_ns(0.90))
    }),
    row("P99_LATENCY", "99th|Percentile|Latency|Microseconds", |o| {
        latency_us(o, |s| s.percentile_ns(0.99))
    }),
    row("MEAN_LATENCY", "Mean|Latency|Microseconds", |o| mean_us(o, Statistics::mean_us)),
    row("STDDEV_LATENCY", "Stddev|Latency|Microseconds", |o| mean_us(o, Statistics::deviation_us)),
];

/// Found by their names, and no part of `all`, so that it has what the original's has: its blank column, and the
/// percentiles that are ours alone.
pub(super) const UNLISTED: &[WholeRow] = &[
    row("OUTPUT_NONE", " ", |_| text(" ")),
    row("P95_LATENCY", "95th|Percentile|Latency|Microseconds", |o| {
        full_latency_us(o, |s| s.percentile_ns(0.95))
    }),
    row("P999_LATENCY", "99.9th|Percentile|Latency|Microseconds", |o| {
        full_latency_us(o, |s| s.percentile_ns(0.999))
    }),
    row("P9999_LATENCY", "99.99th|Percentile|Latency|Microseconds", |o| {
        full_latency_us(o, |s| s.percentile_ns(0.9999))
    }),
];

const PRIORITY: &[EndRow] =
    &[of_end("SOCKET_PRIO", "Socket|Priority", |e| integer(e.settings().priority.unwrap_or(-1)))];

const SERVICE: &[EndRow] = &[of_end("SOCKET_TOS", "Socket|TOS", |e| service(e.settings().service))];

const CONGESTION: &[EndRow] =
    &[of_end("CONG_CONTROL", "Congestion|Control|Algorithm", |e| congestion(e.figures()))];

const FILL: &[EndRow] = &[of_end("FILL_FILE", "Fill|File", |e| fill_file(e.plan()))];

const COMMAND: &[WholeRow] =
    &[row("COMMAND_LINE", "Command|Line", |o| text(&format!("\"{}\"", o.request.command_line)))];
