//! The lexer of GNU getopt and getopt_long, over a table of flags.
//!
//! It knows joined short options (`-cC`, `-l5`), `--name=value`, unambiguous abbreviations of long
//! names, operands between options (they come last, as GNU permutes them), and `--`, after which
//! all is operand. What netperf does beside getopt, looking whether the next word belongs to an
//! option, is [`Takes::NextIf`]. The errors read like the C library's.
//!
//! A table is the one source of a personality's parser, its help and its tests: a row says how a
//! flag is written, what help tells of it, and what it does.

use std::fmt;

#[cfg(test)]
mod tests;

/// One flag of a personality: a row of its table.
#[derive(Clone, Copy, Debug)]
pub struct Flag<M: 'static> {
    /// Its letter, with which it is written `-x`.
    pub short: Option<char>,
    /// Its name, with which it is written `--name`; empty if it has none.
    pub long: &'static str,
    /// Whether an argument belongs to it.
    pub takes: Takes,
    /// How help names the argument.
    pub value_name: &'static str,
    /// What it does, for help; one line.
    pub help: &'static str,
    /// Whether the original has no such flag. A beginning that one of the original's names has too is that one's, so
    /// that no abbreviation which the original takes is ambiguous here.
    pub is_ours: bool,
    /// What it does to the options: as a rule a function that takes them and the argument.
    pub meaning: M,
}

impl<M: Copy + 'static> Flag<M> {
    /// A flag that is a letter alone.
    pub const fn letter(
        short: char,
        takes: Takes,
        value_name: &'static str,
        help: &'static str,
        meaning: M,
    ) -> Self {
        Self { short: Some(short), long: "", takes, value_name, help, is_ours: false, meaning }
    }

    /// A flag of ours that is a name alone and takes nothing.
    pub const fn name(long: &'static str, help: &'static str, meaning: M) -> Self {
        let takes = Takes::Nothing;
        Self { short: None, long, takes, value_name: "", help, is_ours: true, meaning }
    }

    /// The flag as it is written, for a sentence about it: its letter, or its name.
    pub fn spelling(&self) -> String {
        match self.short {
            Some(letter) => format!("-{letter}"),
            None => format!("--{}", self.long),
        }
    }
}

/// Whether an argument belongs to a flag.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// None.
    Nothing,
    /// Always one: the rest of the word, or the next word, whatever it looks like.
    Value,
    /// One if it is joined to the flag: `-dX`, `--debug=X`.
    Joined,
    /// The next word if it looks right, and the flag is the last of its word.
    NextIf(fn(&str) -> bool),
}

/// One thing found on a command line.
#[derive(Clone, Debug)]
pub enum Lexeme<'a, M: 'static> {
    /// A flag, and its argument if one was given.
    Flag(&'a Flag<M>, Option<String>),
    /// A word that is no flag.
    Operand(String),
}

/// Why a command line can't be read. The text is the C library's, without the program's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LexError {
    /// No flag has this letter.
    UnknownShort(char),
    /// No flag has this name; as it was written, with its dashes.
    UnknownLong(String),
    /// Several flags begin so.
    Ambiguous(String, Vec<&'static str>),
    /// A flag came last that needs an argument.
    MissingValueShort(char),
    /// Likewise, written as a name.
    MissingValueLong(&'static str),
    /// An argument was joined to a name that takes none.
    UnexpectedValue(&'static str),
}

impl fmt::Display for LexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownShort(letter) => write!(f, "invalid option -- '{letter}'"),
            Self::UnknownLong(name) => write!(f, "unrecognized option '--{name}'"),
            Self::Ambiguous(name, possibilities) => {
                write!(f, "option '--{name}' is ambiguous; possibilities:")?;
                possibilities.iter().try_for_each(|name| write!(f, " '--{name}'"))
            }
            Self::MissingValueShort(letter) => {
                write!(f, "option requires an argument -- '{letter}'")
            }
            Self::MissingValueLong(name) => write!(f, "option '--{name}' requires an argument"),
            Self::UnexpectedValue(name) => {
                write!(f, "option '--{name}' doesn't allow an argument")
            }
        }
    }
}

impl std::error::Error for LexError {}

/// A command line as its flags in order, then its operands in order.
#[derive(Clone, Debug)]
pub struct Lexed<'a, M: 'static> {
    /// Flags with their arguments, as they came.
    pub flags: Vec<(&'a Flag<M>, Option<String>)>,
    /// What is no flag, in the order of the words.
    pub operands: Vec<String>,
}

/// Reads a whole command line, without the program's name.
///
/// # Errors
/// The first word that can't be read.
pub fn parse_words<'a, M>(
    flags: &'a [Flag<M>],
    words: &'a [String],
) -> Result<Lexed<'a, M>, LexError> {
    let mut lexed = Lexed { flags: Vec::new(), operands: Vec::new() };
    for lexeme in Lexer::new(flags, words) {
        match lexeme? {
            Lexeme::Flag(flag, value) => lexed.flags.push((flag, value)),
            Lexeme::Operand(word) => lexed.operands.push(word),
        }
    }
    Ok(lexed)
}

/// Reads a command line word by word. Where a flag's error isn't the end of all (netperf goes on
/// after none, but says first what it had understood), this is what to use.
#[derive(Debug)]
pub struct Lexer<'a, M: 'static> {
    flags: &'a [Flag<M>],
    words: std::slice::Iter<'a, String>,
    /// What is left of a word of joined letters.
    letters: &'a str,
    /// `--` was seen: all that follows is operand.
    only_operands: bool,
}

