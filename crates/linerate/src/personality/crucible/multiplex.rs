//! `crucible multiplex`: the iterations of a matrix.

use std::fs;
use std::path::Path;

use linerate_personality::crucible::command_line::MultiplexOptions;
use linerate_personality::crucible::fault::{Fault, Kind};
use linerate_personality::crucible::multiplex::multiplex;
use linerate_personality::crucible::mv_params::parse_mv_params;
use linerate_personality::crucible::parameter::{Setting, render_iterations};
use linerate_personality::crucible::requirements::{Requirements, parse_requirements};

use super::super::stdout::say;
use super::Failure;

/// The longest file that is read, in bytes.
const LONGEST_FILE: u64 = 64 << 20;

/// Prints the iterations, or writes them to a file.
pub(super) fn perform(options: &MultiplexOptions) -> Result<u8, Failure> {
    let done = iterations(options).and_then(|iterations| {
        let text = render_iterations(&iterations);
        match &options.output {
            Some(path) => fs::write(path, text)
                .map_err(|error| Fault::new(Kind::Output, format!("can't write {path}: {error}"))),
            None => {
                say(&(text + "\n"));
                Ok(())
            }
        }
    });
    match done {
        Ok(()) => Ok(0),
        Err(fault) => Err(Failure { exit_code: fault.exit_code(), why: fault.text }),
    }
}

fn iterations(options: &MultiplexOptions) -> Result<Vec<Vec<Setting>>, Fault> {
    let at = |path: &str, fault: Fault| Fault::new(fault.kind, format!("{path}: {}", fault.text));
    let text = read_text(&options.input).map_err(|why| Fault::new(Kind::Unreadable, why))?;
    let matrix = parse_mv_params(&text).map_err(|fault| at(&options.input, fault))?;
    let requirements = match &options.requirements {
        Some(path) => {
            let text =
                read_text(path).map_err(|why| Fault::new(Kind::UnreadableRequirements, why))?;
            parse_requirements(&text).map_err(|fault| at(path, fault))?
        }
        None => Requirements::default(),
    };
    multiplex(&matrix, &requirements, options.reading).map_err(|fault| at(&options.input, fault))
}

/// The text of a file that isn't too long.
pub(super) fn read_text(path: &str) -> Result<String, String> {
    let length = fs::metadata(Path::new(path)).map_or(0, |facts| facts.len());
    if length > LONGEST_FILE {
        return Err(format!("{path} has {length} bytes, and may have {LONGEST_FILE} at most"));
    }
    fs::read_to_string(path).map_err(|error| format!("can't read {path}: {error}"))
}
