//! `run`: measures what plans say.

use std::fs::File;
use std::io;
use std::path::Path;

use linerate_engine::event::Cancel;
use linerate_measure::Plan;
use linerate_measure::plan::{Notation, WrittenPlan, read_plans};

use super::{Failure, await_file, dry_run, measure, read_text};
use crate::args::{OutputArgs, RunArgs};
use crate::planning::{future_start, tags_of};
use crate::start_time::utc_now_ns;

/// The longest text of plans. What `--dry-run` prints of 100,000 flows is shorter.
const TEXT_BYTES: u64 = 256 << 20;

/// Makes the runs of all plans, one after the other.
pub(super) fn measure_plans(args: &RunArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let (path, output) = (args.plans.clone(), args.output.clone());
    let plans = await_file(cancel, move || {
        let (text, name) = read(&path, TEXT_BYTES).map_err(Failure::here)?;
        let written =
            read_plans(&text, Notation::of_path(&path)).map_err(|error| error.to_string());
        let plans = written
            .and_then(|all| all.into_iter().map(|one| plan_in_place(one, &output)).collect());
        plans.map_err(|why| Failure::usage(format!("{name}: {why}")))
    });
    measure::measure(plans, &measure::Given::of_plans(&args.keys, &args.output), cancel)
}

/// The text, and what it is called in messages.
pub(super) fn read(path: &Path, most_bytes: u64) -> Result<(String, String), String> {
    if path == Path::new("-") {
        let name = "standard input";
        return Ok((read_text(Ok(io::stdin().lock()), name, most_bytes)?, name.to_owned()));
    }
    let name = path.display().to_string();
    Ok((read_text(File::open(path), &name, most_bytes)?, name))
}

/// The plan of [`plan_of`]; an error begins with its place.
fn plan_in_place(written: WrittenPlan, output: &OutputArgs) -> Result<Plan, String> {
    let place = written.place;
    plan_of(written, output).map_err(|why| match place {
        Some(number) => format!("plan {number}: {why}"),
        None => why,
    })
}

/// The plan with the title and the tags of the command line, once it makes sense.
fn plan_of(written: WrittenPlan, output: &OutputArgs) -> Result<Plan, String> {
    let WrittenPlan { mut plan, flows, .. } = written;
    plan.check().map_err(|error| match error.path(&plan.workload) {
        Some(path) => format!("{path}: {error}"),
        None => error.to_string(),
    })?;
    future_start(plan.start_at_utc_ns, "start_at_utc_ns", utc_now_ns())
        .map_err(|e| e.to_string())?;
    if flows.is_some_and(|flows| !dry_run::are_flows_of(&plan, &flows)) {
        return Err(
            "flows don't match the plan's workload: change the workload, and leave flows out"
                .to_owned(),
        );
    }
    plan.title = output.title.clone().or(plan.title);
    plan.tags.extend(tags_of(output).map_err(|error| error.to_string())?);
    Ok(plan)
}
