//! A command line that can't be done.

/// Why a command line can't be done, in the original's words where it has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What stands behind `Invalid argument specified: `.
    pub text: String,
    /// Words that no option took: they are printed first.
    pub left_over: Option<String>,
}

impl Refusal {
    /// A refusal with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), left_over: None }
    }

    /// A refusal of words that no option took.
    pub fn left_over<'a>(words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let text: String = words.flat_map(|word| [" ", word]).collect();
        (!text.is_empty()).then(|| Self { text: text.clone(), left_over: Some(text) })
    }

    /// What is printed on standard error.
    pub fn render(&self) -> String {
        let first = self.left_over.as_ref().map(|words| format!("{words}\n")).unwrap_or_default();
        format!("{first}Invalid argument specified: {}\n", self.text)
    }
}
