//! `matrix --dry-run`: what would be done.

use linerate_lab::plan::{HostSpec, Pair, Plan, Reached, TaskSpec};
use linerate_measure::matrix::Cell;
use linerate_measure::units::render_duration_ns;
use serde_json::{Value, json};

/// What lines may have, so that they fit a terminal.
const COLUMNS: usize = 80;

/// The plan as text for people.
pub(super) fn render_text(plan: &Plan, cells: &[Cell]) -> String {
    let mut page = Page::default();
    if let Some(title) = &plan.title {
        page.row("title", title);
    }
    for (place, (name, host)) in plan.hosts.iter().enumerate() {
        page.row(if place == 0 { "hosts" } else { "" }, &format!("{name}: {}", host.identity()));
    }
    for (place, pair) in plan.pairs.iter().enumerate() {
        let Pair { number, client, server, .. } = pair;
        let text =
            format!("{number}: client on {client}, server on {server}, {}", must_allow(pair));
        page.row(if place == 0 { "pairs" } else { "" }, &text);
    }
    let schedule = &plan.schedule;
    let (points, samples) = (plan.points.len(), schedule.samples);
    let text = format!(
        "{} ({points} points, {samples} samples each), order {}",
        cells.len(),
        schedule.order.name()
    );
    page.row("cells", &text);
    page.row("time", &format!("{}, without set-up", render_duration_ns(expected_ns(plan, cells))));
    if let Some(text) = over_budget(plan, cells) {
        page.row("budget", &text);
    }
    if let Some(collect) = &plan.collect {
        let names: Vec<&str> = collect.sources.iter().map(|source| source.name()).collect();
        page.row("collect", &format!("{} per second: {}", collect.hz, names.join(", ")));
    }
    for (number, point) in plan.points.iter().enumerate() {
        page.text.push('\n');
        page.row(&format!("point {}", number + 1), &point.describe());
        for (place, work) in point.work.iter().enumerate() {
            let of_pair = match (point.work.len(), plan.pairs.get(place)) {
                (2.., Some(pair)) => format!(" {}", pair.number),
                _ => String::new(),
            };
            page.row(&format!("server{of_pair}"), &render_words(&work.server));
            let client = point.search.as_ref().map_or(&work.client, |search| &search.trial);
            page.row(&format!("client{of_pair}"), &render_words(client));
        }
        for threshold in &point.thresholds {
            page.row("threshold", threshold.text());
        }
    }
    page.text
}

/// The plan as a document: frozen, with the cells in their order and the words of every program.
pub(super) fn document(plan: &Plan, cells: &[Cell]) -> Value {
    let order = cells.iter().enumerate().map(|(position, cell)| {
        json!({ "position": position, "point": cell.iteration, "sample": cell.sample + 1 })
    });
    let mut programs = Vec::new();
    for (point, of_point) in plan.points.iter().enumerate() {
        for (place, pair) in plan.pairs.iter().enumerate() {
            let Some(work) = of_point.work_of(place) else { continue };
            let client = of_point.search.as_ref().map_or(&work.client, |search| &search.trial);
            for (role, host, spec) in
                [("server", &pair.server, &work.server), ("client", &pair.client, client)]
            {
                programs.push(json!({
                    "point": point,
                    "pair": pair.number,
                    "role": role,
                    "host": host,
                    "program": spec.program,
                    "argv": spec.argv(&reached(pair)),
                }));
            }
        }
    }
    json!({
        "schema": "linerate.matrix_dry_run/1",
        "plan": plan,
        "expected_ns": expected_ns(plan, cells),
        "over_budget": over_budget(plan, cells),
        "cells": order.collect::<Vec<_>>(),
        "programs": programs,
    })
}

/// A pair's server as it is known before it runs.
fn reached(pair: &Pair) -> Reached {
    let (address, port) = (pair.address.clone(), pair.port);
    Reached { address, port, key: "KEY".to_owned(), trial: "RATE:TIME".to_owned() }
}

fn must_allow(pair: &Pair) -> String {
    match pair.port {
        port if pair.address.is_empty() => format!("where its pod is, port {port}"),
        0 => format!("at {}, TCP and UDP port as the server chooses", pair.address),
        port => format!("at {}, TCP and UDP port {port}", pair.address),
    }
}

/// The time of all cells, without set-up.
pub(super) fn expected_ns(plan: &Plan, cells: &[Cell]) -> u64 {
    cells.iter().fold(0, |sum: u64, cell| {
        let point = usize::try_from(cell.iteration).ok().and_then(|place| plan.points.get(place));
        sum.saturating_add(point.map_or(0, |point| point.expected_ns))
    })
}

/// A sentence where the budget doesn't hold all cells.
pub(super) fn over_budget(plan: &Plan, cells: &[Cell]) -> Option<String> {
    let (budget_ns, needed_ns) = (plan.schedule.budget_ns?, expected_ns(plan, cells));
    (needed_ns > budget_ns).then(|| {
        format!(
            "the budget of {} doesn't hold {}: what is left at its end is dropped",
            render_duration_ns(budget_ns),
            render_duration_ns(needed_ns)
        )
    })
}

/// The words of a program; what is known only later stands in braces.
fn render_words(spec: &TaskSpec) -> String {
    let placeholder = |name: &str| format!("{{{name}}}");
    let mut words = vec![spec.program.clone().unwrap_or_else(|| "linerate".to_owned())];
    words.extend(spec.words.iter().map(|word| {
        use linerate_lab::plan::Known;
        let then = match word.then {
            None => String::new(),
            Some(Known::Address) => placeholder("address"),
            Some(Known::Port) => placeholder("port"),
            Some(Known::Key) => placeholder("key"),
            Some(Known::Trial) => placeholder("rate:time"),
        };
        let text = format!("{}{then}", word.text);
        if text.is_empty() || text.contains(char::is_whitespace) {
            format!("{text:?}")
        } else {
            text
        }
    }));
    words.join(" ")
}

/// Rows with a name before them, wrapped.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    const NAME: usize = 11;

    fn row(&mut self, name: &str, content: &str) {
        let mut line = format!("{name:<width$}", width = Self::NAME);
        let mut is_fresh = true;
        for word in content.split(' ') {
            let needed = line.chars().count() + usize::from(!is_fresh) + word.chars().count();
            if !is_fresh && needed > COLUMNS {
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                line = " ".repeat(Self::NAME + 2);
                is_fresh = true;
            }
            if !is_fresh {
                line.push(' ');
            }
            line.push_str(word);
            is_fresh = false;
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

/// The names of the hosts that pairs use, in the order of the plan.
pub(super) fn used_hosts(plan: &Plan) -> Vec<(&String, &HostSpec)> {
    let is_used =
        |name: &String| plan.pairs.iter().any(|pair| pair.client == *name || pair.server == *name);
    plan.hosts.iter().filter(|(name, _)| is_used(name)).collect()
}
