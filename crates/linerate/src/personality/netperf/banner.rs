//! The first line: which test, between which ends.

use std::net::IpAddr;

use linerate_engine::netperf::{TestKind, TestTransport};

use super::planning::Request;

/// The ends' addresses as the banner shows them, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) local: IpAddr,
    pub(super) remote: IpAddr,
}

/// The banner, with its line's end.
pub(super) fn render_banner(request: &Request, ends: Ends) -> String {
    let any = if ends.remote.is_ipv4() { "0.0.0.0" } else { "::0" };
    let local = request.names.local.as_deref().unwrap_or(any);
    format!(
        "{} from {local} ({}) port {} {} to {} ({}) port {} {}{}\n",
        request.title,
        short(ends.local),
        request.plan.local.port,
        family(ends.local),
        request.names.remote,
        short(ends.remote),
        request.plan.remote.port,
        family(ends.remote),
        render_extras(request),
    )
}

/// The original has room for seven letters of an address, and shows none where there are more.
fn short(address: IpAddr) -> String {
    let text = address.to_string();
    if text.len() <= 7 { text } else { String::new() }
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "AF_INET" } else { "AF_INET6" }
}

fn render_extras(request: &Request) -> String {
    let mut text = String::new();
    if let Some(demand) = &request.schedule.demand {
        let half = demand.width * 100.0 / 2.0;
        text += &format!(" : +/-{half:.3}% @ {:2}% conf. ", demand.level_percent);
        if demand.result_only {
            text += " on result only";
        }
    }
    let options = &request.plan.options;
    let received_datagrams =
        request.plan.kind == TestKind::Receive && request.plan.transport == TestTransport::Udp;
    let keeps_histogram = request.shown.verbosity > 1 && !received_datagrams;
    let paced = request.plan.local.pacing.is_some() || request.plan.remote.pacing.is_some();
    let dirties = request.plan.local.dirt.is_some() || request.plan.remote.dirt.is_some();
    for (shown, extra) in [
        (options.no_delay, " : nodelay"),
        (options.no_copy, " : copy avoidance"),
        (request.alone, " : no control"),
        (keeps_histogram, " : histogram"),
        (paced, " : interval"),
        (dirties, " : dirty data"),
        (true, " : demo"),
    ] {
        if shown {
            text += extra;
        }
    }
    if request.title.contains("REQUEST/RESPONSE") {
        text += &format!(" : first burst {}", request.plan.burst);
    }
    if request.shown.binds_cpu {
        text += " : cpu bind";
    }
    text
}