impl<'a, M> Lexer<'a, M> {
    /// Begins with the first word.
    pub fn new(flags: &'a [Flag<M>], words: &'a [String]) -> Self {
        Self { flags, words: words.iter(), letters: "", only_operands: false }
    }

    /// How many words are still unread.
    pub fn remaining(&self) -> usize {
        self.words.len()
    }

    fn letter(&mut self) -> Option<Result<Lexeme<'a, M>, LexError>> {
        let mut letters = self.letters.chars();
        let letter = letters.next()?;
        let rest = letters.as_str();
        self.letters = rest;
        let Some(flag) = self.flags.iter().find(|flag| flag.short == Some(letter)) else {
            return Some(Err(LexError::UnknownShort(letter)));
        };
        let joined = (!rest.is_empty()).then(|| rest.to_owned());
        let value = match flag.takes {
            Takes::Nothing => None,
            Takes::Joined => {
                self.letters = "";
                joined
            }
            Takes::Value => {
                self.letters = "";
                match joined.or_else(|| self.words.next().cloned()) {
                    None => return Some(Err(LexError::MissingValueShort(letter))),
                    value => value,
                }
            }
            Takes::NextIf(fits) if rest.is_empty() => self.next_word_if(fits),
            Takes::NextIf(_) => None,
        };
        Some(Ok(Lexeme::Flag(flag, value)))
    }

    fn name(&mut self, written: &str) -> Result<Lexeme<'a, M>, LexError> {
        let (name, joined) = match written.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (written, None),
        };
        let flag = self.find_long(name)?;
        let value = match (flag.takes, joined) {
            (Takes::Nothing, Some(_)) => return Err(LexError::UnexpectedValue(flag.long)),
            (Takes::Value, None) => match self.words.next() {
                None => return Err(LexError::MissingValueLong(flag.long)),
                Some(word) => Some(word.clone()),
            },
            (Takes::NextIf(fits), None) => self.next_word_if(fits),
            (_, joined) => joined,
        };
        Ok(Lexeme::Flag(flag, value))
    }

    /// The flag with this name, or the only one whose name begins so, where the original's come before ours.
    fn find_long(&self, name: &str) -> Result<&'a Flag<M>, LexError> {
        let flags = self.flags;
        let long = || flags.iter().filter(|flag| !flag.long.is_empty());
        if let Some(flag) = long().find(|flag| flag.long == name) {
            return Ok(flag);
        }
        let begin_so = |is_ours: bool| -> Vec<&'a Flag<M>> {
            let named = long().filter(|flag| flag.is_ours == is_ours);
            named.filter(|flag| flag.long.starts_with(name)).collect()
        };
        let mut candidates = begin_so(false);
        if candidates.is_empty() {
            candidates = begin_so(true);
        }
        match candidates.as_slice() {
            [] => Err(LexError::UnknownLong(name.to_owned())),
            [flag] => Ok(flag),
            several => Err(LexError::Ambiguous(
                name.to_owned(),
                several.iter().map(|flag| flag.long).collect(),
            )),
        }
    }

    fn next_word_if(&mut self, fits: fn(&str) -> bool) -> Option<String> {
        let word = self.words.as_slice().first().filter(|word| fits(word))?;
        self.words.next();
        Some(word.clone())
    }
}

impl<'a, M> Iterator for Lexer<'a, M> {
    type Item = Result<Lexeme<'a, M>, LexError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.letters.is_empty() {
            return self.letter();
        }
        let word = self.words.next()?;
        if self.only_operands || word == "-" || !word.starts_with('-') {
            return Some(Ok(Lexeme::Operand(word.clone())));
        }
        if word == "--" {
            self.only_operands = true;
            return self.next();
        }
        if let Some(name) = word.strip_prefix("--") {
            if self.flags.iter().any(|flag| !flag.long.is_empty()) {
                return Some(self.name(name));
            }
            // getopt without names reads the second dash as a letter.
            return Some(Err(LexError::UnknownShort('-')));
        }
        self.letters = word.strip_prefix('-').unwrap_or_default();
        self.letter()
    }
}

/// The flags as a table for `--help`: letter and name, argument, what it does.
pub fn render_flags<'a, M: 'static>(flags: impl IntoIterator<Item = &'a Flag<M>>) -> String {
    let flags: Vec<&Flag<M>> = flags.into_iter().collect();
    let spelled: Vec<String> = flags.iter().copied().map(render_spelling).collect();
    let width = spelled.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let line =
        |(flag, spelled): (&&Flag<M>, &String)| format!("    {spelled:width$}  {}\n", flag.help);
    flags.iter().zip(&spelled).map(line).collect()
}

/// A flag as it is written: `-p, --port PORT`.
pub fn render_spelling<M>(flag: &Flag<M>) -> String {
    let name = (!flag.long.is_empty()).then(|| format!("--{}", flag.long));
    let letter = flag.short.map(|letter| format!("-{letter}"));
    let written: Vec<String> = letter.into_iter().chain(name).collect();
    let written = written.join(", ");
    let value = flag.value_name;
    match flag.takes {
        Takes::Nothing => written,
        Takes::Value => format!("{written} {value}"),
        Takes::Joined | Takes::NextIf(_) => format!("{written} [{value}]"),
    }
}
