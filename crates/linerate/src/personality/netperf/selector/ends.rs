//! Selectors of what each end did: rates, processors, addresses, calls, bytes, buffers.

use super::value::{
    address, count_or_unmeasured, cpu_count, deprecated, dirt, family, fixed, flag, integer, moved,
    peak, peak_cpu, per_call, port, told, told_per_call,
};
use super::{Selector, row};

/// In the order of `all`.
pub(super) const ENDS: &[Selector] = &[
    row("LOCAL_SEND_THROUGHPUT", "Local|Send|Throughput", |o| {
        fixed::<2>(o.figures.rates.local_sent)
    }),
    row("LOCAL_RECV_THROUGHPUT", "Local|Recv|Throughput", |o| {
        fixed::<2>(o.figures.rates.local_received)
    }),
    row("REMOTE_SEND_THROUGHPUT", "Remote|Send|Throughput", |o| {
        fixed::<2>(o.figures.rates.remote_sent)
    }),
    row("REMOTE_RECV_THROUGHPUT", "Remote|Recv|Throughput", |o| {
        fixed::<2>(o.figures.rates.remote_received)
    }),
    row("LOCAL_CPU_BIND", "Local|CPU|Bind", |o| count_or_unmeasured(o.request.plan.local.bind_cpu)),
    row("LOCAL_CPU_COUNT", "Local|CPU|Count", |o| cpu_count(&o.figures.last.local, o.request.cpus)),
    row("LOCAL_CPU_PEAK_UTIL", "Local|Peak|Per CPU|Util %", |o| peak(&o.figures.last.local)),
    row("LOCAL_CPU_PEAK_ID", "Local|Peak|Per CPU|ID", |o| peak_cpu(&o.figures.last.local)),
    row("LOCAL_CPU_MODEL", "Local|CPU|Model", |_| deprecated()),
    row("LOCAL_CPU_FREQUENCY", "Local|CPU|Frequency|MHz", |_| integer(0)),
    row("REMOTE_CPU_BIND", "Remote|CPU|Bind", |o| count_or_unmeasured(o.request.server_cpu)),
    row("REMOTE_CPU_COUNT", "Remote|CPU|Count", |o| cpu_count(&o.figures.last.remote, None)),
    row("REMOTE_CPU_PEAK_UTIL", "Remote|Peak|Per CPU|Util %", |o| peak(&o.figures.last.remote)),
    row("REMOTE_CPU_PEAK_ID", "Remote|Peak|Per CPU|ID", |o| peak_cpu(&o.figures.last.remote)),
    row("REMOTE_CPU_MODEL", "Remote|CPU|Model", |_| deprecated()),
    row("REMOTE_CPU_FREQUENCY", "Remote|CPU|Frequency|MHz", |_| integer(0)),
    row("SOURCE_PORT", "Source|Port", |o| {
        port(o.figures.last.local_address, o.request.plan.local.port)
    }),
    row("SOURCE_ADDR", "Source|Address", |o| address(o.figures.last.local_address)),
    row("SOURCE_FAMILY", "Source|Family", |o| family(o.figures.last.local_address)),
    row("DEST_PORT", "Destination|Port", |o| {
        port(o.figures.last.remote_address, o.request.plan.remote.port)
    }),
    row("DEST_ADDR", "Destination|Address", |o| address(o.figures.last.remote_address)),
    row("DEST_FAMILY", "Destination|Family", |o| family(o.figures.last.remote_address)),
    row("LOCAL_SEND_CALLS", "Local|Send|Calls", |o| integer(o.figures.last.local.send_calls)),
    row("LOCAL_RECV_CALLS", "Local|Recv|Calls", |o| integer(o.figures.last.local.receive_calls)),
    row("LOCAL_BYTES_PER_RECV", "Local|Bytes|Per|Recv", |o| {
        per_call(o.figures.last.local.bytes_received, o.figures.last.local.receive_calls)
    }),
    row("LOCAL_BYTES_PER_SEND", "Local|Bytes|Per|Send", |o| {
        per_call(o.figures.last.local.bytes_sent, o.figures.last.local.send_calls)
    }),
    row("LOCAL_BYTES_SENT", "Local|Bytes|Sent", |o| integer(o.figures.last.local.bytes_sent)),
    row("LOCAL_BYTES_RECVD", "Local|Bytes|Received", |o| {
        integer(o.figures.last.local.bytes_received)
    }),
    row("LOCAL_BYTES_XFERD", "Local|Bytes|Xferred", |o| integer(moved(&o.figures.last.local))),
    row("LOCAL_SEND_OFFSET", "Local|Send|Offset", |o| {
        integer(o.request.plan.local.offset.unwrap_or(0))
    }),
    row("LOCAL_RECV_OFFSET", "Local|Recv|Offset", |o| {
        integer(o.request.plan.local.offset.unwrap_or(0))
    }),
    row("LOCAL_SEND_ALIGN", "Local|Send|Alignment", |o| {
        integer(o.request.plan.local.alignment.unwrap_or(8))
    }),
    row("LOCAL_RECV_ALIGN", "Local|Recv|Alignment", |o| {
        integer(o.request.plan.local.alignment.unwrap_or(8))
    }),
    row("LOCAL_SEND_WIDTH", "Local|Send|Width", |o| integer(o.figures.last.local.send_width)),
    row("LOCAL_RECV_WIDTH", "Local|Recv|Width", |o| integer(o.figures.last.local.receive_width)),
    row("LOCAL_SEND_DIRTY_COUNT", "Local|Send|Dirty|Count", |o| {
        dirt(&o.request.plan.local, |dirt| dirt.dirty_bytes)
    }),
    row("LOCAL_RECV_DIRTY_COUNT", "Local|Recv|Dirty|Count", |o| {
        dirt(&o.request.plan.local, |dirt| dirt.dirty_bytes)
    }),
    row("LOCAL_RECV_CLEAN_COUNT", "Local|Recv|Clean|Count", |o| {
        dirt(&o.request.plan.local, |dirt| dirt.clean_bytes)
    }),
    row("LOCAL_NODELAY", "Local|NODELAY", |o| flag(o.figures.last.local.no_delay)),
    row("LOCAL_CORK", "Local|Cork", |o| flag(o.request.plan.options.cork)),
    row("REMOTE_SEND_CALLS", "Remote|Send|Calls", |o| told(o, |end| end.send_calls)),
    row("REMOTE_RECV_CALLS", "Remote|Recv|Calls", |o| told(o, |end| end.receive_calls)),
    row("REMOTE_BYTES_PER_RECV", "Remote|Bytes|Per|Recv", |o| {
        told_per_call(o, |end| (end.bytes_received, end.receive_calls))
    }),
    row("REMOTE_BYTES_PER_SEND", "Remote|Bytes|Per|Send", |o| {
        told_per_call(o, |end| (end.bytes_sent, end.send_calls))
    }),
    row("REMOTE_BYTES_SENT", "Remote|Bytes|Sent", |o| told(o, |end| end.bytes_sent)),
    row("REMOTE_BYTES_RECVD", "Remote|Bytes|Received", |o| told(o, |end| end.bytes_received)),
    row("REMOTE_BYTES_XFERD", "Remote|Bytes|Xferred", |o| told(o, moved)),
    row("REMOTE_SEND_OFFSET", "Remote|Send|Offset", |o| {
        integer(o.request.plan.remote.offset.unwrap_or(0))
    }),
    row("REMOTE_RECV_OFFSET", "Remote|Recv|Offset", |o| {
        integer(o.request.plan.remote.offset.unwrap_or(0))
    }),
    row("REMOTE_SEND_ALIGN", "Remote|Send|Alignment", |o| {
        integer(o.request.plan.remote.alignment.unwrap_or(8))
    }),
    row("REMOTE_RECV_ALIGN", "Remote|Recv|Alignment", |o| {
        integer(o.request.plan.remote.alignment.unwrap_or(8))
    }),
    row("REMOTE_SEND_WIDTH", "Remote|Send|Width", |o| integer(o.figures.last.remote.send_width)),
    row("REMOTE_RECV_WIDTH", "Remote|Recv|Width", |o| integer(o.figures.last.remote.receive_width)),
    row("REMOTE_SEND_DIRTY_COUNT", "Remote|Send|Dirty|Count", |o| {
        dirt(&o.request.plan.remote, |dirt| dirt.dirty_bytes)
    }),
    row("REMOTE_RECV_DIRTY_COUNT", "Remote|Recv|Dirty|Count", |o| {
        dirt(&o.request.plan.remote, |dirt| dirt.dirty_bytes)
    }),
    row("REMOTE_RECV_CLEAN_COUNT", "Remote|Recv|Clean|Count", |o| {
        dirt(&o.request.plan.remote, |dirt| dirt.clean_bytes)
    }),
    row("REMOTE_NODELAY", "Remote|NODELAY", |o| flag(o.figures.last.remote.no_delay)),
    row("REMOTE_CORK", "Remote|Cork", |_| integer(0)),
];
