//! The proxy: it runs until somebody stops it, and prints what happens to each pair of connections.

use std::process;
use std::time::{Duration, Instant};

use linerate_engine::event::Cancel;
use linerate_engine::relay::{
    CloseKind, End, Ended, PairEvent, Proxy, ProxyEvent, ProxyOutcome, SentInterval, SentTotals,
};
use linerate_personality::qperf::options::Options;
use linerate_personality::qperf::output::{
    Counts, Interval, Style, render_accepted, render_accepted_in, render_binding_closed,
    render_binding_removed, render_connection_total, render_sent, render_start,
    render_stream_opened, render_target_connected,
};
use linerate_wire::qperf::Close;
use linerate_wire::visible::visible_line;

use super::{Failure, complain, plan};
use crate::certificates::read_identity_of;
use crate::output::{ProxyWords, UntoldEvents, narrate, render_proxy_event};
use crate::personality::stdout::say;

/// How soon a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(100);
const WORDS: ProxyWords = ProxyWords {
    program: "qperf",
    most_clients: "no option of qperf changes it",
    most_of_address: "no option of qperf changes it",
};

/// Runs a proxy to this host.
pub(super) fn run(options: &Options, host: &str, cancel: &Cancel) -> Result<(), Failure> {
    let listen = &options.listen;
    let identity =
        read_identity_of((&listen.certificate, "--tls-cert"), (&listen.key, "--tls-key"))
            .map_err(Failure::new)?;
    let plan = plan::proxy(options, host, identity)?;
    let proxy = Proxy::start(&plan)?;
    say(&render_start(options, process::id()));
    narrate("qperf: encryption ends here: this proxy could read and change all that passes\n");
    if options.listen_port() == 0 {
        narrate(&format!("qperf: listening on {}\n", proxy.address()));
    }
    let printer = Printer { style: Style::of(options), target: plan.target.to_string() };
    let (mut untold, mut looked) = (UntoldEvents::default(), Instant::now());
    while !cancel.requested() {
        if let Some(event) = proxy.next_event(LOOK) {
            printer.tell(&event);
        }
        // Events may come without a pause.
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            proxy.save_sessions().iter().for_each(|why| complain(why));
            narrate(&untold.render_in_time(looked, &WORDS, &proxy.totals()));
        }
        if let Some(why) = proxy.fault() {
            return Err(Failure::new(why));
        }
    }
    let ProxyOutcome { totals, events, faults } = proxy.end();
    events.iter().for_each(|event| printer.tell(event));
    narrate(&untold.render(&WORDS, &totals));
    faults.iter().for_each(|why| complain(why));
    Ok(())
}

struct Printer {
    style: Style,
    target: String,
}

/// The number of a connection: a pair has two, the client's and the target's.
fn connection(pair: u64, end: End) -> u64 {
    pair * 2 + u64::from(end == End::Target)
}

impl Printer {
    fn tell(&self, event: &ProxyEvent) {
        let ProxyEvent::Pair(pair, event) = event else {
            return narrate(&render_proxy_event(&WORDS, event));
        };
        let pair = *pair;
        match event {
            PairEvent::Begun(client) => say(&render_accepted(pair, *client)),
            PairEvent::Established(end, elapsed_ns) => {
                if *end == End::Target {
                    say(&render_target_connected(pair, &self.target));
                }
                say(&render_accepted_in(connection(pair, *end), *elapsed_ns));
            }
            PairEvent::StreamOpened(stream) => say(&render_stream_opened(pair, *stream)),
            PairEvent::Sent(end, sent) => self.tell_sent(connection(pair, *end), sent),
            PairEvent::Ended(_, ended) => say(&render_binding_closed(pair, &close_of(ended))),
            PairEvent::Forgotten(totals) => {
                for (end, totals) in End::ALL.into_iter().zip(totals) {
                    if let Some(SentTotals { bytes, packets, lost_packets }) = *totals {
                        let total = Counts { bytes, packets, lost_packets };
                        say(&render_connection_total(connection(pair, end), total));
                    }
                }
                say(&render_binding_removed(pair));
            }
        }
    }

    fn tell_sent(&self, number: u64, sent: &SentInterval) {
        let SentInterval { index, measured_ns, bytes, packets, lost_packets, window_bytes } = *sent;
        let counts = Counts { bytes, packets, lost_packets };
        let interval = Interval { index, measured_ns, counts };
        say(&render_sent(self.style, number, &interval, window_bytes));
    }
}

fn close_of(ended: &Ended) -> Close {
    match ended {
        Ended::Closed(close) => {
            let reason = visible_line(&String::from_utf8_lossy(&close.reason));
            match close.kind {
                CloseKind::Transport { frame } => {
                    Close::Transport { code: close.code, frame, reason }
                }
                CloseKind::Application => Close::Application { code: close.code, reason },
            }
        }
        Ended::Silent(_) => Close::Idle,
        Ended::Refused(why) | Ended::Failed(why) => Close::Other(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use linerate_engine::relay::Close as Carried;

    use super::*;

    #[test]
    fn a_transport_s_close_names_the_frame_that_is_to_blame() {
        let kind = CloseKind::Transport { frame: 0x1b };
        let close = Carried { kind, code: 0xa, reason: b"why\n".to_vec() };
        let text = render_binding_closed(3, &close_of(&Ended::Closed(close)));
        let line = "binding 3 closed by remote: transport close: code=0xa; frame=27; reason=why";
        assert!(text.starts_with(line), "{text}");
    }
}
