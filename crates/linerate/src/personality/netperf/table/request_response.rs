//! TCP_RR and UDP_RR; TCP_CRR and TCP_CC, whose table differs in blanks.

use linerate_engine::netperf::TestTransport;
use linerate_personality::netperf::unit::Unit;

use super::super::figures::{Figures, UNMEASURED};
use super::super::planning::{Request, Table};
use super::{
    at_start, brand, chief_cost, demand, letter, measures_cpu, receive_buffers, remote_letter,
    send_buffers, util,
};

pub(super) fn render_table(request: &Request, figures: &Figures) -> String {
    if request.shown.verbosity == 0 {
        return render_alone(request, figures);
    }
    let (local_send, local_receive) = at_start(figures.last.local());
    let mut text = match (request.shown.headers, measures_cpu(request)) {
        (false, _) => String::new(),
        (true, false) => heads(figures.unit),
        (true, true) => cpu_heads(request, figures),
    };
    text += &if measures_cpu(request) {
        cpu_row(request, figures)
    } else {
        let brand = if connects(request) { "" } else { brand(request) };
        format!(
            "{:<6} {:<6} {:<6}   {:<6}  {:<6.2}   {:7.2}   {brand}\n",
            local_send,
            local_receive,
            request.plan.request_bytes,
            request.plan.response_bytes,
            figures.elapsed_s,
            figures.throughput,
        )
    };
    let (send, receive) = at_start(figures.last.remote());
    text += &format!("{send:<6} {receive:<6}\n");
    if request.shown.verbosity > 1 {
        text += &render_more(request, figures);
    }
    text
}

fn connects(request: &Request) -> bool {
    request.table == Table::Connections
}

/// The result alone (`-v 0`).
fn render_alone(request: &Request, figures: &Figures) -> String {
    let (cost, end) = chief_cost(request, figures);
    let result = figures.throughput;
    match (measures_cpu(request), connects(request)) {
        (true, true) => format!("{cost:6.3}\n"),
        (true, false) => format!("{cost:6.3} {} {}\n", letter(end), brand(request)),
        (false, true) => format!("{result:7.2}\n"),
        (false, false) => format!("{result:7.2} {}\n", brand(request)),
    }
}

fn heads(unit: Unit) -> String {
    let (first, second, third) = match unit {
        Unit::Transactions => ("Trans.", "Rate         ", "per sec   ".to_owned()),
        unit => ("", "Throughput ", format!("{}/sec   ", unit.name())),
    };
    format!(
        "Local /Remote\n\
         Socket Size   Request  Resp.   Elapsed  {first}\n\
         Send   Recv   Size     Size    Time     {second}\n\
         bytes  Bytes  bytes    bytes   secs.    {third}\n\n"
    )
}

fn cpu_heads(request: &Request, figures: &Figures) -> String {
    let (what, unit, per) = match figures.unit {
        Unit::Transactions => ("Trans.", "Rate", "us/Tr"),
        unit => ("Tput", unit.name(), "us/KB"),
    };
    let (local, remote) = if connects(request) {
        (" ", " ")
    } else {
        (letter(figures.last.local()), remote_letter(figures))
    };
    format!(
        "Local /Remote\n\
         Socket Size   Request Resp.  Elapsed {what:<8} CPU    CPU    S.dem   S.dem\n\
         Send   Recv   Size    Size   Time    {unit:<8.8} local  remote local   remote\n\
         bytes  bytes  bytes   bytes  secs.   per sec  % {local}    % {remote}    {per}   {per}\n\n"
    )
}

fn cpu_row(request: &Request, figures: &Figures) -> String {
    let (send, receive) = at_start(figures.last.local());
    // The original has a blank more where it isn't TCP_RR, and none at the end where it connects.
    let over_udp = request.plan.transport == TestTransport::Udp;
    let gap = if connects(request) || over_udp { "   " } else { "  " };
    let end = if connects(request) { String::new() } else { format!(" {}", brand(request)) };
    format!(
        "{:<6} {:<6} {:<6}  {:<6} {:<6.2}  {:<6.2}{gap}{:<6.2} {:<6.2} {:<6.3}  {:<6.3}{end}\n",
        send,
        receive,
        request.plan.request_bytes,
        request.plan.response_bytes,
        figures.elapsed_s,
        figures.throughput,
        util(figures.local),
        util(figures.remote),
        demand(figures.local),
        demand(figures.remote),
    )
}

/// What `-v 2` adds.
fn render_more(request: &Request, figures: &Figures) -> String {
    let (local_align, local_offset) = send_buffers(&request.plan.local);
    let (remote_align, remote_offset) = receive_buffers(&request.plan.remote);
    if connects(request) {
        return format!(
            "\nAlignment      Offset\n\
             Local  Remote  Local  Remote\n\
             Send   Recv    Send   Recv\n\
             {local_align:5}  {remote_align:5}   {local_offset:5}  {remote_offset:5}\n"
        );
    }
    if request.plan.transport == TestTransport::Udp {
        return String::new();
    }
    let unit = match figures.unit {
        Unit::Transactions => Unit::Mbits,
        unit => unit,
    };
    let rate = figures.transactions_per_s;
    let latency_us = figures.round_trip_us(&request.plan).unwrap_or(UNMEASURED);
    let bytes_rate = |bytes: u32| unit.rate(rate * f64::from(bytes), 1.0);
    format!(
        "Alignment      Offset         RoundTrip  Trans    Throughput\n\
         Local  Remote  Local  Remote  Latency    Rate     {:<8.8}/s\n\
         Send   Recv    Send   Recv    usec/Tran  per sec  Outbound   Inbound\n\
         {local_align:5}  {remote_align:5}   {local_offset:5}  {remote_offset:5}   {latency_us:<6.3}   \
         {rate:<6.3} {:<6.3}    {:<6.3}\n",
        unit.name(),
        bytes_rate(request.plan.request_bytes),
        bytes_rate(request.plan.response_bytes),
    )
}
