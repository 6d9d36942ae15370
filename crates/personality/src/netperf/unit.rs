//! The units in which netperf shows its result (`-f`).

/// A unit of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 2^30 bytes a second.
    GiBytes,
    /// 2^20 bytes a second.
    MiBytes,
    /// 2^10 bytes a second.
    KiBytes,
    /// Bytes a second.
    Bytes,
    /// 10^9 bits a second.
    Gbits,
    /// 10^6 bits a second.
    Mbits,
    /// 10^3 bits a second.
    Kbits,
    /// Bits a second.
    Bits,
    /// Transactions a second.
    Transactions,
    /// Microseconds a byte.
    Microseconds,
}

const ALL: [(char, Unit, &str); 10] = [
    ('G', Unit::GiBytes, "GBytes"),
    ('M', Unit::MiBytes, "MBytes"),
    ('K', Unit::KiBytes, "KBytes"),
    ('B', Unit::Bytes, "Bytes"),
    ('g', Unit::Gbits, "10^9bits"),
    ('m', Unit::Mbits, "10^6bits"),
    ('k', Unit::Kbits, "10^3bits"),
    ('b', Unit::Bits, "10^0bits"),
    ('x', Unit::Transactions, "Trans"),
    ('u', Unit::Microseconds, "Usec"),
];

impl Unit {
    /// Reads the letter of `-f`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut letters = text.chars();
        let found = letters.next().and_then(|letter| ALL.iter().find(|unit| unit.0 == letter));
        found
            .filter(|_| letters.next().is_none())
            .map(|unit| unit.1)
            .ok_or_else(|| format!("'{text}' is no unit: one of G M K B g m k b x u"))
    }

    /// The unit's name, without `/s`.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|unit| unit.1 == self).map_or("", |unit| unit.2)
    }

    /// So many bytes (or transactions) in so many seconds, in this unit; zero for no time.
    pub fn rate(self, units: f64, elapsed_s: f64) -> f64 {
        let per_s = if elapsed_s > 0.0 { units / elapsed_s } else { 0.0 };
        match self {
            Self::GiBytes => per_s / 1_073_741_824.0,
            Self::MiBytes => per_s / 1_048_576.0,
            Self::KiBytes => per_s / 1024.0,
            Self::Bytes | Self::Transactions => per_s,
            Self::Gbits => per_s * 8.0 / 1e9,
            Self::Mbits => per_s * 8.0 / 1e6,
            Self::Kbits => per_s * 8.0 / 1e3,
            Self::Bits => per_s * 8.0,
            Self::Microseconds if units > 0.0 => elapsed_s * 1e6 / units,
            Self::Microseconds => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_their_unit() {
        for (letter, rate) in [
            ("M", 10.0),
            ("k", 83886.08),
            ("b", 83_886_080.0),
            ("B", 10_485_760.0),
            ("x", 10_485_760.0),
        ] {
            let unit = Unit::parse(letter).unwrap();
            assert!((unit.rate(20_971_520.0, 2.0) - rate).abs() < 1e-6, "{letter}");
        }
        assert!((Unit::Microseconds.rate(1000.0, 0.002) - 2.0).abs() < 1e-9);
        assert!(
            Unit::parse("z").is_err() && Unit::parse("mm").is_err() && Unit::parse("").is_err()
        );
        assert_eq!(Unit::Mbits.name(), "10^6bits");
    }
}
