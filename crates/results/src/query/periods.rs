//! A metric in all periods of a run: what a matrix shows of its cells.

use std::collections::BTreeMap;

use linerate_measure::window::{MAX_WINDOWS, Span, windows};

use super::reader::Reader;
use super::{MOST_VALUES, Selected, SeriesQuery, Sum, Window};
use crate::StoreError;
use crate::store::{RunId, Store};

/// A metric in the periods of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Periods {
    /// The unit of all values.
    pub unit: String,
    /// By the names of the periods their windows. A period in which nothing was measured is absent.
    pub windows: BTreeMap<String, Vec<Window>>,
}

/// Windows by the names of periods and the values of a label.
type Apart = BTreeMap<(String, String), Vec<Window>>;

impl Store {
    /// What a metric was in each period of a run, so many windows each: what [`Store::query`] answers for them one by
    /// one. The series are looked up once.
    ///
    /// # Errors
    /// Where source or metric are not there, there are too many windows, or the file breaks its format.
    pub fn query_periods(
        &self,
        run: RunId,
        (source, metric): (&str, &str),
        resolution: u32,
    ) -> Result<Periods, StoreError> {
        let (unit, answered) = self.answer_periods(run, (source, metric), resolution, None)?;
        let windows = answered.into_iter().map(|((period, _), windows)| (period, windows));
        Ok(Periods { unit, windows: windows.collect() })
    }

    /// What a metric was in each period of a run as a whole, for each value of a label apart: by the names of periods
    /// and the label's values. Series without the label are left out.
    ///
    /// # Errors
    /// As [`Self::query_periods`].
    pub fn query_periods_by(
        &self,
        run: RunId,
        metric: (&str, &str),
        label: &str,
    ) -> Result<BTreeMap<(String, String), f64>, StoreError> {
        let (_, answered) = self.answer_periods(run, metric, 1, Some(label))?;
        let value = |windows: Vec<Window>| windows.first()?.value;
        let known = answered.into_iter().filter_map(|(key, windows)| Some((key, value(windows)?)));
        Ok(known.collect())
    }

    /// The unit of a metric, and its windows by the names of periods and the values of a label, which are empty where
    /// no label is given.
    fn answer_periods(
        &self,
        run: RunId,
        (source, metric): (&str, &str),
        resolution: u32,
        label: Option<&str>,
    ) -> Result<(String, Apart), StoreError> {
        let query = SeriesQuery::new(run, source, metric);
        let (kind, selected) = self.select(&query, None)?;
        let spans = self.periods(run)?;
        let values = spans.len().saturating_mul(resolution as usize);
        if !(1..=MAX_WINDOWS).contains(&resolution) || values > MOST_VALUES {
            return Err(StoreError::NotFound(format!(
                "{} periods of {resolution} windows: give 1 to {MAX_WINDOWS}, and at most {MOST_VALUES} together",
                spans.len()
            )));
        }
        let mut of_run: Vec<&Selected> = Vec::new();
        let mut of_period: BTreeMap<i64, Vec<&Selected>> = BTreeMap::new();
        for series in &selected {
            match series.period {
                Some(period) => of_period.entry(period).or_default().push(series),
                None => of_run.push(series),
            }
        }
        let mut answered = Apart::new();
        for (id, uuid, span) in spans {
            let own = of_period.get(&id).map(Vec::as_slice).unwrap_or_default();
            if own.is_empty() && of_run.is_empty() {
                continue;
            }
            let windows = windows(span, resolution);
            let mut groups: BTreeMap<String, Vec<&Selected>> = BTreeMap::new();
            for series in own.iter().chain(&of_run) {
                let group = match label {
                    None => Some(String::new()),
                    Some(label) => series.labels.get(label).cloned(),
                };
                group.into_iter().for_each(|group| groups.entry(group).or_default().push(series));
            }
            for (group, of_group) in groups {
                let mut sum = Sum::new(windows.len());
                let mut reader =
                    Reader::new(self, &query, &windows, kind.aggregation.is_extreme())?;
                for series in of_group {
                    sum.rows += 1;
                    reader.add(series, &mut sum)?;
                    sum.identities.insert(series.labels.clone());
                }
                let shown = windows.iter().enumerate();
                let shown = shown.map(|(at, span)| sum.window(at, *span, kind.aggregation, false));
                answered.insert((uuid.clone(), group), shown.collect());
            }
        }
        Ok((kind.unit, answered))
    }

    /// The periods of a run: id, name and time.
    fn periods(&self, run: RunId) -> Result<Vec<(i64, String, Span)>, StoreError> {
        let sql = "SELECT p.id, p.uuid, p.begin_ms, p.end_ms FROM iteration i JOIN sample s ON s.iteration = i.id \
                   JOIN period p ON p.sample = s.id WHERE i.run = ?1 ORDER BY p.id";
        let mut rows = self.connection.prepare(sql)?;
        let rows = rows.query_map([run.0], |row| {
            Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get(3)?))
        })?;
        let mut periods = Vec::new();
        for row in rows {
            let (id, uuid, begin, end) = row?;
            let span = Span::new(begin, end)
                .ok_or_else(|| StoreError::Damaged(format!("the period {uuid} has no time")))?;
            periods.push((id, uuid, span));
        }
        Ok(periods)
    }
}
