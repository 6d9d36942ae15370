//! The arithmetic of windows: what series of values, each held for a span of time, come to in windows of it.
//!
//! Times are whole milliseconds, and the end of a span belongs to it: a value from 0 to 999 stands for one second.
//! Series of one collector share a [`Timeline`], so that [`weigh`] runs once for all of them, and a series then costs
//! a multiplication and an addition for each value.

/// A span of time in milliseconds, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first millisecond.
    pub begin_ms: i64,
    /// The last millisecond, never before the first.
    pub end_ms: i64,
}

impl Span {
    /// The greatest time that a span may have: the year 9999. None is below 0.
    pub const MAX_MS: i64 = 253_402_300_799_999;

    /// The span, where both ends are times and stand in order.
    pub fn new(begin_ms: i64, end_ms: i64) -> Option<Self> {
        (0 <= begin_ms && begin_ms <= end_ms && end_ms <= Self::MAX_MS)
            .then_some(Self { begin_ms, end_ms })
    }

    /// How long it is; at least 1.
    pub fn length_ms(self) -> i64 {
        self.end_ms - self.begin_ms + 1
    }

    /// The milliseconds that it shares with another.
    pub fn overlap_ms(self, other: Self) -> i64 {
        (self.end_ms.min(other.end_ms) - self.begin_ms.max(other.begin_ms) + 1).max(0)
    }

    /// Whether all of another is in it.
    pub fn contains(self, other: Self) -> bool {
        self.begin_ms <= other.begin_ms && other.end_ms <= self.end_ms
    }
}

/// The spans that the values of series stand for, one after the other; gaps may be between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timeline {
    spans: Vec<Span>,
}

impl Timeline {
    /// The timeline of these spans. `None`: a time is out of range, or a span begins before the one before has ended.
    pub fn new(spans: Vec<Span>) -> Option<Self> {
        let valid = spans.iter().all(|span| Span::new(span.begin_ms, span.end_ms).is_some());
        let ordered = spans.windows(2).all(|pair| match pair {
            [one, next] => one.end_ms < next.begin_ms,
            _ => true,
        });
        (valid && ordered).then_some(Self { spans })
    }

    /// Its spans, in order.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// From the first begin to the last end; `None` where it is empty.
    pub fn range(&self) -> Option<Span> {
        let (first, last) = (self.spans.first()?, self.spans.last()?);
        Some(Span { begin_ms: first.begin_ms, end_ms: last.end_ms })
    }

    /// The spans as a reader of lines dates them that takes every line for a later time, where each interval has
    /// `lines` lines and this timeline's is the one at `place`, from 0. `None`: the times go out of range.
    pub fn stretched(&self, lines: u32, place: u32) -> Option<Self> {
        let mut next = self.range()?.begin_ms;
        let spans = self.spans.iter().map(|span| {
            let length = span.length_ms();
            let begin_ms = next.checked_add(length.checked_mul(place.into())?)?;
            next = next.checked_add(length.checked_mul(lines.into())?)?;
            Span::new(begin_ms, begin_ms.checked_add(length - 1)?)
        });
        Self::new(spans.collect::<Option<_>>()?)
    }
}

/// How the part of a span counts that sticks out of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edges {
    /// By the milliseconds that window and span share.
    #[default]
    Exact,
    /// One millisecond less, as the Common Data Model's query server counts; a span that is whole in the window
    /// counts wholly.
    OneShort,
}

/// The most windows that a range is cut into.
pub const MAX_WINDOWS: u32 = 100_000;

/// The windows of a range: each but the last has `floor((end - begin) / resolution) + 1` milliseconds, and the last is
/// cut at the end. There may be fewer than `resolution`, never more. It is taken to be within 1 and [`MAX_WINDOWS`].
pub fn windows(range: Span, resolution: u32) -> Vec<Span> {
    let resolution = resolution.clamp(1, MAX_WINDOWS);
    let step = (range.end_ms - range.begin_ms) / i64::from(resolution);
    let mut windows = Vec::new();
    let mut begin_ms = range.begin_ms;
    while begin_ms <= range.end_ms && windows.len() < resolution as usize {
        let end_ms = begin_ms.saturating_add(step).min(range.end_ms);
        windows.push(Span { begin_ms, end_ms });
        begin_ms = end_ms + 1;
    }
    windows
}

/// What each span of a timeline weighs in each of several windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// For each window the first span that it touches, and where its weights stand.
    parts: Vec<Part>,
    /// Milliseconds, those of a window beside each other.
    weights: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    first: usize,
    from: usize,
    to: usize,
    covered_ms: f64,
}

/// Works out the weights of a timeline's spans in windows that stand in order and share nothing.
pub fn weigh(timeline: &Timeline, windows: &[Span], edges: Edges) -> Weights {
    let spans = timeline.spans();
    let mut weights = Vec::with_capacity(spans.len() + windows.len());
    let mut first = 0;
    let parts = windows.iter().map(|window| {
        while spans.get(first).is_some_and(|span| span.end_ms < window.begin_ms) {
            first += 1;
        }
        let from = weights.len();
        let mut covered = 0;
        let touched = spans.iter().skip(first).take_while(|span| span.begin_ms <= window.end_ms);
        for span in touched {
            let shared = span.overlap_ms(*window);
            covered += shared;
            let short = i64::from(edges == Edges::OneShort && !window.contains(*span));
            weights.push((shared - short) as f64);
        }
        Part { first, from, to: weights.len(), covered_ms: covered as f64 }
    });
    let parts = parts.collect();
    Weights { parts, weights }
}

