//! Why a document is refused, with the original's exit codes.

/// What is wrong, as the original's exit codes tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The matrix isn't one.
    Input,
    /// The matrix can't be read, or isn't JSON.
    Unreadable,
    /// The requirements can't be read, or aren't JSON.
    UnreadableRequirements,
    /// A value breaks a rule.
    Value,
    /// The requirements aren't any.
    Requirements,
    /// A set has no parameters.
    EmptySet,
    /// The result can't be written.
    Output,
}

/// Why a document is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: Kind,
    /// A sentence that names the place, the value and the way out.
    pub text: String,
}

impl Fault {
    /// A fault of a kind.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// The original's exit code.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Input => 1,
            Kind::Unreadable => 2,
            Kind::UnreadableRequirements => 3,
            Kind::Value => 4,
            Kind::Requirements => 5,
            Kind::EmptySet => 6,
            Kind::Output => 7,
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for Fault {}
