//! The file of a client's session with a server: what went into its handshakes, so that the next run of the program
//! has the last ticket.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rustls::ClientConfig;

use super::replay::{Handshake, Inputs, replay};
use super::tickets::Tickets;
use super::tls::ReplayableTls;
use crate::error::Error;

/// What a file begins with.
const MAGIC: &[u8] = b"linerate session 1\n";
/// The longest file that is read.
const MOST_BYTES: u64 = 4 << 20;
/// A ticket that was given in a resumed handshake takes all handshakes before it. After so many of them one begins
/// anew.
const MOST_HANDSHAKES: usize = 32;
/// How often a connection may come to nothing before the session is used no more. rustls keeps what a handshake
/// takes for as long as the program runs.
const MOST_ATTEMPTS: u32 = 16;
/// Tickets that are held of a server.
const MOST_TICKETS: usize = 8;

/// A client's session that outlives the program.
pub(crate) struct SessionFile {
    path: PathBuf,
    /// What the tickets come from.
    past: Vec<Handshake>,
    tls: ReplayableTls,
    tickets: Arc<Tickets>,
    /// Tickets that came from the past.
    known: AtomicU64,
    /// How often a connection came to nothing.
    attempts: AtomicU32,
    inputs: &'static Inputs,
    is_saved: AtomicBool,
    /// Whether it was told that the file can't be written.
    is_told: AtomicBool,
}

impl SessionFile {
    /// The session of a file, which needn't be there. One that this program can't go through again begins anew.
    ///
    /// # Errors
    ///
    /// Where the file can't be read, or is no session.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let mut past = read(path).map_err(|error| {
            Error::Host(format!("can't read the session in {}: {error}", path.display()))
        })?;
        if past.len() >= MOST_HANDSHAKES {
            past.clear();
        }
        let tls = ReplayableTls::new()?;
        let mut tickets = Arc::new(Tickets::new(MOST_TICKETS));
        let again = |one: &Handshake| replay(one, |inputs| tls.config(inputs, &tickets));
        if past.iter().try_for_each(again).is_err() {
            past.clear();
            tickets = Arc::new(Tickets::new(MOST_TICKETS));
        }
        let (known, attempts) = (AtomicU64::new(tickets.inserted()), AtomicU32::new(0));
        let inputs = Inputs::noted();
        let (path, is_saved, is_told) = (path.to_owned(), false.into(), false.into());
        Ok(Self { path, past, tls, tickets, known, attempts, inputs, is_saved, is_told })
    }

    /// TLS as the one connection of this run speaks it whose ticket is kept.
    ///
    /// # Errors
    ///
    /// Where TLS can't be set up.
    pub(crate) fn client_tls(&self) -> Result<ClientConfig, Error> {
        self.tls.config(self.inputs, &self.tickets)
    }

    /// What goes into that connection's handshake.
    pub(crate) fn inputs(&self) -> &'static Inputs {
        self.inputs
    }

    /// The connection came to nothing that used a ticket: another one of this run gets the same. Whether it can.
    pub(crate) fn begin_again(&self) -> bool {
        if self.attempts.fetch_add(1, Ordering::Relaxed) >= MOST_ATTEMPTS {
            return false;
        }
        self.tickets.clear();
        let again = |one: &Handshake| replay(one, |inputs| self.tls.config(inputs, &self.tickets));
        let is_whole = self.past.iter().try_for_each(again).is_ok();
        self.known.store(self.tickets.inserted(), Ordering::Relaxed);
        is_whole
    }

    /// Keeps the session for the next run, if there was a new ticket that isn't kept yet.
    ///
    /// # Errors
    ///
    /// Where it can't be written, in words, the first time. Each further call tries again.
    pub(crate) fn save(&self) -> Result<(), String> {
        // A ticket that is counted here came by a handshake that is read below.
        let is_old = self.tickets.inserted() == self.known.load(Ordering::Relaxed);
        if is_old || self.is_saved.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Some(handshake) = self.inputs.handshake() else { return Ok(()) };
        let past = [&self.past[..], &[handshake]].concat();
        match write_secret(&self.path, &render(&past)) {
            Ok(()) => self.is_saved.store(true, Ordering::Relaxed),
            Err(error) if !self.is_told.swap(true, Ordering::Relaxed) => {
                return Err(format!("can't write the session to {}: {error}", self.path.display()));
            }
            Err(_) => {}
        }
        Ok(())
    }
}

