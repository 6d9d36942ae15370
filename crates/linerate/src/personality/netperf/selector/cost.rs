//! Selectors of processor use, service demand, confidence and the transport.

use super::value::{
    UNMEASURED, confidence, count_or_unmeasured, cpu_share, demand_unit, fixed, integer, method,
    round_trip, text, transaction_rate,
};
use super::{Selector, row};

/// In the order of `all`.
pub(super) const COST: &[Selector] = &[
    row("LOCAL_CPU_UTIL", "Local|CPU|Util|%", |o| {
        fixed::<2>(o.figures.local.util_percent.unwrap_or(UNMEASURED))
    }),
    row("LOCAL_CPU_PERCENT_USER", "Local|CPU|User|%", |o| {
        cpu_share(&o.figures.last.local, |cpu| cpu.user_percent)
    }),
    row("LOCAL_CPU_PERCENT_SYSTEM", "Local|CPU|System|%", |o| {
        cpu_share(&o.figures.last.local, |cpu| cpu.system_percent)
    }),
    row("LOCAL_CPU_PERCENT_IOWAIT", "Local|CPU|I/O|%", |o| {
        cpu_share(&o.figures.last.local, |cpu| cpu.iowait_percent)
    }),
    row("LOCAL_CPU_PERCENT_IRQ", "Local|CPU|IRQ|%", |o| {
        cpu_share(&o.figures.last.local, |cpu| cpu.irq_percent)
    }),
    row("LOCAL_CPU_PERCENT_SWINTR", "Local|CPU|swintr|%", |o| {
        cpu_share(&o.figures.last.local, |cpu| cpu.softirq_percent)
    }),
    row("LOCAL_CPU_METHOD", "Local|CPU|Util|Method", |o| method(&o.figures.last.local)),
    row("LOCAL_SD", "Local|Service|Demand", |o| {
        fixed::<3>(o.figures.local.demand_us.unwrap_or(UNMEASURED))
    }),
    row("REMOTE_CPU_UTIL", "Remote|CPU|Util|%", |o| {
        fixed::<2>(o.figures.remote.util_percent.unwrap_or(UNMEASURED))
    }),
    row("REMOTE_CPU_PERCENT_USER", "Remote|CPU|User|%", |o| {
        cpu_share(&o.figures.last.remote, |cpu| cpu.user_percent)
    }),
    row("REMOTE_CPU_PERCENT_SYSTEM", "Remote|CPU|System|%", |o| {
        cpu_share(&o.figures.last.remote, |cpu| cpu.system_percent)
    }),
    row("REMOTE_CPU_PERCENT_IOWAIT", "Remote|CPU|I/O|%", |o| {
        cpu_share(&o.figures.last.remote, |cpu| cpu.iowait_percent)
    }),
    row("REMOTE_CPU_PERCENT_IRQ", "Remote|CPU|IRQ|%", |o| {
        cpu_share(&o.figures.last.remote, |cpu| cpu.irq_percent)
    }),
    row("REMOTE_CPU_PERCENT_SWINTR", "Remote|CPU|swintr|%", |o| {
        cpu_share(&o.figures.last.remote, |cpu| cpu.softirq_percent)
    }),
    row("REMOTE_CPU_METHOD", "Remote|CPU|Util|Method", |o| method(&o.figures.last.remote)),
    row("REMOTE_SD", "Remote|Service|Demand", |o| {
        fixed::<3>(o.figures.remote.demand_us.unwrap_or(UNMEASURED))
    }),
    row("SD_UNITS", "Service|Demand|Units", |o| text(demand_unit(o))),
    row("CONFIDENCE_LEVEL", "Confidence|Level|Percent", |o| {
        integer(o.figures.agreement.demand.map_or(0, |demand| demand.level_percent))
    }),
    row("CONFIDENCE_INTERVAL", "Confidence|Width|Target", |o| {
        fixed::<6>(o.figures.agreement.demand.map_or(UNMEASURED, |demand| demand.width * 100.0))
    }),
    row("CONFIDENCE_ITERATION", "Confidence|Iterations|Run", |o| {
        integer(o.figures.agreement.iterations)
    }),
    row("THROUGHPUT_CONFID", "Throughput|Confidence|Width (%)", |o| {
        confidence(o, |agreement| agreement.result_percent)
    }),
    row("LOCAL_CPU_CONFID", "Local|CPU|Confidence|Width (%)", |o| {
        confidence(o, |agreement| agreement.local_cpu_percent)
    }),
    row("REMOTE_CPU_CONFID", "Remote|CPU|Confidence|Width (%)", |o| {
        confidence(o, |agreement| agreement.remote_cpu_percent)
    }),
    row("TRANSACTION_RATE", "Transaction|Rate|Tran/s", transaction_rate),
    row("RT_LATENCY", "Round|Trip|Latency|usec/tran", round_trip),
    row("BURST_SIZE", "Initial|Burst|Requests", |o| integer(o.request.plan.burst)),
    row("LOCAL_TRANSPORT_RETRANS", "Local|Transport|Retransmissions", |o| {
        count_or_unmeasured(o.figures.last.local.retransmits)
    }),
    row("REMOTE_TRANSPORT_RETRANS", "Remote|Transport|Retransmissions", |o| {
        count_or_unmeasured(o.figures.last.remote.retransmits)
    }),
    row("TRANSPORT_MSS", "Transport|MSS|bytes", |o| count_or_unmeasured(o.figures.last.mss_bytes)),
];
