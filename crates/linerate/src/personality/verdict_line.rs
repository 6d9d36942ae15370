//! The line on standard error that says that a run was bad: a person sees it, and a script that joins both streams
//! reads what the original prints.

use std::env;
use std::io::{self, IsTerminal as _};

use linerate_measure::Run;

use super::stdout;
use crate::output::narrate;

/// Asks for the line, or for none.
const VARIABLE: &str = "LINERATE_VERDICT";

/// Where the line is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum VerdictLine {
    #[default]
    Never,
    /// A terminal is there, and nothing was asked for.
    AtTerminal,
    Always,
}

impl VerdictLine {
    /// What the environment asks for.
    ///
    /// # Errors
    /// A sentence for the user, with the variable and its value.
    pub(super) fn of_environment() -> Result<Self, String> {
        let value = env::var_os(VARIABLE).unwrap_or_default();
        Self::parse(&value.to_string_lossy(), io::stderr().is_terminal())
    }

    fn parse(value: &str, at_terminal: bool) -> Result<Self, String> {
        match value {
            "" if at_terminal => Ok(Self::AtTerminal),
            "" | "off" => Ok(Self::Never),
            "stderr" => Ok(Self::Always),
            other => Err(format!(
                "{VARIABLE}: {other:?} is unknown: give stderr, or off to have no line at a terminal"
            )),
        }
    }

    /// Whether an end prints it that has one test, or that has many.
    pub(super) fn is_told(self, has_one_test: bool) -> bool {
        match self {
            Self::Never => false,
            Self::AtTerminal => has_one_test,
            Self::Always => true,
        }
    }
}

/// Says why a run is doubtful or invalid. Of a run that failed the original's own words say why.
pub(super) fn tell_verdict(run: &Run) {
    let verdict = run.status.verdict.unwrap_or_default();
    if !run.status.reasons.is_empty() {
        narrate(&format!("{}: {}\n", stdout::tool(), verdict.line(&run.status.reasons)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_or_the_variable_asks_for_the_line() {
        for (value, at_terminal, expected) in [
            ("", false, [false, false]),
            ("", true, [true, false]),
            ("stderr", false, [true, true]),
            ("off", true, [false, false]),
        ] {
            let line = VerdictLine::parse(value, at_terminal).unwrap();
            assert_eq!([true, false].map(|one| line.is_told(one)), expected, "{value:?}");
        }
        let why = VerdictLine::parse("stdout", true).unwrap_err();
        assert!(why.contains("\"stdout\" is unknown: give stderr"), "{why}");
    }
}
