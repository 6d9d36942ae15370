//! TCP_STREAM, TCP_MAERTS, TCP_SENDFILE.

use linerate_engine::netperf::TestKind;

use super::super::figures::{Figures, UNMEASURED};
use super::super::planning::Request;
use super::{
    at_start, brand, chief_cost, demand, letter, measures_cpu, per_call, receive_buffers,
    remote_letter, send_buffers, told, util,
};

pub(super) fn render_table(request: &Request, figures: &Figures) -> String {
    let brand = brand(request);
    let result = figures.throughput;
    if request.shown.verbosity == 0 {
        return if measures_cpu(request) {
            let (demand, end) = chief_cost(request, figures);
            format!("{demand:6.3} {} {brand}\n", letter(end))
        } else {
            format!("{result:7.2} {brand}\n")
        };
    }
    let (sender, receiver) = match request.plan.kind {
        TestKind::Receive => (figures.last.remote(), figures.last.local()),
        _ => (figures.last.local(), figures.last.remote()),
    };
    let ((send, _), (_, receive)) = (at_start(sender), at_start(receiver));
    // A sender in bulk always has a size.
    let size = sender.settings().send_bytes.map_or(-1, i64::from);
    let elapsed = figures.elapsed_s;
    let mut text = if request.shown.headers { heads(request, figures) } else { String::new() };
    text += &if measures_cpu(request) {
        let (local, remote) = (figures.local, figures.remote);
        format!(
            "{receive:6} {send:6} {size:6}    {elapsed:<6.2}     {result:7.2}   {:<6.2}   {:<6.2}   \
             {:<6.3}  {:<6.3} {brand}\n",
            util(local),
            util(remote),
            demand(local),
            demand(remote),
        )
    } else {
        format!("{receive:6} {send:6} {size:6}    {elapsed:<6.2}   {result:7.2}   {brand}\n")
    };
    if request.shown.verbosity > 1 {
        text += &render_calls(request, figures);
    }
    text
}

fn heads(request: &Request, figures: &Figures) -> String {
    let unit = figures.unit.name();
    if !measures_cpu(request) {
        return format!(
            "Recv   Send    Send                          \n\
             Socket Socket  Message  Elapsed              \n\
             Size   Size    Size     Time     Throughput  \n\
             bytes  bytes   bytes    secs.    {unit}/sec  \n\n"
        );
    }
    let (local, remote) = (letter(figures.last.local()), remote_letter(figures));
    let ends = match request.plan.kind {
        TestKind::Receive => "Recv     Send     Recv    Send",
        _ => "Send     Recv     Send    Recv",
    };
    format!(
        "Recv   Send    Send                          Utilization       Service Demand\n\
         Socket Socket  Message  Elapsed              {ends}\n\
         Size   Size    Size     Time     Throughput  local    remote   local   remote\n\
         bytes  bytes   bytes    secs.    {unit:<8.8}/s  % {local}      % {remote}      us/KB   \
         us/KB\n\n"
    )
}

/// What `-v 2` adds: alignment, calls, segment size.
fn render_calls(request: &Request, figures: &Figures) -> String {
    let (local, remote) = (figures.last.local(), figures.last.remote());
    let receives = request.plan.kind == TestKind::Receive;
    let (here, there) = if receives { ("Recv", "Send") } else { ("Send", "Recv") };
    let (bytes, calls, other_bytes, other_calls) = if receives {
        (local.bytes_received(), local.receive_calls(), remote.bytes_sent(), remote.send_calls())
    } else {
        (local.bytes_sent(), local.send_calls(), remote.bytes_received(), remote.receive_calls())
    };
    let (local, remote) = (&request.plan.local, &request.plan.remote);
    let ((local_align, local_offset), (remote_align, remote_offset)) = if receives {
        (receive_buffers(local), send_buffers(remote))
    } else {
        (send_buffers(local), receive_buffers(remote))
    };
    let segment = match figures.last.local().mss_bytes() {
        Some(bytes) => format!("{bytes:6}"),
        None => format!("{:6}", -1),
    };
    format!(
        "\nAlignment      Offset         Bytes    Bytes       {here}s   Bytes    {there}s\n\
         Local  Remote  Local  Remote  Xfered   Per                 Per\n\
         {here}   {there}    {here}   {there}             {here} (avg)          {there} (avg)\n\
         {local_align:5}   {remote_align:5}  {local_offset:5}   {remote_offset:5} {bytes:6}  {:6.2}    \
         {calls:6}   {:6.2} {:>6}\n\
         \nMaximum\nSegment\nSize (bytes)\n{segment}\n",
        per_call(bytes, calls),
        if figures.last.server_told { per_call(other_bytes, other_calls) } else { UNMEASURED },
        told(figures, other_calls as f64),
    )
}
