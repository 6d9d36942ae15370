//! Pages of results: a run, a comparison, a matrix or a list of runs as one HTML file.
//!
//! A page asks nobody for anything: its style, its script and its pictures (SVG) stand in it, and a policy in its head
//! forbids requests. It can be read without script, in light and dark, on a narrow screen and on paper. A page of a
//! document has the document itself, byte for byte ([`extract`]).
//!
//! What a page says in words comes from the caller, so that it is what the terminal has. The crate makes the pictures
//! and the layout.
//!
//! Strings of documents come from peers. Text enters a page through [`Html::text`] and [`Html::lines`] alone, which
//! escape it; markup is a constant of this crate.
//!
//! The crate is pure: no files, sockets, clocks or threads.

#![forbid(unsafe_code)]

mod chart;
mod comparison;
mod curve;
mod embedded;
mod grid;
mod html;
mod list;
mod matrix;
mod page;
mod quantity;
mod run;
#[cfg(test)]
mod tests;

pub use comparison::{ComparisonText, render_comparison};
pub use embedded::{ExtractError, LONGEST_DOCUMENT, extract};
pub use grid::PairValue;
pub use html::Html;
pub use list::{ListedRun, render_list};
pub use matrix::{MOST_POINTS, Mark, MatrixPage, MatrixRow, render_matrix};
pub use page::{Page, SCRIPT, Source};
pub use run::{RunText, render_run, render_runs};