/// Writes a file that its owner alone may read, whole or not at all.
pub(super) fn write_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
    let file = open().or_else(|error| match error.kind() {
        // A run that was killed left it.
        ErrorKind::AlreadyExists => fs::remove_file(&part).and_then(|()| open()),
        _ => Err(error),
    });
    let written =
        file.and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // What is left of it is of no use.
        let _gone = fs::remove_file(&part);
    }
    written
}

/// The bytes of a file that needn't be there, without the word that it begins with; none of an empty one.
pub(super) fn read_kept(path: &Path, magic: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?,
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    let is_short = bytes.len() as u64 <= MOST_BYTES;
    let kept = bytes.strip_prefix(magic).filter(|_| is_short);
    kept.map(|kept| Some(kept.to_vec())).ok_or_else(not_ours)
}

/// A file holds something else.
pub(super) fn not_ours() -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        "the file is no session of linerate: remove it, or name another",
    )
}

fn read(path: &Path) -> io::Result<Vec<Handshake>> {
    let Some(bytes) = read_kept(path, MAGIC)? else { return Ok(Vec::new()) };
    let mut rest = bytes.as_slice();
    let mut past = Vec::new();
    while !rest.is_empty() {
        past.push(parse_handshake(&mut rest).ok_or_else(not_ours)?);
    }
    Ok(past)
}

fn render(past: &[Handshake]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for one in past {
        bytes.push(one.is_draft.into());
        for block in [one.server.as_bytes(), &one.parameters, &one.random, &one.key] {
            render_block(block, &mut bytes);
        }
        let times: Vec<u8> = one.times_s.iter().flat_map(|time| time.to_be_bytes()).collect();
        render_block(&times, &mut bytes);
        render_length(one.heard.len(), &mut bytes);
        one.heard.iter().for_each(|heard| render_block(heard, &mut bytes));
    }
    bytes
}

fn parse_handshake(rest: &mut &[u8]) -> Option<Handshake> {
    let (is_draft, after) = rest.split_first()?;
    *rest = after;
    let server = String::from_utf8(take_block(rest)?).ok()?;
    let (parameters, random, key) = (take_block(rest)?, take_block(rest)?, take_block(rest)?);
    let times = take_block(rest)?;
    let times_s = times.chunks_exact(8).map(|time| time.try_into().map(u64::from_be_bytes));
    let times_s = times_s.collect::<Result<_, _>>().ok()?;
    let mut heard = Vec::new();
    for _ in 0..take_length(rest)? {
        heard.push(take_block(rest)?);
    }
    let is_draft = *is_draft != 0;
    Some(Handshake { is_draft, server, parameters, random, key, times_s, heard })
}

fn render_length(length: usize, into: &mut Vec<u8>) {
    into.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}

/// Writes bytes behind their length.
pub(super) fn render_block(block: &[u8], into: &mut Vec<u8>) {
    render_length(block.len(), into);
    into.extend_from_slice(block);
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let (length, after) = rest.split_first_chunk()?;
    *rest = after;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

/// Takes bytes behind their length.
pub(super) fn take_block(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let length = take_length(rest)?;
    let (block, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(block.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session");
        assert!(read(&path).unwrap().is_empty(), "it needn't be there");
        let one = Handshake {
            is_draft: true,
            server: "a.example".to_owned(),
            parameters: vec![1, 2],
            random: vec![3; 40],
            key: vec![4; 32],
            times_s: vec![1_700_000_000, 5],
            heard: vec![vec![6; 9], vec![]],
        };
        let past = [one.clone(), Handshake::default()];
        write_secret(&path, &render(&past)).unwrap();
        assert!(read(&path).unwrap() == past);
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let whole = render(&past);
        for cut in 1..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let is_first = render(&past[..1]).len() == cut || cut == MAGIC.len();
            assert_eq!(read(&path).is_ok(), is_first, "{cut}");
        }
        assert!(SessionFile::open(&path).is_err());
    }
}
