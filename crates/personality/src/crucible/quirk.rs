//! What the original does and a user would not expect: one table for the readers, the help and the documentation.

/// How a file or a query is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Quirks that change what is measured or reported are refused or mended.
    #[default]
    Strict,
    /// `--compat`: as the original does.
    Compat,
}

impl Reading {
    /// Whether quirks of the original are wanted.
    pub fn is_compat(self) -> bool {
        self == Self::Compat
    }
}

/// The name of a quirk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A set includes a group that doesn't exist.
    UnknownInclude,
    /// A set includes a preset that doesn't exist.
    UnknownPreset,
    /// A set has `include`, the document no `global-options`.
    IncludeWithoutGroups,
    /// A value matches a rule only by its beginning.
    PrefixValue,
    /// Only the first set gets an essential parameter that replaces one.
    EssentialsUsedUp,
    /// Parameters that differ in `ids` alone count as the same.
    IdsNotCompared,
    /// A set whose parameters are all disabled becomes an iteration without parameters.
    EmptyIteration,
    /// A part of a range with an unknown unit is dropped.
    UnknownUnit,
    /// A list of matrices: the first is taken.
    SeveralMatrices,
    /// The second unit of `bitrate-range` is ignored.
    SecondUnit,
    /// A hunt without a rate that passed reports one that failed.
    FailingHunt,
}

/// What becomes of a quirk without `--compat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A sentence says what is wrong.
    Refused,
    /// It is done right.
    Mended,
}

/// A quirk of the original.
#[derive(Clone, Copy, Debug)]
pub struct Quirk {
    /// Its name.
    pub name: Name,
    /// How documents name it.
    pub label: &'static str,
    /// What the original does, after "the original".
    pub original: &'static str,
    /// What is done without `--compat`.
    pub answer: Answer,
    /// The way out of a refusal, or what is done in its place.
    pub instead: &'static str,
}

const fn refused(
    name: Name,
    label: &'static str,
    original: &'static str,
    instead: &'static str,
) -> Quirk {
    Quirk { name, label, original, answer: Answer::Refused, instead }
}

const fn mended(
    name: Name,
    label: &'static str,
    original: &'static str,
    instead: &'static str,
) -> Quirk {
    Quirk { name, label, original, answer: Answer::Mended, instead }
}

/// All of them.
pub const QUIRKS: &[Quirk] = &[
    refused(
        Name::UnknownInclude,
        "unknown-include",
        "ignores an include that names no group",
        "write the name of a group in global-options",
    ),
    refused(
        Name::UnknownPreset,
        "unknown-preset",
        "ignores an include-preset that names no preset",
        "write the name of a preset of the requirements file",
    ),
    refused(
        Name::IncludeWithoutGroups,
        "include-without-groups",
        "ends with a Python exception and exit code 1",
        "add global-options with that group, or remove the include",
    ),
    refused(
        Name::PrefixValue,
        "prefix-value",
        "takes a value that matches its rule only by its beginning",
        "correct the value; a unit letter (K, M, G, T) may follow a number",
    ),
    mended(
        Name::EssentialsUsedUp,
        "essentials-used-up",
        "gives an essential parameter that replaces one to the first such set only",
        "every set gets every essential parameter",
    ),
    mended(
        Name::IdsNotCompared,
        "ids-not-compared",
        "takes parameters of one arg and role for the same, whatever their ids are",
        "parameters for other engines stand beside each other",
    ),
    refused(
        Name::EmptyIteration,
        "empty-iteration",
        "makes an iteration without parameters of a set whose parameters are all disabled",
        "enable a parameter of the set, or disable the set",
    ),
    refused(
        Name::UnknownUnit,
        "unknown-unit",
        "drops a part whose unit the requirements file doesn't list, or leaves it as it is",
        "write a unit that the requirements file lists",
    ),
    refused(
        Name::SeveralMatrices,
        "several-matrices",
        "takes the first of several mv-params of a benchmark and ignores the others",
        "write one object with all sets",
    ),
    refused(
        Name::SecondUnit,
        "second-unit",
        "takes the first unit of bitrate-range for both ends",
        "write both ends with one unit",
    ),
    refused(
        Name::FailingHunt,
        "failing-hunt",
        "reports the last rate of a hunt in which no rate passed",
        "the sample fails; widen bitrate-range downwards",
    ),
];

impl Name {
    /// Its row.
    pub fn row(self) -> &'static Quirk {
        // The test below holds that every name has a row.
        QUIRKS.iter().find(|quirk| quirk.name == self).unwrap_or(&QUIRKS[0])
    }

    /// The sentence that refuses `what`.
    pub fn refuse(self, what: &str) -> String {
        let Quirk { original, instead, .. } = self.row();
        format!("{what}. The original {original}: {instead}, or do as the original with --compat")
    }
}

/// The quirks as `--help` lists them.
pub fn render_quirks() -> String {
    let mut text = "Without --compat:\n".to_owned();
    for Quirk { label, original, answer, instead, .. } in QUIRKS {
        let answer = match answer {
            Answer::Refused => "refused",
            Answer::Mended => "mended",
        };
        text.push_str(&format!(
            "  {label}: {answer}\n      The original {original}.\n      Here: {instead}.\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_row_and_one_label() {
        for quirk in QUIRKS {
            assert_eq!(quirk.name.row().label, quirk.label);
            let same = QUIRKS.iter().filter(|other| other.label == quirk.label).count();
            assert_eq!(same, 1, "{}", quirk.label);
        }
    }
}
