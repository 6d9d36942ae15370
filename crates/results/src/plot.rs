//! Series as a picture: of Braille dots for a terminal, or as SVG.

use std::fmt::Write;

/// A line of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What the legend has for it.
    pub label: String,
    /// A value for each window in order; `None` where there is no data.
    pub values: Vec<Option<f64>>,
}

/// What stands around the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The heading.
    pub title: String,
    /// The unit of the values.
    pub unit: String,
    /// The time that the picture shows, in milliseconds.
    pub length_ms: i64,
}

/// Rows of a picture in a terminal.
const ROWS: usize = 16;

/// Dots of a Braille character, from left to right and from top to bottom (Unicode, U+2800 to U+28FF).
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// The least and greatest value, zero included, with room where all are equal.
fn scale(lines: &[Line]) -> (f64, f64) {
    let values = lines.iter().flat_map(|line| line.values.iter().flatten());
    let (low, high) = values.fold((0.0f64, 0.0f64), |(low, high), v| (low.min(*v), high.max(*v)));
    if high > low { (low, high) } else { (low, low + 1.0) }
}

/// A number in as few characters as tell it apart: 0, 9.41, 125, 1.25e9.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-3..1e6).contains(&size) => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn time(ms: i64) -> String {
    format!("{} s", short(ms as f64 / 1e3))
}

/// How many columns of dots a picture of this width has: what a query's resolution should be, at least.
pub fn dots_across(columns: usize) -> usize {
    columns.saturating_sub(MARGIN).max(10) * 2
}

/// Columns left of the picture: a number and the axis.
const MARGIN: usize = 12;

/// The lines as text of at most `columns` columns.
pub fn render_text(frame: &Frame, lines: &[Line], columns: usize) -> String {
    let width = columns.saturating_sub(MARGIN).max(10);
    let (low, high) = scale(lines);
    let mut cells = vec![vec![0u8; width]; ROWS];
    for line in lines {
        let mut before = None;
        for (at, value) in line.values.iter().enumerate() {
            let x = at * width * 2 / line.values.len().max(1);
            let y = value.map(|value| row_of(value, (low, high), ROWS * 4));
            if let Some(y) = y {
                // A line from the value before, so that steep edges are no gaps.
                let from = before.unwrap_or(y);
                for y in y.min(from)..=y.max(from) {
                    if let Some(cell) = cells.get_mut(y / 4).and_then(|row| row.get_mut(x / 2)) {
                        *cell |= DOTS[x % 2][y % 4];
                    }
                }
            }
            before = y;
        }
    }
    let mut text = String::new();
    let _infallible = writeln!(text, "{} ({})", frame.title, frame.unit);
    for (at, row) in cells.iter().enumerate() {
        let label = match at {
            0 => short(high),
            _ if at == ROWS / 2 => short((low + high) / 2.0),
            _ if at == ROWS - 1 => short(low),
            _ => String::new(),
        };
        let dots = row.iter().map(|dots| char::from_u32(0x2800 + u32::from(*dots)).unwrap_or(' '));
        let dots: String = dots.collect();
        let _infallible = writeln!(text, "{label:>10} ┤{}", dots.trim_end_matches('\u{2800}'));
    }
    let end = time(frame.length_ms);
    let gap = " ".repeat(width.saturating_sub(end.chars().count() + 1));
    let _infallible = writeln!(text, "{:>10} 0{gap}{end}", "");
    if lines.len() > 1 {
        let names: Vec<&str> = lines.iter().map(|line| line.label.as_str()).collect();
        let _infallible = writeln!(text, "{:>10} {}", "", wrap(&names, width));
    }
    text
}

/// Names beside each other, as many as there is room for, and how many more there are.
fn wrap(names: &[&str], columns: usize) -> String {
    let mut text = String::new();
    for (at, name) in names.iter().enumerate() {
        let more = format!(" and {} more", names.len() - at);
        if text.chars().count() + name.chars().count() + 2 + more.len() > columns && at > 0 {
            return (text + &more).chars().take(columns).collect();
        }
        if at > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    text.chars().take(columns).collect()
}

/// The row of a value, from the top.
fn row_of(value: f64, (low, high): (f64, f64), rows: usize) -> usize {
    let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
    // A share is at most 1, so the product fits.
    ((1.0 - share) * (rows - 1) as f64).round() as usize
}

/// Width and height of an SVG picture, and where the lines stand in it.
const SVG: (f64, f64) = (800.0, 400.0);
const LEFT: f64 = 80.0;
const TOP: f64 = 40.0;
const PLOT: (f64, f64) = (700.0, 290.0);

/// Colours that people of all sights tell apart (Okabe and Ito, 2008).
const COLOURS: [&str; 7] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];

