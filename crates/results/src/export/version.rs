//! Versions of the Common Data Model, and the kinds of its documents.

/// A version of the Common Data Model. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CdmVersion {
    /// Fields named `id`, one index for each kind of document.
    V7,
    /// Fields named by their kind, such as `run-uuid`.
    V8,
    /// An index for each kind and month; aggregation and partial runs are told.
    V9,
    /// As the version before. The current one.
    V10,
}

impl CdmVersion {
    /// All of them, the newest first.
    pub const ALL: [Self; 4] = [Self::V10, Self::V9, Self::V8, Self::V7];

    /// Its name, such as `v10dev`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V7 => "v7dev",
            Self::V8 => "v8dev",
            Self::V9 => "v9dev",
            Self::V10 => "v10dev",
        }
    }

    /// The version of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// The version that an index of this name belongs to.
    pub fn of_index(index: &str) -> Option<Self> {
        let is_of = |version: &Self| {
            let rest = index.strip_prefix(&version.prefix());
            rest.is_some_and(|rest| {
                DocumentKind::ALL.iter().any(|kind| rest.starts_with(kind.name()))
            })
        };
        Self::ALL.into_iter().find(is_of)
    }

    fn is_monthly(self) -> bool {
        self >= Self::V9
    }

    fn prefix(self) -> String {
        let dash = if self.is_monthly() { "-" } else { "" };
        format!("cdm{dash}{}-", self.name())
    }

    /// The index of a kind of documents of a run that began then (UTC, milliseconds since 1970). All documents of a run
    /// are in one month.
    pub fn index(self, kind: DocumentKind, began_ms: i64) -> String {
        let name = format!("{}{}", self.prefix(), kind.name());
        if !self.is_monthly() {
            return name;
        }
        let (year, month) = month_of(began_ms);
        format!("{name}@{year:04}.{month:02}")
    }

    /// The pattern of all indices of a kind of documents.
    pub fn indices(self, kind: DocumentKind) -> String {
        let months = if self.is_monthly() { "@*" } else { "" };
        format!("{}{}{months}", self.prefix(), kind.name())
    }

    /// The name of the field that tells documents of a kind apart.
    pub fn id_field(self, kind: DocumentKind) -> String {
        match self {
            Self::V7 => "id".to_owned(),
            _ => format!("{}-uuid", kind.name()),
        }
    }

    /// Likewise, with the kind before it, as queries name it.
    pub fn id_path(self, kind: DocumentKind) -> String {
        format!("{}.{}", kind.name(), self.id_field(kind))
    }

    /// Whether documents of points name their run.
    pub fn data_has_run(self) -> bool {
        self >= Self::V8
    }

    /// Whether documents say how values become one, and whether a run is partial.
    pub fn has_aggregation(self) -> bool {
        self >= Self::V9
    }
}

/// Year and month of a time (UTC, milliseconds since 1970), by days since 1 March of the year 0: years that begin in
/// March have their leap day at the end, and 153 days are five of their months.
fn month_of(ms: i64) -> (i64, i64) {
    let days = ms.div_euclid(86_400_000).saturating_add(719_468);
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let is_next = month >= 10;
    let month = if is_next { month - 9 } else { month + 3 };
    (year + era * 400 + i64::from(is_next), month)
}

/// A kind of documents of the Common Data Model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentKind {
    /// A run.
    Run,
    /// A mark of a run.
    Tag,
    /// A point of its matrix.
    Iteration,
    /// A parameter of an iteration.
    Param,
    /// One execution of an iteration.
    Sample,
    /// A time of a sample.
    Period,
    /// A series.
    MetricDesc,
    /// A point of a series.
    MetricData,
}

impl DocumentKind {
    /// All of them, with those first that others refer to. No name is the beginning of a later one's.
    pub const ALL: [Self; 8] = [
        Self::Run,
        Self::Tag,
        Self::Iteration,
        Self::Param,
        Self::Sample,
        Self::Period,
        Self::MetricDesc,
        Self::MetricData,
    ];

    /// Its name in indices and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Tag => "tag",
            Self::Iteration => "iteration",
            Self::Param => "param",
            Self::Sample => "sample",
            Self::Period => "period",
            Self::MetricDesc => "metric_desc",
            Self::MetricData => "metric_data",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_those_of_the_calendar() {
        const DAY_MS: i64 = 86_400_000;
        let mut ms = 0;
        for year in 1970..2405 {
            let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            let february = if is_leap { 29 } else { 28 };
            let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, days) in (1..).zip(lengths) {
                assert_eq!(month_of(ms), (year, month));
                ms += days * DAY_MS;
                assert_eq!(month_of(ms - 1), (year, month));
            }
        }
        assert_eq!(month_of(-1), (1969, 12));
    }
}
