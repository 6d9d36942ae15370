//! What options say of threads: how many, where, how urgent.

use std::path::Path;
use std::time::Duration;

use linerate_engine::perf::{Placement, Urgency};

use super::{Refusal, set};
use linerate_personality::colon_options::{ColonOptions, means, parse_leading, parse_u32};

/// As many processors as the original takes.
const PROCESSOR_LIMIT: usize = 256;

/// How the threads run, on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct ThreadOptions {
    pub(in super::super) placement: Placement,
    /// How many there are, where the options say it by the way.
    pub(in super::super) count: Option<u32>,
}

impl ThreadOptions {
    /// In the original's order: the processors, the scenario, the profile.
    pub(super) fn parse(options: ColonOptions<'_>) -> Result<Self, Refusal> {
        let mut said = Self::default();
        let placement = &mut said.placement;
        if let Some(list) = options.value("cpu") {
            placement.processors = parse_processors(list)?;
            said.count = u32::try_from(placement.processors.len()).ok().filter(|count| *count > 0);
        }
        placement.busy =
            Duration::from_micros(options.value("pollidle").map_or(0, parse_u32).into());
        let mut urgent = false;
        set(options.value("highpri"), &mut urgent);
        set(options.value("affinitize"), &mut placement.pinned);
        check_scenario(options)?;
        let profile = options.value("exec").unwrap_or("lowlat");
        let known = |name: &str| means(profile, name);
        if known("scavenger") {
            placement.urgency = Urgency::Low;
            said.count = Some(1);
        } else if known("realtime") {
            placement.pinned = true;
            urgent = true;
        } else if !known("lowlat") && !known("maxtput") {
            return Err(Refusal::plain(format!("Failed to parse execution profile[{profile}]!")));
        }
        if urgent {
            placement.urgency = Urgency::High;
        }
        Ok(said)
    }
}

/// A scenario that isn't known. What a known one sets is the client's.
fn check_scenario(options: ColonOptions<'_>) -> Result<(), Refusal> {
    let known = ["upload", "download", "hps", "rps", "rps-multi", "latency"];
    match options.value("scenario").filter(|said| !known.iter().any(|name| means(said, name))) {
        Some(said) => Err(Refusal::plain(format!("Failed to parse scenario profile[{said}]!"))),
        None => Ok(()),
    }
}

/// Numbers of processors, with commas; -1 is all, which is what no list says too. What is no number is
/// 0, as the original has it.
fn parse_processors(list: &str) -> Result<Vec<u32>, Refusal> {
    if parse_leading(list) == -1 {
        return Ok(Vec::new());
    }
    let mut processors: Vec<u32> = Vec::new();
    for said in list.split(',').take(PROCESSOR_LIMIT) {
        let processor = parse_u32(said);
        if !Path::new(&format!("/sys/devices/system/cpu/cpu{processor}")).exists() {
            return Err(Refusal::plain("Failed to set execution config 22".to_owned()));
        }
        if !processors.contains(&processor) {
            processors.push(processor);
        }
    }
    Ok(processors)
}
