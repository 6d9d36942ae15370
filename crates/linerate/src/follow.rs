//! A run that is being measured, read from its records while they are written (`--ndjson`, `LINERATE_RUN_RECORDS`).

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use linerate_measure::Run;
use linerate_measure::record::Record;
use linerate_measure::run::Draft;

/// The most bytes that are read at once. The rest is read the next time.
const MOST_AT_ONCE: u64 = 64 << 20;
/// The longest record. A longer one is left out.
const LONGEST_RECORD: usize = 1 << 30;
/// So many of a file's first bytes tell whether it was written anew. They have the run's id and start.
const HEAD_BYTES: usize = 512;
/// The most samples of a run that are kept until its document comes.
const MOST_SAMPLES: usize = 200_000;

/// A file of records, of which the last run is kept.
#[derive(Debug)]
pub(crate) struct Follower {
    path: PathBuf,
    /// Device and inode of the file that was read last.
    identity: Option<(u64, u64)>,
    /// The first bytes that were read of it, at most [`HEAD_BYTES`].
    head: Vec<u8>,
    read_bytes: u64,
    unfinished: Vec<u8>,
    /// The lines that have come, and one for each new start of the file. It grows whenever there is more to show.
    lines: u64,
    followed: Followed,
}

/// What the records tell of the last run.
#[derive(Debug, Default)]
pub(crate) enum Followed {
    /// No run has begun.
    #[default]
    Nothing,
    /// It goes on.
    Measuring(Box<Draft>),
    /// It is over, and this is its document.
    Ended(Box<Run>),
    /// It failed before there was one, and why.
    Failed(String),
}

impl Follower {
    /// Nothing is read yet. The file need not be there.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            identity: None,
            head: Vec::new(),
            read_bytes: 0,
            unfinished: Vec::new(),
            lines: 0,
            followed: Followed::Nothing,
        }
    }

    /// Where the records are.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A number that grows with each line, and when the file is read anew.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// The last run.
    pub(crate) fn followed(&self) -> &Followed {
        &self.followed
    }

    /// Reads what has been written since it was asked last. A file that was replaced, written anew
    /// or became shorter is read from its begin.
    ///
    /// # Errors
    /// Where it can't be read, or is a pipe or device, which has its records once.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        let facts = match fs::metadata(&self.path) {
            Ok(facts) => facts,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if !facts.is_file() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
        }
        let mut file = File::open(&self.path)?;
        let identity = identity_of(&file)?;
        if !self.continues(&file, identity)? {
            *self = Self { lines: self.lines + 1, ..Self::new(&self.path) };
        }
        self.identity = Some(identity);
        file.seek(SeekFrom::Start(self.read_bytes))?;
        let mut bytes = Vec::new();
        let count = file.take(MOST_AT_ONCE).read_to_end(&mut bytes)?;
        self.read_bytes = self.read_bytes.saturating_add(count as u64);
        let room = HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(room));
        self.handle_bytes(&bytes);
        Ok(())
    }

    /// Whether a file goes on where reading ended: it is the same file, no shorter, and begins as before.
    fn continues(&self, file: &File, identity: (u64, u64)) -> io::Result<bool> {
        if self.identity.is_some_and(|known| known != identity)
            || file.metadata()?.len() < self.read_bytes
        {
            return Ok(false);
        }
        let mut head = vec![0; self.head.len()];
        match file.read_exact_at(&mut head, 0) {
            Ok(()) => Ok(head == self.head),
            // It became shorter meanwhile.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn handle_bytes(&mut self, bytes: &[u8]) {
        self.unfinished.extend_from_slice(bytes);
        if let Some(end) = self.unfinished.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.unfinished.split_off(end + 1);
            let whole = std::mem::replace(&mut self.unfinished, rest);
            let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.for_each(|line| self.handle_line(line));
        }
        if self.unfinished.len() > LONGEST_RECORD {
            self.unfinished.clear();
        }
    }

    /// Takes a line. What is no record is left out.
    fn handle_line(&mut self, line: &[u8]) {
        self.lines += 1;
        let record = std::str::from_utf8(line).ok().and_then(|line| Record::parse(line).ok()?);
        match record {
            Some(Record::Started { run_id, utc_ns, plan, .. }) => {
                let mut draft = Draft::new(run_id, *plan);
                draft.environment.started_utc_ns = Some(utc_ns);
                self.followed = Followed::Measuring(Box::new(draft));
            }
            Some(Record::Sample { run_id, sample, .. }) => {
                if let Followed::Measuring(draft) = &mut self.followed
                    && draft.run_id == run_id
                    && draft.samples.len() < MOST_SAMPLES
                {
                    draft.samples.push(*sample);
                }
            }
            Some(Record::Finished { run, .. } | Record::Error { run: Some(run), .. }) => {
                self.followed = Followed::Ended(run);
            }
            Some(Record::Error { message, run: None, .. }) => {
                self.followed = Followed::Failed(message);
            }
            _ => {}
        }
    }
}

