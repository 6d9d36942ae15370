//! What works on the hosts of a plan, and what doesn't.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::plan::Notation;
use serde::Deserialize;

use super::{
    Binaries, HostClock, HostDescription, HostError, HostEventKind, NamedHost, OpenOptions, Session,
};
use crate::agent::AgentHello;
use crate::plan::HostSpec;

/// How often a check looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The part of a plan that a check reads.
#[derive(Deserialize)]
struct Hosts {
    #[serde(default)]
    hosts: BTreeMap<String, HostSpec>,
}

/// What was found out about a host.
#[derive(Debug)]
pub struct HostReport {
    /// Its name in the plan.
    pub name: String,
    /// How it is reached.
    pub description: HostDescription,
    /// Its agent, or why there is none.
    pub outcome: Result<FoundHost, HostError>,
}

/// A host whose agent has answered.
#[derive(Debug)]
pub struct FoundHost {
    /// Who the agent is.
    pub hello: Box<AgentHello>,
    /// Its clock.
    pub clock: HostClock,
}

/// The hosts of a plan; all else in it is left unread.
///
/// # Errors
/// A text that has no hosts in this form, a host that can't be used: a sentence.
pub fn hosts_of_text(
    text: &str,
    notation: Notation,
    binaries: &Arc<Binaries>,
) -> Result<Vec<NamedHost>, String> {
    let hosts: Result<Hosts, String> = match notation {
        Notation::Toml => toml::from_str(text).map_err(|error| error.to_string()),
        Notation::Json => serde_json::from_str(text).map_err(|error| error.to_string()),
    };
    let hosts = hosts?.hosts;
    if hosts.is_empty() {
        return Err("no host is named: give each one a table below [hosts]".to_owned());
    }
    hosts.iter().map(|(name, spec)| NamedHost::of_plan(name, spec, binaries)).collect()
}

/// Opens all hosts, and closes them again. Ends early when `cancelled` says so: hosts that have not answered by then are
/// left out.
///
/// # Errors
/// As [`Session::open`].
pub fn check(
    hosts: &[NamedHost],
    cancelled: impl Fn() -> bool,
) -> Result<Vec<HostReport>, HostError> {
    let session = Session::open(hosts, &OpenOptions::default())?;
    let mut outcomes = BTreeMap::new();
    while outcomes.len() < hosts.len() && !cancelled() {
        let Some(event) = session.next_event(LOOK_EVERY) else { continue };
        let outcome = match event.kind {
            HostEventKind::Opened { hello, clock } => Ok(FoundHost { hello, clock }),
            HostEventKind::Lost { error, .. } => Err(error),
            _ => continue,
        };
        outcomes.entry(event.host).or_insert(outcome);
    }
    let report = |(id, outcome): (usize, _)| {
        let host = hosts.get(id)?;
        let (name, description) = (host.name.clone(), host.host.describe());
        Some(HostReport { name, description, outcome })
    };
    Ok(outcomes.into_iter().filter_map(report).collect())
}
