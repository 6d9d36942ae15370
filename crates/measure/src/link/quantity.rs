//! Quantities as a description has them: text in the grammar of [`crate::units`], or numbers.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Visitor};

use super::{Amount, LinkError};
use crate::units;

/// A quantity as it was written; numbers are taken as their text.
#[derive(Debug)]
pub(super) struct Quantity(String);

impl Quantity {
    pub(super) fn duration_ns(&self, name: &str) -> Result<u64, LinkError> {
        units::parse_duration(&self.0).map_err(|error| wrong(name, error))
    }

    pub(super) fn rate_bps(&self, name: &str) -> Result<u64, LinkError> {
        units::parse_rate(&self.0).map_err(|error| wrong(name, error))
    }

    pub(super) fn bytes(&self, name: &str) -> Result<u64, LinkError> {
        units::parse_bytes(&self.0).map_err(|error| wrong(name, error))
    }

    pub(super) fn count(&self, name: &str) -> Result<u64, LinkError> {
        units::parse_count(&self.0).map_err(|error| wrong(name, error))
    }

    pub(super) fn amount(&self, name: &str) -> Result<Amount, LinkError> {
        let text = self.0.as_str();
        match text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
            Some(count) => units::parse_count(count.trim_end())
                .map(Amount::Packets)
                .map_err(|error| wrong(name, error)),
            None => units::parse_bytes(text).map(Amount::Bytes).map_err(|error| {
                wrong(name, format!("{error}; or a number of packets, such as \"25 packets\""))
            }),
        }
    }

    /// `1%` or `0.01`.
    pub(super) fn share(&self, name: &str) -> Result<f64, LinkError> {
        let text = self.0.as_str();
        let (number, of) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text, 1.0),
        };
        match number.parse::<f64>() {
            Ok(number) if (0.0..=of).contains(&number) => Ok(number / of),
            _ => Err(wrong(
                name,
                format!("{} is no share: write 0% to 100%, or 0 to 1", units::quoted(text)),
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;

        impl Visitor<'_> for TextOrNumber {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as \"20ms\", \"1%\" or 1500")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity(text.to_owned()))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Quantity, E> {
                if number.is_finite() {
                    Ok(Quantity(number.to_string()))
                } else {
                    Err(E::custom("a quantity is finite"))
                }
            }
        }
        deserializer.deserialize_any(TextOrNumber).map_err(D::Error::custom)
    }
}

pub(super) fn wrong(name: &str, why: impl fmt::Display) -> LinkError {
    LinkError(format!("{name}: {why}"))
}
