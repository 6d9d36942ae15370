//! From a matrix to its iterations: sets are combined, values are prepared, and lists of values are crossed.
//!
//! A set is built of the groups that it includes (the first one wins), a preset, and its own parameters, which replace
//! others in place. Defaults go to a set that is empty, and essentials to all sets.

use super::document::list;
use super::fault::{Fault, Kind};
use super::mv_params::{Group, MvParams, Set};
use super::parameter::{Param, Setting};
use super::quirk::{Name, Reading};
use super::requirements::Requirements;

/// The most settings that all iterations together may have.
pub const MOST_SETTINGS: usize = 1_000_000;

/// The iterations of a matrix, in order: the last parameter of a set varies fastest.
///
/// # Errors
/// What the requirements refuse, sets without parameters, and quirks that `reading` doesn't take.
pub fn multiplex(
    matrix: &MvParams,
    requirements: &Requirements,
    reading: Reading,
) -> Result<Vec<Vec<Setting>>, Fault> {
    let mut sets = Vec::new();
    for (index, set) in matrix.sets.iter().enumerate().filter(|(_, set)| set.is_enabled) {
        let combined = combine(set, index, matrix, requirements, reading)
            .map_err(|why| Fault::new(Kind::Input, why))?;
        sets.push(combined);
    }
    if sets.is_empty() {
        sets.push(Vec::new());
    }
    for set in sets.iter_mut().filter(|set| set.is_empty()) {
        *set = requirements.defaults().to_vec();
    }
    match reading {
        Reading::Strict => sets.iter_mut().for_each(|set| add_essentials(set, requirements)),
        Reading::Compat => add_essentials_once(&mut sets, requirements),
    }
    if sets.iter().any(Vec::is_empty) {
        let text = "a set has no parameters; write some, or essentials or defaults among the \
                    presets of the requirements file";
        return Err(Fault::new(Kind::EmptySet, text));
    }
    let mut iterations = Vec::new();
    let mut settings = 0;
    for mut set in sets {
        set.retain(|param| param.is_enabled);
        if set.is_empty() && !reading.is_compat() {
            let why = Name::EmptyIteration.refuse("all parameters of a set are disabled");
            return Err(Fault::new(Kind::EmptySet, why));
        }
        for param in &mut set {
            for val in &mut param.vals {
                *val = requirements
                    .prepare(&param.arg, val, reading)
                    .map_err(|why| Fault::new(Kind::Value, why))?;
            }
        }
        settings =
            expanded_settings(&set).and_then(|own| own.checked_add(settings)).ok_or_else(|| {
                let text = format!(
                    "the iterations have more than {MOST_SETTINGS} parameters; write fewer values"
                );
                Fault::new(Kind::Input, text)
            })?;
        cross(&set, &mut iterations);
    }
    Ok(iterations)
}

/// The number of settings that a set expands to, unless there are too many.
fn expanded_settings(set: &[Param]) -> Option<usize> {
    set.iter()
        .try_fold(set.len().max(1), |product, param| product.checked_mul(param.vals.len()))
        .filter(|settings| *settings <= MOST_SETTINGS)
}

/// The parameters of a set before presets are applied; those of its own may be disabled still.
fn combine(
    set: &Set,
    index: usize,
    matrix: &MvParams,
    requirements: &Requirements,
    reading: Reading,
) -> Result<Vec<Param>, String> {
    let with_ids = !reading.is_compat();
    let mut combined: Vec<Param> = Vec::new();
    let append = |params: &[Param], combined: &mut Vec<Param>| {
        for param in params.iter().filter(|param| param.is_enabled) {
            if !combined.iter().any(|other| other.is_same(param, with_ids)) {
                combined.push(param.clone());
            }
        }
    };
    for name in &set.include {
        for group in included(name, index, matrix, reading)? {
            append(&group.params, &mut combined);
        }
    }
    if let Some(name) = &set.preset {
        match requirements.preset(name) {
            Some(params) => append(params, &mut combined),
            None if reading.is_compat() => {}
            None => {
                let known = requirements.preset_names();
                return Err(Name::UnknownPreset.refuse(&format!(
                    "sets[{index}] includes the preset {name:?}; known are {known}"
                )));
            }
        }
    }
    for param in set.params.iter().filter(|param| param.is_enabled) {
        match combined.iter_mut().find(|other| other.is_same(param, with_ids)) {
            Some(place) => *place = param.clone(),
            None => combined.push(param.clone()),
        }
    }
    Ok(combined)
}

/// The groups of a name.
fn included<'a>(
    name: &str,
    index: usize,
    matrix: &'a MvParams,
    reading: Reading,
) -> Result<Vec<&'a Group>, String> {
    let Some(groups) = &matrix.groups else {
        let why = format!("sets[{index}] includes {name:?}, and there are no global-options");
        return Err(match reading {
            Reading::Strict => Name::IncludeWithoutGroups.refuse(&why),
            Reading::Compat => why,
        });
    };
    let found: Vec<&Group> = groups.iter().filter(|group| group.name == name).collect();
    if found.is_empty() && !reading.is_compat() {
        let known: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        return Err(Name::UnknownInclude
            .refuse(&format!("sets[{index}] includes {name:?}; known are {}", list(&known))));
    }
    Ok(found)
}

/// Gives a set all essentials: in place of parameters of the same argument, and the others at its end.
fn add_essentials(set: &mut Vec<Param>, requirements: &Requirements) {
    let mut rest: Vec<Param> =
        requirements.essentials().iter().filter(|param| param.is_enabled).cloned().collect();
    replace_in_place(set, &mut rest);
    set.append(&mut rest);
}

/// As the original does: an essential that has replaced a parameter is gone for later sets, and one that is disabled
/// is so in the first set only.
fn add_essentials_once(sets: &mut [Vec<Param>], requirements: &Requirements) {
    let mut rest = requirements.essentials().to_vec();
    for set in sets {
        let was_empty = set.is_empty();
        replace_in_place(set, &mut rest);
        set.extend(rest.iter().cloned());
        // An empty set gets copies, so what is marked in them stays marked elsewhere.
        if !was_empty {
            rest.iter_mut().for_each(|param| param.is_enabled = true);
        }
    }
}

/// Puts essentials in place of parameters of the same argument; `essentials` keeps the others.
fn replace_in_place(set: &mut [Param], essentials: &mut Vec<Param>) {
    for param in set {
        if let Some(index) = essentials.iter().position(|other| other.arg == param.arg) {
            *param = essentials.remove(index);
        }
    }
}

/// Appends the product of a set's values, in which the last parameter varies fastest.
fn cross(set: &[Param], iterations: &mut Vec<Vec<Setting>>) {
    let count: usize = set.iter().map(|param| param.vals.len()).product();
    for number in 0..count {
        let mut rest = number;
        let mut iteration: Vec<Setting> = set
            .iter()
            .rev()
            .filter_map(|param| {
                let index = rest % param.vals.len();
                rest /= param.vals.len();
                param.vals.get(index).map(|val| param.with(val.clone()))
            })
            .collect();
        iteration.reverse();
        iterations.push(iteration);
    }
}

#[cfg(test)]
mod tests;
