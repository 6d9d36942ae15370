//! A proxy as text: what it does, when it begins; a line that shows how it goes; what it did.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use linerate_engine::relay::{EndTotals, Limit, ProxyEvent, Totals};
use linerate_measure::units::{render_bytes, render_count, render_duration_ns, render_rate};

use super::foot_line::FootLine;
use super::{Style, Table};

/// How often the line changes.
const EVERY: Duration = Duration::from_secs(1);

/// What a program calls itself and what sets its limits.
pub(crate) struct ProxyWords {
    pub(crate) program: &'static str,
    /// What sets how many clients there may be, and how many from one address.
    pub(crate) most_clients: &'static str,
    pub(crate) most_of_address: &'static str,
}

/// What the proxy will do, and what that means for encryption. Without a fingerprint the proxy splits TCP.
pub(crate) fn render_proxy_begin(
    listens: SocketAddr,
    target: SocketAddr,
    fingerprint: Option<&str>,
    is_checked: bool,
) -> String {
    let Some(fingerprint) = fingerprint else {
        return format!(
            "proxy on {listens}, TCP, to {target}\n\
             bytes pass as they are: this proxy could read and change what isn't encrypted inside TCP\n"
        );
    };
    let check = if is_checked {
        "the target's certificate is checked (--ca)"
    } else {
        "the target's certificate is not checked (--ca FILE checks it)"
    };
    format!(
        "proxy on {listens}, QUIC, to {target}\nkey fingerprint {fingerprint}\n\
         encryption ends here: this proxy could read and change all that its clients send and receive;\n\
         {check}\n"
    )
}

/// What a reader of the log is told.
pub(crate) fn render_proxy_event(words: &ProxyWords, event: &ProxyEvent) -> String {
    let program = words.program;
    match event {
        ProxyEvent::Refused(client, Limit::Clients(most)) => {
            let flag = words.most_clients;
            format!("{program}: refused {client}: the proxy has {most} connections ({flag})\n")
        }
        ProxyEvent::Refused(client, Limit::OfAddress(most)) => {
            let flag = words.most_of_address;
            format!("{program}: refused {client}: its address has {most} connections ({flag})\n")
        }
        ProxyEvent::TargetFailed(client, why) => {
            format!("{program}: closed the connection of {client}: {why}\n")
        }
        // Nobody asks for them here.
        ProxyEvent::Pair(..) => String::new(),
    }
}

/// How often it is told how many events were dropped.
const UNTOLD_EVERY: Duration = Duration::from_secs(1);

/// Events that were dropped, as far as they were told of.
#[derive(Default)]
pub(crate) struct UntoldEvents {
    told: u64,
    looked: Option<Instant>,
}

impl UntoldEvents {
    /// [`UntoldEvents::render`], once a second at most: other lines may come without a pause.
    pub(crate) fn render_in_time(
        &mut self,
        now: Instant,
        words: &ProxyWords,
        totals: &Totals,
    ) -> String {
        let is_due =
            self.looked.is_none_or(|looked| now.saturating_duration_since(looked) >= UNTOLD_EVERY);
        if !is_due {
            return String::new();
        }
        self.looked = Some(now);
        self.render(words, totals)
    }

    /// A line about those that were dropped since the last one.
    pub(crate) fn render(&mut self, words: &ProxyWords, totals: &Totals) -> String {
        let new = totals.untold.saturating_sub(std::mem::replace(&mut self.told, totals.untold));
        if new == 0 {
            return String::new();
        }
        format!("{}: {new} more lines were left out: they came too fast\n", words.program)
    }
}

/// What the proxy did.
pub(crate) fn render_proxy_summary(totals: &Totals, elapsed: Duration) -> String {
    let time = render_duration_ns(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
    let count = |count: u64| render_count(count as f64);
    let mut text = format!(
        "\nproxy up for {time}: {} connections, {} refused, {} failed at the target, {} streams\n\n",
        count(totals.connections),
        count(totals.refused),
        count(totals.failed),
        count(totals.streams),
    );
    let mut table = Table::with_head(&["", "to target", "to client"]);
    // What goes to the target came from the client; packets are counted where they are sent to.
    let (up, down) = (&totals.client, &totals.target);
    let mut row = |name: &str, to_target: String, to_client: String| {
        table.push(vec![name.to_owned(), to_target, to_client]);
    };
    row("bytes", render_bytes(up.bytes), render_bytes(down.bytes));
    row("rate", rate(up.bytes, elapsed), rate(down.bytes, elapsed));
    row("waiting", render_bytes(up.held_bytes), render_bytes(down.held_bytes));
    if up.sent_packets + down.sent_packets > 0 {
        let name = "packets lost, sent again by the proxy";
        row("packets sent", count(down.sent_packets), count(up.sent_packets));
        row(name, count(down.lost_packets), count(up.lost_packets));
    }
    if up.datagrams + down.datagrams + up.dropped_datagrams + down.dropped_datagrams > 0 {
        row("datagrams", count(up.datagrams), count(down.datagrams));
        row("datagrams dropped", count(up.dropped_datagrams), count(down.dropped_datagrams));
    }
    text += &table.render(Style::Plain);
    text
}

fn rate(bytes: u64, time: Duration) -> String {
    render_rate(bytes as f64 * 8.0 / time.as_secs_f64().max(1e-9))
}

/// How it goes, on one line of a terminal that overwrites itself.
pub(crate) struct ProxyLine {
    line: FootLine,
    shown: Option<Instant>,
}

impl ProxyLine {
    /// The line of standard error's terminal; `None` where there is none that understands it.
    pub(crate) fn of_terminal() -> Option<Self> {
        FootLine::of_terminal().map(|line| Self { line, shown: None })
    }

    /// Takes the line away, since something else is printed.
    pub(crate) fn give_way(&mut self) -> &'static str {
        self.line.give_way()
    }

    /// The line anew, where it is time; `before`: what had been done when it was last shown.
    pub(crate) fn refresh(&mut self, now: Instant, before: &mut Totals, totals: &Totals) -> String {
        let since = self.shown.map_or(EVERY, |shown| now.saturating_duration_since(shown));
        if since < EVERY {
            return String::new();
        }
        let text = render_line(before, totals, since);
        (self.shown, *before) = (Some(now), *totals);
        self.line.show(&text)
    }
}

