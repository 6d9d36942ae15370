//! Selectors of processor use, service demand, confidence and the transport.

use super::value::{
    UNMEASURED, confidence, count_or_unmeasured, cpu_share, demand_unit, fixed, integer, method,
    round_trip, text, transaction_rate,
};
use super::{EndRow, Rows, WholeRow, of_end, row};

/// In the order of `all`.
pub(super) const COST: &[Rows] = &[
    Rows::Ends(PROCESSORS),
    Rows::Whole(AGREEMENT),
    Rows::Ends(RETRANSMISSIONS),
    Rows::Whole(SEGMENT),
];

const PROCESSORS: &[EndRow] = &[
    of_end("CPU_UTIL", "CPU|Util|%", |e| fixed::<2>(e.cost().util_percent.unwrap_or(UNMEASURED))),
    of_end("CPU_PERCENT_USER", "CPU|User|%", |e| cpu_share(e.figures(), |cpu| cpu.user_percent)),
    of_end("CPU_PERCENT_SYSTEM", "CPU|System|%", |e| {
        cpu_share(e.figures(), |cpu| cpu.system_percent)
    }),
    of_end("CPU_PERCENT_IOWAIT", "CPU|I/O|%", |e| cpu_share(e.figures(), |cpu| cpu.iowait_percent)),
    of_end("CPU_PERCENT_IRQ", "CPU|IRQ|%", |e| cpu_share(e.figures(), |cpu| cpu.irq_percent)),
    of_end("CPU_PERCENT_SWINTR", "CPU|swintr|%", |e| {
        cpu_share(e.figures(), |cpu| cpu.softirq_percent)
    }),
    of_end("CPU_METHOD", "CPU|Util|Method", |e| method(e.figures())),
    of_end("SD", "Service|Demand", |e| fixed::<3>(e.cost().demand_us.unwrap_or(UNMEASURED))),
];

const AGREEMENT: &[WholeRow] = &[
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
];

const RETRANSMISSIONS: &[EndRow] =
    &[of_end("TRANSPORT_RETRANS", "Transport|Retransmissions", |e| {
        count_or_unmeasured(e.figures().retransmits())
    })];

const SEGMENT: &[WholeRow] = &[row("TRANSPORT_MSS", "Transport|MSS|bytes", |o| {
    count_or_unmeasured(o.figures.last.local().mss_bytes())
})];
