//! Values of JSON as iperf3's releases write them: a number may be whole or not, and minus one may be
//! the largest number that 64 bits hold.
//!
//! What a peer sends at length is read without a tree: as a [`Value`] a text takes up to a hundred times its bytes.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Takes fields with these names from an object, and reads over all others. Of fields with one name the last counts.
#[derive(Clone, Copy)]
pub(super) struct Picking {
    /// Numbers, texts and switches. An object or an array in the place of one is [`Value::Null`].
    pub(super) plain: &'static [&'static str],
    /// Those that are kept as they stand in the text.
    pub(super) raw: &'static [&'static str],
}

/// What a [`Picking`] took.
#[derive(Default)]
pub(super) struct Picked<'a> {
    pub(super) plain: Map<String, Value>,
    raw: Vec<(&'static str, &'a RawValue)>,
}

impl<'a> Picked<'a> {
    /// A field as it stands in the text.
    pub(super) fn raw(&self, name: &str) -> Option<&'a str> {
        self.raw.iter().find(|(known, _)| *known == name).map(|(_, value)| value.get())
    }
}

impl Picking {
    /// Reads an object; nothing where the text isn't one.
    pub(super) fn parse(self, text: &str) -> Option<Picked<'_>> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let picked = self.deserialize(&mut reader).ok()?;
        reader.end().ok().map(|()| picked)
    }
}

impl<'de> DeserializeSeed<'de> for Picking {
    type Value = Picked<'de>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Picked<'de>, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Picking {
    type Value = Picked<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Picked<'de>, A::Error> {
        let mut picked = Picked::default();
        while let Some(place) = fields.next_key_seed(Name(self))? {
            match place {
                Place::Plain(name) => {
                    let value = fields.next_value_seed(Plain)?;
                    picked.plain.insert(name.to_owned(), value);
                }
                Place::Raw(name) => {
                    let value = fields.next_value()?;
                    picked.raw.retain(|(known, _)| *known != name);
                    picked.raw.push((name, value));
                }
                Place::Unknown => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(picked)
    }
}

/// Where a field belongs.
enum Place {
    Plain(&'static str),
    Raw(&'static str),
    Unknown,
}

/// Finds out where a field belongs, without a copy of its name.
struct Name(Picking);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Place;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Place, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Place;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Place, E> {
        let find = |names: &[&'static str]| names.iter().copied().find(|known| *known == name);
        let plain = find(self.0.plain).map(Place::Plain);
        Ok(plain.or_else(|| find(self.0.raw).map(Place::Raw)).unwrap_or(Place::Unknown))
    }
}

/// A value of one piece.
struct Plain;

impl<'de> DeserializeSeed<'de> for Plain {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Plain {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }
}

/// Reads an array of at most so many objects; nothing where the text isn't one, `make` refuses one of them, or there are more.
pub(super) fn parse_objects<T>(
    text: &str,
    most: usize,
    picking: Picking,
    make: impl Fn(&Picked<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let objects = Objects { most, picking, make, of: std::marker::PhantomData };
    let values = reader.deserialize_seq(objects).ok()?;
    reader.end().ok().map(|()| values)
}

/// Takes objects one by one.
struct Objects<T, M> {
    most: usize,
    picking: Picking,
    make: M,
    of: std::marker::PhantomData<T>,
}

impl<'de, T, M: Fn(&Picked<'_>) -> Option<T>> Visitor<'de> for Objects<T, M> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at most {} objects", self.most)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut objects: A) -> Result<Vec<T>, A::Error> {
        let mut values = Vec::new();
        while let Some(picked) = objects.next_element_seed(self.picking)? {
            if values.len() == self.most {
                return Err(A::Error::custom("too many objects"));
            }
            let value = (self.make)(&picked);
            values.push(value.ok_or_else(|| A::Error::custom("something is missing"))?);
        }
        Ok(values)
    }
}

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
