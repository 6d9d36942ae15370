//! `web`: the pages of a store, for a browser on this machine.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use linerate_engine::event::Cancel;
use linerate_measure::comparison::{Asked, Side, StoredRuns};
use linerate_measure::run::exit;
use linerate_report::{Page, Source, render_list};
use linerate_results::read::{Extent, RunRow};
use linerate_results::{Store, StoreError};

use super::compare::stored::compare_runs;
use super::report::{of_pair, of_store};
use super::{Failure, print};
use crate::args::WebArgs;
use crate::follow::{Followed, Follower};
use crate::http::{Answer, HttpServer, Request, Site, TEXT, render_answer};
use crate::output::{Document, listed_run, ongoing_page, page_saying, render_json};
use crate::store::{self, WatchedStore};

const HTML: &str = "text/html; charset=utf-8";
/// Where the site tells of changes.
const EVENTS: &str = "/events";
/// The run that is being measured.
const LIVE: &str = "/live";
/// The most runs of the list; the others are found by their names.
const MOST_RUNS: usize = 2000;
/// How often it is looked whether a signal has come.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Serves the pages until a signal comes.
pub(super) fn serve_store(args: &WebArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let path = store::place(args.store.as_deref()).map_err(Failure::here)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let follower = args.follow.as_deref().map(Follower::new);
    let store = WatchedStore::new(path.clone());
    let site = StoreSite { store, version: None, follower };
    let server = HttpServer::start(address, "web", site);
    let server = server.map_err(|error| {
        Failure::here(format!(
            "--port {}: {address} can't be listened at ({error}): name another port, or 0 for a free one",
            args.port
        ))
    })?;
    print(&format!("http://{}/ has the runs of {}\n", server.address(), path.display()))?;
    if let Some(file) = &args.follow {
        print(&format!("http://{}{LIVE} follows {}\n", server.address(), file.display()))?;
    }
    while !cancel.requested() {
        thread::sleep(LOOK_EVERY);
    }
    Ok(exit::VALID)
}

/// The pages of a store, which need not be there yet.
struct StoreSite {
    store: WatchedStore,
    /// The version of the store at the last look.
    version: Option<String>,
    /// The run that is followed beside them.
    follower: Option<Follower>,
}

/// Why a request has no page.
enum Missing {
    /// There is nothing of this name.
    Unknown(String),
    /// The store can't be read.
    Store(StoreError),
}

impl From<StoreError> for Missing {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(why) => Self::Unknown(why),
            error => Self::Store(error),
        }
    }
}

impl Site for StoreSite {
    fn answer(&mut self, request: &Request) -> Answer {
        let refuse = |status: &str, why: &str| {
            Answer::Whole(render_answer(status, TEXT, &format!("{why}\n"), request.head_only))
        };
        if !is_this_machine(&request.host) {
            return refuse(
                "421 Misdirected Request",
                "these pages are for browsers on this machine: http://127.0.0.1 and the port",
            );
        }
        if request.path == EVENTS {
            return Answer::Events;
        }
        match self.page(request) {
            Ok(html) => Answer::Whole(render_answer("200 OK", HTML, &html, request.head_only)),
            Err(Missing::Unknown(why)) => refuse("404 Not Found", &why),
            Err(Missing::Store(error)) => refuse("503 Service Unavailable", &error.to_string()),
        }
    }

    fn version(&mut self) -> String {
        // What can't be read now is told by its page.
        let _unread = self.follower.as_mut().map(Follower::look);
        // Of a store that can't be read the version is not known.
        let store = self.store_version().unwrap_or_default();
        store + &self.followed_version()
    }
}

impl StoreSite {
    /// The store; `None` where there is none yet.
    fn store(&mut self) -> Result<Option<&Store>, StoreError> {
        let looked = self.store.look()?;
        Ok(looked.map(|(store, has_changed)| {
            if has_changed {
                self.version = None;
            }
            store
        }))
    }

    /// The store that has a run.
    fn open(&mut self) -> Result<&Store, StoreError> {
        let path = self.store.path().to_owned();
        let none = || StoreError::Unusable { path, why: "there is no such file".to_owned() };
        self.store()?.ok_or_else(none)
    }

    /// The version of the store, which changes with its runs. It is never empty, and begins with a digit. A store that
    /// has not changed is not read.
    fn store_version(&mut self) -> Result<String, StoreError> {
        let extent = match self.store.look() {
            Ok(Some((_, false))) if self.version.is_some() => None,
            Ok(Some((store, _))) => Some(store.extent()),
            Ok(None) => Some(Ok(Extent::default())),
            Err(error) => Some(Err(error)),
        };
        if let Some(extent) = extent {
            self.version = None;
            self.version = Some(version_of(&extent?));
        }
        Ok(self.version.clone().unwrap_or_default())
    }

    /// The version of the run that is followed. Of the version of the site it is what begins at the last `+`. A page
    /// has either the version of the store or this one, and its script compares that part alone.
    fn followed_version(&self) -> String {
        let lines = self.follower.as_ref().map(|one| one.lines().to_string());
        format!("+{}", lines.unwrap_or_default())
    }

