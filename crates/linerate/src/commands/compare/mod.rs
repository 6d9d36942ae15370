//! `compare`: two commands in pairs of runs, or two files of stored runs.

mod client;
pub(super) mod stored;

use std::path::Path;

use linerate_engine::event::Cancel;
use linerate_engine::random_run_id;
use linerate_measure::comparison::{Asked, ComparedRun, Comparison, Side, draw_order};
use linerate_measure::run::exit;

use super::report::PageFile;
use super::{Failure, open_destination};
use crate::args::CompareArgs;
use crate::output::{
    Destination, Style, narrate, render_compared_run, render_comparison, render_comparison_records,
    render_json,
};
use client::Client;

/// Failed pairs after which there is no further one, unless as many were complete.
const FAILED_PAIRS_MAX: usize = 3;

/// Compares, and prints what comes of it.
pub(super) fn compare(args: &CompareArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let asked =
        Asked { commands: [args.a.clone(), args.b.clone()], conditions: args.fail_if.clone() };
    // A client's own path is a file, too.
    let are_files =
        [&args.a, &args.b].map(|text| Path::new(text).is_file() && Client::of(text).is_err());
    let mut destination = open_destination(args.output.as_deref(), cancel)?;
    let page = PageFile::open(args.report.as_deref(), cancel)?;
    let comparison = match are_files {
        [true, true] => stored::compare(&asked, cancel)?,
        [false, false] => compare_commands(&asked, args, &mut destination, cancel)?,
        [a_is_file, _] => {
            let (file, other) = if a_is_file { (&args.a, &args.b) } else { (&args.b, &args.a) };
            return Err(Failure::usage(format!(
                "{file} is a file and {other:?} is none: compare two files or two command lines"
            )));
        }
    };
    let text = if args.json {
        render_json(&comparison) + "\n"
    } else if args.ndjson {
        render_comparison_records(&comparison)
    } else {
        let style =
            if args.output.is_some() { Style::Plain } else { Style::of(&std::io::stdout()) };
        render_comparison(&comparison, style)
    };
    destination.put(&text)?;
    destination.commit().map_err(Failure::here)?;
    page.write_comparison(&comparison)?;
    Ok(comparison.status.exit_code)
}

fn compare_commands(
    asked: &Asked,
    args: &CompareArgs,
    destination: &mut Destination,
    cancel: &Cancel,
) -> Result<Comparison, Failure> {
    let client = |side: Side| {
        let command = &asked.commands[side.index()];
        Client::of(command).map_err(|why| Failure::usage(format!("{}: {why}", side.name())))
    };
    let clients = [client(Side::A)?, client(Side::B)?];
    let seed = args.seed.unwrap_or_else(draw_seed);
    let (mut runs, mut complete, mut failed): (Vec<ComparedRun>, usize, usize) = (Vec::new(), 0, 0);
    for (number, order) in (1..).zip(draw_order(seed, args.pairs)) {
        let mut has_failed = false;
        for side in order {
            let run = clients[side.index()].run((side, number), cancel);
            if cancel.requested() {
                return Ok(Comparison::of_pairs(asked, (seed, args.pairs), runs, true));
            }
            if args.ndjson {
                destination.put(&render_compared_run(&run))?;
            }
            if !args.quiet {
                narrate(&line_of(&run, args.pairs));
            }
            has_failed = run.figures.is_empty();
            runs.push(run);
            if has_failed {
                break;
            }
        }
        (complete, failed) =
            if has_failed { (complete, failed + 1) } else { (complete + 1, failed) };
        if failed >= FAILED_PAIRS_MAX && failed > complete {
            break;
        }
    }
    Ok(Comparison::of_pairs(asked, (seed, args.pairs), runs, false))
}

/// What standard error has of a run.
fn line_of(run: &ComparedRun, pairs: usize) -> String {
    let head = format!("linerate: pair {} of {pairs}, {}", run.pair, run.side.name());
    match &run.message {
        Some(why) if run.figures.is_empty() => format!("{head} failed: {why}\n"),
        Some(why) => format!("{head}: not to be trusted: {why}\n"),
        None if run.exit_code != i32::from(exit::VALID) => {
            format!("{head}: exit code {}\n", run.exit_code)
        }
        None => format!("{head}\n"),
    }
}

/// A seed that is short enough to be typed again.
fn draw_seed() -> u64 {
    let digits = random_run_id();
    digits.get(..6).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
}
