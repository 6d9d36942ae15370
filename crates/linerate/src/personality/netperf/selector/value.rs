//! How values are printed. A figure that was not measured is -1, the original's own sign for it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use linerate_engine::netperf::{Dirt, EndPlan, TestKind, TestTransport};
use linerate_measure::dialect::netperf::{CpuUse, End};
use linerate_personality::netperf::unit::Unit;

use super::super::confidence::Agreement;
pub(super) use super::super::figures::{UNMEASURED, letter};
use super::super::latency::{Statistics, whole_us};
use super::Origin;

/// What stands for the number of a device.
pub(super) const UNKNOWN_DEVICE: &str = "0xfffffffe";

pub(super) fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

pub(super) fn integer(value: impl std::fmt::Display) -> Option<String> {
    Some(value.to_string())
}

pub(super) fn fixed<const DECIMALS: usize>(value: f64) -> Option<String> {
    Some(format!("{value:.DECIMALS$}"))
}

pub(super) fn flag(value: bool) -> Option<String> {
    integer(u8::from(value))
}

pub(super) fn count_or_unmeasured(value: Option<impl std::fmt::Display>) -> Option<String> {
    value.map_or_else(|| integer(-1), integer)
}

/// What the original once told and now answers with a word.
pub(super) fn deprecated() -> Option<String> {
    text("Deprecated")
}

pub(super) fn socket_type(o: &Origin<'_>) -> &'static str {
    match o.request.plan.transport {
        TestTransport::Tcp => "Stream",
        TestTransport::Udp => "Datagram",
    }
}

pub(super) fn protocol(o: &Origin<'_>) -> &'static str {
    match o.request.plan.transport {
        TestTransport::Tcp => "TCP",
        TestTransport::Udp => "UDP",
    }
}

/// What a test does, as its title and its figures call it.
pub(in super::super) fn direction(kind: TestKind) -> &'static str {
    match kind {
        TestKind::Send | TestKind::SendFile => "Send",
        TestKind::Receive => "Receive",
        TestKind::RequestResponse => "Send|Recv",
        TestKind::ConnectRequestResponse => "Connect|Send|Recv",
        TestKind::Connect => "Connection",
    }
}

pub(super) fn message_bytes(o: &Origin<'_>, bytes: u32) -> Option<String> {
    match o.request.plan.kind {
        TestKind::RequestResponse | TestKind::ConnectRequestResponse => integer(bytes),
        _ => integer(-1),
    }
}

pub(super) fn cpu_share(end: End<'_>, share: fn(&CpuUse) -> Option<f64>) -> Option<String> {
    fixed::<2>(end.cpu().and_then(share).unwrap_or(UNMEASURED))
}

pub(super) fn method(end: End<'_>) -> Option<String> {
    text(letter(end))
}

pub(super) fn peak_cpu(end: End<'_>) -> Option<String> {
    count_or_unmeasured(end.cpu().and_then(|cpu| cpu.peak_cpu))
}

pub(super) fn demand_unit(o: &Origin<'_>) -> &'static str {
    if o.figures.unit == Unit::Transactions { "usec/Tran" } else { "usec/KB" }
}

pub(super) fn confidence(o: &Origin<'_>, width: fn(&Agreement) -> f64) -> Option<String> {
    let agreement = &o.figures.agreement;
    fixed::<3>(agreement.demand.map_or(UNMEASURED, |_| width(agreement)))
}

/// Bulk has no transactions.
pub(super) fn transaction_rate(o: &Origin<'_>) -> Option<String> {
    let counted = o.request.plan.kind.has_transactions();
    fixed::<3>(if counted { o.figures.transactions_per_s } else { UNMEASURED })
}

pub(super) fn round_trip(o: &Origin<'_>) -> Option<String> {
    fixed::<3>(o.figures.round_trip_us(&o.request.plan).unwrap_or(UNMEASURED))
}

/// The data connection's address at this end. Connections that come and go have one each; where none was asked for,
/// the unspecified address is shown.
pub(super) fn source(o: &Origin<'_>) -> Option<SocketAddr> {
    let told = o.figures.last.local().totals()?.source.as_deref();
    let any = || {
        let unspecified = match destination(o)?.is_ipv4() {
            true => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            false => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let connects =
            matches!(o.request.plan.kind, TestKind::ConnectRequestResponse | TestKind::Connect);
        connects.then_some(SocketAddr::new(unspecified, 0))
    };
    told.and_then(|told| told.parse().ok()).or_else(any)
}

/// At the server.
pub(super) fn destination(o: &Origin<'_>) -> Option<SocketAddr> {
    o.figures.last.local().totals()?.destination.as_deref()?.parse().ok()
}

pub(super) fn port(used: Option<SocketAddr>, asked: u16) -> Option<String> {
    integer(used.map_or(asked, |address| address.port()))
}

pub(super) fn address(used: Option<SocketAddr>) -> Option<String> {
    text(&used.map_or(String::new(), |address| address.ip().to_string()))
}

/// AF_INET or AF_INET6 as Linux numbers them; 0 where there was no one connection.
pub(super) fn family(used: Option<SocketAddr>) -> Option<String> {
    integer(used.map_or(0, |address| if address.is_ipv4() { 2 } else { 10 }))
}

/// Bytes written to, or read of, a buffer beside the transfer; -1: not asked for.
pub(super) fn dirt(end: &EndPlan, bytes: fn(&Dirt) -> u32) -> Option<String> {
    count_or_unmeasured(end.dirt.as_ref().map(bytes))
}

pub(super) fn brand(o: &Origin<'_>) -> Option<String> {
    o.request.shown.brand.as_ref().map(|brand| format!("\"{brand}\""))
}

/// Whole microseconds, as in the original, unless their nanoseconds are asked for, too.
pub(super) fn latency_us(o: &Origin<'_>, figure_ns: fn(&Statistics) -> u64) -> Option<String> {
    if o.request.shown.fine_latency {
        return full_latency_us(o, figure_ns);
    }
    match Statistics::of(&o.figures.latency) {
        Some(statistics) => integer(whole_us(figure_ns(&statistics))),
        None => integer(-1),
    }
}

/// Microseconds with their nanoseconds.
pub(super) fn full_latency_us(o: &Origin<'_>, figure_ns: fn(&Statistics) -> u64) -> Option<String> {
    let statistics = Statistics::of(&o.figures.latency);
    let us = |statistics: &Statistics| figure_ns(statistics) as f64 / 1000.0;
    fixed::<3>(statistics.as_ref().map_or(UNMEASURED, us))
}

pub(super) fn mean_us(o: &Origin<'_>, figure: fn(&Statistics) -> f64) -> Option<String> {
    fixed::<2>(Statistics::of(&o.figures.latency).as_ref().map_or(UNMEASURED, figure))
}

/// The type-of-service byte; -1 and -2 read as all bits set, as in the original.
pub(super) fn service(value: Option<i32>) -> Option<String> {
    Some(format!("0x{:02x}", value.unwrap_or(-1)))
}

pub(super) fn congestion(end: End<'_>) -> Option<String> {
    text(end.congestion().unwrap_or_default())
}

pub(super) fn fill_file(end: &EndPlan) -> Option<String> {
    text(end.fill_file.as_deref().unwrap_or_default())
}
