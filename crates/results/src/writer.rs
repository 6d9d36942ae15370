//! The one thread of a process that writes to a store.

use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Transaction, TransactionBehavior};

use crate::export::{CdmVersion, outbox};
use crate::identity::random_uuid;
use crate::model::{CellEnd, NewRun, Resumed, RunEnd, Tick};
use crate::store::{Journal, RunId, RunLock, Store};
use crate::{StoreError, insert};

/// Ticks wait so long for their commit: what a crash may lose.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// Orders that may wait for the thread; more wait at the caller.
const WAITING_MAX: usize = 1024;

/// Names an attempt at a cell within one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttemptId(i64);

type Order = Box<dyn FnOnce(&mut Work) + Send>;

/// Writes to a store by a thread of its own. Every function but [`Self::tick`] returns when its transaction is
/// committed.
#[derive(Debug)]
pub struct Writer {
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
    journal: Journal,
}

impl Writer {
    /// Opens or makes the store and starts the thread.
    ///
    /// # Errors
    /// Where the store can't be opened, or this machine has no thread left.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let store = Store::open(path)?;
        let journal = store.journal();
        let failure = Arc::new(Mutex::new(None));
        let (orders, waiting) = sync_channel::<Order>(WAITING_MAX);
        let mut work = Work {
            store,
            ticks: Vec::new(),
            due: None,
            locks: HashMap::new(),
            failure: Arc::clone(&failure),
        };
        let write = move || work.follow(&waiting);
        let thread = thread::Builder::new().name("store".to_owned()).spawn(write);
        let thread = thread.map_err(|error| StoreError::Unusable {
            path: path.to_owned(),
            why: format!("there is no thread left to write it: {error}"),
        })?;
        Ok(Self { orders: Some(orders), thread: Some(thread), failure, journal })
    }

    /// How the store keeps what is not committed yet.
    pub fn journal(&self) -> Journal {
        self.journal
    }

    /// Stores a run with all its cells waiting, and takes it for this process. Its id, and its name.
    ///
    /// # Errors
    /// Where the store has a run of this name, or what is given breaks a limit.
    pub fn begin_run(&self, mut run: NewRun) -> Result<(RunId, String), StoreError> {
        if run.uuid.is_empty() {
            run.uuid = random_uuid()?;
        }
        let name = run.uuid.clone();
        let begun = self.perform(move |work| {
            let lock = RunLock::take(work.store.path(), &run.uuid)?;
            let id = work.commit(|tables| insert::insert_run(tables, &run))?;
            work.locks.insert(id, lock);
            Ok(RunId(id))
        })?;
        Ok((begun, name))
    }

    /// Takes up a run again. Cells that a dead controller left running wait again. Where the run's plan has another
    /// digest than `hash`, nothing is changed, and the run has no cells.
    ///
    /// # Errors
    /// Where the store has no run of exactly this name, or another process works on it.
    pub fn resume_run(&self, uuid: &str, hash: &str) -> Result<(RunId, Resumed), StoreError> {
        let (uuid, hash) = (uuid.to_owned(), hash.to_owned());
        self.perform(move |work| {
            let lock = RunLock::take(work.store.path(), &uuid)?;
            let (id, resumed) = work.commit(|tables| insert::resume_run(tables, &uuid, &hash))?;
            work.locks.insert(id, lock);
            Ok((RunId(id), resumed))
        })
    }

    /// Notes that a run goes to the index of this address, with all that it has and gets: see
    /// [`outbox`](crate::export::outbox). The version is the one that is asked for, else the one that it has there,
    /// else the newest that the index has.
    ///
    /// # Errors
    /// Where SQLite fails.
    pub fn index_to(
        &self,
        run: RunId,
        target: &str,
        asked: Option<CdmVersion>,
    ) -> Result<(), StoreError> {
        let target = target.to_owned();
        self.perform(move |work| {
            work.commit(|tables| outbox::add_target(tables, run.0, &target, asked))
        })
    }

    /// Begins an attempt at the cell of this position in the run's order.
    ///
    /// # Errors
    /// Where the run has no such cell.
    pub fn begin_cell(
        &self,
        run: RunId,
        position: u32,
        began_ms: i64,
    ) -> Result<AttemptId, StoreError> {
        self.perform(move |work| {
            work.commit(|tables| insert::begin_cell(tables, run.0, position, began_ms))
                .map(AttemptId)
        })
    }

    /// Stores what an attempt came to, in one transaction, and removes its ticks.
    ///
    /// # Errors
    /// Where what is given breaks a limit; nothing of it is stored then.
    pub fn end_cell(&self, attempt: AttemptId, end: CellEnd) -> Result<(), StoreError> {
        self.perform(move |work| work.commit(|tables| insert::end_cell(tables, attempt.0, &end)))
    }

    /// Stores a second of a collector, within the next second. Returns at once.
    ///
    /// # Errors
    /// Where an earlier tick could not be stored.
    pub fn tick(&self, attempt: AttemptId, tick: Tick) -> Result<(), StoreError> {
        if let Some(why) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(StoreError::Unfit(format!("what collectors counted: {why}")));
        }
        self.send(Box::new(move |work| {
            work.ticks.push((attempt.0, tick));
            work.due.get_or_insert_with(|| Instant::now() + COMMIT_EVERY);
        }))
    }

    /// Stores a sentence about a run, or about the cell of this position.
    ///
    /// # Errors
    /// Where SQLite fails.
    pub fn note(&self, run: RunId, position: Option<u32>, text: &str) -> Result<(), StoreError> {
        let text = text.to_owned();
        self.perform(move |work| {
            work.commit(|tables| insert::insert_note(tables, run.0, position.map(i64::from), &text))
        })
    }

    /// Ends a run and lets it go.
    ///
    /// # Errors
    /// Where SQLite fails.
    pub fn end_run(&self, run: RunId, end: RunEnd) -> Result<(), StoreError> {
        self.perform(move |work| {
            work.commit(|tables| insert::end_run(tables, run.0, &end))?;
            work.locks.remove(&run.0);
            Ok(())
        })
    }

    /// Stores a run of one cell that is over, in one transaction.
    ///
    /// # Errors
    /// Where the store has a run of this name, or what is given breaks a limit.
    pub fn record(&self, run: NewRun, cell: CellEnd, end: RunEnd) -> Result<RunId, StoreError> {
        self.perform(move |work| {
            work.commit(|tables| {
                let id = insert::insert_run(tables, &run)?;
                let attempt = insert::begin_cell(tables, id, 0, run.began_ms)?;
                insert::end_cell(tables, attempt, &cell)?;
                insert::end_run(tables, id, &end)?;
                Ok(RunId(id))
            })
        })
    }

    /// Commits what waits and ends the thread.
    ///
    /// # Errors
    /// Where the last ticks could not be stored.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.end();
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(why) => Err(StoreError::Unfit(format!("what collectors counted: {why}"))),
            None => Ok(()),
        }
    }

    fn end(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }

    fn send(&self, order: Order) -> Result<(), StoreError> {
        let sent = self.orders.as_ref().and_then(|orders| orders.send(order).ok());
        sent.ok_or_else(writer_gone)
    }

    fn perform<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Work) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, done) = channel();
        self.send(Box::new(move |work| {
            // A caller that has gone needs no answer.
            let _unread = reply.send(order(work));
        }))?;
        done.recv().unwrap_or_else(|_| Err(writer_gone()))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}

