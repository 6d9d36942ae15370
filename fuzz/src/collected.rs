//! What a host's agent sends of its counters. The function takes any bytes and panics only when
//! the decoder is wrong.

use linerate_lab::collect::{Gatherer, Request, Ticks};

/// Messages, one a line; an empty line takes the series out. What is accepted has a value for each
/// span, and no rate is negative.
pub fn collected(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut gatherer = Gatherer::new();
    for line in text.lines().chain([""]) {
        if line.is_empty() {
            take(&mut gatherer);
        }
        if let Ok(request) = serde_json::from_str::<Request>(line) {
            let _ = request.check();
        }
        let Ok(ticks) = serde_json::from_str::<Ticks>(line) else { continue };
        // Values read back as they were.
        if let Ok(again) = serde_json::to_string(&ticks) {
            assert_eq!(serde_json::from_str::<Ticks>(&again).ok().as_ref(), Some(&ticks));
        }
        if let Err(why) = gatherer.handle_ticks(ticks) {
            assert!(!why.is_empty());
        }
    }
    let _ = gatherer.notes(1.0);
}

fn take(gatherer: &mut Gatherer) {
    for gathered in gatherer.take(-5) {
        for series in &gathered.series {
            assert_eq!(series.values.len(), gathered.spans_ns.len());
        }
        for gathered in gathered.without_gaps() {
            let ordered = gathered.spans_ns.windows(2).all(|pair| pair[0].1 <= pair[1].0);
            assert!(ordered, "{:?}", gathered.spans_ns);
            let values = || gathered.series.iter().flat_map(|series| &series.values);
            assert!(values().all(|value| !value.is_nan()));
        }
    }
}
