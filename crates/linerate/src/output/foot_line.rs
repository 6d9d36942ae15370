//! A line at the foot of a terminal that overwrites itself.

use std::io::{self, IsTerminal};

use super::columns_of;

/// Goes to the line's beginning and removes what stands there (ECMA-48: CR, EL).
pub(super) const CLEAR: &str = "\r\x1b[K";

/// A line at the foot of a terminal.
#[derive(Debug)]
pub(crate) struct FootLine {
    columns: usize,
    is_shown: bool,
}

impl FootLine {
    /// The line of standard error's terminal; `None` where there is none that understands it.
    pub(crate) fn of_terminal() -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        (io::stderr().is_terminal() && !dumb).then(|| Self::new(columns_of(&io::stderr())))
    }

    /// A line of so many columns at most.
    pub(crate) fn new(columns: usize) -> Self {
        Self { columns, is_shown: false }
    }

    /// Takes the line away, where it is, since something else is printed.
    pub(crate) fn give_way(&mut self) -> &'static str {
        if std::mem::take(&mut self.is_shown) { CLEAR } else { "" }
    }

    /// The line with this text.
    pub(crate) fn show(&mut self, text: &str) -> String {
        self.is_shown = true;
        // One column less than there are: some terminals begin a line after the last.
        let shown: String = text.chars().take(self.columns.saturating_sub(1)).collect();
        format!("{CLEAR}{}", shown.trim_end())
    }
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
}
