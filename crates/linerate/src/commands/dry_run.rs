//! `--dry-run`: the plan, and what each of its flows would do.

use std::path::Path;

use linerate_engine::event::Cancel;
use linerate_measure::run::exit;
use linerate_measure::step::{Step, flow_steps};
use linerate_measure::{Direction, Plan};
use serde::Serialize;
use serde_json::Value;

use super::{Failure, open_destination};
use crate::output::render_json;

#[derive(Serialize)]
struct FlowPlan {
    flow: u32,
    direction: Direction,
    client: Vec<Step>,
    server: Vec<Step>,
}

/// Prints `{"plan": ..., "flows": [{"flow", "direction", "client": [step...], "server": [...]}]}`;
/// an array of these where there are several plans.
pub(super) fn print_steps(
    plans: &[Plan],
    output: Option<&Path>,
    cancel: &Cancel,
) -> Result<u8, Failure> {
    let mut destination = open_destination(output, cancel)?;
    let mut write = |text: &str| destination.put(text);
    let array = plans.len() > 1;
    for (place, plan) in plans.iter().enumerate() {
        let before = match (array, place) {
            (false, _) => "",
            (true, 0) => "[\n",
            (true, _) => ",\n",
        };
        write(&format!("{before}{{\n\"plan\": {},\n\"flows\": [\n", render_json(plan)))?;
        // One at a time: a million flows are no reason to hold a million in memory.
        for flow in 0..plan.workload.opened_flows() {
            let separator = if flow == 0 { "" } else { ",\n" };
            write(&format!("{separator}{}", render_json(&steps_of(plan, flow))))?;
        }
        write("\n]\n}")?;
    }
    write(if array { "\n]\n" } else { "\n" })?;
    destination.commit().map_err(Failure::here)?;
    Ok(exit::VALID)
}

fn steps_of(plan: &Plan, flow: u32) -> FlowPlan {
    let steps = flow_steps(&plan.workload, flow);
    FlowPlan {
        flow,
        direction: match plan.workload.payload.duplex {
            true => Direction::Both,
            false => plan.workload.flow_direction(flow),
        },
        client: steps.client,
        server: steps.server,
    }
}

/// Whether these are the steps that [`print_steps`] prints of the plan.
pub(super) fn are_flows_of(plan: &Plan, flows: &Value) -> bool {
    let Some(flows) = flows.as_array() else { return false };
    let mut numbered = flows.iter().zip(0..);
    flows.len() as u64 == u64::from(plan.workload.opened_flows())
        && numbered.all(|(flow, number)| {
            serde_json::to_value(steps_of(plan, number)).is_ok_and(|steps| steps == *flow)
        })
}
