//! Reads what the store has of series, and weighs each timeline once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use linerate_measure::window::{Edges, Span, Timeline, Weights, weigh};
use rusqlite::{Statement, params};

use super::{MOST_SERIES, Selected, SeriesQuery, Sum};
use crate::StoreError;
use crate::chunk::{decode_spans, decode_values, part_length};
use crate::insert::MOST_PARTS;
use crate::store::Store;

/// The source whose series iperf's quirks are about.
const IPERF: &str = "iperf";

/// A part of a timeline: the windows that it touches, and what its spans weigh there.
struct PartWeights {
    part: i64,
    first_window: usize,
    weights: Weights,
    /// Whether one window has all of it, so that a chunk's own sums hold.
    is_whole: bool,
    /// The spans' lengths in seconds, where values are per interval.
    seconds: Vec<f64>,
}

/// Reads the chunks of series, and works out the weights of each timeline once.
pub(super) struct Reader<'a> {
    windows: &'a [Span],
    extremes: bool,
    edges: Edges,
    per_interval: bool,
    timelines: HashMap<(i64, u32, u32), Vec<PartWeights>>,
    timeline: Statement<'a>,
    chunks: Statement<'a>,
    lines: HashMap<i64, (u32, u32)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        store: &'a Store,
        query: &'a SeriesQuery,
        windows: &'a [Span],
        extremes: bool,
    ) -> Result<Self, StoreError> {
        // In an index the original's figures of iperf have its quirks already, and its tools add none to ours.
        let is_iperf = query.compat && query.source == IPERF && !store.is_of_index();
        let counted = ["rx-lost/sec", "rx-pps", "tx-retry/sec"];
        Ok(Self {
            windows,
            extremes,
            edges: if query.compat { Edges::OneShort } else { Edges::Exact },
            per_interval: is_iperf && counted.contains(&query.metric.as_str()),
            timelines: HashMap::new(),
            timeline: store.connection.prepare(
                "SELECT part, begin_ms, end_ms, count, data FROM timeline WHERE id = ?1 ORDER BY part LIMIT ?2",
            )?,
            chunks: store
                .connection
                .prepare("SELECT id, count, data, weighted, low, high FROM chunk WHERE id BETWEEN ?1 AND ?2 \
                 ORDER BY id")?,
            lines: if is_iperf { lines_of(store, query)? } else { HashMap::new() },
        })
    }

    /// Adds a series to what its group has come to.
    pub(super) fn add(&mut self, series: &Selected, sum: &mut Sum) -> Result<(), StoreError> {
        let (lines, place) = self.lines.get(&series.id).copied().unwrap_or((1, 0));
        let key = (series.timeline, lines, place);
        if !self.timelines.contains_key(&key) {
            let parts = self.weigh(key)?;
            self.timelines.insert(key, parts);
        }
        let parts = self.timelines.get(&key).map(Vec::as_slice).unwrap_or_default();
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(()) };
        let base = series.id.checked_mul(MOST_PARTS as i64).ok_or_else(|| damaged("an id"))?;
        let mut rows = self.chunks.query([base + first.part, base + last.part])?;
        let mut parts = parts.iter().peekable();
        while let Some(row) = rows.next()? {
            let part = row.get::<_, i64>(0)? - base;
            while parts.next_if(|known| known.part < part).is_some() {}
            let Some(known) = parts.next_if(|known| known.part == part) else { continue };
            if known.is_whole {
                let figures = [row.get(3)?, row.get(4)?, row.get(5)?];
                sum.add_whole(known.first_window, known.weights.covered_ms(0), figures)?;
                continue;
            }
            let data = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
            let mut values = decode_values(data, part_length(row.get(1)?)?)?;
            if self.per_interval {
                values.iter_mut().zip(&known.seconds).for_each(|(value, s)| *value *= s);
            }
            sum.add(known.first_window, &known.weights, &values, self.extremes);
        }
        Ok(())
    }

    /// The parts of a timeline that touch the windows.
    fn weigh(&mut self, key: (i64, u32, u32)) -> Result<Vec<PartWeights>, StoreError> {
        let (timeline, lines, place) = key;
        let (Some(first), Some(last)) = (self.windows.first(), self.windows.last()) else {
            return Ok(Vec::new());
        };
        let mut parts = Vec::new();
        let mut next = None;
        let mut rows = self.timeline.query(params![timeline, MOST_PARTS as i64])?;
        while let Some(row) = rows.next()? {
            let part: i64 = row.get(0)?;
            if !(0..MOST_PARTS as i64).contains(&part) {
                return Err(damaged("the number of a part"));
            }
            let (begin, end): (i64, i64) = (row.get(1)?, row.get(2)?);
            let outside = end < first.begin_ms || begin > last.end_ms;
            if outside && lines == 1 {
                continue;
            }
            let data = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
            let mut spans = decode_spans(data, part_length(row.get(3)?)?)?;
            if lines > 1 {
                let from = next.unwrap_or(begin);
                let stretched =
                    move_to(&spans, from).and_then(|spans| spans.stretched(lines, place));
                let length: i64 = spans.spans().iter().map(|span| span.length_ms()).sum();
                next = from.checked_add(length.saturating_mul(lines.into()));
                spans = stretched.ok_or_else(|| damaged("a time"))?;
            }
            let Some(range) = spans.range() else { continue };
            let first_window =
                self.windows.partition_point(|window| window.end_ms < range.begin_ms);
            let behind = self.windows.partition_point(|window| window.begin_ms <= range.end_ms);
            let touched = self.windows.get(first_window..behind).unwrap_or_default();
            if touched.is_empty() {
                continue;
            }
            let weights = weigh(&spans, touched, self.edges);
            let seconds = match self.per_interval {
                true => spans.spans().iter().map(|span| span.length_ms() as f64 / 1e3).collect(),
                false => Vec::new(),
            };
            let is_whole =
                !self.per_interval && touched.iter().any(|window| window.contains(range));
            parts.push(PartWeights { part, first_window, weights, is_whole, seconds });
        }
        Ok(parts)
    }
}