fn render_line(before: &Totals, totals: &Totals, since: Duration) -> String {
    let grown = |of: fn(&Totals) -> &EndTotals| of(totals).bytes.saturating_sub(of(before).bytes);
    let [up, down] = [grown(|totals| &totals.client), grown(|totals| &totals.target)];
    format!(
        "{} connections  {} to the target  {} to clients  {} waiting  {} + {} packets lost",
        render_count(totals.open as f64),
        rate(up, since),
        rate(down, since),
        render_bytes(totals.client.held_bytes + totals.target.held_bytes),
        render_count(totals.target.lost_packets as f64),
        render_count(totals.client.lost_packets as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::super::foot_line::CLEAR;
    use super::*;

    fn totals() -> Totals {
        let client = EndTotals { bytes: 1_000_000, lost_packets: 3, ..EndTotals::default() };
        let target = EndTotals { bytes: 5_000, held_bytes: 70, ..EndTotals::default() };
        let counts =
            Totals { connections: 12, open: 2, failed: 1, streams: 20, ..Totals::default() };
        Totals { client, target, ..counts }
    }

    #[test]
    fn the_line_shows_what_happened_since_it_was_last_shown() {
        let mut line = ProxyLine { line: FootLine::new(200), shown: None };
        let (mut before, now) = (Totals::default(), Instant::now());
        let text = line.refresh(now, &mut before, &totals());
        assert_eq!(
            text.trim_start_matches(CLEAR),
            "2 connections  8.00 Mbit/s to the target  40.0 kbit/s to clients  70 B waiting  0 + 3 packets lost"
        );
        assert_eq!(line.refresh(now + EVERY / 2, &mut before, &totals()), "");
        let text = line.refresh(now + EVERY, &mut before, &totals());
        assert!(text.contains("0 bit/s to the target"), "{text}");
        assert_eq!((line.give_way(), line.give_way()), (CLEAR, ""));
    }

    #[test]
    fn a_refusal_names_what_sets_the_limit() {
        let words =
            ProxyWords { program: "tool", most_clients: "--most", most_of_address: "--most-each" };
        let client = SocketAddr::from(([192, 0, 2, 1], 7));
        for (limit, text) in [
            (
                Limit::Clients(3),
                "tool: refused 192.0.2.1:7: the proxy has 3 connections (--most)\n",
            ),
            (
                Limit::OfAddress(2),
                "tool: refused 192.0.2.1:7: its address has 2 connections (--most-each)\n",
            ),
        ] {
            assert_eq!(render_proxy_event(&words, &ProxyEvent::Refused(client, limit)), text);
        }
        let failed = ProxyEvent::TargetFailed(client, "why".to_owned());
        assert_eq!(
            render_proxy_event(&words, &failed),
            "tool: closed the connection of 192.0.2.1:7: why\n"
        );
        let (mut untold, totals) =
            (UntoldEvents::default(), Totals { untold: 4, ..Totals::default() });
        assert_eq!(untold.render(&words, &Totals::default()), "");
        assert!(untold.render(&words, &totals).starts_with("tool: 4 more lines"));
        assert_eq!(untold.render(&words, &totals), "");
    }

    #[test]
    fn dropped_events_are_told_once_a_second() {
        let words = ProxyWords { program: "tool", most_clients: "", most_of_address: "" };
        let totals = |untold| Totals { untold, ..Totals::default() };
        let (mut events, now) = (UntoldEvents::default(), Instant::now());
        let mut at = |after_ms, untold| {
            let now = now + Duration::from_millis(after_ms);
            events.render_in_time(now, &words, &totals(untold))
        };
        assert_eq!(at(0, 0), "");
        assert_eq!(at(500, 4), "", "a second has not passed");
        assert!(at(1_000, 5).starts_with("tool: 5 more lines"));
        assert_eq!(at(1_999, 6), "");
        assert!(at(2_000, 6).starts_with("tool: 1 more lines"));
    }

    #[test]
    fn the_summary_has_both_directions() {
        let text = render_proxy_summary(&totals(), Duration::from_secs(2));
        assert!(text.contains("12 connections, 0 refused, 1 failed at the target, 20 streams"));
        assert!(text.contains("4.00 Mbit/s") && text.contains("20.0 kbit/s"), "{text}");
        assert!(!text.contains("datagrams"));
    }
}
