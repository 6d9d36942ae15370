//! The strict form of `-name:value`: every word has a value, and none is passed over.
//!
//! Taking a name takes its first value. A caller refuses the words that are left: unknown names, and
//! second values of a name that has one.

/// A word that has no `:`, or nothing behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoValue<'a>(pub &'a str);

/// Words of which some may be taken already.
#[derive(Clone, Debug)]
pub struct StrictOptions<'a> {
    words: Vec<Word<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    text: &'a str,
    /// With its dash.
    name: &'a str,
    value: &'a str,
    is_taken: bool,
}

impl<'a> StrictOptions<'a> {
    /// Reads these words. The first `:` of each ends its name; others belong to its value.
    ///
    /// # Errors
    /// The first word without a value.
    pub fn parse(words: impl IntoIterator<Item = &'a str>) -> Result<Self, NoValue<'a>> {
        let read = |text: &'a str| {
            let (name, value) = text.split_once(':').ok_or(NoValue(text))?;
            let word = Word { text, name, value, is_taken: false };
            if value.is_empty() { Err(NoValue(text)) } else { Ok(word) }
        };
        let words = words.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { words })
    }

    /// Takes the first value that is left of the option with this name, which is written with a dash
    /// and without regard to case.
    pub fn take(&mut self, name: &str) -> Option<&'a str> {
        let is_it = |word: &Word<'_>| {
            let bare = word.name.strip_prefix('-');
            !word.is_taken && bare.is_some_and(|bare| bare.eq_ignore_ascii_case(name))
        };
        let word = self.words.iter_mut().find(|word| is_it(word))?;
        word.is_taken = true;
        Some(word.value)
    }

    /// The words that were not taken, in their order.
    pub fn left_over(&self) -> impl Iterator<Item = &'a str> {
        self.words.iter().filter(|word| !word.is_taken).map(|word| word.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_colon_ends_a_name() {
        let mut options = StrictOptions::parse(["-target:::1", "-TARGET:a:b"]).unwrap();
        assert_eq!(options.take("Target"), Some("::1"));
        assert_eq!(options.take("target"), Some("a:b"));
        assert_eq!(options.take("target"), None);
    }

    #[test]
    fn a_word_without_a_value_is_told() {
        for word in ["-foo", "-foo:", "", ":"] {
            assert_eq!(StrictOptions::parse(["-a:1", word]).unwrap_err(), NoValue(word));
        }
    }

    #[test]
    fn words_that_are_not_taken_are_left() {
        let words = ["-port:1", "--port:2", "/port:3", "port:4", "-PORT:5", "-x:6"];
        let mut options = StrictOptions::parse(words).unwrap();
        assert_eq!(options.take("port"), Some("1"));
        let left: Vec<_> = options.left_over().collect();
        assert_eq!(left, ["--port:2", "/port:3", "port:4", "-PORT:5", "-x:6"]);
    }
}
