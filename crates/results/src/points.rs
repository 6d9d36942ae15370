//! The points of series, one series after the other and part by part, for export.

use std::cell::RefCell;
use std::collections::BTreeMap;

use linerate_measure::window::Span;
use rusqlite::{Connection, OptionalExtension, Statement, params};

use crate::chunk::{decode_spans, decode_values, part_length};
use crate::insert::MOST_PARTS;
use crate::store::{RunId, Store};
use crate::{Aggregation, StoreError};

/// A series without its points.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesHead {
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
}

/// A point: when, and the value.
pub type Point = (Span, f64);

/// A series of a store, whose points are read when they are asked for.
#[derive(Debug)]
pub struct StoredSeries<'r, 'c> {
    /// What it is.
    pub head: SeriesHead,
    parts: &'r RefCell<Statement<'c>>,
    id: i64,
    timeline: i64,
}

/// Reads series, one after the other. Each question is prepared once.
struct Reader<'c> {
    series: Statement<'c>,
    labels: Statement<'c>,
    parts: RefCell<Statement<'c>>,
}

/// Names series that are read together: ids, 8 bytes each.
const OF_RUN: &str = "SELECT id FROM series WHERE run = ?1 AND ?2 IS NULL ORDER BY id";
const OF_CELL: &str = "SELECT s.id FROM sample JOIN attempt a ON a.sample = sample.id JOIN series s ON s.attempt = a.id \
     WHERE sample.run = ?1 AND sample.position = ?2 ORDER BY s.id";

impl Store {
    /// Gives each series of a run to a function, in the order in which they were written. Only the ids of all series
    /// are held at a time, and one series' head.
    ///
    /// # Errors
    /// Where the file can't be read or breaks its format, or the function's own.
    pub fn each_series<E: From<StoreError>>(
        &self,
        run: RunId,
        take: impl FnMut(&StoredSeries<'_, '_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_of(OF_RUN, run, None, take)
    }

    /// Likewise, those of the cell of this position in the run's order.
    ///
    /// # Errors
    /// As [`Self::each_series`].
    pub fn each_series_of_cell<E: From<StoreError>>(
        &self,
        run: RunId,
        position: u32,
        take: impl FnMut(&StoredSeries<'_, '_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_of(OF_CELL, run, Some(position), take)
    }

    fn each_of<E: From<StoreError>>(
        &self,
        sql: &str,
        run: RunId,
        position: Option<u32>,
        mut take: impl FnMut(&StoredSeries<'_, '_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reader = Reader::new(&self.connection)?;
        for id in self.ids(sql, run, position)? {
            // None is removed while it is read but by another process.
            if let Some(series) = reader.read(id)? {
                take(&series)?;
            }
        }
        Ok(())
    }

    fn ids(&self, sql: &str, run: RunId, position: Option<u32>) -> Result<Vec<i64>, StoreError> {
        let mut rows = self.connection.prepare(sql)?;
        let rows = rows.query_map(params![run.0, position], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl<'c> Reader<'c> {
    fn new(connection: &'c Connection) -> Result<Self, StoreError> {
        Ok(Self {
            series: connection.prepare(
                "SELECT s.timeline, s.source, s.type, s.class, s.unit, i.num, sample.num, s.aggregation, \
                 coalesce(a.num, 0), s.period IS NOT NULL FROM series s \
                 LEFT JOIN attempt a ON s.attempt = a.id LEFT JOIN sample ON a.sample = sample.id \
                 LEFT JOIN iteration i ON sample.iteration = i.id WHERE s.id = ?1",
            )?,
            labels: connection.prepare("SELECT name, value FROM label WHERE series = ?1")?,
            parts: RefCell::new(connection.prepare(
                "SELECT t.count, t.data, c.data FROM timeline t JOIN chunk c ON c.id = (?1 << 20) + t.part \
                 WHERE t.id = ?2 AND t.part BETWEEN 0 AND ?3 ORDER BY t.part",
            )?),
        })
    }

    fn read(&mut self, id: i64) -> Result<Option<StoredSeries<'_, 'c>>, StoreError> {
        let found = self.series.query_row([id], |row| {
            let cell = row.get::<_, Option<u32>>(5)?.zip(row.get::<_, Option<u32>>(6)?);
            let aggregation: String = row.get(7)?;
            let head = SeriesHead {
                cell,
                attempt: row.get(8)?,
                in_period: row.get(9)?,
                source: row.get(1)?,
                metric: row.get(2)?,
                class: row.get(3)?,
                unit: row.get(4)?,
                aggregation: Aggregation::of_name(&aggregation).unwrap_or_default(),
                labels: BTreeMap::new(),
            };
            Ok((row.get(0)?, head))
        });
        let Some((timeline, mut head)) = found.optional()? else { return Ok(None) };
        let labels = self.labels.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        head.labels = labels.collect::<Result<_, _>>()?;
        Ok(Some(StoredSeries { head, parts: &self.parts, id, timeline }))
    }
}

impl StoredSeries<'_, '_> {
    /// Gives the points to a function, part by part.
    ///
    /// # Errors
    /// Where the file can't be read or breaks its format, or the function's own.
    pub fn each_part<E: From<StoreError>>(
        &self,
        mut take: impl FnMut(&[Point]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut parts = self.parts.borrow_mut();
        let asked = params![self.id, self.timeline, MOST_PARTS as i64 - 1];
        let mut rows = parts.query(asked).map_err(StoreError::from)?;
        let mut last_ms = None;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let points = read_part(row)?;
            let begin_ms = points.first().map(|(span, _)| span.begin_ms);
            if begin_ms <= last_ms && last_ms.is_some() {
                return Err(StoreError::Damaged("the parts of a series overlap".to_owned()).into());
            }
            last_ms = points.last().map(|(span, _)| span.end_ms);
            take(&points)?;
        }
        Ok(())
    }
}

fn read_part(row: &rusqlite::Row<'_>) -> Result<Vec<Point>, StoreError> {
    let count = part_length(row.get(0)?)?;
    let blob = |column| -> Result<&[u8], StoreError> {
        Ok(row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?)
    };
    let spans = decode_spans(blob(1)?, count)?;
    let values = decode_values(blob(2)?, count)?;
    Ok(spans.spans().iter().copied().zip(values).collect())
}
