//! Which figures are shown where `-k`, `-o` or `-O` stands, and how.

use std::{fs, iter};

use linerate_engine::netperf::TestKind;

use super::selector::{self, Origin, Selector};
use super::typed::{Layout, Selected};

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

/// Blocks at most.
const BLOCKS_MAX: usize = 4;

/// A file with a selection is a few lines long.
const FILE_BYTES_MAX: u64 = 64 * 1024;

impl Selection {
    /// What an omni test shows by itself.
    pub(super) fn usual(kind: TestKind, cpu: bool) -> Self {
        Self::of_names(Layout::Columns, &[usual_names(kind, cpu)])
    }

    /// Whether any of them takes the time of each call.
    pub(super) fn has_latencies(&self) -> bool {
        self.blocks.iter().flatten().any(|selector| selector.is_latency())
    }

    fn of_names(layout: Layout, blocks: &[String]) -> Self {
        let mut unknown = Vec::new();
        let blocks = blocks
            .iter()
            .map(|names| {
                let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
                let mut block = Vec::new();
                for name in names {
                    match selector::find(name) {
                        Some(found) => block.push(found),
                        None => unknown.push(name.to_owned()),
                    }
                }
                block
            })
            .collect();
        Self { layout, blocks, unknown }
    }
}

/// Reads what stands after `-k`, `-o` or `-O`: a list, the word `all`, or a file's name; nothing is
/// the usual.
pub(super) fn parse_selection(
    selected: &Selected,
    kind: TestKind,
    cpu: bool,
) -> Result<Selection, String> {
    let Selected { layout, list } = selected;
    if list.is_empty() {
        return Ok(Selection::of_names(*layout, &[usual_names(kind, cpu)]));
    }
    if list.eq_ignore_ascii_case("all") {
        return Ok(Selection { layout: *layout, blocks: selector::blocks(), unknown: Vec::new() });
    }
    let blocks: Vec<String> = match fs::metadata(list) {
        Ok(facts) if facts.is_file() => read_blocks(list, facts.len())?,
        _ => list.split(';').map(str::to_owned).collect(),
    };
    if blocks.len() > BLOCKS_MAX {
        let count = blocks.len();
        return Err(format!("{count} blocks of selected figures are more than {BLOCKS_MAX}"));
    }
    Ok(Selection::of_names(*layout, &blocks))
}

/// The first lines of a file.
fn read_blocks(path: &str, bytes: u64) -> Result<Vec<String>, String> {
    if bytes > FILE_BYTES_MAX {
        return Err(format!(
            "{path} is no selection: it has {bytes} bytes, more than {FILE_BYTES_MAX}"
        ));
    }
    let text = fs::read_to_string(path).map_err(|error| format!("can't read {path}: {error}"))?;
    Ok(text.lines().take(BLOCKS_MAX).map(str::to_owned).collect())
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
            let blocks = selection.blocks.iter();
            let blocks: Vec<String> =
                blocks.map(|block| render_columns(block, origin, headers)).collect();
            blocks.join("\n")
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
