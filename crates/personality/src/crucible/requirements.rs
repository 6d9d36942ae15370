//! The rules of a benchmark's parameters: presets, validations, conversions and transformations.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::document::{list, read_list, read_object, read_required, read_set, read_text};
use super::fault::{Fault, Kind};
use super::parameter::{Param, read_param};
use super::pattern::{Pattern, Transform};
use super::quirk::{Name, Reading};
use super::units::{Conversion, Converted, parse_factor};

/// The preset for sets that are empty.
const DEFAULTS: &str = "defaults";
/// The preset that every set gets.
const ESSENTIALS: &str = "essentials";

/// The rules of a benchmark's parameters.
#[derive(Clone, Debug, Default)]
pub struct Requirements {
    presets: BTreeMap<String, Vec<Param>>,
    rules: BTreeMap<String, Rule>,
    conversions: BTreeMap<String, Conversion>,
    transforms: BTreeMap<String, Transform>,
}

/// What the values of an argument have to match.
#[derive(Clone, Debug)]
struct Rule {
    texts: Vec<String>,
    patterns: Vec<Pattern>,
    description: Option<String>,
}

/// Reads a requirements file.
///
/// # Errors
/// [`Kind::UnreadableRequirements`] where the text isn't JSON, [`Kind::Requirements`] where it is something else.
pub fn parse_requirements(text: &str) -> Result<Requirements, Fault> {
    let unreadable =
        |error| Fault::new(Kind::UnreadableRequirements, format!("it isn't JSON: {error}"));
    let value: Value = serde_json::from_str(text).map_err(unreadable)?;
    let order: Order = serde_json::from_str(text).unwrap_or_default();
    read_requirements(&value, &order.0).map_err(|why| Fault::new(Kind::Requirements, why))
}

fn read_requirements(value: &Value, order: &[String]) -> Result<Requirements, String> {
    let members = read_object(value, "the file", &["presets", "validations", "units"])?;
    let mut read = Requirements::default();
    if let Some(presets) = members.get("presets") {
        for (name, params) in any_object(presets, "presets")? {
            let place = format!("presets.{name}");
            let params = read_set(params, &place, 1)?
                .iter()
                .enumerate()
                .map(|(index, param)| read_param(param, &format!("{place}[{index}]"), false))
                .collect::<Result<_, _>>()?;
            read.presets.insert(name.clone(), params);
        }
    }
    let units = match members.get("units") {
        Some(units) => read_units(units)?,
        None => BTreeMap::new(),
    };
    let groups = any_object(read_required(members, "validations", "the file")?, "validations")?;
    // Where two groups have rules for one argument, the last one in the file counts.
    let rank = |name: &str| order.iter().rposition(|listed| listed == name);
    let mut groups: Vec<_> = groups.iter().collect();
    groups.sort_by_key(|(name, _)| rank(name));
    for (name, group) in groups {
        read.read_validation(name, group, &units)?;
    }
    Ok(read)
}

type Units = BTreeMap<String, BTreeMap<String, Vec<(String, String)>>>;

fn read_units(value: &Value) -> Result<Units, String> {
    let mut units = Units::new();
    for (group, targets) in any_object(value, "units")? {
        let place = format!("units.{group}");
        let mut read = BTreeMap::new();
        for (target, factors) in filled_object(targets, &place)? {
            let place = format!("{place}.{target}");
            let factors = filled_object(factors, &place)?
                .iter()
                .map(|(unit, factor)| match factor {
                    Value::String(factor) => Ok((unit.clone(), factor.clone())),
                    _ => Err(format!("{place}.{unit} isn't a text")),
                })
                .collect::<Result<_, _>>()?;
            read.insert(target.clone(), factors);
        }
        units.insert(group.clone(), read);
    }
    Ok(units)
}

fn any_object<'a>(
    value: &'a Value,
    place: &str,
) -> Result<&'a serde_json::Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{place} isn't an object"))
}

fn filled_object<'a>(
    value: &'a Value,
    place: &str,
) -> Result<&'a serde_json::Map<String, Value>, String> {
    match any_object(value, place)? {
        members if members.is_empty() => Err(format!("{place} is empty")),
        members => Ok(members),
    }
}

impl Requirements {
    fn read_validation(&mut self, name: &str, value: &Value, units: &Units) -> Result<(), String> {
        let place = format!("validations.{name}");
        let known = ["args", "vals", "description", "convert", "transform"];
        let members = read_object(value, &place, &known)?;
        let args = texts(read_required(members, "args", &place)?, &format!("{place}.args"))?;
        let vals = read_required(members, "vals", &place)?;
        let texts = match vals {
            Value::String(_) => vec![read_text(vals, &format!("{place}.vals"))?.to_owned()],
            _ => texts(vals, &format!("{place}.vals"))?,
        };
        let patterns = texts
            .iter()
            .map(|text| {
                Pattern::new(text)
                    .map_err(|why| format!("{place}.vals: the pattern {text:?}: {why}"))
            })
            .collect::<Result<_, _>>()?;
        let description = match members.get("description") {
            Some(text) => Some(read_text(text, &format!("{place}.description"))?.to_owned()),
            None => None,
        };
        let rule = Rule { texts, patterns, description };
        let conversion = match members.get("convert") {
            Some(Value::String(target)) => {
                match units.get(name).and_then(|group| group.get(target)) {
                    Some(factors) => Some(read_conversion(target, factors, &place)?),
                    // The original goes on without a conversion, too.
                    None => None,
                }
            }
            Some(_) => return Err(format!("{place}.convert isn't a text")),
            None => None,
        };
        let transform = match members.get("transform") {
            Some(value) => Some(read_transform(value, &format!("{place}.transform"))?),
            None => None,
        };
        for arg in args {
            self.rules.insert(arg.clone(), rule.clone());
            if let Some(conversion) = &conversion {
                self.conversions.insert(arg.clone(), conversion.clone());
            }
            if let Some(transform) = &transform {
                self.transforms.insert(arg, transform.clone());
            }
        }
        Ok(())
    }

