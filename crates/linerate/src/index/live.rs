//! Sends a run to an index while it is measured.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_engine::event::Cancel;
use linerate_results::export::CdmVersion;
use linerate_results::export::client::{Index, IndexError};
use linerate_results::export::outbox::{count, deliver, waiting_of};
use linerate_results::{RunId, Store};

use super::Target;
use crate::http_client::Http;
use crate::output::narrate;

/// The thread looks so often for parts of the run, unless it is told of one.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// An index that is away is asked again after so long.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// At the run's end the command waits so long for the rest.
const REST: Duration = Duration::from_secs(30);

/// A thread that is told to end has so long for it.
const GRACE: Duration = Duration::from_secs(5);

/// A thread that sends what waits in a store's outbox.
#[derive(Debug)]
pub(crate) struct Live {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    cancel: Cancel,
    path: PathBuf,
    target: Target,
}

impl Live {
    /// Starts the thread for the outbox of a store.
    ///
    /// # Errors
    /// Where this machine has no thread left.
    pub(crate) fn start(
        path: &Path,
        target: &Target,
        version: Option<CdmVersion>,
    ) -> Result<Self, String> {
        let cancel = Cancel::default();
        let (wake, woken) = sync_channel(1);
        let sender = Sender {
            path: path.to_owned(),
            target: target.clone(),
            version,
            cancel: cancel.clone(),
            index: None,
            told: None,
        };
        let thread = thread::Builder::new()
            .name("index".to_owned())
            .spawn(move || sender.follow(&woken))
            .map_err(|error| format!("there is no thread left to send to the index: {error}"))?;
        Ok(Self {
            wake: Some(wake),
            thread: Some(thread),
            cancel,
            path: path.to_owned(),
            target: target.clone(),
        })
    }

    /// Something is in the outbox. Never waits.
    pub(crate) fn wake(&self) {
        match self.wake.as_ref().map(|wake| wake.try_send(())) {
            // It is awake already, or has ended and said why.
            None | Some(Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(()))) => {}
        }
    }

    /// Waits for the rest of the run, for a while at most, and says what is left.
    pub(crate) fn end(mut self, interrupted: &Cancel) {
        self.wake = None;
        let mut until = Instant::now() + REST;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            let is_late = Instant::now() > until;
            if is_late && self.cancel.requested() {
                // What it has not sent stays in the outbox.
                self.thread = None;
            } else if is_late || (interrupted.requested() && !self.cancel.requested()) {
                self.cancel.request();
                until = Instant::now() + GRACE;
            }
            thread::sleep(Duration::from_millis(20));
        }
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
        report_waiting(&self.path, self.target.url());
    }
}

/// Says what an index has not got.
pub(crate) fn report_waiting(path: &Path, url: &str) {
    let waiting = Store::open_to_read(path).and_then(|store| count(&store, url));
    match waiting {
        Ok(0) => {}
        Ok(parts) => narrate(&format!(
            "linerate: {parts} parts of runs wait for the index: `linerate results outbox --send {url}` sends them\n"
        )),
        Err(error) => narrate(&format!("linerate: {error}\n")),
    }
}

/// Says which indices a run goes to that this command did not send to, all but `served`, and what they lack.
pub(crate) fn report_unserved(path: &Path, run: RunId, name: &str, served: Option<&str>) {
    let waiting = Store::open_to_read(path).and_then(|store| waiting_of(&store, run));
    let waiting = match waiting {
        Ok(waiting) => waiting,
        Err(error) => return narrate(&format!("linerate: {error}\n")),
    };
    for (url, parts) in waiting.iter().filter(|(url, _)| Some(url.as_str()) != served) {
        narrate(&format!(
            "linerate: the run {name} had --index {url} before, and {parts} parts of it wait for that index: \
             `linerate results outbox --send {url}` sends them\n"
        ));
    }
}

/// What the thread has.
struct Sender {
    path: PathBuf,
    target: Target,
    version: Option<CdmVersion>,
    cancel: Cancel,
    index: Option<Index<Http>>,
    /// What was said last, so that it is said once.
    told: Option<String>,
}

impl Sender {
    fn follow(mut self, woken: &Receiver<()>) {
        let store = match Store::open(&self.path) {
            Ok(store) => store,
            Err(error) => return narrate(&format!("linerate: the index gets nothing: {error}\n")),
        };
        loop {
            let ends = match woken.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Disconnected) => true,
                Ok(()) | Err(RecvTimeoutError::Timeout) => false,
            };
            while let Err(error) = self.send(&store) {
                self.tell(&error);
                // A certificate is not trusted later either.
                if matches!(error, IndexError::Untrusted(_)) {
                    return;
                }
                let is_away = matches!(error, IndexError::Away(_));
                if !is_away || self.cancel.requested() {
                    break;
                }
                let again = Instant::now() + AGAIN_AFTER;
                while Instant::now() < again && !self.cancel.requested() {
                    thread::sleep(Duration::from_millis(50));
                }
            }
            if ends {
                return;
            }
        }
    }

    fn send(&mut self, store: &Store) -> Result<(), IndexError> {
        if count(store, self.target.url())? == 0 {
            return Ok(());
        }
        let mut index = match self.index.take() {
            Some(index) => index,
            None => self.target.open(self.version, 2, &self.cancel)?,
        };
        let delivered = deliver(store, &mut index, self.target.url())?;
        self.index = Some(index);
        match &delivered.failure {
            Some(failure) => self.tell(failure),
            None => self.told = None,
        }
        if delivered.refused > 0 {
            narrate(
                "linerate: the index refused documents of the run for their content: `linerate results outbox` has \
                 its reasons\n",
            );
        }
        Ok(())
    }

    fn tell(&mut self, error: &IndexError) {
        let text = error.to_string();
        if self.told.as_ref() != Some(&text) {
            narrate(&format!("linerate: {text}; the results are kept in the store and wait\n"));
            self.told = Some(text);
        }
    }
}
