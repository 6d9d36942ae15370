//! A line at the foot of a terminal that overwrites itself.

use std::io::{self, IsTerminal};

use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use super::columns_of;

/// Goes to the line's beginning and removes what stands there (ECMA-48: CR, EL).
pub(super) const CLEAR: &str = "\r\x1b[K";

/// A line at the foot of a terminal.
#[derive(Debug)]
pub(crate) struct FootLine {
    /// `None`: as many as standard error's terminal has at the moment.
    columns: Option<usize>,
    is_shown: bool,
}

impl FootLine {
    /// The line of standard error's terminal; `None` where there is none that understands it.
    pub(crate) fn of_terminal() -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        (io::stderr().is_terminal() && !dumb).then_some(Self { columns: None, is_shown: false })
    }

    /// A line of so many columns at most.
    pub(crate) fn new(columns: usize) -> Self {
        Self { columns: Some(columns), is_shown: false }
    }

    /// Takes the line away, where it is, since something else is printed.
    pub(crate) fn give_way(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_shown) { CLEAR } else { "" }
    }

    /// Whether it can be seen.
    pub(super) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// The line with this text; empty where the terminal is somebody else's at the moment.
    pub(crate) fn show(&mut self, text: &str) -> String {
        // What a shell has put into the background would write over the shell's own line.
        let is_ours = || tcgetpgrp(io::stderr()).map_or(true, |front| front == getpgrp());
        self.is_shown = self.columns.is_some() || is_ours();
        if !self.is_shown {
            return String::new();
        }
        // One column less than there are: some terminals begin a line after the last.
        let columns = self.columns.unwrap_or_else(|| columns_of(&io::stderr())).saturating_sub(1);
        format!("{CLEAR}{}", cut(text, columns).trim_end())
    }
}

/// The beginning of a text, in so many columns at most, without what would move the cursor. No character takes more
/// than two columns, and those of ASCII take one.
fn cut(text: &str, columns: usize) -> String {
    let mut left = columns;
    let shown = text.chars().filter(|c| !c.is_control()).take_while(|c| {
        let width = if c.is_ascii() || *c == 'µ' { 1 } else { 2 };
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_cut_to_the_terminal_and_taken_away_once() {
        let mut line = FootLine::new(5);
        assert_eq!(line.give_way(), "");
        assert_eq!(line.show("123456"), format!("{CLEAR}1234"));
        assert_eq!((line.give_way(), line.give_way()), (CLEAR, ""));
    }

    #[test]
    fn wide_characters_and_line_feeds_leave_it_one_line() {
        let mut line = FootLine::new(6);
        assert_eq!(line.show("a\nb\x1bc"), format!("{CLEAR}abc"));
        assert_eq!(line.show("\u{7dda}\u{7dda}\u{7dda}"), format!("{CLEAR}\u{7dda}\u{7dda}"));
        assert_eq!(line.show("1.2 µs"), format!("{CLEAR}1.2 µ"));
    }
}
