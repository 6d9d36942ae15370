//! Pages over HTTP/1: the metrics of the last runs for monitoring systems, and the pages of a store.
//!
//! One thread serves all clients. It has the least priority, so that it takes no processor time from a measurement that
//! wants it. A client has a few seconds for its request and for the answer, and there are few clients at a time: one that
//! is slow or never ends keeps nobody out. There is no TLS, and nothing can be changed.

mod request;

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use request::{Reading, render_refusal};
pub(crate) use request::{Request, TEXT, render_answer};

/// Most clients at a time. The one that came first makes room for another.
const MOST_CLIENTS: usize = 32;
/// A client has so long for its request, and again for taking the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// After a failure to accept, such as too many open files, there is a pause.
const PAUSE: Duration = Duration::from_millis(200);
/// How often it is looked whether there is something to tell to those that follow.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// So many bytes may wait for one that follows.
const MOST_UNTOLD_BYTES: usize = 64 * 1024;
/// The priority that takes nothing from others (nice(2)).
const LEAST_PRIORITY: i32 = 19;

/// The head of server-sent events (WHATWG HTML, section 9.2).
const EVENTS_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
    Connection: close\r\n\r\n";

/// What a server has to say.
pub(crate) trait Site: Send + 'static {
    /// The answer to a request to read.
    fn answer(&mut self, request: &Request) -> Answer;

    /// What those that follow are told whenever it changes: a line of text, or an empty one where it isn't known.
    fn version(&mut self) -> String {
        String::new()
    }
}

/// An answer.
pub(crate) enum Answer {
    /// All of it, after which the connection is closed.
    Whole(Vec<u8>),
    /// The versions of the site, as server-sent events.
    Events,
}

/// A site that is served, as long as this lives.
#[derive(Debug)]
pub(crate) struct HttpServer {
    address: SocketAddr,
    /// Its end tells the thread to end.
    alive: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Listens at an address.
    ///
    /// # Errors
    /// Where the address can't be listened at, or this machine has no room for a thread.
    pub(crate) fn start(address: SocketAddr, name: &str, site: impl Site) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (ended, alive) = io::pipe()?;
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || serve(&listener, &ended, site))?;
        Ok(Self { address, alive: Some(alive), thread: Some(thread) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
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
    request: Reading,
    /// What is still to be sent, once the request is whole.
    answer: Option<Vec<u8>>,
    /// The version that it was told last, where it follows.
    told: Option<String>,
}

fn serve(listener: &TcpListener, ended: &PipeReader, mut site: impl Site) {
    // Where it can't be lowered, it stays as it is.
    let _as_before = rustix::process::setpriority_process(None, LEAST_PRIORITY);
    let mut clients: Vec<Client> = Vec::new();
    let mut pause_until: Option<Instant> = None;
    let mut tell_at = Instant::now();
    loop {
        let now = Instant::now();
        let accepts = pause_until.is_none_or(|until| until <= now);
        let tells = clients.iter().any(|client| client.told.is_some()).then_some(tell_at);
        let ends = clients.iter().map(|client| client.until);
        let until = ends.chain(pause_until.filter(|_| !accepts)).chain(tells).min();
        let Some(ready) = wait(listener, ended, &clients, accepts, until) else { return };
        let now = Instant::now();
        if ready.accepts {
            pause_until = accept(listener, &mut clients, now).err().map(|_| now + PAUSE);
        }
        if tells.is_some() && tell_at <= now {
            tell_at = now + TELL_EVERY;
            let version = site.version();
            clients.iter_mut().for_each(|client| client.tell(&version, now));
        }
        // What has come is answered however late this thread is.
        clients.retain_mut(|client| client.advance(&mut site) && now < client.until);
        // The time in which this thread could serve nobody is not the clients'.
        let busy = now.elapsed();
        clients.iter_mut().for_each(|client| client.until += busy);
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
        let sends = client.answer.as_ref().is_some_and(|answer| !answer.is_empty());
        let flags = if sends { PollFlags::OUT } else { PollFlags::IN };
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
            request: Reading::default(),
            answer: None,
            told: None,
        });
    }
    Ok(())
}

impl Client {
    /// Does what can be done without waiting. Whether the connection is still needed.
    fn advance(&mut self, site: &mut impl Site) -> bool {
        let is_open = match (&self.answer, &self.told) {
            (None, _) => self.receive(site),
            (Some(_), Some(_)) => self.is_followed(),
            (Some(_), None) => true,
        };
        is_open && self.send()
    }

    /// Sends what is to be sent. Whether the connection is still needed.
    fn send(&mut self) -> bool {
        let Some(answer) = &mut self.answer else { return true };
        while !answer.is_empty() {
            match self.stream.write(answer) {
                Ok(0) => return false,
                Ok(written) => drop(answer.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        self.told.is_some()
    }

    /// Tells one that follows of a version, where it is new to it. A connection that takes nothing for some seconds is
    /// given up.
    fn tell(&mut self, version: &str, now: Instant) {
        let (Some(told), Some(answer)) = (&mut self.told, &mut self.answer) else { return };
        if answer.is_empty() {
            self.until = now + PATIENCE;
        }
        if !version.is_empty() && told != version && answer.len() < MOST_UNTOLD_BYTES {
            version.clone_into(told);
            answer.extend(format!("data: {version}\n\n").into_bytes());
        }
    }

    /// Whether one that follows is still there. What it sends is not read.
    fn is_followed(&mut self) -> bool {
        let mut bytes = [0; 256];
        match self.stream.read(&mut bytes) {
            Ok(count) => count > 0,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Reads what has come. Whether the connection is still needed.
    fn receive(&mut self, site: &mut impl Site) -> bool {
        let mut bytes = [0; 2048];
        loop {
            let count = match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            };
            let Some(request) = self.request.handle_bytes(bytes.get(..count).unwrap_or_default())
            else {
                continue;
            };
            self.answer = Some(match request.map(|request| site.answer(&request)) {
                Ok(Answer::Whole(answer)) => answer,
                Ok(Answer::Events) => {
                    self.told = Some(String::new());
                    EVENTS_HEAD.to_vec()
                }
                Err(refusal) => render_refusal(refusal),
            });
            // An answer may have taken long to make.
            self.until = Instant::now() + PATIENCE;
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    struct Greeting;

    impl Site for Greeting {
        fn answer(&mut self, request: &Request) -> Answer {
            Answer::Whole(render_answer("200 OK", TEXT, "hello\n", request.head_only))
        }
    }

    /// A client whose time is over, and its other end.
    fn connected() -> (Client, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let until = Instant::now();
        let request = Reading::default();
        (Client { stream, until, request, answer: None, told: None }, other)
    }

    #[test]
    fn those_that_follow_are_told_new_versions_and_no_empty_one() {
        let (mut client, _other) = connected();
        (client.told, client.answer) = (Some(String::new()), Some(Vec::new()));
        for version in ["1", "", "1", "2"] {
            client.tell(version, Instant::now());
        }
        assert_eq!(client.answer.as_deref(), Some(b"data: 1\n\ndata: 2\n\n".as_slice()));
    }

    #[test]
    fn the_time_to_take_an_answer_begins_when_the_answer_is_made() {
        let (mut client, mut other) = connected();
        let before = client.until;
        other.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        assert!(!client.advance(&mut Greeting), "the answer is sent as a whole");
        assert!(client.until >= before + PATIENCE);
        drop(client);
        let mut answer = String::new();
        other.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("hello\n"), "{answer}");
    }
}
