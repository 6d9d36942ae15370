//! Selectors of what each end did: rates, processors, addresses, calls, bytes, buffers.

use super::value::{
    address, count_or_unmeasured, cpu_share, deprecated, destination, dirt, family, fixed, flag,
    integer, peak_cpu, port, source,
};
use super::{EndRow, Rows, WholeRow, of_end, row};

/// In the order of `all`.
pub(super) const ENDS: &[Rows] = &[
    Rows::Ends(THROUGHPUTS),
    Rows::Ends(PROCESSORS),
    Rows::Whole(ADDRESSES),
    Rows::Ends(CALLS_AND_BUFFERS),
];

const THROUGHPUTS: &[EndRow] = &[
    of_end("SEND_THROUGHPUT", "Send|Throughput", |e| fixed::<2>(e.sent_rate())),
    of_end("RECV_THROUGHPUT", "Recv|Throughput", |e| fixed::<2>(e.received_rate())),
];

const PROCESSORS: &[EndRow] = &[
    of_end("CPU_BIND", "CPU|Bind", |e| count_or_unmeasured(e.bound_cpu())),
    of_end("CPU_COUNT", "CPU|Count", |e| integer(e.cpu_count())),
    of_end("CPU_PEAK_UTIL", "Peak|Per CPU|Util %", |e| {
        cpu_share(e.figures(), |cpu| cpu.peak_percent)
    }),
    of_end("CPU_PEAK_ID", "Peak|Per CPU|ID", |e| peak_cpu(e.figures())),
    of_end("CPU_MODEL", "CPU|Model", |_| deprecated()),
    of_end("CPU_FREQUENCY", "CPU|Frequency|MHz", |_| integer(0)),
];

const ADDRESSES: &[WholeRow] = &[
    row("SOURCE_PORT", "Source|Port", |o| port(source(o), o.request.plan.local.port)),
    row("SOURCE_ADDR", "Source|Address", |o| address(source(o))),
    row("SOURCE_FAMILY", "Source|Family", |o| family(source(o))),
    row("DEST_PORT", "Destination|Port", |o| port(destination(o), o.request.plan.remote.port)),
    row("DEST_ADDR", "Destination|Address", |o| address(destination(o))),
    row("DEST_FAMILY", "Destination|Family", |o| family(destination(o))),
];

const CALLS_AND_BUFFERS: &[EndRow] = &[
    of_end("SEND_CALLS", "Send|Calls", |e| e.count(|end| end.send_calls())),
    of_end("RECV_CALLS", "Recv|Calls", |e| e.count(|end| end.receive_calls())),
    of_end("BYTES_PER_RECV", "Bytes|Per|Recv", |e| {
        e.per_call(|end| (end.bytes_received(), end.receive_calls()))
    }),
    of_end("BYTES_PER_SEND", "Bytes|Per|Send", |e| {
        e.per_call(|end| (end.bytes_sent(), end.send_calls()))
    }),
    of_end("BYTES_SENT", "Bytes|Sent", |e| e.count(|end| end.bytes_sent())),
    of_end("BYTES_RECVD", "Bytes|Received", |e| e.count(|end| end.bytes_received())),
    of_end("BYTES_XFERD", "Bytes|Xferred", |e| e.count(|end| end.bytes_moved())),
    of_end("SEND_OFFSET", "Send|Offset", |e| integer(e.plan().send_offset.unwrap_or(0))),
    of_end("RECV_OFFSET", "Recv|Offset", |e| integer(e.plan().receive_offset.unwrap_or(0))),
    of_end("SEND_ALIGN", "Send|Alignment", |e| integer(e.plan().send_alignment.unwrap_or(8))),
    of_end("RECV_ALIGN", "Recv|Alignment", |e| integer(e.plan().receive_alignment.unwrap_or(8))),
    of_end("SEND_WIDTH", "Send|Width", |e| count_or_unmeasured(e.settings().send_width)),
    of_end("RECV_WIDTH", "Recv|Width", |e| count_or_unmeasured(e.settings().receive_width)),
    of_end("SEND_DIRTY_COUNT", "Send|Dirty|Count", |e| dirt(e.plan(), |dirt| dirt.dirty_bytes)),
    of_end("RECV_DIRTY_COUNT", "Recv|Dirty|Count", |e| dirt(e.plan(), |dirt| dirt.dirty_bytes)),
    of_end("RECV_CLEAN_COUNT", "Recv|Clean|Count", |e| dirt(e.plan(), |dirt| dirt.clean_bytes)),
    of_end("NODELAY", "NODELAY", |e| flag(e.settings().no_delay)),
    of_end("CORK", "Cork", |e| flag(e.is_corked())),
];
