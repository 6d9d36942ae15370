//! `[[cells]]` and `[[hunt]]`.

use std::collections::BTreeMap;

use linerate_measure::matrix::{Axis, ITERATIONS_MAX, Matrix};
use linerate_measure::threshold::Threshold;

use super::{Fields, Node, PlanError, read_words, suggest};
use crate::plan::Point;
use crate::plan::workloads::{HUNT, Prepared, Workloads};

/// Reads all cells, then all hunts: their points, and whether a server needs a port.
pub(super) fn read_cells(
    cells: Option<Node>,
    hunts: Option<Node>,
    workloads: &dyn Workloads,
) -> Result<(Vec<Point>, bool), PlanError> {
    let tables = [(Kind::Cells, tables_of(cells)), (Kind::Hunt, tables_of(hunts))];
    if tables.iter().all(|(_, tables)| tables.is_empty()) {
        let why = "has nothing to measure: write [[cells]] with workload = \"stream\"";
        return Err(PlanError::new("cells", why));
    }
    let tables = tables.into_iter().flat_map(|(kind, tables)| {
        tables.into_iter().enumerate().map(move |(place, table)| (kind, place, table))
    });
    let (mut points, mut needs_port) = (Vec::new(), false);
    for (kind, place, table) in tables {
        let place = format!("{}[{place}]", kind.name());
        let cell = Cells::read(&place, kind, table, workloads)?;
        for iteration in
            cell.matrix.iterations().map_err(|error| PlanError::new(&place, error.to_string()))?
        {
            let prepared = workloads.prepare(&cell.workload, &iteration).map_err(|fault| {
                let place = match &fault.parameter {
                    Some(parameter) => format!("{place}.{parameter}"),
                    None => place.clone(),
                };
                PlanError::new(&place, fault.why)
            })?;
            for threshold in &cell.thresholds {
                check_threshold(threshold, &prepared, &cell)
                    .and_then(|()| threshold.bound_at(&iteration).map_err(|e| e.to_string()))
                    .map_err(|why| PlanError::new(&format!("{place}.thresholds"), why))?;
            }
            needs_port |= prepared.needs_port;
            points.push(Point {
                workload: cell.workload.clone(),
                iteration,
                work: vec![prepared.work],
                search: prepared.search,
                thresholds: cell.thresholds.clone(),
                expected_ns: prepared.expected_ns,
                longest_ns: prepared.longest_ns,
            });
            if points.len() > ITERATIONS_MAX {
                let why = format!("have more than {ITERATIONS_MAX} points: split the plan");
                return Err(PlanError::new("cells", why));
            }
        }
    }
    Ok((points, needs_port))
}

/// What a table is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A workload is measured.
    Cells,
    /// A rate is searched.
    Hunt,
}

impl Kind {
    /// The name of the list.
    fn name(self) -> &'static str {
        match self {
            Self::Cells => "cells",
            Self::Hunt => "hunt",
        }
    }
}

/// The tables of a list; one may be written without the list.
fn tables_of(node: Option<Node>) -> Vec<Node> {
    match node {
        Some(Node::List(tables)) => tables,
        Some(table) => vec![table],
        None => Vec::new(),
    }
}

/// One table of cells.
struct Cells {
    workload: String,
    matrix: Matrix,
    thresholds: Vec<Threshold>,
}

impl Cells {
    fn read(
        place: &str,
        kind: Kind,
        table: Node,
        workloads: &dyn Workloads,
    ) -> Result<Self, PlanError> {
        let mut fields = Fields::new(place, table)?;
        let workload = match kind {
            Kind::Cells => read_workload(&mut fields, &workloads.names())?,
            Kind::Hunt => {
                if fields.has("workload") {
                    let why = "has no place in [[hunt]], whose load is a stream or, with requests = true, \
                               requests: leave it out";
                    return Err(fields.fault("workload", why));
                }
                HUNT.to_owned()
            }
        };
        let zip = match fields.take("zip") {
            None => Vec::new(),
            Some(node) => read_zip(&fields.place_of("zip"), node)?,
        };
        let exclude = match fields.take("exclude") {
            None => Vec::new(),
            Some(node) => read_exclude(&fields.place_of("exclude"), node)?,
        };
        let thresholds = fields.words("thresholds")?.unwrap_or_default();
        let thresholds = thresholds
            .iter()
            .map(|text| Threshold::parse(text))
            .collect::<Result<_, _>>()
            .map_err(|error| fields.fault("thresholds", error.to_string()))?;
        let axes = read_axes(place, fields.rest(), &workloads.parameters(&workload), &workload)?;
        Ok(Self { workload, matrix: Matrix { axes, zip, exclude }, thresholds })
    }
}

