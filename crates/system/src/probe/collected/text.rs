//! Files of text that stay open, and tables that are made of them.

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use linerate_measure::collected::{
    Column, LONGEST_NAME_BYTES, MOST_COLUMNS, Reader, Source, Value,
};
use rustix::fs::{Mode, OFlags};

/// The longest file that is read. /proc/interrupts of 512 processors and 2000 lines has 11 MB.
const LONGEST_FILE_BYTES: usize = 16 * 1024 * 1024;
/// The room that a file is read with at first.
const FIRST_BUFFER_BYTES: usize = 16 * 1024;

/// A file of /proc that stays open and is read from its beginning each time.
pub(super) struct KeptFile {
    file: OwnedFd,
    buffer: Vec<u8>,
}

impl KeptFile {
    pub(super) fn open(path: &str) -> Result<Self, String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| format!("can't open {path}: {error}"))?;
        Ok(Self { file, buffer: vec![0; FIRST_BUFFER_BYTES] })
    }

    /// What the file has now. A file that is longer than it may be is cut.
    pub(super) fn read(&mut self) -> Result<&[u8], rustix::io::Errno> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                if length >= LONGEST_FILE_BYTES {
                    break;
                }
                self.buffer.resize(length * 2, 0);
            }
            // The kernel makes the text anew when it is read from its beginning.
            match rustix::io::pread(&self.file, &mut self.buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[..length])
    }
}

/// What a column is known by while it is read: two texts and two numbers, whose meaning is the format's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Key<'a> {
    pub(super) a: &'a [u8],
    pub(super) b: &'a [u8],
    pub(super) n: u32,
    pub(super) m: u32,
}

impl Key<'_> {
    /// The first text.
    pub(super) fn a_text(&self) -> String {
        text_of(self.a)
    }

    /// The second text.
    pub(super) fn b_text(&self) -> String {
        text_of(self.b)
    }
}

/// Text of the kernel or of a driver, cut to the length that a name may have.
fn text_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut length = 0;
    let fits = |c: &char| {
        length += c.len_utf8();
        length <= LONGEST_NAME_BYTES - "-sec".len()
    };
    text.chars().filter(|c| !c.is_control()).take_while(fits).collect()
}

#[derive(PartialEq, Eq)]
struct KeptKey {
    a: Box<[u8]>,
    b: Box<[u8]>,
    n: u32,
    m: u32,
}

impl KeptKey {
    fn key(&self) -> Key<'_> {
        Key { a: &self.a, b: &self.b, n: self.n, m: self.m }
    }
}

/// The columns that a text has, in its order, with a value each.
///
/// The keys are kept from one reading to the next, so that as long as they are the same nothing is allocated.
#[derive(Default)]
pub(super) struct Table {
    keys: Vec<KeptKey>,
    values: Vec<Value>,
    changed: bool,
}

impl Table {
    fn begin(&mut self) {
        self.values.clear();
        self.changed = false;
    }

    /// Adds the next column. There is no more than a limit of them.
    pub(super) fn add(&mut self, key: Key<'_>, value: Value) {
        let at = self.values.len();
        if at >= MOST_COLUMNS {
            return;
        }
        if self.keys.get(at).map(KeptKey::key) != Some(key) {
            self.keys.truncate(at);
            self.keys.push(KeptKey { a: key.a.into(), b: key.b.into(), n: key.n, m: key.m });
            self.changed = true;
        }
        self.values.push(value);
    }

    /// Adds a counter, or what is no number as absent.
    pub(super) fn add_count(&mut self, key: Key<'_>, count: Option<u64>) {
        self.add(key, count.map_or(Value::Absent, Value::Count));
    }

    fn finish(&mut self) -> bool {
        self.changed |= self.keys.len() > self.values.len();
        self.keys.truncate(self.values.len());
        self.changed
    }
}

/// How one source's texts become a table.
pub(super) trait Format: Send {
    /// Adds what the texts have. A text that couldn't be opened is empty.
    fn parse(&mut self, texts: &[&[u8]], table: &mut Table);

    /// The column of a key that stands at a position of the table.
    fn column(&mut self, key: Key<'_>, position: u32) -> Column;
}

/// A reader of files of text.
pub(super) struct TextReader<F> {
    source: Source,
    files: Vec<Result<KeptFile, String>>,
    format: F,
    table: Table,
    columns: Vec<Column>,
    was_read: bool,
}

impl<F: Format> TextReader<F> {
    pub(super) fn new(source: Source, paths: &[&str], format: F) -> Self {
        let files = paths.iter().map(|path| KeptFile::open(path)).collect();
        let table = Table::default();
        Self { source, files, format, table, columns: Vec::new(), was_read: false }
    }
}

impl<F: Format> Reader for TextReader<F> {
    fn source(&self) -> Source {
        self.source
    }

    fn read(&mut self, values: &mut Vec<Value>) -> Result<bool, String> {
        // A kernel may be built without some of the files.
        if self.files.iter().all(Result::is_err) {
            let reason = self.files.iter().find_map(|file| file.as_ref().err());
            return Err(reason.cloned().unwrap_or_default());
        }
        let mut texts: Vec<&[u8]> = Vec::with_capacity(self.files.len());
        for file in &mut self.files {
            // Pressure that is switched off can be opened and not read.
            texts.push(file.as_mut().ok().and_then(|file| file.read().ok()).unwrap_or_default());
        }
        self.table.begin();
        self.format.parse(&texts, &mut self.table);
        let changed = self.table.finish() || !self.was_read;
        self.was_read = true;
        if changed {
            self.columns = columns(&self.table, &mut self.format);
        }
        values.clear();
        values.extend_from_slice(&self.table.values);
        Ok(changed)
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }
}

fn columns(table: &Table, format: &mut impl Format) -> Vec<Column> {
    let made = (0..).zip(&table.keys).map(|(at, key)| format.column(key.key(), at));
    told_apart(made.collect())
}

/// Gives columns of the same names an `id` each.
pub(super) fn told_apart(mut columns: Vec<Column>) -> Vec<Column> {
    let mut seen = HashSet::new();
    for (at, column) in columns.iter_mut().enumerate() {
        let key =
            |column: &Column| (column.source.clone(), column.metric.clone(), column.names.clone());
        if !seen.insert(key(column)) {
            column.names.insert("id".to_owned(), at.to_string());
            seen.insert(key(column));
        }
    }
    columns
}

/// Lines of a text.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

/// Words of a line, with blanks and tabs between them.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b' ' || *byte == b'\t').filter(|word| !word.is_empty())
}

/// A number that is nothing but digits and fits.
pub(super) fn count(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// A hexadecimal number that fits.
pub(super) fn hexadecimal(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok().filter(|text| !text.starts_with('+'))?;
    u64::from_str_radix(text, 16).ok()
}

/// A number with a decimal point.
pub(super) fn decimal(word: &[u8]) -> Value {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    number.map_or(Value::Absent, Value::level)
}

/// The number after a prefix: 3 of `cpu3`.
pub(super) fn numbered(word: &[u8], prefix: &[u8]) -> Option<u32> {
    u32::try_from(count(word.strip_prefix(prefix)?)?).ok()
}

/// The columns of a text, for tests.
#[cfg(test)]
pub(super) fn read_texts(format: &mut impl Format, texts: &[&str]) -> Vec<(Column, Value)> {
    let mut table = Table::default();
    let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    format.parse(&texts, &mut table);
    table.finish();
    columns(&table, format).into_iter().zip(table.values).collect()
}
