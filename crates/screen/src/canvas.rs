//! From cells to what a terminal understands (ECMA-48).

use std::fmt::Write as _;

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};

use crate::screen::Screen;

/// Removes all that stands on a terminal.
const CLEAR: &str = "\x1b[2J";
/// How a terminal writes where nothing else was asked for.
const PLAIN: &str = "\x1b[0m";

/// What a terminal shows, so that only what changes is written.
#[derive(Clone, Debug)]
pub struct Canvas {
    shown: Buffer,
}

impl Canvas {
    /// A terminal of this size on which nothing stands.
    pub fn new(columns: u16, rows: u16) -> Self {
        Self { shown: Buffer::empty(Rect::new(0, 0, columns, rows)) }
    }

    /// What makes a terminal of this size show the screen.
    pub fn draw(&mut self, screen: &Screen, (columns, rows): (u16, u16), now_ns: u64) -> String {
        let area = Rect::new(0, 0, columns, rows);
        let mut text = String::new();
        if self.shown.area != area {
            self.shown = Buffer::empty(area);
            text.push_str(CLEAR);
        }
        let mut wanted = Buffer::empty(area);
        screen.draw(&mut wanted, now_ns);
        write_cells(&mut text, &self.shown.diff(&wanted));
        self.shown = wanted;
        text
    }
}

fn write_cells(text: &mut String, cells: &[(u16, u16, &Cell)]) {
    let mut next = None;
    let mut look = PLAIN.to_owned();
    for (x, y, cell) in cells {
        if next != Some((*x, *y)) {
            let _text_takes_all = write!(text, "\x1b[{};{}H", y + 1, x + 1);
        }
        // Terminals differ in how wide other characters are: what follows them is placed anew.
        next = cell.symbol().is_ascii().then_some((x + 1, *y));
        let bold = if cell.modifier.contains(Modifier::BOLD) { ";1" } else { "" };
        let wanted = format!("\x1b[0{bold}{}m", parameter_of(cell.fg));
        if wanted != look {
            text.push_str(&wanted);
            look = wanted;
        }
        text.push_str(cell.symbol());
    }
    if look != PLAIN {
        text.push_str(PLAIN);
    }
}

/// The colours that are drawn with, as SGR has them; empty: the terminal's own.
fn parameter_of(colour: Color) -> &'static str {
    match colour {
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Cyan => ";36",
        _ => "",
    }
}
