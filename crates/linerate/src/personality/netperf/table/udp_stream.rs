//! UDP_STREAM: a line of what was sent, a line of what arrived.

use super::super::figures::{Figures, Messages};
use super::super::planning::Request;
use super::{at_start, chief_cost, demand, letter, measures_cpu, remote_letter, told, util};

pub(super) fn render_table(request: &Request, figures: &Figures) -> String {
    let (sent, received) = (figures.rates.local_sent, figures.rates.remote_received);
    if request.shown.verbosity == 0 {
        return if measures_cpu(request) {
            let (demand, end) = chief_cost(request, figures);
            format!("{demand:6.2} {}\n", letter(end))
        } else {
            format!("{sent:7.2}\n")
        };
    }
    let local = figures.last.local();
    let ((send, _), (_, receive)) = (at_start(local), at_start(figures.last.remote()));
    let size = local.settings().send_bytes.unwrap_or(0);
    let Messages { sent: okay, refused: errors, arrived } = figures.messages;
    let arrived = told(figures, arrived);
    let elapsed = figures.elapsed_s;
    let mut text = if request.shown.headers { heads(request, figures) } else { String::new() };
    text += &if measures_cpu(request) {
        format!(
            "{send:6}  {size:6}   {elapsed:<7.2}   {okay:7.0} {errors:6.0}    {sent:7.1}     {:<6.2}   \
             {:<6.3}\n\
             {receive:6}           {elapsed:<7.2}   {arrived:>7}           {received:7.1}     \
             {:<6.2}   {:<6.3}\n\n",
            util(figures.local),
            demand(figures.local),
            util(figures.remote),
            demand(figures.remote),
        )
    } else {
        format!(
            "{send:6}  {size:6}   {elapsed:<7.2}   {okay:7.0} {errors:6.0}    {sent:7.2}\n\
             {receive:6}           {elapsed:<7.2}   {arrived:>7}           {received:7.2}\n\n"
        )
    };
    text
}

fn heads(request: &Request, figures: &Figures) -> String {
    let unit = figures.unit.name();
    if !measures_cpu(request) {
        return format!(
            "Socket  Message  Elapsed      Messages                \n\
             Size    Size     Time         Okay Errors   Throughput\n\
             bytes   bytes    secs            #      #   {unit}/sec\n\n"
        );
    }
    let (local, remote) = (letter(figures.last.local()), remote_letter(figures));
    format!(
        "Socket  Message  Elapsed      Messages                   CPU      Service\n\
         Size    Size     Time         Okay Errors   Throughput   Util     Demand\n\
         bytes   bytes    secs            #      #   {unit}/sec % {local}{remote}     us/KB\n\n"
    )
}
