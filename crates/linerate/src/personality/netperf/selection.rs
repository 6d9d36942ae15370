//! Which figures are shown where `-k`, `-o` or `-O` stands, and how.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::iter;

use linerate_engine::netperf::TestKind;
use linerate_personality::netperf::options::{Layout, Selected};

use super::planning::Refusal;
use super::selector::{self, Origin, Selector};

/// Blocks of figures.
#[derive(Clone)]
pub(super) struct Selection {
    pub(super) layout: Layout,
    blocks: Vec<Vec<Selector>>,
    /// Names that select nothing.
    pub(super) unknown: Vec<String>,
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.blocks.iter().flatten().map(|selector| selector.name());
        f.debug_list().entries(names).finish()
    }
}

/// Blocks at most. The original passes over further ones without a word.
const BLOCKS_MAX: usize = 4;

/// A file's lines with a selection are no longer than this, taken together.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// The name that ends a block.
const END: &str = "OUTPUT_END";

impl Selection {
    /// What an omni test shows by itself.
    pub(super) fn usual(kind: TestKind, cpu: bool) -> Self {
        Self::of_list(Layout::Columns, &usual_names(kind, cpu))
    }

    /// Whether any of them takes the time of each call.
    pub(super) fn has_latencies(&self) -> bool {
        self.blocks.iter().flatten().any(|selector| selector.is_latency())
    }

    /// Of names with commas or blanks between them, in blocks with semicolons between those.
    fn of_list(layout: Layout, list: &str) -> Self {
        Self::of_blocks(layout, list.split(';'), &[',', ' '], selector::find)
    }

    /// Of lines, each a block of names or headings with commas between them.
    fn of_lines(layout: Layout, lines: &[String]) -> Self {
        Self::of_blocks(layout, lines.iter().map(String::as_str), &[','], selector::find_by_heading)
    }

    fn of_blocks<'a>(
        layout: Layout,
        blocks: impl Iterator<Item = &'a str>,
        separators: &[char],
        find: fn(&str) -> Option<Selector>,
    ) -> Self {
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        for block in blocks.take(BLOCKS_MAX) {
            let words = block.split(separators).map(str::trim).filter(|word| !word.is_empty());
            let mut selectors = Vec::new();
            for word in words.take_while(|word| !word.eq_ignore_ascii_case(END)) {
                match find(word) {
                    Some(selector) => selectors.push(selector),
                    None => unknown.push(word.to_owned()),
                }
            }
            found.push(selectors);
        }
        Self { layout, blocks: found, unknown }
    }
}

/// Reads what stands after `-k`, `-o` or `-O`: a list, the word `all`, or a file's name; nothing is
/// the usual. A word alone that is no figure's name is a file's.
pub(super) fn parse_selection(
    selected: &Selected,
    kind: TestKind,
    cpu: bool,
) -> Result<Selection, Refusal> {
    let Selected { layout, list } = selected;
    if list.is_empty() {
        return Ok(Selection::of_list(*layout, &usual_names(kind, cpu)));
    }
    if list.eq_ignore_ascii_case("all") {
        return Ok(Selection { layout: *layout, blocks: selector::blocks(), unknown: Vec::new() });
    }
    let is_name = list.eq_ignore_ascii_case(END) || selector::find(list).is_some();
    if is_name || list.contains([',', ';']) {
        return Ok(Selection::of_list(*layout, list));
    }
    Ok(Selection::of_lines(*layout, &read_lines(list)?))
}

/// The first lines of a file, or of a pipe.
fn read_lines(path: &str) -> Result<Vec<String>, Refusal> {
    let failed = |error: io::Error| Refusal::SelectionFile {
        path: path.to_owned(),
        errno: error.raw_os_error().unwrap_or_default(),
    };
    let file = BufReader::new(File::open(path).map_err(failed)?);
    let lines = file.take(FILE_BYTES_MAX as u64 + 1).split(b'\n').take(BLOCKS_MAX);
    let lines: Vec<Vec<u8>> = lines.collect::<io::Result<_>>().map_err(failed)?;
    if lines.iter().map(|line| line.len() + 1).sum::<usize>() > FILE_BYTES_MAX {
        return Err(Refusal::Sentence(format!(
            "{path} is no selection: its first {BLOCKS_MAX} lines have more than {FILE_BYTES_MAX} bytes"
        )));
    }
    Ok(lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect())
}

