//! What is printed at which level of `-ConsoleVerbosity`.

/// A level, 0 to 6. The settings and the summary are printed at each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verbosity(pub u8);

impl Verbosity {
    /// Whether the legend and rows of status are printed.
    pub fn shows_status(self) -> bool {
        matches!(self.0, 1 | 2 | 5 | 6)
    }

    /// Whether a line is printed when a connection is established and when it ends.
    pub fn shows_connections(self) -> bool {
        self.0 >= 3
    }

    /// Whether errors are printed.
    pub fn shows_errors(self) -> bool {
        matches!(self.0, 2 | 4 | 5 | 6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_show_what_the_original_shows_without_its_trace_of_states() {
        let shown = (0..=6).map(Verbosity).map(|level| {
            let marks = [
                (level.shows_status(), 's'),
                (level.shows_connections(), 'c'),
                (level.shows_errors(), 'e'),
            ];
            marks.into_iter().filter(|(shown, _)| *shown).map(|(_, mark)| mark).collect::<String>()
        });
        assert_eq!(shown.collect::<Vec<_>>(), ["", "s", "se", "c", "ce", "sce", "sce"]);
    }
}
