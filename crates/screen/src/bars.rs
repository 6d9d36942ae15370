//! Bars of a series, each a column of cells.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// Cells from empty to full, in eighths.
const LEVELS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Draws the newest of the values into an area, the last at its right side; `greatest` fills its height.
pub(crate) fn draw_bars(
    buffer: &mut Buffer,
    area: Rect,
    values: &[Option<f64>],
    greatest: f64,
    style: Style,
) {
    let area = area.intersection(buffer.area);
    let newest = values.iter().rev().take(usize::from(area.width));
    for (back, value) in newest.enumerate() {
        let x = area.right() - 1 - back as u16;
        let share = (value.unwrap_or(0.0) / greatest).clamp(0.0, 1.0);
        let share = if share.is_finite() { share } else { 0.0 };
        let eighths = (share * f64::from(area.height) * 8.0).ceil() as usize;
        for row in 0..area.height {
            let level = eighths.saturating_sub(usize::from(row) * 8).min(8);
            let symbol = LEVELS.get(level).copied().unwrap_or(" ");
            buffer.set_string(x, area.bottom() - 1 - row, symbol, style);
        }
    }
}

/// A bar from the left, so wide for the greatest value.
pub(crate) fn row_of(share: f64, columns: usize) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    "█".repeat((share * columns as f64).ceil() as usize)
}
