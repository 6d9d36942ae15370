//! The figures that can be selected with `-k`, `-o` and `-O`: one table of names, headings and
//! values, in the original's order. Most are told of each end, under one name with `LOCAL_` or
//! `REMOTE_` before it.

mod cost;
mod end;
mod ends;
mod machine;
mod options;
mod test;
mod value;

use std::iter;

pub(super) use value::direction;

use super::figures::Figures;
use super::planning::Request;
use end::{End, Side};

/// What the values are made of.
pub(super) struct Origin<'a> {
    pub(super) request: &'a Request,
    pub(super) figures: &'a Figures,
    pub(super) uuid: String,
}

/// A figure that can be selected.
#[derive(Clone, Copy)]
pub(super) enum Selector {
    /// Of the test.
    Whole(&'static Row<for<'a> fn(&Origin<'a>) -> Option<String>>),
    /// Of one end.
    Of(Side, &'static Row<for<'a> fn(&End<'a>) -> Option<String>>),
}

impl Selector {
    /// The word that selects it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Whole(row) => row.name.to_owned(),
            Self::Of(side, row) => format!("{}_{}", side.prefix(), row.name),
        }
    }

    /// Whether it is of the time that each transaction, or each call of bulk, took.
    pub(super) fn is_latency(&self) -> bool {
        let Self::Whole(row) = self else { return false };
        row.name.ends_with("_LATENCY") && row.name != "RT_LATENCY"
    }

    /// Up to four lines.
    pub(super) fn heading_lines(&self) -> impl Iterator<Item = &'static str> {
        let (first, rest) = match self {
            Self::Whole(row) => (None, row.heading),
            Self::Of(side, row) => (Some(side.heading()), row.heading),
        };
        first.into_iter().chain(rest.split('|'))
    }

    /// The heading in one line.
    pub(super) fn heading(&self) -> String {
        self.heading_lines().collect::<Vec<_>>().join(" ")
    }

    /// The value as it is printed; None where there is nothing to print at all.
    pub(super) fn render_value(&self, origin: &Origin<'_>) -> Option<String> {
        match self {
            Self::Whole(row) => (row.value)(origin),
            Self::Of(side, row) => (row.value)(&End { origin, side: *side }),
        }
    }
}

/// A line of the tables.
pub(super) struct Row<Value> {
    name: &'static str,
    /// The lines of its heading, with a bar between them.
    heading: &'static str,
    value: Value,
}

type WholeRow = Row<for<'a> fn(&Origin<'a>) -> Option<String>>;
type EndRow = Row<for<'a> fn(&End<'a>) -> Option<String>>;

/// Rows that stand together in the original's order.
enum Rows {
    Whole(&'static [WholeRow]),
    /// All of the local end, then all of the remote one.
    Ends(&'static [EndRow]),
}

const fn row(
    name: &'static str,
    heading: &'static str,
    value: for<'a> fn(&Origin<'a>) -> Option<String>,
) -> WholeRow {
    Row { name, heading, value }
}

const fn of_end(
    name: &'static str,
    heading: &'static str,
    value: for<'a> fn(&End<'a>) -> Option<String>,
) -> EndRow {
    Row { name, heading, value }
}

impl Rows {
    fn selectors(&self) -> Vec<Selector> {
        match self {
            Self::Whole(rows) => rows.iter().map(Selector::Whole).collect(),
            Self::Ends(rows) => [Side::Local, Side::Remote]
                .into_iter()
                .flat_map(|side| rows.iter().zip(iter::repeat(side)))
                .map(|(row, side)| Selector::Of(side, row))
                .collect(),
        }
    }
}

/// All selectors, in the order in which the original lists them.
pub(super) fn all() -> impl Iterator<Item = Selector> {
    groups().into_iter().flatten().flat_map(Rows::selectors)
}

fn groups() -> [&'static [Rows]; 5] {
    [test::TEST, cost::COST, ends::ENDS, machine::MACHINE, options::OPTIONS]
}

/// The blocks of `all`.
pub(super) fn blocks() -> Vec<Vec<Selector>> {
    let [test, cost, ends, machine, options] = groups();
    let block = |rows: &[Rows]| rows.iter().flat_map(Rows::selectors).collect();
    let last = machine.iter().chain(options).flat_map(Rows::selectors).collect();
    vec![block(test), block(cost), block(ends), last]
}

/// The selector of this name, in capitals or not.
pub(super) fn find(name: &str) -> Option<Selector> {
    known().find(|selector| selector.name().eq_ignore_ascii_case(name))
}

/// The selector of this name, or of this heading in one line; in capitals or not.
pub(super) fn find_by_heading(text: &str) -> Option<Selector> {
    known().find(|selector| {
        let says = |words: String| words.eq_ignore_ascii_case(text);
        says(selector.name()) || says(selector.heading())
    })
}

/// All that can be selected by a name.
fn known() -> impl Iterator<Item = Selector> {
    all().chain(options::UNLISTED.iter().map(Selector::Whole))
}
