//! How fast a store is: an import of 10 million points, a query over one metric of twenty, and a reader beside a
//! writer. It prints times and asserts counts.
//!
//! `cargo run --release -p linerate-results --example store_speed [DIRECTORY]`

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linerate_measure::window::{Span, Timeline};
use linerate_results::breakout::Breakout;
use linerate_results::query::SeriesQuery;
use linerate_results::{
    Aggregation, CellEnd, CellStatus, NewCell, NewIteration, NewRun, NewSeries, RunId, Store, Tick,
    Writer,
};
use rustix::time::{ClockId, clock_gettime};

const HOSTS: u32 = 50;
const METRICS: u32 = 20;
const CPUS: u32 = 10;
const POINTS: usize = 1000;
const T0: i64 = 1_700_000_000_000;

/// Values of four kinds: a random walk, whole numbers, mostly zero, hundredths.
fn values(kind: u32, seed: u64) -> Vec<f64> {
    let mut state = seed | 1;
    let mut walk = 0.0;
    let mut next = || {
        // Marsaglia, Xorshift RNGs (2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let value = |_| {
        let random = next();
        match kind % 4 {
            0 => {
                walk += (random % 1000) as f64 / 997.0 - 0.5;
                walk
            }
            1 => (random % 50_000) as f64,
            2 => f64::from(u32::from(random.is_multiple_of(50))),
            _ => (random % 10_000) as f64 / 100.0,
        }
    };
    (0..POINTS).map(value).collect()
}

/// One host's cell: a series for each metric and processor, all over the same times.
fn cell(host: u32) -> CellEnd {
    let spans =
        (0..POINTS as i64).map(|i| Span { begin_ms: T0 + i * 1000, end_ms: T0 + i * 1000 + 999 });
    let timelines: Vec<Timeline> = Timeline::new(spans.collect()).into_iter().collect();
    let series = (0..METRICS).flat_map(|metric| (0..CPUS).map(move |cpu| (metric, cpu)));
    let series = series.map(|(metric, cpu)| NewSeries {
        in_period: false,
        source: "procstat".to_owned(),
        metric: format!("metric-{metric}"),
        class: "throughput".to_owned(),
        unit: "1/s".to_owned(),
        aggregation: Aggregation::Sum,
        labels: vec![
            ("hostname".to_owned(), format!("host-{host}")),
            ("num".to_owned(), cpu.to_string()),
            ("type".to_owned(), format!("type-{}", cpu % 2)),
        ],
        timeline: 0,
        values: values(metric, u64::from(host * 1009 + metric * 31 + cpu)),
    });
    CellEnd {
        timelines,
        series: series.collect(),
        ..CellEnd::without_result(CellStatus::Done, "", T0)
    }
}

/// CPU time of this thread.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration, Duration) {
    let (wall, used) = (Instant::now(), cpu());
    let done = work();
    (done, wall.elapsed(), cpu().saturating_sub(used))
}

fn new_run() -> NewRun {
    NewRun {
        iterations: vec![NewIteration::default()],
        cells: (1..=HOSTS).map(|sample| NewCell { iteration: 0, sample }).collect(),
        ..NewRun::default()
    }
}

fn query(run: RunId, metric: &str) -> SeriesQuery {
    let mut query = SeriesQuery::new(run, "procstat", metric);
    query.resolution = 100;
    query.breakouts = ["hostname", "num", "type"].map(Breakout::each).to_vec();
    query
}

fn main() -> Result<(), Box<dyn Error>> {
    let own = tempfile::tempdir()?;
    let directory = std::env::args_os().nth(1).map_or(own.path().to_owned(), PathBuf::from);
    let path = directory.join("speed.db");
    let mut out = std::io::stdout();
    let cells: Vec<CellEnd> = (0..HOSTS).map(cell).collect();
    let points = HOSTS as usize * (METRICS * CPUS) as usize * POINTS;
    let writer = Writer::open(&path)?;
    let (run, _) = writer.begin_run(new_run())?;
    let (imported, wall, _) = timed(|| {
        cells.into_iter().zip(0..).try_for_each(|(end, position)| {
            let attempt = writer.begin_cell(run, position, T0)?;
            writer.end_cell(attempt, end)
        })
    });
    imported?;
    writer.close()?;
    let size = std::fs::metadata(&path)?.len();
    writeln!(out, "import: {points} points in {wall:.2?}, {:.1} MB", size as f64 / 1e6)?;

    let store = Store::open_to_read(&path)?;
    for at in 0..METRICS {
        let (answer, wall, used) = timed(|| store.query(&query(run, &format!("metric-{at}"))));
        let answer = answer?;
        assert_eq!(answer.groups.len(), (HOSTS * CPUS) as usize);
        assert!(answer.groups.iter().all(|group| group.windows.len() == 100));
        writeln!(out, "one metric of {METRICS}, resolution 100: {used:.1?} of CPU, {wall:.1?}")?;
    }

    // A reader beside a writer that commits ticks each second and a cell now and then.
    let done = AtomicBool::new(false);
    let longest = thread::scope(|scope| -> Result<Duration, Box<dyn Error>> {
        let over = &done;
        let reading =
            scope.spawn(move || -> Result<Vec<Duration>, linerate_results::StoreError> {
                let mut waits = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    let (rows, wall, used) = timed(|| store.runs());
                    rows?;
                    waits.push(wall.saturating_sub(used));
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(waits)
            });
        let writer = Writer::open(&path)?;
        let (run, _) = writer.begin_run(new_run())?;
        for position in 0..10 {
            let attempt = writer.begin_cell(run, position, T0)?;
            for at_ms in 0..1000 {
                let (host, collector) = ("a".to_owned(), "cpu".to_owned());
                writer.tick(attempt, Tick { host, collector, at_ms, data: vec![7; 1000] })?;
            }
            writer.end_cell(attempt, cell(position))?;
        }
        writer.close()?;
        done.store(true, Ordering::Relaxed);
        let mut waits = reading.join().map_err(|_| "the reader failed")??;
        waits.sort_unstable();
        let half = waits.get(waits.len() / 2).copied().unwrap_or_default();
        writeln!(out, "reader beside a writer: {} reads, median wait {half:.1?}", waits.len())?;
        Ok(waits.last().copied().unwrap_or_default())
    })?;
    writeln!(
        out,
        "reader beside a writer: longest wait {longest:.1?} (waits for a processor included)"
    )?;
    Ok(())
}