    /// A preset by its name; the two special ones are among them.
    pub(super) fn preset(&self, name: &str) -> Option<&[Param]> {
        self.presets.get(name).map(Vec::as_slice)
    }

    /// The names of all presets, for a sentence.
    pub(super) fn preset_names(&self) -> String {
        list(&self.presets.keys().collect::<Vec<_>>())
    }

    /// The parameters of a set that is empty.
    pub(super) fn defaults(&self) -> &[Param] {
        self.preset(DEFAULTS).unwrap_or_default()
    }

    /// The parameters that every set gets.
    pub(super) fn essentials(&self) -> &[Param] {
        self.preset(ESSENTIALS).unwrap_or_default()
    }

    /// Checks, converts and transforms a value.
    pub(super) fn prepare(
        &self,
        arg: &str,
        value: &str,
        reading: Reading,
    ) -> Result<String, String> {
        self.check(arg, value, reading)?;
        let mut value = value.to_owned();
        if let Some(conversion) = self.conversions.get(arg) {
            value = match conversion.convert(&value) {
                Converted::Value { dropped: Some(part), .. } if !reading.is_compat() => {
                    let units: Vec<String> =
                        conversion.factors.iter().map(|(unit, _)| format!("{unit:?}")).collect();
                    return Err(Name::UnknownUnit.refuse(&format!(
                        "the value {value:?} of {arg}: {part:?} has none of the units {}",
                        list(&units)
                    )));
                }
                Converted::Value { value, .. } => value,
                Converted::NoNumber(part) => {
                    return Err(format!(
                        "the value {value:?} of {arg}: {part:?} has no number that can be converted"
                    ));
                }
            };
        }
        Ok(match self.transforms.get(arg) {
            Some(transform) => transform.apply(&value),
            None => value,
        })
    }

    fn check(&self, arg: &str, value: &str, reading: Reading) -> Result<(), String> {
        if self.rules.is_empty() {
            return Ok(());
        }
        let Some(rule) = self.rules.get(arg) else {
            let known: Vec<&String> = self.rules.keys().collect();
            return Err(format!(
                "the requirements have no rule for {arg:?}; known are {}",
                list(&known)
            ));
        };
        let Rule { texts, patterns, description } = rule;
        let what = match description {
            Some(description) => format!(" ({description})"),
            None => String::new(),
        };
        let patterns_text = texts.join(" or ");
        if !patterns.iter().any(|pattern| pattern.matches_start(value)) {
            return Err(format!(
                "the value {value:?} of {arg} doesn't match {patterns_text}{what}"
            ));
        }
        let number = value.strip_suffix(['K', 'M', 'G', 'T', 'k', 'm', 'g', 't']);
        let is_whole = patterns.iter().any(|pattern| {
            pattern.matches_whole(value) || number.is_some_and(|text| pattern.matches_whole(text))
        });
        if is_whole || reading.is_compat() {
            return Ok(());
        }
        Err(Name::PrefixValue.refuse(&format!(
            "only the beginning of the value {value:?} of {arg} matches {patterns_text}{what}"
        )))
    }
}

fn texts(value: &Value, place: &str) -> Result<Vec<String>, String> {
    read_set(value, place, 1)?;
    read_list(value, place, 1)?
        .iter()
        .enumerate()
        .map(|(index, text)| read_text(text, &format!("{place}[{index}]")).map(str::to_owned))
        .collect()
}

fn read_conversion(
    target: &str,
    factors: &[(String, String)],
    place: &str,
) -> Result<Conversion, String> {
    let factors = factors
        .iter()
        .map(|(unit, text)| {
            let factor = parse_factor(text).map_err(|why| format!("{place}: {unit:?}: {why}"))?;
            Ok::<_, String>((unit.clone(), factor))
        })
        .collect::<Result<_, _>>()?;
    Ok(Conversion { target: target.to_owned(), factors })
}

fn read_transform(value: &Value, place: &str) -> Result<Transform, String> {
    let members = read_object(value, place, &["search", "replace"])?;
    let text = |key: &str| {
        let value = read_required(members, key, place)?;
        value.as_str().ok_or_else(|| format!("{place}.{key} isn't a text"))
    };
    Transform::new(text("search")?, text("replace")?).map_err(|why| format!("{place}: {why}"))
}

/// The names of the validations in the order of the file, which a map of JSON values doesn't keep.
#[derive(Debug, Default)]
struct Order(Vec<String>);

impl<'de> Deserialize<'de> for Order {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct File;
        impl<'de> Visitor<'de> for File {
            type Value = Order;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Order, A::Error> {
                let mut order = Order::default();
                while let Some(key) = map.next_key::<String>()? {
                    if key == "validations" {
                        order.0 = map.next_value::<Keys>()?.0;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(order)
            }
        }
        deserializer.deserialize_map(File)
    }
}

/// The keys of an object.
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Keys;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some(key) = map.next_key()? {
                    map.next_value::<IgnoredAny>()?;
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