/// Lines that the legend of an SVG has room for.
const MOST_NAMES: usize = 7;

/// The lines as an SVG document (version 1.1).
pub fn render_svg(frame: &Frame, lines: &[Line]) -> String {
    let (low, high) = scale(lines);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{} ({})</text>\n",
        SVG.0,
        SVG.1,
        escape(&frame.title),
        escape(&frame.unit)
    );
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let y = TOP + PLOT.1 * (1.0 - share);
        let label = short(low + (high - low) * share);
        let _infallible = write!(
            text,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>\n",
            LEFT + PLOT.0,
            LEFT - 8.0,
            y + 4.0
        );
        let x = LEFT + PLOT.0 * share;
        let label = time((frame.length_ms as f64 * share) as i64);
        let _infallible = writeln!(
            text,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            TOP + PLOT.1 + 18.0
        );
    }
    for (place, line) in lines.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        push_polylines(&mut text, line, (low, high), colour);
        if lines.len() > 1 && place < MOST_NAMES {
            let x = LEFT + 100.0 * place as f64;
            let _infallible = writeln!(
                text,
                "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
                TOP + PLOT.1 + 45.0,
                escape(&line.label)
            );
        }
    }
    text + "</svg>\n"
}

/// A line in pieces: a gap in the data is one in the picture.
fn push_polylines(text: &mut String, line: &Line, scale: (f64, f64), colour: &str) {
    let count = line.values.len().max(1) as f64;
    for piece in line.values.iter().enumerate().collect::<Vec<_>>().split(|(_, v)| v.is_none()) {
        let mut points = String::new();
        for (at, value) in piece {
            let share = (value.unwrap_or_default() - scale.0) / (scale.1 - scale.0);
            let y = TOP + PLOT.1 * (1.0 - share);
            for edge in [*at as f64, *at as f64 + 1.0] {
                let _infallible = write!(points, "{:.1},{y:.1} ", LEFT + PLOT.0 * edge / count);
            }
        }
        if !points.is_empty() {
            let _infallible = writeln!(
                text,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/>",
                points.trim_end()
            );
        }
    }
}

/// Text as XML has it; what XML has no character for is left out.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => {}
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame { title: "<a> & b".into(), unit: "Gbit/s".into(), length_ms: 10_000 }
    }

    fn line(label: &str, values: &[f64]) -> Line {
        Line { label: label.into(), values: values.iter().copied().map(Some).collect() }
    }

    #[test]
    fn a_text_picture_fits_its_columns() {
        let values: Vec<f64> = (0..136).map(f64::from).collect();
        let lines =
            [line("up", &values), line("a very long label of a group".repeat(4).as_str(), &[1.0])];
        for columns in [80, 40, 20, 0] {
            let text = render_text(&frame(), &lines, columns);
            let most = columns.max(MARGIN + 10);
            let wide = text.lines().skip(1).find(|line| line.chars().count() > most);
            assert_eq!(wide, None, "{columns}: {text}");
            assert_eq!(text.lines().count(), ROWS + 3);
        }
        let rising = render_text(&frame(), &lines[..1], 80);
        let rows: Vec<&str> = rising.lines().skip(1).take(ROWS).collect();
        assert!(rows[0].trim_start().starts_with("135 ┤"), "{rising}");
        assert!(rows[ROWS - 1].trim_start().starts_with("0 ┤⣀"), "{rising}");
    }

    #[test]
    fn gaps_are_gaps() {
        let mut gap = line("x", &[1.0, 1.0, 1.0, 1.0]);
        gap.values[2] = None;
        assert_eq!(render_svg(&frame(), &[gap.clone()]).matches("<polyline").count(), 2);
        let nothing = Line { label: "x".into(), values: vec![None; 9] };
        assert_eq!(
            render_svg(&frame(), std::slice::from_ref(&nothing)).matches("<polyline").count(),
            0
        );
        assert!(render_text(&frame(), &[nothing], 80).contains('┤'));
        assert!(!render_text(&frame(), &[], 80).is_empty());
    }

    #[test]
    fn svg_has_no_markup_of_others() {
        let svg = render_svg(&frame(), &[line("\"><script>", &[1.0]), line("\u{1}", &[2.0])]);
        assert!(svg.contains("&lt;a&gt; &amp; b"));
        assert!(!svg.contains("<script>") && !svg.contains('\u{1}'));
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 9.413, 94.13, 125.4, 1.25e9, 0.5, -3.0].map(short);
        assert_eq!(texts, ["0", "9.41", "94.1", "125", "1.25e9", "0.5000", "-3.00"]);
    }
}