    /// The run that is followed.
    fn live(&mut self) -> Result<String, Missing> {
        let follower = self.follower.as_mut();
        let follower = follower.ok_or_else(|| {
            Missing::Unknown("nothing is followed: give `linerate web --follow FILE`".to_owned())
        })?;
        let path = follower.path().display().to_string();
        follower
            .look()
            .map_err(|error| Missing::Unknown(format!("{path} can't be followed: {error}")))?;
        let (page, text) = match follower.followed() {
            Followed::Nothing => {
                (page_saying("No run has begun", &format!("No run has begun in {path}.")), None)
            }
            Followed::Measuring(draft) => (ongoing_page(draft), None),
            Followed::Ended(run) => {
                let text = render_json(run) + "\n";
                (Document::Run(run.clone()).page("run.html"), Some(text))
            }
            Followed::Failed(why) => (page_saying("The run failed", why), None),
        };
        let live = Some((EVENTS.to_owned(), self.followed_version()));
        let page = Page { live, ..page };
        let source = text.as_deref().map(|text| Source { name: "run.json", text });
        Ok(page.render(source, &self.links()))
    }

    /// The links that stand above every page.
    fn links(&self) -> Vec<(&'static str, String)> {
        let live = self.follower.iter().map(|_| ("the run that is followed", LIVE.to_owned()));
        [("all runs", "/".to_owned())].into_iter().chain(live).collect()
    }

    fn page(&mut self, request: &Request) -> Result<String, Missing> {
        if request.path == "/" {
            return Ok(self.list()?);
        }
        if request.path == LIVE {
            return self.live();
        }
        if request.path == "/compare" {
            return self.comparison(&request.query);
        }
        let Some(name) = request.path.strip_prefix("/run/") else {
            return Err(Missing::Unknown("the runs are at /".to_owned()));
        };
        let links = self.links();
        if let [run, position, pair] = name.split('/').collect::<Vec<_>>()[..]
            && let (Ok(position), Ok(pair)) = (position.parse(), pair.parse())
        {
            let found = of_pair(self.open()?, run, position, pair)?;
            let page = found.page(&format!("{run}.html"));
            return Ok(page.render(Some(found.source()), &links));
        }
        let version = self.store_version()?;
        let store = self.open()?;
        let mut found = of_store(store, name)?;
        found.serve_at(request.path.clone());
        let file = format!("{name}.html");
        // The page of a run that goes on follows the store.
        let goes_on = store.find_exactly(name).is_ok_and(|run| run.ended_ms.is_none());
        let live = goes_on.then(|| (EVENTS.to_owned(), version));
        let page = Page { live, ..found.page(&file) };
        Ok(page.render(Some(found.source()), &links))
    }

    /// All runs.
    fn list(&mut self) -> Result<String, StoreError> {
        let version = self.store_version()?;
        let runs = self.store()?.map_or(Ok(Vec::new()), Store::runs)?;
        let earlier = earlier_runs(&runs);
        let listed = runs.iter().zip(earlier).take(MOST_RUNS);
        let listed = listed.map(|(run, earlier)| listed_run(run, earlier));
        let mut page = render_list("Runs", &listed.collect::<Vec<_>>());
        page.live = Some((EVENTS.to_owned(), version));
        Ok(page.render(None, &self.links()))
    }

    /// Two runs beside each other: `a=RUN&b=RUN`.
    fn comparison(&mut self, query: &str) -> Result<String, Missing> {
        let named = |name: &str| {
            let field = query.split('&').filter_map(|field| field.split_once('='));
            let found = field.filter(|(field, _)| *field == name).map(|(_, run)| run).next();
            found.ok_or_else(|| Missing::Unknown("a comparison is /compare?a=RUN&b=RUN".to_owned()))
        };
        let (a, b) = (named("a")?, named("b")?);
        let store = self.open()?;
        let [of_a, of_b] = [(a, Side::A), (b, Side::B)].map(|(name, side)| {
            let found = of_store(store, name)?;
            StoredRuns::parse(found.source().text, side).map_err(|_| {
                let other = "`linerate results diff` compares such runs";
                Missing::Unknown(format!("the run {name} has several cells or clients: {other}"))
            })
        });
        let asked = Asked { commands: [a.to_owned(), b.to_owned()], conditions: Vec::new() };
        let comparison = compare_runs(&asked, of_a?, of_b?);
        let text = render_json(&comparison) + "\n";
        let source = Source { name: "comparison.json", text: &text };
        let page = Document::Comparison(Box::new(comparison)).page("PAGE.html");
        Ok(page.render(Some(source), &self.links()))
    }
}

/// Whether a client takes the server for this machine. A name of another may lead here as well, by a page that wants to
/// read what only this machine may.
fn is_this_machine(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// What changes with the runs.
fn version_of(extent: &Extent) -> String {
    let Extent { runs, ended, done_cells, ended_cells, newest } = extent;
    format!("{runs}-{done_cells}-{ended_cells}-{ended}-{newest}")
}

/// Of each of these runs, the newest first, the one before it that it can be compared with: of one cell, and of the same
/// command, title and end.
fn earlier_runs(runs: &[RunRow]) -> Vec<Option<&RunRow>> {
    let mut last: HashMap<(&str, &str, bool), &RunRow> = HashMap::new();
    let mut earlier = Vec::with_capacity(runs.len());
    for run in runs.iter().rev() {
        let key = (run.command.as_str(), run.title.as_str(), run.run.ends_with(".server"));
        earlier.push(if run.cells == 1 { last.insert(key, run) } else { None });
    }
    earlier.reverse();
    earlier
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in ["127.0.0.1:5251", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:80", "[::1]"]
        {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            "example.org",
            "127.0.0.1.example.org",
            "example.org:127",
            "localhost:x",
            "::1",
            "[::1",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
