//! What a terminal shows of a run while it goes on.
//!
//! [`Screen`] takes what happens and the keys, and draws itself into cells. [`Canvas`] makes of the cells that have
//! changed what a terminal understands. [`render_so_far`] has the figures in a line.
//!
//! The crate is pure: time is an argument, and whoever calls writes to the terminal and reads its keys.

#![forbid(unsafe_code)]

mod bars;
mod canvas;
mod draw;
mod history;
mod screen;
mod words;

pub use canvas::Canvas;
pub use screen::{Asked, Screen};
pub use words::render_so_far;

#[cfg(test)]
mod tests;
