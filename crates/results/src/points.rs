//! The points of series, one series after the other, for export and drawing.

use std::collections::BTreeMap;

use linerate_measure::window::Span;
use rusqlite::{OptionalExtension, params};

use crate::chunk::{decode_spans, decode_values, part_length};
use crate::insert::MOST_PARTS;
use crate::store::{RunId, Store};
use crate::{Aggregation, StoreError};

/// A series with all its points.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesPoints {
    /// The numbers of iteration and sample, from 1, where it belongs to a cell.
    pub cell: Option<(u32, u32)>,
    /// The number of the attempt at the cell, from 1; 0 where it belongs to none.
    pub attempt: u32,
    /// Whether it belongs to the cell's period.
    pub in_period: bool,
    /// Who measured.
    pub source: String,
    /// The metric.
    pub metric: String,
    /// The class of the metric.
    pub class: String,
    /// The unit of the values.
    pub unit: String,
    /// How its values become one with others'.
    pub aggregation: Aggregation,
    /// What tells it from others of the metric.
    pub labels: BTreeMap<String, String>,
    /// Its points: when, and the value.
    pub points: Vec<(Span, f64)>,
}

/// The most points of a series that are given at once.
const MOST_POINTS: usize = 100_000_000;

impl Store {
    /// Gives each series of a run to a function, in the order in which they were written.
    ///
    /// # Errors
    /// Where the file can't be read or breaks its format, or the function's own.
    pub fn each_series<E: From<StoreError>>(
        &self,
        run: RunId,
        mut take: impl FnMut(SeriesPoints) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut last = -1;
        while let Some((id, timeline, series)) = self.series_after(run, last)? {
            last = id;
            take(self.points_of(id, timeline, series)?)?;
        }
        Ok(())
    }

    /// Likewise, those of the cell of this position in the run's order.
    ///
    /// # Errors
    /// As [`Self::each_series`].
    pub fn each_series_of_cell<E: From<StoreError>>(
        &self,
        run: RunId,
        position: u32,
        mut take: impl FnMut(SeriesPoints) -> Result<(), E>,
    ) -> Result<(), E> {
        for id in self.series_of_cell(run, position)? {
            // None is removed while a cell is read but by another process.
            if let Some((_, timeline, series)) =
                self.series_after(run, id - 1)?.filter(|(next, ..)| *next == id)
            {
                take(self.points_of(id, timeline, series)?)?;
            }
        }
        Ok(())
    }

    fn series_of_cell(&self, run: RunId, position: u32) -> Result<Vec<i64>, StoreError> {
        let sql = "SELECT s.id FROM iteration i JOIN sample ON sample.iteration = i.id \
                   JOIN attempt a ON a.sample = sample.id JOIN series s ON s.attempt = a.id \
                   WHERE i.run = ?1 AND sample.position = ?2 ORDER BY s.id";
        let mut rows = self.connection.prepare(sql)?;
        let rows = rows.query_map(params![run.0, position], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn series_after(
        &self,
        run: RunId,
        last: i64,
    ) -> Result<Option<(i64, i64, SeriesPoints)>, StoreError> {
        let sql = "SELECT s.id, s.timeline, s.source, s.type, s.class, s.unit, i.num, sample.num, s.aggregation, \
                   coalesce(a.num, 0), s.period IS NOT NULL FROM series s \
                   LEFT JOIN attempt a ON s.attempt = a.id LEFT JOIN sample ON a.sample = sample.id \
                   LEFT JOIN iteration i ON sample.iteration = i.id \
                   WHERE s.run = ?1 AND s.id > ?2 ORDER BY s.id LIMIT 1";
        let mut statement = self.connection.prepare(sql)?;
        let row = statement.query_row(params![run.0, last], |row| {
            let cell = row.get::<_, Option<u32>>(6)?.zip(row.get::<_, Option<u32>>(7)?);
            let aggregation: String = row.get(8)?;
            let series = SeriesPoints {
                cell,
                attempt: row.get(9)?,
                in_period: row.get(10)?,
                source: row.get(2)?,
                metric: row.get(3)?,
                class: row.get(4)?,
                unit: row.get(5)?,
                aggregation: Aggregation::of_name(&aggregation).unwrap_or_default(),
                labels: BTreeMap::new(),
                points: Vec::new(),
            };
            Ok((row.get(0)?, row.get(1)?, series))
        });
        Ok(row.optional()?)
    }

    fn points_of(
        &self,
        id: i64,
        timeline: i64,
        mut series: SeriesPoints,
    ) -> Result<SeriesPoints, StoreError> {
        let mut labels =
            self.connection.prepare("SELECT name, value FROM label WHERE series = ?1")?;
        let labels = labels.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        series.labels = labels.collect::<Result<_, _>>()?;
        let mut parts = self.connection.prepare(
            "SELECT t.count, t.data, c.data FROM timeline t JOIN chunk c ON c.id = (?1 << 20) + t.part \
             WHERE t.id = ?2 AND t.part BETWEEN 0 AND ?3 ORDER BY t.part",
        )?;
        let mut rows = parts.query(params![id, timeline, MOST_PARTS as i64 - 1])?;
        while let Some(row) = rows.next()? {
            let count = part_length(row.get(0)?)?;
            let blob = |column| -> Result<&[u8], StoreError> {
                Ok(row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?)
            };
            let spans = decode_spans(blob(1)?, count)?;
            let values = decode_values(blob(2)?, count)?;
            series.points.extend(spans.spans().iter().copied().zip(values));
            if series.points.len() > MOST_POINTS {
                let why = format!("a series has more than {MOST_POINTS} points");
                return Err(StoreError::Damaged(why));
            }
        }
        Ok(series)
    }
}