/// Device and inode of a file.
fn identity_of(file: &File) -> io::Result<(u64, u64)> {
    let facts = file.metadata()?;
    Ok((facts.dev(), facts.ino()))
}

#[cfg(test)]
mod tests {
    use linerate_measure::{Role, Sample};

    use super::*;
    use crate::output::run_of_nothing;

    fn records() -> Vec<Record> {
        let run = run_of_nothing();
        let version = Record::VERSION;
        let started = |run_id: &str| Record::Started {
            version,
            run_id: run_id.to_owned(),
            utc_ns: 7,
            plan: Box::new(run.plan.clone()),
        };
        let sample = |run_id: &str| Record::Sample {
            version,
            run_id: run_id.to_owned(),
            sample: Box::new(Sample::nothing(Role::Client)),
        };
        vec![
            started("old"),
            sample("old"),
            started("id"),
            sample("id"),
            sample("old"),
            sample("id"),
            Record::Finished {
                version,
                run_id: "id".to_owned(),
                dropped_records: 0,
                run: Box::new(run.clone()),
            },
        ]
    }

    #[test]
    fn the_last_run_is_followed_wherever_the_text_is_cut() {
        let lines: Vec<String> = records().iter().map(Record::render).collect();
        let text = format!("no record\n{}", lines.concat());
        let (before_the_end, _) = text.rsplit_once("{\"record\":\"finished\"").unwrap();
        for cut in 0..=before_the_end.len() {
            let mut follower = Follower::new(Path::new("x"));
            let (first, second) = before_the_end.as_bytes().split_at(cut);
            follower.handle_bytes(first);
            follower.handle_bytes(second);
            let Followed::Measuring(draft) = follower.followed() else { panic!("{cut}") };
            assert_eq!((draft.run_id.as_str(), draft.samples.len()), ("id", 2));
            assert_eq!(follower.lines(), 7);
        }
        let mut follower = Follower::new(Path::new("x"));
        follower.handle_bytes(text.as_bytes());
        assert!(matches!(follower.followed(), Followed::Ended(_)));
        follower.handle_bytes(crate::output::render_error_record(3, "why").as_bytes());
        assert!(matches!(follower.followed(), Followed::Failed(why) if why == "why"));
    }

    #[test]
    fn a_file_may_come_later_and_become_shorter() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x");
        let mut follower = Follower::new(&path);
        follower.look().unwrap();
        assert!(matches!(follower.followed(), Followed::Nothing));
        let lines: Vec<String> = records().iter().map(Record::render).collect();
        fs::write(&path, lines.concat()).unwrap();
        follower.look().unwrap();
        assert!(matches!(follower.followed(), Followed::Ended(_)));
        let before = follower.lines();
        fs::write(&path, &lines[0]).unwrap();
        follower.look().unwrap();
        assert!(matches!(follower.followed(), Followed::Measuring(_)));
        assert!(follower.lines() > before, "the count goes on");
        assert!(Follower::new(home.path()).look().is_err());
    }

    #[test]
    fn a_longer_file_in_its_place_is_read_from_its_begin() {
        let home = tempfile::tempdir().unwrap();
        let (path, other) = (home.path().join("x"), home.path().join("y"));
        let lines: Vec<String> = records().iter().map(Record::render).collect();
        let (old, new) = (&lines[0], lines[2..6].concat());
        assert!(old.len() < new.len());
        let follow_old = || {
            fs::write(&path, old).unwrap();
            let mut follower = Follower::new(&path);
            follower.look().unwrap();
            follower
        };
        let follow_new = |mut follower: Follower| {
            follower.look().unwrap();
            let Followed::Measuring(draft) = follower.followed() else { panic!("no run") };
            assert_eq!((draft.run_id.as_str(), draft.samples.len()), ("id", 2));
            // The first line of the old file, the new start, and four lines.
            assert_eq!(follower.lines(), 6);
            follower.look().unwrap();
            assert_eq!(follower.lines(), 6, "nothing new has come");
        };
        // Written anew: the same inode begins with other bytes.
        let follower = follow_old();
        fs::write(&path, &new).unwrap();
        follow_new(follower);
        // Replaced by another file.
        let follower = follow_old();
        fs::write(&other, &new).unwrap();
        fs::rename(&other, &path).unwrap();
        follow_new(follower);
        // Replaced by another file that begins with the same bytes.
        fs::write(&path, &lines[2]).unwrap();
        let mut follower = Follower::new(&path);
        follower.look().unwrap();
        fs::write(&other, &new).unwrap();
        fs::rename(&other, &path).unwrap();
        follow_new(follower);
    }
}
