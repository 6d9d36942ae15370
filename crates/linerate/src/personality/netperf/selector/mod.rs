//! The figures that can be selected with `-k`, `-o` and `-O`: one table of names, headings and
//! values, in the original's order.

mod cost;
mod ends;
mod machine;
mod options;
mod test;
mod value;

pub(super) use value::direction;

use super::figures::Figures;
use super::planning::Request;

/// What the values are made of.
pub(super) struct Origin<'a> {
    pub(super) request: &'a Request,
    pub(super) figures: &'a Figures,
    pub(super) uuid: String,
}

/// A figure that can be selected.
pub(super) struct Selector {
    /// The word that selects it.
    pub(super) name: &'static str,
    /// The lines of its heading, with a bar between them.
    heading: &'static str,
    value: fn(&Origin<'_>) -> Option<String>,
}

impl Selector {
    /// Up to four lines.
    pub(super) fn heading_lines(&self) -> impl Iterator<Item = &'static str> {
        self.heading.split('|')
    }

    /// The heading in one line.
    pub(super) fn heading(&self) -> String {
        self.heading.replace('|', " ")
    }

    /// The value as it is printed; None where there is nothing to print at all.
    pub(super) fn render_value(&self, origin: &Origin<'_>) -> Option<String> {
        (self.value)(origin)
    }
}

const fn row(
    name: &'static str,
    heading: &'static str,
    value: fn(&Origin<'_>) -> Option<String>,
) -> Selector {
    Selector { name, heading, value }
}

/// All selectors, in the order in which the original lists them.
pub(super) fn all() -> impl Iterator<Item = &'static Selector> {
    groups().into_iter().flatten()
}

fn groups() -> [&'static [Selector]; 5] {
    [test::TEST, cost::COST, ends::ENDS, machine::MACHINE, options::OPTIONS]
}

/// The blocks of `all`.
pub(super) fn blocks() -> Vec<Vec<&'static Selector>> {
    let [test, cost, ends, machine, options] = groups();
    let last = machine.iter().chain(options).collect();
    vec![test.iter().collect(), cost.iter().collect(), ends.iter().collect(), last]
}

/// The selector of this name, in capitals or not.
pub(super) fn find(name: &str) -> Option<&'static Selector> {
    all().find(|selector| selector.name.eq_ignore_ascii_case(name))
}