impl Weights {
    /// What values come to in a window: their sum, each times the milliseconds that it holds there.
    pub fn weighted(&self, window: usize, values: &[f64]) -> f64 {
        let (values, weights) = self.touched(window, values);
        values.iter().zip(weights).map(|(value, weight)| value * weight).sum()
    }

    /// The values that hold for some time of a window.
    pub fn values<'a>(&self, window: usize, values: &'a [f64]) -> &'a [f64] {
        self.touched(window, values).0
    }

    /// How many windows there are.
    pub fn windows(&self) -> usize {
        self.parts.len()
    }

    /// The milliseconds of a window for which there is a value, counted exactly.
    pub fn covered_ms(&self, window: usize) -> f64 {
        self.parts.get(window).map_or(0.0, |part| part.covered_ms)
    }

    fn touched<'a>(&self, window: usize, values: &'a [f64]) -> (&'a [f64], &[f64]) {
        let Some(part) = self.parts.get(window) else { return (&[], &[]) };
        let weights = self.weights.get(part.from..part.to).unwrap_or_default();
        let values = values.get(part.first..).unwrap_or_default();
        (values.get(..weights.len()).unwrap_or(values), weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begin_ms: i64, end_ms: i64) -> Span {
        Span::new(begin_ms, end_ms).unwrap()
    }

    #[test]
    fn windows_cover_the_range_once() {
        for (end, resolution) in
            [(0, 1), (0, 7), (9, 3), (10, 3), (999, 100), (30_000, 7), (5, 100)]
        {
            let range = span(1000, 1000 + end);
            let windows = windows(range, resolution);
            assert!(windows.len() <= resolution as usize, "{end} {resolution}");
            assert_eq!(windows.first().unwrap().begin_ms, range.begin_ms);
            assert_eq!(windows.last().unwrap().end_ms, range.end_ms, "{end} {resolution}");
            assert!(windows.windows(2).all(|two| two[0].end_ms + 1 == two[1].begin_ms));
        }
        assert_eq!(windows(span(0, 10), 3), [span(0, 3), span(4, 7), span(8, 10)]);
    }

    #[test]
    fn a_timeline_is_in_order() {
        assert!(Timeline::new(vec![span(0, 9), span(10, 19), span(30, 30)]).is_some());
        assert!(Timeline::new(vec![span(0, 9), span(9, 19)]).is_none());
        assert!(Timeline::new(vec![Span { begin_ms: 5, end_ms: 4 }]).is_none());
        assert!(Timeline::new(vec![Span { begin_ms: -1, end_ms: 4 }]).is_none());
        assert!(Timeline::new(vec![Span { begin_ms: 0, end_ms: i64::MAX }]).is_none());
    }

    /// Every weight against its definition, counted millisecond by millisecond.
    #[test]
    fn weights_are_the_shared_milliseconds() {
        let timeline =
            Timeline::new(vec![span(3, 9), span(10, 10), span(14, 40), span(41, 43)]).unwrap();
        let values = [1.0, 10.0, 100.0, 1000.0];
        for resolution in 1..60 {
            let windows = windows(span(0, 49), resolution);
            let weights = weigh(&timeline, &windows, Edges::Exact);
            let mut all_covered = 0.0;
            for (at, window) in windows.iter().enumerate() {
                let (mut expected, mut covered) = (0.0, 0.0);
                for ms in window.begin_ms..=window.end_ms {
                    let here = span(ms, ms);
                    let hit = timeline.spans().iter().position(|span| span.contains(here));
                    expected += hit.map_or(0.0, |place| values[place]);
                    covered += if hit.is_some() { 1.0 } else { 0.0 };
                }
                assert_eq!(weights.weighted(at, &values), expected, "{resolution} {window:?}");
                assert_eq!(weights.covered_ms(at), covered);
                all_covered += covered;
            }
            assert_eq!(all_covered, 38.0);
        }
    }

    #[test]
    fn one_short_counts_a_span_that_sticks_out_a_millisecond_less() {
        let timeline = Timeline::new(vec![span(0, 9), span(10, 19)]).unwrap();
        let weights = weigh(&timeline, &[span(0, 14), span(15, 19)], Edges::OneShort);
        assert_eq!(weights.weighted(0, &[1.0, 1.0]), 10.0 + 4.0);
        assert_eq!(weights.weighted(1, &[1.0, 1.0]), 4.0);
        assert_eq!(weights.covered_ms(1), 5.0);
    }

    #[test]
    fn stretched_spans_take_turns() {
        let timeline = Timeline::new(vec![span(5, 14), span(15, 24), span(25, 27)]).unwrap();
        let second = timeline.stretched(2, 1).unwrap();
        assert_eq!(second.spans(), [span(15, 24), span(35, 44), span(48, 50)]);
        assert_eq!(timeline.stretched(1, 0).unwrap(), timeline);
        let late = Timeline::new(vec![span(Span::MAX_MS - 1, Span::MAX_MS)]).unwrap();
        assert_eq!(late.stretched(2, 1), None);
    }

    #[test]
    fn missing_values_are_no_panic() {
        let timeline = Timeline::new(vec![span(0, 9), span(10, 19)]).unwrap();
        let weights = weigh(&timeline, &[span(0, 14)], Edges::Exact);
        assert_eq!(weights.weighted(0, &[2.0]), 20.0);
        assert_eq!(weights.weighted(7, &[2.0]), 0.0);
        assert_eq!(weights.values(0, &[]), &[] as &[f64]);
    }
}
