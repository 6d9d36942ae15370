//! The matrix of parameters as a user writes it.

use serde_json::{Map, Value};

use super::document::{read_list, read_object, read_required, read_set, read_text};
use super::fault::{Fault, Kind};
use super::parameter::{Param, read_enabled, read_param};

/// The only version of the matrix's schema.
const VERSION: &str = "2021.12.02";

/// A matrix of parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MvParams {
    /// Groups that sets include, if the document has the key.
    pub groups: Option<Vec<Group>>,
    /// The sets.
    pub sets: Vec<Set>,
}

/// A named group of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its parameters, at least one.
    pub params: Vec<Param>,
}

/// A set: it is expanded on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Names of groups.
    pub include: Vec<String>,
    /// The name of a preset.
    pub preset: Option<String>,
    /// Its own parameters.
    pub params: Vec<Param>,
    /// Whether it counts.
    pub is_enabled: bool,
}

/// Reads a matrix.
///
/// # Errors
/// [`Kind::Unreadable`] where the text isn't JSON, and [`Kind::Input`] where it isn't a matrix.
pub fn parse_mv_params(text: &str) -> Result<MvParams, Fault> {
    let value = serde_json::from_str(text)
        .map_err(|error| Fault::new(Kind::Unreadable, format!("it isn't JSON: {error}")))?;
    read_mv_params(&value).map_err(|why| Fault::new(Kind::Input, why))
}

/// Reads a matrix from a document.
///
/// # Errors
/// A sentence that names the place.
pub fn read_mv_params(value: &Value) -> Result<MvParams, String> {
    let members = read_object(value, "the matrix", &["schema", "global-options", "sets"])?;
    check_version(members, VERSION)?;
    let groups = match members.get("global-options") {
        Some(value) => Some(
            read_set(value, "global-options", 0)?
                .iter()
                .enumerate()
                .map(|(index, group)| read_group(group, &format!("global-options[{index}]")))
                .collect::<Result<_, _>>()?,
        ),
        None => None,
    };
    let sets = match members.get("sets") {
        Some(value) => read_set(value, "sets", 0)?
            .iter()
            .enumerate()
            .map(|(index, set)| read_one_set(set, &format!("sets[{index}]")))
            .collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    Ok(MvParams { groups, sets })
}

/// Checks `schema.version`, if it is there.
pub(super) fn check_version(members: &Map<String, Value>, version: &str) -> Result<(), String> {
    let Some(schema) = members.get("schema") else { return Ok(()) };
    let Value::Object(schema) = schema else {
        return Err("schema isn't an object".to_owned());
    };
    match schema.get("version") {
        None => Ok(()),
        Some(Value::String(found)) if found == version => Ok(()),
        Some(other) => Err(format!("schema.version is {other}, and has to be {version:?}")),
    }
}

fn read_group(value: &Value, place: &str) -> Result<Group, String> {
    let members = read_object(value, place, &["name", "params"])?;
    let name = read_text(read_required(members, "name", place)?, &format!("{place}.name"))?;
    let params = read_params(read_required(members, "params", place)?, place, 1, true)?;
    Ok(Group { name: name.to_owned(), params })
}

pub(super) fn read_params(
    value: &Value,
    place: &str,
    least: usize,
    takes_ids: bool,
) -> Result<Vec<Param>, String> {
    let place = format!("{place}.params");
    read_set(value, &place, least)?
        .iter()
        .enumerate()
        .map(|(index, param)| read_param(param, &format!("{place}[{index}]"), takes_ids))
        .collect()
}

fn read_one_set(value: &Value, place: &str) -> Result<Set, String> {
    let members = read_object(value, place, &["include", "include-preset", "params", "enabled"])?;
    let include_place = format!("{place}.include");
    let include = match members.get("include") {
        None => Vec::new(),
        Some(list @ Value::Array(_)) => read_set(list, &include_place, 1)?
            .iter()
            .enumerate()
            .map(|(index, name)| {
                read_text(name, &format!("{include_place}[{index}]")).map(str::to_owned)
            })
            .collect::<Result<_, _>>()?,
        Some(name) => vec![read_text(name, &include_place)?.to_owned()],
    };
    let preset = match members.get("include-preset") {
        Some(name) => Some(read_text(name, &format!("{place}.include-preset"))?.to_owned()),
        None => None,
    };
    let params = match members.get("params") {
        Some(params) => read_params(params, place, 0, true)?,
        None => Vec::new(),
    };
    Ok(Set { include, preset, params, is_enabled: read_enabled(members, place)? })
}

/// Iterations that were multiplied out before: the original's `bench-params`.
///
/// # Errors
/// A sentence that names the place.
pub fn read_bench_params(value: &Value) -> Result<Vec<Vec<super::parameter::Setting>>, String> {
    read_set(value, "bench-params", 1)?
        .iter()
        .enumerate()
        .map(|(index, iteration)| {
            let place = format!("bench-params[{index}]");
            read_set(iteration, &place, 1)?
                .iter()
                .enumerate()
                .map(|(index, param)| read_setting(param, &format!("{place}[{index}]")))
                .collect()
        })
        .collect()
}

fn read_setting(value: &Value, place: &str) -> Result<super::parameter::Setting, String> {
    let known = ["arg", "val", "role", "id", "uuid", "ids"];
    let members = read_object(value, place, &known)?;
    let text = |key: &str| {
        read_text(read_required(members, key, place)?, &format!("{place}.{key}")).map(str::to_owned)
    };
    // In these files a parameter without a role is for all engines.
    let role = match members.get("role") {
        Some(_) => super::parameter::read_role(members, place)?,
        None => super::parameter::EngineRole::All,
    };
    let id = match members.get("id") {
        Some(id) => Some(read_text(id, &format!("{place}.id"))?.to_owned()),
        None => None,
    };
    let ids = match members.get("ids") {
        Some(ids) => Some(
            read_list(ids, &format!("{place}.ids"), 1)?
                .iter()
                .map(|id| read_text(id, &format!("{place}.ids")).map(str::to_owned))
                .collect::<Result<_, _>>()?,
        ),
        None => None,
    };
    Ok(super::parameter::Setting { arg: text("arg")?, val: text("val")?, role, id, ids })
}
