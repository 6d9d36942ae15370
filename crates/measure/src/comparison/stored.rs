//! Stored runs, read one after the other: of each only what a comparison needs is kept.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};

use super::{ComparedRun, Figures, Side, figures_of_run};
use crate::{Outcome, Run};

/// The most runs of one side.
const MOST_RUNS: usize = 100_000;

/// The runs of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRuns {
    /// All of them.
    pub runs: Vec<ComparedRun>,
    /// The first with its plan and its machines.
    pub first: Option<Box<Run>>,
}

impl StoredRuns {
    /// Reads one run document, an array of them, or the document of several runs of one plan, in one pass.
    ///
    /// # Errors
    ///
    /// Another text, or more than 100,000 runs.
    pub fn parse(text: &str, side: Side) -> Result<Self, serde_json::Error> {
        let mut source = serde_json::Deserializer::from_str(text);
        let stored = source.deserialize_any(Runs { side, most: MOST_RUNS })?;
        source.end()?;
        Ok(stored)
    }

    fn add(&mut self, side: Side, run: Run) {
        self.runs.push(compared(side, self.runs.len() + 1, &run));
        if self.first.is_none() {
            self.first = Some(Box::new(run));
        }
    }
}

fn compared(side: Side, pair: usize, run: &Run) -> ComparedRun {
    let is_measured = matches!(run.status.outcome, Outcome::Complete | Outcome::Untrustworthy);
    ComparedRun {
        side,
        pair,
        run_id: Some(run.run_id.clone()),
        exit_code: run.status.exit_code.into(),
        figures: if is_measured { figures_of_run(run) } else { Figures::new() },
        message: run.status.message.clone(),
    }
}

struct Runs {
    side: Side,
    most: usize,
}

impl<'de> DeserializeSeed<'de> for Runs {
    type Value = StoredRuns;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<StoredRuns, D::Error> {
        source.deserialize_seq(self)
    }
}

/// An object whose first key was read already.
struct Begun<M> {
    key: Option<String>,
    map: M,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for Begun<M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        match self.key.take() {
            Some(key) => seed.deserialize(key.into_deserializer()).map(Some),
            None => self.map.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.map.next_value_seed(seed)
    }
}

impl<'de> Visitor<'de> for Runs {
    type Value = StoredRuns;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a run document or an array of them")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<StoredRuns, M::Error> {
        let key: Option<String> = map.next_key()?;
        // The first field of several runs of one plan has their documents.
        if key.as_deref() == Some("documents") {
            let stored = map.next_value_seed(self)?;
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(stored);
        }
        let mut stored = StoredRuns { runs: Vec::new(), first: None };
        let map = MapAccessDeserializer::new(Begun { key, map });
        stored.add(self.side, Run::deserialize(map)?);
        Ok(stored)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut runs: S) -> Result<StoredRuns, S::Error> {
        let mut stored = StoredRuns { runs: Vec::new(), first: None };
        while let Some(run) = runs.next_element()? {
            if stored.runs.len() == self.most {
                return Err(S::Error::custom(format!("more than {} runs", self.most)));
            }
            stored.add(self.side, run);
        }
        Ok(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Direction, Plan, Transport, Workload};
    use crate::run::Draft;

    fn document(id: &str) -> String {
        let workload = Workload::stream(Direction::Up, Transport::Tcp);
        let draft = Draft::new(id.to_owned(), Plan::new("h", 1, workload));
        let mut run = draft.into_run(Outcome::Complete, 0, None);
        run.summary.goodput_bps = Some(1.0);
        serde_json::to_string(&run).unwrap()
    }

    fn ids(text: &str) -> Vec<(usize, Option<String>)> {
        let stored = StoredRuns::parse(text, Side::B).unwrap();
        assert_eq!(stored.first.map(|run| run.run_id), stored.runs[0].run_id);
        stored.runs.into_iter().map(|run| (run.pair, run.run_id)).collect()
    }

    #[test]
    fn one_document_an_array_and_several_runs_of_one_plan_are_read() {
        let id = |id: &str| Some(id.to_owned());
        assert_eq!(ids(&document("a")), [(1, id("a"))]);
        let both = format!(" [\n{}, {}]\n", document("a"), document("b"));
        assert_eq!(ids(&both), [(1, id("a")), (2, id("b"))]);
        let repeats =
            format!("{{\"documents\": [{}, {}], \"most_runs\": 2}}", document("a"), document("b"));
        assert_eq!(ids(&repeats), [(1, id("a")), (2, id("b"))]);
        let none = StoredRuns::parse("[]", Side::A).unwrap();
        assert_eq!((none.runs.len(), none.first), (0, None));
    }

    #[test]
    fn other_texts_are_refused() {
        let one = document("a");
        let begun = one.strip_prefix('{').unwrap();
        let cut = "{\"documents\": [7]}";
        for text in ["", "7", "{}", "[7]", cut, &format!("{one}{one}"), &format!("[{one}"), begun] {
            assert!(StoredRuns::parse(text, Side::A).is_err(), "{text}");
        }
        let text = format!("[{one},{one}]");
        let mut source = serde_json::Deserializer::from_str(&text);
        let error = source.deserialize_any(Runs { side: Side::A, most: 1 }).unwrap_err();
        assert!(error.to_string().starts_with("more than 1 runs"), "{error}");
    }
}
