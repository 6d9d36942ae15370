//! The metrics of the last runs, for monitoring systems.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use linerate_results::StoreError;
use linerate_results::exposition::{CONTENT_TYPE, Exposition};

use crate::http::{Answer, Request, Site, TEXT, render_answer};
use crate::start_time::utc_now_ns;
use crate::store::WatchedStore;

/// The store is read at most so often.
const LEAST_AGE: Duration = Duration::from_secs(1);

/// `/metrics` of the runs that a store has. The store need not be there yet.
pub(crate) struct MetricsSite {
    store: WatchedStore,
    exposition: Exposition,
    /// Whether the last change could not be read.
    is_behind: bool,
    /// The last text or failure, and when it was made.
    last: Option<(Instant, Result<String, String>)>,
}

impl Site for MetricsSite {
    fn answer(&mut self, request: &Request) -> Answer {
        let head_only = request.head_only;
        Answer::Whole(match request.path.as_str() {
            "/metrics" => match self.text() {
                Ok(text) => render_answer("200 OK", CONTENT_TYPE, text, head_only),
                Err(why) => {
                    render_answer("503 Service Unavailable", TEXT, &format!("{why}\n"), head_only)
                }
            },
            _ => render_answer("404 Not Found", TEXT, "the metrics are at /metrics\n", head_only),
        })
    }
}

impl MetricsSite {
    /// The site of the store at a path.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            store: WatchedStore::new(path),
            exposition: Exposition::new(),
            is_behind: false,
            last: None,
        }
    }

    /// The text, made anew where it is older than a second.
    fn text(&mut self) -> Result<&str, &str> {
        let is_fresh = self.last.as_ref().is_some_and(|(made, _)| made.elapsed() < LEAST_AGE);
        if !is_fresh {
            let made = self.render().map_err(|error| error.to_string());
            self.last = Some((Instant::now(), made));
        }
        match &self.last {
            Some((_, Ok(text))) => Ok(text),
            Some((_, Err(why))) => Err(why),
            None => Err("nothing was read"),
        }
    }

    fn render(&mut self) -> Result<String, StoreError> {
        let now_ms = utc_now_ns() / 1_000_000;
        match self.store.look()? {
            Some((store, has_changed)) if has_changed || self.is_behind => {
                self.is_behind = true;
                let text = self.exposition.render(store, now_ms)?;
                self.is_behind = false;
                Ok(text)
            }
            _ => Ok(self.exposition.render_known(now_ms)),
        }
    }
}
