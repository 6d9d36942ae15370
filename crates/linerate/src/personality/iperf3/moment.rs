//! Moments as iperf3 prints them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A moment in the form of HTTP's dates: `Sat, 21 Nov 2026 01:14:33 GMT`. Nanoseconds since 1970.
pub(super) fn render_gmt(utc_ns: i64) -> String {
    let moment = Timestamp::from_nanosecond(i128::from(utc_ns)).unwrap_or_default();
    moment.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// A format of `strftime(3)` for `--timestamps`, in this machine's time zone.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    format: String,
    zone: TimeZone,
}

impl Stamp {
    /// A format; None where it has a directive that is not known.
    pub(super) fn parse(format: &str) -> Option<Self> {
        // The C locale's %c, %x and %X, which the library leaves to others.
        let format = format
            .replace("%c", "%a %b %e %H:%M:%S %Y")
            .replace("%x", "%m/%d/%y")
            .replace("%X", "%H:%M:%S");
        let stamp = Self { format, zone: TimeZone::system() };
        stamp.render_moment(Timestamp::UNIX_EPOCH).map(|_| stamp)
    }

    /// The time now.
    pub(super) fn render_now(&self) -> String {
        self.render_moment(Timestamp::now()).unwrap_or_default()
    }

    fn render_moment(&self, moment: Timestamp) -> Option<String> {
        let zoned: Zoned = moment.to_zoned(self.zone.clone());
        jiff::fmt::strtime::format(&self.format, &zoned).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_in_gmt() {
        assert_eq!(render_gmt(1_795_223_673_486_000_000), "Sat, 21 Nov 2026 01:14:33 GMT");
    }

    #[test]
    fn stamps_are_strftimes() {
        let render = |format: &str| {
            let mut stamp = Stamp::parse(format)?;
            stamp.zone = TimeZone::UTC;
            stamp.render_moment(Timestamp::from_second(1_795_267_817).ok()?)
        };
        assert_eq!(render("%c ").as_deref(), Some("Sat Nov 21 13:30:17 2026 "));
        assert_eq!(render("%H_%M").as_deref(), Some("13_30"));
        assert_eq!(render("%s: ").as_deref(), Some("1795267817: "));
        assert_eq!(render("%!"), None);
    }
}
