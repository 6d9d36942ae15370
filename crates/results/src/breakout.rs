//! Which series of a metric are shown apart, which are merged, and which are left out.

use regex::Regex;

use crate::StoreError;

/// One entry of a breakout list.
#[derive(Clone, Debug)]
pub struct Breakout {
    /// The label's name.
    pub name: String,
    select: Select,
}

#[derive(Clone, Debug)]
enum Select {
    /// Each value apart.
    Each,
    /// These values only; apart, or as one.
    Values { values: Vec<String>, merge: bool },
    /// The values that a pattern matches as a whole; apart, or as one.
    Pattern { text: String, regex: Regex, merge: bool },
}

/// A label of values that were merged may have so many characters before it says how many they are.
const MOST_LABEL: usize = 30;

impl Breakout {
    /// Each value of a label apart.
    pub fn each(name: impl Into<String>) -> Self {
        Self { name: name.into(), select: Select::Each }
    }

    /// These values of a label only; as one series where `merge`.
    pub fn values(name: impl Into<String>, values: Vec<String>, merge: bool) -> Self {
        Self { name: name.into(), select: Select::Values { values, merge } }
    }

    /// The values of a label that a pattern matches as a whole; as one series where `merge`.
    ///
    /// # Errors
    /// Where the pattern is none, or has what only the search engine's dialect knows.
    pub fn pattern(name: impl Into<String>, text: &str, merge: bool) -> Result<Self, StoreError> {
        let regex = translate(text)?;
        let name = name.into();
        Ok(Self { name, select: Select::Pattern { text: text.to_owned(), regex, merge } })
    }

    /// Reads `name`, `name=v1+v2`, `name=r/REGEX/` (apart) or `name=R/REGEX/` (as one); any character may stand
    /// in the place of the slashes.
    ///
    /// # Errors
    /// A sentence that names the entry.
    pub fn parse(entry: &str) -> Result<Self, StoreError> {
        let wrong = |why: &str| StoreError::NotFound(format!("the breakout '{entry}' {why}"));
        let (name, rest) = match entry.split_once('=') {
            None => (entry, None),
            Some((name, rest)) => (name, Some(rest)),
        };
        if name.is_empty() {
            return Err(wrong("has no name"));
        }
        let Some(rest) = rest else { return Ok(Self::each(name)) };
        let mut characters = rest.chars();
        let (kind, delimiter) = (characters.next(), characters.next());
        if let (Some(kind @ ('r' | 'R')), Some(delimiter)) = (kind, delimiter)
            && !delimiter.is_alphanumeric()
            && delimiter != '+'
        {
            let Some(pattern) = characters.as_str().strip_suffix(delimiter) else {
                return Err(wrong(&format!("has no '{delimiter}' at its end")));
            };
            return Self::pattern(name, pattern, kind == 'R');
        }
        let values: Vec<String> = rest.split('+').map(str::to_owned).collect();
        match values.iter().any(String::is_empty) {
            true => Err(wrong("has an empty value")),
            false => Ok(Self::values(name, values, false)),
        }
    }

    /// The values that are asked for one by one.
    pub(crate) fn named_values(&self) -> &[String] {
        match &self.select {
            Select::Values { values, .. } => values,
            Select::Each | Select::Pattern { .. } => &[],
        }
    }

    /// What a series with this value is shown as; `None`: it is left out.
    pub(crate) fn label_of(&self, value: &str) -> Option<String> {
        match &self.select {
            Select::Each => Some(value.to_owned()),
            Select::Values { values, merge } => values
                .iter()
                .any(|one| one == value)
                .then(|| if *merge { merged_label(values) } else { value.to_owned() }),
            Select::Pattern { text, regex, merge } => regex
                .is_match(value)
                .then(|| if *merge { format!("/{text}/") } else { value.to_owned() }),
        }
    }
}

/// The pattern as one that must match a whole value.
fn translate(text: &str) -> Result<Regex, StoreError> {
    let wrong = |why: String| StoreError::NotFound(format!("the pattern '{text}' {why}"));
    let mut escaped = false;
    let mut in_class = false;
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '~' | '&' | '<' | '@' | '#' if !in_class => {
                return Err(wrong(format!(
                    "has '{c}', which has a meaning of its own in the search engine's patterns and none here: \
                     write '\\{c}' for the character itself"
                )));
            }
            _ => {}
        }
    }
    Regex::new(&format!("^(?:{text})$")).map_err(|error| wrong(format!("can't be read: {error}")))
}

/// How merged values read: ranges of numbers, or the values, or how many they are.
fn merged_label(values: &[String]) -> String {
    let numbers: Option<Vec<u64>> = values.iter().map(|value| value.parse().ok()).collect();
    let text = match numbers {
        Some(mut numbers) => {
            numbers.sort_unstable();
            numbers.dedup();
            let mut ranges: Vec<(u64, u64)> = Vec::new();
            for number in numbers {
                match ranges.last_mut() {
                    Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
                    _ => ranges.push((number, number)),
                }
            }
            let parts = ranges.iter().map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            });
            parts.collect::<Vec<_>>().join(",")
        }
        None => values.join(","),
    };
    match text.chars().count() {
        0..=MOST_LABEL => text,
        _ => format!("{} values", values.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breakouts_read_as_the_specification_says() {
        let label = |entry: &str, value: &str| Breakout::parse(entry).unwrap().label_of(value);
        assert_eq!(label("cpu", "3").as_deref(), Some("3"));
        assert_eq!(label("cpu=1+3", "3").as_deref(), Some("3"));
        assert_eq!(label("cpu=1+3", "13"), None);
        assert_eq!(label("dev=r/eth.*/", "eth0").as_deref(), Some("eth0"));
        assert_eq!(label("dev=r/eth/", "eth0"), None, "a pattern matches the whole value");
        assert_eq!(label("dev=R#a/b|c#", "c").as_deref(), Some("/a/b|c/"));
        assert_eq!(label("dev=read+write", "read").as_deref(), Some("read"));
        for wrong in
            ["", "=1", "a=", "a=1+", "a=r/x", "a=r/(/", "a=r/x~/", "a=r/<1-5>/", "a=r/a&b/"]
        {
            assert!(Breakout::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Breakout::parse("a=r/[&]x/").is_ok());
    }

    #[test]
    fn merged_values_have_short_labels() {
        let label = |values: &[&str]| {
            let values: Vec<String> = values.iter().map(|v| (*v).to_owned()).collect();
            Breakout::values("x", values.clone(), true).label_of(&values[0]).unwrap()
        };
        assert_eq!(label(&["2", "1"]), "1-2");
        assert_eq!(label(&["1", "3", "4", "5"]), "1,3-5");
        assert_eq!(label(&["a", "b"]), "a,b");
        assert_eq!(label(&["abcdefghijklmnop", "abcdefghijklmnopq"]), "2 values");
    }
}
