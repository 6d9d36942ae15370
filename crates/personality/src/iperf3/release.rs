//! Which iperf3 we claim to be.

/// A release whose output we print. The command line is always the newest one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 3.12, as Debian 12 has it.
    V3_12,
    /// 3.21.
    #[default]
    V3_21,
}

/// The variable that chooses the release.
pub const VARIABLE: &str = "LINERATE_IPERF3_VERSION";

impl Release {
    /// The release that the value of [`VARIABLE`] names; the newest where there is none.
    ///
    /// # Errors
    /// A sentence about a release that we don't know.
    pub fn parse(value: Option<&str>) -> Result<Self, String> {
        match value {
            None | Some("" | "3.21") => Ok(Self::V3_21),
            Some("3.12") => Ok(Self::V3_12),
            Some(other) => Err(format!("{VARIABLE} is '{other}': it can be 3.12 or 3.21")),
        }
    }

    /// The number alone.
    pub fn number(self) -> &'static str {
        match self {
            Self::V3_12 => "3.12",
            Self::V3_21 => "3.21",
        }
    }

    /// The first line of `-V` and `--version`, and the version in JSON.
    pub fn title(self) -> String {
        format!("iperf {}", self.number())
    }

    /// Whether this release is the newest one, with what came after 3.12.
    pub fn is_new(self) -> bool {
        self == Self::V3_21
    }
}

#[test]
fn a_release_is_known_or_refused() {
    assert_eq!(Release::parse(None), Ok(Release::V3_21));
    assert_eq!(Release::parse(Some("3.12")), Ok(Release::V3_12));
    assert!(Release::parse(Some("2.0")).is_err_and(|text| text.contains("3.12 or 3.21")));
}