fn read_workload(fields: &mut Fields, names: &[String]) -> Result<String, PlanError> {
    let workload = match fields.take("workload") {
        Some(Node::Text(word) | Node::Plain(word)) => word,
        Some(_) => {
            let why = "is a list: write [[cells]] once for each workload";
            return Err(fields.fault("workload", why));
        }
        None => {
            let why = format!("is missing: write one of {}", names.join(", "));
            return Err(fields.fault("workload", why));
        }
    };
    if workload == HUNT {
        return Err(fields.fault("workload", "is hunt: write [[hunt]] in the place of [[cells]]"));
    }
    if !names.contains(&workload) {
        let why = format!("is {workload}: {}", suggest(&workload, names));
        return Err(fields.fault("workload", why));
    }
    Ok(workload)
}

fn read_axes(
    place: &str,
    rest: Vec<(String, Node)>,
    known: &[String],
    workload: &str,
) -> Result<Vec<Axis>, PlanError> {
    let mut axes: Vec<Axis> = Vec::new();
    for (name, node) in rest {
        let entries = match node {
            Node::Table(entries) if name == "server" => {
                entries.into_iter().map(|(inner, node)| (format!("server.{inner}"), node)).collect()
            }
            node => vec![(name, node)],
        };
        for (written, node) in entries {
            let name = canonical(&written);
            let place = format!("{place}.{written}");
            if !known.contains(&name) {
                let why = format!("is no parameter of {workload}: {}", suggest(&name, known));
                return Err(PlanError::new(&place, why));
            }
            axes.push(Axis { name, values: read_words(&place, node)? });
        }
    }
    Ok(axes)
}

/// A parameter's name as plans have it: underlines for the hyphens of flags.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

fn read_zip(place: &str, node: Node) -> Result<Vec<Vec<String>>, PlanError> {
    let Node::List(items) = node else {
        return Err(PlanError::new(place, "is no list: write [[\"rate\", \"flows\"]]"));
    };
    let names = |words: Vec<String>| words.iter().map(|name| canonical(name)).collect();
    // One group may be written without the outer list.
    if !items.is_empty() && items.iter().all(|item| matches!(item, Node::Text(_))) {
        return Ok(vec![names(read_words(place, Node::List(items))?)]);
    }
    items.into_iter().map(|item| read_words(place, item).map(names)).collect()
}

fn read_exclude(place: &str, node: Node) -> Result<Vec<BTreeMap<String, Vec<String>>>, PlanError> {
    let tables = match node {
        Node::List(tables) => tables,
        node => vec![node],
    };
    let mut rules = Vec::with_capacity(tables.len());
    for table in tables {
        let Node::Table(entries) = table else {
            let why = "is no list of tables: write [{ protocol = \"udp\", rate = \"5G\" }]";
            return Err(PlanError::new(place, why));
        };
        let rule = entries
            .into_iter()
            .map(|(name, node)| Ok((canonical(&name), read_words(place, node)?)))
            .collect::<Result<_, PlanError>>()?;
        rules.push(rule);
    }
    Ok(rules)
}

fn check_threshold(threshold: &Threshold, prepared: &Prepared, cell: &Cells) -> Result<(), String> {
    if prepared.figures.contains(&threshold.figure) {
        return Ok(());
    }
    let (text, figure, workload) = (threshold.text(), &threshold.figure, &cell.workload);
    let hint = suggest(figure, &prepared.figures);
    Err(format!("threshold {text:?}: {workload} with these parameters has no {figure}: {hint}"))
}
