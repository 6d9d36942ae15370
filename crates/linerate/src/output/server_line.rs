//! The line at the foot of a terminal that shows what a server does.

use linerate_engine::ServerStatus;
use linerate_measure::units::render_rate;

use super::foot_line::FootLine;

/// What a server does at the moment. It overwrites itself, and is gone before anything else is printed.
pub(crate) struct ServerLine {
    line: FootLine,
    /// What was last told.
    last: ServerStatus,
    /// Bits received and sent per second, between the last two that were told; `None`: there were not two.
    rates_bps: Option<[f64; 2]>,
    shown: String,
}

impl ServerLine {
    /// The line of standard error's terminal; `None` where there is none that understands it.
    pub(crate) fn of_terminal() -> Option<Self> {
        FootLine::of_terminal().map(Self::over)
    }

    fn over(line: FootLine) -> Self {
        Self { line, last: ServerStatus::default(), rates_bps: None, shown: String::new() }
    }

    /// Takes the line away, where it is, since something else is printed.
    pub(crate) fn give_way(&mut self) -> &'static str {
        self.line.give_way()
    }

    /// The line anew, where it has something new to show.
    pub(crate) fn refresh(&mut self, status: ServerStatus) -> String {
        if status.at_ns == 0 {
            return String::new();
        }
        if status.at_ns > self.last.at_ns {
            self.rates_bps = (self.last.at_ns > 0).then(|| rates_bps(&self.last, &status));
            self.last = status;
        }
        let text = render(&self.last, self.rates_bps);
        if self.line.is_shown() && text == self.shown {
            return String::new();
        }
        let drawn = self.line.show(&text);
        self.shown = text;
        drawn
    }
}

fn rates_bps(before: &ServerStatus, now: &ServerStatus) -> [f64; 2] {
    let time_ns = now.at_ns.saturating_sub(before.at_ns).max(1) as f64;
    let bps = |before: u64, now: u64| now.saturating_sub(before) as f64 * 8e9 / time_ns;
    [bps(before.received_bytes, now.received_bytes), bps(before.sent_bytes, now.sent_bytes)]
}

fn render(status: &ServerStatus, rates_bps: Option<[f64; 2]>) -> String {
    let age_s = status.oldest_age_ns / 1_000_000_000;
    let mut parts = vec![match status.tests {
        0 => "no test".to_owned(),
        1 => format!("1 test for {age_s} s"),
        tests => format!("{tests} tests, the oldest for {age_s} s"),
    }];
    let runs = status.tests > 0;
    parts.extend(rates_bps.filter(|_| runs).map(|[received, sent]| {
        format!("received {}, sent {}", render_rate(received), render_rate(sent))
    }));
    match status.waiting {
        0 => {}
        1 => parts.push("1 client waits".to_owned()),
        waiting => parts.push(format!("{waiting} clients wait")),
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::foot_line::CLEAR;
    use super::*;

    #[test]
    fn it_shows_tests_rates_and_clients_that_wait() {
        let mut line = ServerLine::over(FootLine::new(120));
        let mut shown = |status: ServerStatus| line.refresh(status);
        assert_eq!(shown(ServerStatus::default()), "", "nothing was told yet");
        let idle = ServerStatus { at_ns: 1_000_000_000, ..ServerStatus::default() };
        assert_eq!(shown(idle), format!("{CLEAR}no test"));
        assert_eq!(shown(idle), "", "it stands there");
        let one = ServerStatus {
            at_ns: 2_000_000_000,
            tests: 1,
            oldest_age_ns: 700_000_000,
            received_bytes: 1_250_000_000,
            ..idle
        };
        let text = "1 test for 0 s, received 10.0 Gbit/s, sent 0 bit/s";
        assert_eq!(shown(one), format!("{CLEAR}{text}"));
        assert_eq!(shown(one), "", "nothing was told since");
        let two = ServerStatus {
            at_ns: 4_000_000_000,
            tests: 2,
            waiting: 1,
            oldest_age_ns: 2_700_000_000,
            received_bytes: 1_250_000_000,
            sent_bytes: 250_000_000,
        };
        let text =
            "2 tests, the oldest for 2 s, received 0 bit/s, sent 1.00 Gbit/s, 1 client waits";
        assert_eq!(shown(two), format!("{CLEAR}{text}"));
        let three = ServerStatus { at_ns: 5_000_000_000, waiting: 3, ..two };
        assert!(shown(three).ends_with(", 3 clients wait"));
        // An earlier moment, as the numbers are read one by one, has no rate.
        assert_eq!(shown(ServerStatus { received_bytes: 0, ..two }), "");
        let over = ServerStatus { at_ns: 6_000_000_000, tests: 0, waiting: 0, ..three };
        assert_eq!(shown(over), format!("{CLEAR}no test"));
        assert_eq!((line.give_way(), line.give_way()), (CLEAR, ""));
        assert_eq!(line.refresh(over), format!("{CLEAR}no test"), "it comes back");
    }
}
