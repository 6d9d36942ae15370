//! Values of JSON as iperf3's releases write them: a number may be whole or not, and minus one may be
//! the largest number that 64 bits hold.

use serde_json::{Map, Value};

/// An object, whose fields are read by name.
pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

impl Fields<'_> {
    /// A number, as a fraction.
    pub(super) fn fraction(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64().filter(|number| number.is_finite())
    }

    /// A whole number; a fraction loses what is behind the point.
    pub(super) fn whole(&self, name: &str) -> Option<i64> {
        let value = self.0.get(name)?;
        if let Some(number) = value.as_i64() {
            return Some(number);
        }
        if let Some(number) = value.as_u64() {
            // Releases up to 3.12 write -1 as an unsigned number.
            return Some(if number == u64::MAX { -1 } else { i64::MAX });
        }
        // As casts do, this stops at the ends of the range.
        value.as_f64().filter(|number| number.is_finite()).map(|number| number as i64)
    }

    /// A count: a whole number that isn't negative.
    pub(super) fn count(&self, name: &str) -> Option<u64> {
        u64::try_from(self.whole(name)?).ok()
    }

    /// Whether something is switched on: `true`, or any number but zero.
    pub(super) fn is_on(&self, name: &str) -> bool {
        match self.0.get(name) {
            Some(Value::Bool(on)) => *on,
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
            _ => false,
        }
    }

    /// A text of at most `limit_bytes`.
    pub(super) fn text(&self, name: &str, limit_bytes: usize) -> Option<String> {
        let text = self.0.get(name)?.as_str()?;
        (text.len() <= limit_bytes).then(|| text.to_owned())
    }
}
