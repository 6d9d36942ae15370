//! What a document takes over from another place is what stands there.

use std::fs::read_to_string;

use crate::assert_tidy;
use crate::workspace::root;

fn read(path: &str) -> String {
    read_to_string(root().join(path)).unwrap()
}

#[test]
fn the_ratios_of_the_readme_are_rows_of_the_benchmark() {
    let (readme, benchmark) = (read("README.md"), read("docs/benchmark.md"));
    let mut placements = Vec::new();
    let mut quoted = 0;
    let mut offences = Vec::new();
    for line in readme.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if cells.contains(&"two processors") {
            let of = |head: &&str| if *head == "two processors" { "split" } else { "same" };
            placements = cells.iter().map(of).collect();
        }
        for (cell, placement) in cells.iter().zip(&placements) {
            let Some(figures) = ratio_and_interval(cell) else { continue };
            quoted += 1;
            if !benchmark.lines().any(|row| is_row_with(row, placement, &figures)) {
                offences.push(format!("{line}: {cell}, {placement}"));
            }
        }
    }
    assert!(quoted > 10, "the README's table was not understood: {quoted} ratios");
    assert_tidy("a ratio that docs/benchmark.md doesn't have:", &offences);
}

/// `1.102 (1.051 to 1.119)`.
fn ratio_and_interval(cell: &str) -> Option<[&str; 3]> {
    let (median, interval) = cell.strip_suffix(')')?.split_once(" (")?;
    let (low, high) = interval.split_once(" to ")?;
    median.parse::<f64>().is_ok().then_some([median, low, high])
}

/// Whether a row of the benchmark has these figures, as far as they are written out.
fn is_row_with(row: &str, placement: &str, figures: &[&str; 3]) -> bool {
    let mut words = row.split_whitespace().skip_while(|word| *word != placement).skip(1);
    let (Some(median), Some(interval)) = (words.next(), words.next()) else { return false };
    let Some((low, high)) = interval.split_once("..") else { return false };
    figures.iter().zip([median, low, high]).all(|(figure, measured)| {
        let decimals = figure.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let rounding = 0.5 / 10_f64.powi(decimals as i32) + 1e-9;
        match (figure.parse::<f64>(), measured.parse::<f64>()) {
            (Ok(figure), Ok(measured)) => (figure - measured).abs() <= rounding,
            _ => false,
        }
    })
}

#[test]
fn every_kind_of_failure_is_documented() {
    let documents = read("docs/commands.md") + &read("docs/results.md");
    let mut kinds = Vec::new();
    for path in ["crates/engine/src/flow/failure.rs", "crates/engine/src/connections/source.rs"] {
        let text = read(path);
        let after_arrows = text.split("=> \"").skip(1);
        kinds.extend(after_arrows.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    for path in ["flow/stream.rs", "load/end.rs", "quic_load/flows.rs"] {
        let text = read(&format!("crates/engine/src/{path}"));
        let given: Vec<&str> = text.split("FlowError::new(\"").skip(1).collect();
        assert!(!given.is_empty(), "{path} gives flows no kind any more");
        kinds.extend(given.iter().filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    assert!(kinds.len() >= 16, "the kinds were not found: {kinds:?}");
    let offences: Vec<String> =
        kinds.into_iter().filter(|kind| !documents.contains(&format!("`{kind}`"))).collect();
    assert_tidy("a kind of failure that docs/ doesn't explain:", &offences);
}