fn writer_gone() -> StoreError {
    StoreError::WriterGone("standard error says which".to_owned())
}

/// What the thread has.
struct Work {
    store: Store,
    /// Ticks that are not committed yet, by attempt.
    ticks: Vec<(i64, Tick)>,
    /// When they must be.
    due: Option<Instant>,
    locks: HashMap<i64, RunLock>,
    failure: Arc<Mutex<Option<String>>>,
}

impl Work {
    fn follow(&mut self, orders: &Receiver<Order>) {
        loop {
            let order = match self.due {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => orders.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match order {
                Ok(order) => order(self),
                Err(RecvTimeoutError::Timeout) => self.commit_ticks(),
                Err(RecvTimeoutError::Disconnected) => return self.commit_ticks(),
            }
            if self.due.is_some_and(|due| due <= Instant::now()) {
                self.commit_ticks();
            }
        }
    }

    /// Commits the ticks that wait. A failure is told by the next one.
    fn commit_ticks(&mut self) {
        self.due = None;
        let ticks = std::mem::take(&mut self.ticks);
        if ticks.is_empty() {
            return;
        }
        let insert = |tables: &Transaction<'_>| {
            let mut ticks = ticks.iter();
            ticks.try_for_each(|(attempt, tick)| insert::insert_tick(tables, *attempt, tick))
        };
        if let Err(error) = self.transact(insert) {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            *failure = Some(error.to_string());
        }
    }

    /// Does one transaction, after the ticks that wait before it.
    fn commit<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.commit_ticks();
        self.transact(work)
    }

    fn transact<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let connection = &mut self.store.connection;
        let tables = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&tables)?;
        tables.commit()?;
        Ok(done)
    }
}