/// All names, as `?` lists them.
pub(super) fn render_names(layout: Layout) -> String {
    let known = selector::all().map(|selector| selector.name());
    let names = iter::once("OUTPUT_NONE".to_owned()).chain(known);
    let names: Vec<String> = names.chain(["OUTPUT_END".to_owned()]).collect();
    match layout {
        Layout::Columns => names.join("\n") + "\n",
        Layout::KeyValue | Layout::Csv => names.join(",") + "\n",
    }
}

fn usual_names(kind: TestKind, cpu: bool) -> String {
    let sizes = match kind {
        TestKind::Send | TestKind::SendFile => "LSS_SIZE_END,RSR_SIZE_END,LOCAL_SEND_SIZE",
        TestKind::Receive => "RSS_SIZE_END,LSR_SIZE_END,REMOTE_SEND_SIZE",
        _ => "LSS_SIZE_END,LSR_SIZE_END,RSR_SIZE_END,RSS_SIZE_END,REQUEST_SIZE,RESPONSE_SIZE",
    };
    let mut names = format!("{sizes},ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS");
    if cpu {
        for end in ["LOCAL", "REMOTE"] {
            for figure in [
                "UTIL",
                "PERCENT_USER",
                "PERCENT_SYSTEM",
                "PERCENT_IOWAIT",
                "PERCENT_IRQ",
                "PERCENT_SWINTR",
                "METHOD",
            ] {
                names += &format!(",{end}_CPU_{figure}");
            }
        }
        names += ",LOCAL_SD,REMOTE_SD,SD_UNITS";
    }
    names
}

/// The selected figures of a test.
pub(super) fn render_selection(selection: &Selection, origin: &Origin<'_>) -> String {
    let headers = origin.request.shown.headers;
    match selection.layout {
        Layout::KeyValue => render_key_values(&selection.blocks, origin),
        Layout::Csv => render_csv(&selection.blocks, origin, headers),
        Layout::Columns => {
            let blocks = selection.blocks.iter().enumerate().filter(|(_, block)| !block.is_empty());
            blocks
                .map(|(place, block)| {
                    let separator = if place > 0 { "\n" } else { "" };
                    separator.to_owned() + &render_columns(block, origin, headers)
                })
                .collect()
        }
    }
}

fn render_key_values(blocks: &[Vec<Selector>], origin: &Origin<'_>) -> String {
    let lines = blocks.iter().flatten().filter_map(|selector| {
        let value = selector.render_value(origin)?;
        Some(format!("{}={value}\n", selector.name()))
    });
    lines.collect()
}

fn render_csv(blocks: &[Vec<Selector>], origin: &Origin<'_>, headers: bool) -> String {
    let selected = || blocks.iter().flatten();
    if selected().next().is_none() {
        return String::new();
    }
    let headings: Vec<String> = selected().map(|selector| selector.heading()).collect();
    let values: Vec<String> =
        selected().map(|selector| selector.render_value(origin).unwrap_or_default()).collect();
    let headings = if headers { headings.join(",") + "\n" } else { String::new() };
    headings + &values.join(",") + "\n"
}

/// Four lines of headings and one of values. A column is as wide as its heading, and wider than its
/// value; a blank stands between columns and after the last.
fn render_columns(block: &[Selector], origin: &Origin<'_>, headers: bool) -> String {
    let mut lines = vec![String::new(); 5];
    for selector in block {
        let value = selector.render_value(origin).unwrap_or_default();
        let headings: Vec<&str> = selector.heading_lines().collect();
        let widest = headings.iter().map(|line| line.len()).max().unwrap_or(0);
        let width = widest.max(value.len() + 1);
        let cells = headings.into_iter().chain(iter::repeat("")).take(4).chain([&*value]);
        for (line, cell) in lines.iter_mut().zip(cells) {
            *line += &format!("{cell:width$} ");
        }
    }
    let shown = if headers { 0 } else { 4 };
    lines.iter().skip(shown).map(|line| format!("{line}\n")).collect()
}
