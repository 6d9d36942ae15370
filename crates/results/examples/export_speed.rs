//! How the export of a run grows with its series: time of a series, and the greatest memory of the process.
//!
//! `cargo run --release -p linerate-results --example export_speed [SERIES ...]`

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use linerate_measure::window::{Span, Timeline};
use linerate_results::export::CdmVersion;
use linerate_results::export::cells::each_document;
use linerate_results::export::document::Form;
use linerate_results::{
    Aggregation, CellEnd, CellStatus, NewCell, NewIteration, NewRun, NewSeries, Store, StoreError,
    Writer,
};

const T0: i64 = 1_700_000_000_000;
const POINTS: i64 = 5;
const SERIES_OF_A_CELL: usize = 1000;

/// One cell with `count` series over the same times.
fn cell(position: usize, count: usize) -> CellEnd {
    let begin = |at: i64| T0 + position as i64 * 10_000 + at * 1000;
    let spans = (0..POINTS).map(|at| Span { begin_ms: begin(at), end_ms: begin(at) + 999 });
    let timelines: Vec<Timeline> = Timeline::new(spans.collect()).into_iter().collect();
    let series = (0..count).map(|number| NewSeries {
        in_period: true,
        source: "linerate".to_owned(),
        metric: "rx-Gbps".to_owned(),
        class: "throughput".to_owned(),
        unit: "Gbit/s".to_owned(),
        aggregation: Aggregation::Sum,
        labels: vec![("stream".to_owned(), number.to_string())],
        timeline: 0,
        values: (0..POINTS).map(|at| (number as i64 + at) as f64).collect(),
    });
    CellEnd {
        period: timelines.first().and_then(Timeline::range),
        series: series.collect(),
        timelines,
        ..CellEnd::without_result(CellStatus::Done, "", T0)
    }
}

/// The greatest memory of this process so far, in MB.
fn most_memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kb.unwrap_or_default() / 1e3
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked: Vec<usize> =
        std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let counts = if asked.is_empty() { vec![452, 2_280, 5_650, 50_000] } else { asked };
    let mut out = std::io::stdout();
    for count in counts {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("export.db");
        let writer = Writer::open(&path)?;
        let cells = count.div_ceil(SERIES_OF_A_CELL);
        let (run, _) = writer.begin_run(NewRun {
            iterations: vec![NewIteration::default()],
            cells: (1..=cells as u32).map(|sample| NewCell { iteration: 0, sample }).collect(),
            ..NewRun::default()
        })?;
        for position in 0..cells {
            let attempt = writer.begin_cell(run, position as u32, T0)?;
            let left = count - position * SERIES_OF_A_CELL;
            writer.end_cell(attempt, cell(position, left.min(SERIES_OF_A_CELL)))?;
        }
        writer.close()?;
        let store = Store::open_to_read(&path)?;
        let (began, mut points) = (Instant::now(), 0_usize);
        store.each_series(run, |series| {
            series.each_part(|part| {
                points += part.len();
                Ok::<_, StoreError>(())
            })
        })?;
        let read = began.elapsed();
        assert_eq!(points, count * POINTS as usize);
        let (began, mut documents) = (Instant::now(), 0_usize);
        each_document(&store, run, (CdmVersion::V10, &Form::default()), |_| {
            documents += 1;
            Ok::<_, StoreError>(())
        })?;
        let written = began.elapsed();
        let of_one = |time: std::time::Duration| time.as_secs_f64() * 1e6 / count as f64;
        writeln!(
            out,
            "{count} series, {points} points: read {read:.2?} ({:.1} us a series), {documents} documents {written:.2?} \
             ({:.1} us a series), {:.0} MB at most",
            of_one(read),
            of_one(written),
            most_memory_mb()
        )?;
    }
    Ok(())
}