fn move_to(timeline: &Timeline, begin_ms: i64) -> Option<Timeline> {
    let shift = begin_ms.checked_sub(timeline.range()?.begin_ms)?;
    let moved = timeline
        .spans()
        .iter()
        .map(|span| Span::new(span.begin_ms.checked_add(shift)?, span.end_ms.checked_add(shift)?));
    Timeline::new(moved.collect::<Option<_>>()?)
}

/// For each series of the query how many lines an interval has in the text of its end, and which one is the series'.
fn lines_of(store: &Store, query: &SeriesQuery) -> Result<HashMap<i64, (u32, u32)>, StoreError> {
    let sql = "SELECT s.id, s.type, coalesce(s.period, 0), coalesce(l.name, ''), coalesce(l.value, '') FROM series s \
               LEFT JOIN label l ON l.series = s.id WHERE s.run = ?1 AND s.source = ?2 ORDER BY s.id LIMIT ?3";
    let mut rows = store.connection.prepare(sql)?;
    let mut rows = rows.query(params![query.run.0, query.source, MOST_SERIES as i64])?;
    // By id: period, direction, number of the stream, and what tells the end.
    let mut series: BTreeMap<i64, Line> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let metric: String = row.get(1)?;
        let (name, value): (String, String) = (row.get(3)?, row.get(4)?);
        let line = series.entry(row.get(0)?).or_insert(Line {
            end: (row.get(2)?, BTreeMap::new()),
            is_receiving: metric.starts_with("rx-"),
            stream: 0,
            is_asked: metric == query.metric,
        });
        match name.as_str() {
            "stream" => line.stream = value.parse().unwrap_or(0),
            "cstype" | "csid" => {
                line.end.1.insert(name, value);
            }
            _ => {}
        }
    }
    let mut ends: HashMap<&End, BTreeSet<(bool, u64)>> = HashMap::new();
    for line in series.values() {
        ends.entry(&line.end).or_default().insert((line.is_receiving, line.stream));
    }
    let places = series.iter().filter(|(_, line)| line.is_asked).filter_map(|(id, line)| {
        let lines = ends.get(&line.end)?;
        let place = lines.iter().position(|key| *key == (line.is_receiving, line.stream))?;
        Some((*id, (u32::try_from(lines.len()).ok()?, u32::try_from(place).ok()?)))
    });
    Ok(places.collect())
}

/// A period, and the labels that tell an end of a test.
type End = (i64, BTreeMap<String, String>);

struct Line {
    end: End,
    is_receiving: bool,
    stream: u64,
    is_asked: bool,
}

pub(super) fn damaged(what: &str) -> StoreError {
    StoreError::Damaged(format!("{what} is out of range"))
}
