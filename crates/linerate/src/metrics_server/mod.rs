//! A page of HTTP with the metrics of the last runs, for monitoring systems.
//!
//! One thread serves all clients. It has the least priority, so that it takes no processor time from a measurement that
//! wants it. A client has a few seconds for its request and for the answer, and there are few clients at a time: one that
//! is slow or never ends keeps nobody out.

mod request;

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_results::exposition::{CONTENT_TYPE, Exposition};
use linerate_results::{Store, StoreError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::start_time::utc_now_ns;
use request::{Request, Wanted, render_answer};

/// Most clients at a time. The one that came first makes room for another.
const MOST_CLIENTS: usize = 32;
/// A client has so long for its request and for taking the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The store is read at most so often.
const LEAST_AGE: Duration = Duration::from_secs(1);
/// After a failure to accept, such as too many open files, there is a pause.
const PAUSE: Duration = Duration::from_millis(200);
/// The priority that takes nothing from others (nice(2)).
const LEAST_PRIORITY: i32 = 19;

const TEXT: &str = "text/plain; charset=utf-8";

/// The page, as long as this lives.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    address: SocketAddr,
    /// Its end tells the thread to end.
    alive: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens at an address and tells of the runs that a store has. The store need not be there yet.
    ///
    /// # Errors
    /// Where the address can't be listened at, or this machine has no room for a thread.
    pub(crate) fn start(address: SocketAddr, store: PathBuf) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (ended, alive) = io::pipe()?;
        let page = Page { path: store, store: None, exposition: Exposition::new(), last: None };
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || serve(&listener, &ended, page))?;
        Ok(Self { address, alive: Some(alive), thread: Some(thread) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ended = thread.join();
        }
    }
}

/// A client's connection.
struct Client {
    stream: TcpStream,
    until: Instant,
    request: Request,
    /// What is still to be sent, once the request is whole.
    answer: Option<Vec<u8>>,
}

fn serve(listener: &TcpListener, ended: &PipeReader, mut page: Page) {
    // Where it can't be lowered, it stays as it is.
    let _as_before = rustix::process::setpriority_process(None, LEAST_PRIORITY);
    let mut clients: Vec<Client> = Vec::new();
    let mut pause_until: Option<Instant> = None;
    loop {
        let now = Instant::now();
        let accepts = pause_until.is_none_or(|until| until <= now);
        let until =
            clients.iter().map(|client| client.until).chain(pause_until.filter(|_| !accepts)).min();
        let Some(ready) = wait(listener, ended, &clients, accepts, until) else { return };
        let now = Instant::now();
        if ready.accepts {
            pause_until = accept(listener, &mut clients, now).err().map(|_| now + PAUSE);
        }
        clients.retain_mut(|client| now < client.until && client.advance(&mut page));
    }
}

struct Ready {
    accepts: bool,
}

/// Waits for something to do. `None`: the server is to end.
fn wait(
    listener: &TcpListener,
    ended: &PipeReader,
    clients: &[Client],
    accepts: bool,
    until: Option<Instant>,
) -> Option<Ready> {
    let listens = if accepts { PollFlags::IN } else { PollFlags::empty() };
    let mut files = vec![PollFd::new(ended, PollFlags::IN), PollFd::new(listener, listens)];
    files.extend(clients.iter().map(|client| {
        let flags = if client.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&client.stream, flags)
    }));
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut files, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(_) => return None,
    }
    let is_ended = files.first().is_none_or(|file| !file.revents().is_empty());
    let accepts =
        accepts && files.get(1).is_some_and(|file| file.revents().contains(PollFlags::IN));
    (!is_ended).then_some(Ready { accepts })
}

/// Accepts all that wait.
fn accept(listener: &TcpListener, clients: &mut Vec<Client>, now: Instant) -> io::Result<()> {
    // No more than there is room for at one go: those that wait have their turn after them.
    for _ in 0..MOST_CLIENTS {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            // A client that has gone again is no failure.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionAborted | ErrorKind::Interrupted
                ) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        stream.set_nonblocking(true)?;
        if clients.len() == MOST_CLIENTS {
            clients.remove(0);
        }
        clients.push(Client {
            stream,
            until: now + PATIENCE,
            request: Request::default(),
            answer: None,
        });
    }
    Ok(())
}

impl Client {
    /// Does what can be done without waiting. Whether the connection is still needed.
    fn advance(&mut self, page: &mut Page) -> bool {
        if self.answer.is_none() && !self.receive(page) {
            return false;
        }
        let Some(answer) = &mut self.answer else { return true };
        while !answer.is_empty() {
            match self.stream.write(answer) {
                Ok(0) => return false,
                Ok(written) => drop(answer.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        false
    }

    /// Reads what has come. Whether the connection is still needed.
    fn receive(&mut self, page: &mut Page) -> bool {
        let mut bytes = [0; 2048];
        loop {
            let count = match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            };
            if let Some(wanted) = self.request.handle_bytes(bytes.get(..count).unwrap_or_default())
            {
                self.answer = Some(page.answer(wanted));
                return true;
            }
        }
    }
}

/// What is served.
struct Page {
    path: PathBuf,
    store: Option<Store>,
    exposition: Exposition,
    /// The last text or failure, and when it was made.
    last: Option<(Instant, Result<String, String>)>,
}

impl Page {
    fn answer(&mut self, wanted: Wanted) -> Vec<u8> {
        let failure = |status: &str, text: &str| render_answer(status, TEXT, text, false);
        match wanted {
            Wanted::Page | Wanted::Head => match self.text() {
                Ok(text) => render_answer("200 OK", CONTENT_TYPE, text, wanted == Wanted::Head),
                Err(why) => failure("503 Service Unavailable", &format!("{why}\n")),
            },
            Wanted::Unknown => failure("404 Not Found", "the metrics are at /metrics\n"),
            Wanted::Method => failure("405 Method Not Allowed", "this page can only be read\n"),
            Wanted::Nonsense => failure("400 Bad Request", "this is no request of HTTP/1\n"),
            Wanted::TooLong => {
                failure("431 Request Header Fields Too Large", "the request is too long\n")
            }
        }
    }

    /// The text, made anew where it is older than a second.
    fn text(&mut self) -> Result<&str, &str> {
        let is_fresh = self.last.as_ref().is_some_and(|(made, _)| made.elapsed() < LEAST_AGE);
        if !is_fresh {
            let made = self.render().map_err(|error| error.to_string());
            if made.is_err() {
                // The file may be another one by the next time.
                self.store = None;
            }
            self.last = Some((Instant::now(), made));
        }
        match &self.last {
            Some((_, Ok(text))) => Ok(text),
            Some((_, Err(why))) => Err(why),
            None => Err("nothing was read"),
        }
    }

    fn render(&mut self) -> Result<String, StoreError> {
        if self.store.is_none() && self.path.exists() {
            self.store = Some(Store::open_to_read(&self.path)?);
        }
        let now_ms = utc_now_ns() / 1_000_000;
        match &self.store {
            Some(store) => self.exposition.render(store, now_ms),
            None => Ok(self.exposition.render_known(now_ms)),
        }
    }
}
