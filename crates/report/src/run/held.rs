//! What held a sender up, interval by interval, as shares of the time: the kernel's own account of TCP.

use std::collections::BTreeMap;

use linerate_measure::limits::Cause;
use linerate_measure::sample::{FlowSample, TcpStatus};
use linerate_measure::{Direction, Run, Sample};

use super::limits;
use crate::chart::{Line, Look, Panel, Point, Span};
use crate::quantity::Quantity;

/// The most bars that a panel has. Of more intervals each bar is the mean of several.
const MOST_BARS: usize = 300;

/// Microseconds of all connections together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    /// All that there were: the connections times the interval.
    all_us: u64,
    /// Data were under way.
    busy_us: u64,
    /// Part of it held up by the receive window.
    window_us: u64,
    /// Part of it held up by the send buffer.
    buffer_us: u64,
}

/// The times of an interval or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bar {
    from_ns: u64,
    to_ns: u64,
    held: Held,
}

impl Held {
    fn plus(self, other: Self) -> Self {
        Self {
            all_us: self.all_us.saturating_add(other.all_us),
            busy_us: self.busy_us.saturating_add(other.busy_us),
            window_us: self.window_us.saturating_add(other.window_us),
            buffer_us: self.buffer_us.saturating_add(other.buffer_us),
        }
    }

    /// What a connection's counters have grown by in an interval of this length.
    fn between(before: TcpStatus, now: TcpStatus, length_us: u64) -> Option<Self> {
        let grown = |now: Option<u64>, before: Option<u64>| {
            now.unwrap_or(0).saturating_sub(before.unwrap_or(0)).min(length_us)
        };
        let busy_us = now.busy_us?.saturating_sub(before.busy_us.unwrap_or(0)).min(length_us);
        let window_us = grown(now.rwnd_limited_us, before.rwnd_limited_us).min(busy_us);
        let buffer_us = grown(now.sndbuf_limited_us, before.sndbuf_limited_us);
        let buffer_us = buffer_us.min(busy_us - window_us);
        Some(Self { all_us: length_us, busy_us, window_us, buffer_us })
    }

    /// Where each layer ends, in percent from the ground: path, receive window, send buffer, nothing under way.
    fn layers(self) -> [f64; 4] {
        let percent = |us: u64| us as f64 / self.all_us.max(1) as f64 * 100.0;
        let without_buffer_us = self.busy_us.saturating_sub(self.buffer_us);
        [
            percent(without_buffer_us.saturating_sub(self.window_us)),
            percent(without_buffer_us),
            percent(self.busy_us),
            if self.all_us > 0 { 100.0 } else { 0.0 },
        ]
    }
}

/// The panel of a direction's sender; without lines where the kernel told nothing.
pub(super) fn held_panel(run: &Run, direction: Direction, title: &'static str) -> Panel {
    // From above to the ground, so that each is painted over the one above it.
    const LAYERS: [(&str, usize, usize); 4] = [
        ("nothing under way", 2, 3),
        ("send buffer", 3, 2),
        ("receive window", 1, 1),
        ("path", 0, 0),
    ];
    let sender = direction.sender();
    let bars = bars_of(run, direction);
    let line = |(name, colour, layer): (&'static str, usize, usize)| {
        let points = bars.iter().map(|bar| Point {
            from_ns: bar.from_ns,
            to_ns: bar.to_ns,
            value: bar.held.layers().get(layer).copied().unwrap_or(0.0),
        });
        Line { name, colour, look: Look::Stack, points: points.collect() }
    };
    let mut panel = Panel::new(title, Quantity::Percent);
    if !bars.is_empty() {
        panel.lines = LAYERS.into_iter().map(line).collect();
        let samples = run.samples.iter().filter(|sample| sample.role == sender);
        panel.strip = strip_of(samples);
    }
    panel
}

fn bars_of(run: &Run, direction: Direction) -> Vec<Bar> {
    let workload = &run.plan.workload;
    let samples = run.samples.iter().filter(|sample| sample.role == direction.sender());
    let mut before: BTreeMap<u32, TcpStatus> = BTreeMap::new();
    let mut bars: Vec<Bar> = Vec::new();
    for sample in samples {
        let length_us = sample.to_ns.saturating_sub(sample.from_ns) / 1000;
        let is_own = |flow: &&FlowSample| workload.flow_direction(flow.flow) == direction;
        let mut held = Held::default();
        for (flow, now) in
            sample.flows.iter().filter(is_own).filter_map(|flow| Some((flow.flow, flow.tcp?)))
        {
            let earlier = before.insert(flow, now).unwrap_or_default();
            held = held.plus(Held::between(earlier, now, length_us).unwrap_or_default());
        }
        if held.all_us > 0 {
            bars.push(Bar { from_ns: sample.from_ns, to_ns: sample.to_ns, held });
        }
    }
    let each = bars.len().div_ceil(MOST_BARS).max(1);
    let merged = bars.chunks(each).filter_map(|several| {
        let (first, last) = (several.first()?, several.last()?);
        let held = several.iter().fold(Held::default(), |sum, bar| sum.plus(bar.held));
        Some(Bar { from_ns: first.from_ns, to_ns: last.to_ns, held })
    });
    merged.collect()
}

/// The causes of the intervals' limits, equal ones beside each other as one.
fn strip_of<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Span> {
    let mut strip: Vec<(Span, Cause)> = Vec::new();
    for sample in samples {
        let Some(cause) = sample.limit else { continue };
        match strip.last_mut() {
            Some((last, of)) if *of == cause && last.to_ns == sample.from_ns => {
                last.to_ns = sample.to_ns;
            }
            _ => {
                let (from_ns, to_ns) = (sample.from_ns, sample.to_ns);
                strip.push((Span { from_ns, to_ns, word: limits::cause(cause) }, cause));
            }
        }
    }
    strip.into_iter().map(|(span, _)| span).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counters(busy_us: u64, window_us: u64, buffer_us: u64) -> TcpStatus {
        TcpStatus {
            busy_us: Some(busy_us),
            rwnd_limited_us: Some(window_us),
            sndbuf_limited_us: Some(buffer_us),
            ..TcpStatus::default()
        }
    }

    #[test]
    fn shares_are_what_the_counters_grew_by() {
        let held = Held::between(counters(100, 50, 7), counters(900, 350, 107), 1000).unwrap();
        assert_eq!(held.layers(), [40.0, 70.0, 80.0, 100.0]);
        assert!(Held::between(counters(1, 1, 1), TcpStatus::default(), 1000).is_none());
        assert_eq!(Held::default().layers(), [0.0; 4]);
    }

    proptest! {
        #[test]
        fn layers_lie_above_each_other_and_fill_the_whole(
            before in any::<[u64; 3]>(),
            now in any::<[u64; 3]>(),
            length_us in 1..=u64::MAX,
        ) {
            let of = |[busy, window, buffer]: [u64; 3]| counters(busy, window, buffer);
            let held = Held::between(of(before), of(now), length_us).unwrap();
            let layers = held.plus(held).layers();
            prop_assert!(layers.is_sorted(), "{:?}", layers);
            prop_assert!(layers.iter().all(|layer| (0.0..=100.0).contains(layer)), "{:?}", layers);
            prop_assert_eq!(layers[3], 100.0);
        }
    }
}
