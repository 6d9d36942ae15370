//! Reads the form that users write, and checks all of it before a host is touched.

mod cells;
mod hosts;
mod placement;

use linerate_measure::order::Order;
use linerate_measure::plan::Notation;
use linerate_measure::units::parse_duration;

use crate::collect::{LEAST_HZ, MOST_HZ, Request, Source};

use super::node::{Fields, Node, read_words, suggest};
use super::workloads::Workloads;
use super::{OnHostLoss, Plan, PlanError, Schedule};

/// The longest text of a plan.
pub const TEXT_BYTES_MAX: usize = 4 << 20;
/// The most samples of a point.
const SAMPLES_MAX: u32 = 10_000;
/// The most failures of a cell.
const FAILURES_MAX: u32 = 1_000;

/// Reads a plan and checks it.
///
/// # Errors
///
/// [`PlanError`] names the first field that is wrong, with its value and the way out.
pub fn read_plan(
    text: &str,
    notation: Notation,
    workloads: &dyn Workloads,
) -> Result<Plan, PlanError> {
    let mut fields = Fields::new("", parse(text, notation)?)?;
    let schema = fields.word("schema")?;
    if schema.as_deref().is_some_and(|schema| schema != Plan::SCHEMA) {
        let why = format!("is {}: this program reads {}", schema.unwrap_or_default(), Plan::SCHEMA);
        return Err(PlanError::new("schema", why));
    }
    let title = fields.word("title")?;
    let tags = match fields.take("tags") {
        None => Vec::new(),
        Some(node) => Fields::new("tags", node)?.rest(),
    };
    let tags = tags.into_iter().map(|(name, node)| match node {
        Node::Text(value) | Node::Plain(value) => Ok((name, value)),
        _ => Err(PlanError::new(&format!("tags.{name}"), "is a list or a table: give one value")),
    });
    let tags = tags.collect::<Result<_, _>>()?;
    let (hosts, order) = hosts::read_hosts(fields.take("hosts"))?;
    let mut placed = placement::read_placement(fields.take("topology"), &hosts, &order)?;
    let schedule = read_schedule(fields.take("schedule"))?;
    let collect = read_collect(fields.take("collect"))?;
    let cells = fields.take("cells");
    let hunts = fields.take("hunt");
    fields.finish()?;
    let (mut points, needs_port) = cells::read_cells(cells, hunts, workloads)?;
    if placed.pairs.len() < 2 {
        // The client of a pair alone searches by itself.
        points.iter_mut().for_each(|point| point.search = None);
    }
    placed.assign_ports(needs_port)?;
    let mut plan = Plan {
        schema: Plan::SCHEMA.to_owned(),
        title,
        tags,
        hosts,
        pairs: placed.pairs,
        schedule,
        collect,
        points,
    };
    plan.spread_pods();
    plan.check_size()?;
    Ok(plan)
}

fn parse(text: &str, notation: Notation) -> Result<Node, PlanError> {
    if text.len() > TEXT_BYTES_MAX {
        let why = format!("is longer than {TEXT_BYTES_MAX} bytes: split it");
        return Err(PlanError::new("the plan", why));
    }
    let parsed = match notation {
        Notation::Toml => toml::from_str(text).map_err(|error| error.to_string()),
        Notation::Json => serde_json::from_str(text).map_err(|error| error.to_string()),
    };
    parsed.map_err(|why| PlanError::new("the plan", format!("can't be read: {}", why.trim_end())))
}

fn read_schedule(node: Option<Node>) -> Result<Schedule, PlanError> {
    let mut schedule = Schedule::default();
    let Some(node) = node else { return Ok(schedule) };
    let mut fields = Fields::new("schedule", node)?;
    schedule.samples = fields.count("samples", 1, SAMPLES_MAX)?.unwrap_or(schedule.samples);
    if let Some(name) = fields.word("order")? {
        schedule.order = Order::of_name(&name).ok_or_else(|| {
            let known: Vec<String> = Order::ALL.iter().map(|one| one.name().to_owned()).collect();
            fields.fault("order", format!("is {name}: {}", suggest(&name, &known)))
        })?;
    }
    if let Some(seed) = fields.word("seed")? {
        // The store keeps it as a signed number.
        let number = seed.parse().ok().filter(|seed| i64::try_from(*seed).is_ok());
        let why = format!("is {seed}: give a whole number from 0 to {}", i64::MAX);
        schedule.seed = Some(number.ok_or_else(|| fields.fault("seed", why))?);
    }
    schedule.max_failures =
        fields.count("max_failures", 1, FAILURES_MAX)?.unwrap_or(schedule.max_failures);
    if let Some(budget) = fields.word("budget")? {
        let ns = parse_duration(&budget)
            .map_err(|error| fields.fault("budget", format!("is no time: {error}")))?;
        schedule.budget_ns = Some(ns);
    }
    schedule.on_host_loss = match fields.word("on_host_loss")?.as_deref() {
        None | Some("stop") => OnHostLoss::Stop,
        Some("continue") => OnHostLoss::Continue,
        Some(word) => {
            let why = format!("is {word}: write stop or continue");
            return Err(fields.fault("on_host_loss", why));
        }
    };
    schedule.with_confidence = match fields.word("confidence")?.as_deref() {
        None => false,
        Some("0.95") => true,
        Some(word) => {
            let why = format!("is {word}: write 0.95, or leave it out");
            return Err(fields.fault("confidence", why));
        }
    };
    fields.finish()?;
    Ok(schedule)
}

fn read_collect(node: Option<Node>) -> Result<Option<Request>, PlanError> {
    let Some(node) = node else { return Ok(None) };
    let mut fields = Fields::new("collect", node)?;
    let word = fields.word("hz")?.unwrap_or_else(|| "1".to_owned());
    let why = format!("is {word}: give a number from {LEAST_HZ} to {MOST_HZ}");
    let hz = word.parse().map_err(|_| fields.fault("hz", why))?;
    let known: Vec<String> = Source::ALL.iter().map(|one| one.name().to_owned()).collect();
    let mut sources = Vec::new();
    for name in fields.words("sources")?.unwrap_or_else(|| known.clone()) {
        let source = Source::from_name(&name);
        sources.push(source.ok_or_else(|| {
            fields.fault("sources", format!("has {name}: {}", suggest(&name, &known)))
        })?);
    }
    let interfaces = fields.words("interfaces")?.unwrap_or_default();
    fields.finish()?;
    let request = Request { sources, hz, interfaces };
    request.check().map_err(|why| PlanError::new("collect", why))?;
    Ok(Some(request))
}

#[cfg(test)]
mod tests;
