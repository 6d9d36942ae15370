//! What options say of threads: how many, where, how urgent.

use std::time::Duration;

use crate::colon_options::{ColonOptions, means, parse_leading, parse_u32};

use super::{Refusal, set};

/// As many processors as the original takes.
const PROCESSOR_LIMIT: usize = 256;

/// How urgent threads are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// As the program was started.
    #[default]
    Usual,
    /// Before all others.
    High,
    /// After all others.
    Low,
}

/// How the threads run, on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadOptions {
    /// Whether each thread stays on one processor.
    pub pinned: bool,
    /// The processors that threads run on; empty: all.
    pub processors: Vec<u32>,
    /// How urgent they are.
    pub urgency: Urgency,
    /// How long a thread tries again and again before it sleeps.
    pub busy: Duration,
    /// How many there are, where the options say it by the way.
    pub count: Option<u32>,
}

impl ThreadOptions {
    /// In the original's order: the processors, the scenario, the profile.
    pub(super) fn parse(
        options: ColonOptions<'_>,
        has_processor: impl Fn(u32) -> bool,
    ) -> Result<Self, Refusal> {
        let mut said = Self::default();
        if let Some(list) = options.value("cpu") {
            said.processors = parse_processors(list, has_processor)?;
            said.count = u32::try_from(said.processors.len()).ok().filter(|count| *count > 0);
        }
        said.busy = Duration::from_micros(options.value("pollidle").map_or(0, parse_u32).into());
        let mut urgent = false;
        set(options.value("highpri"), &mut urgent);
        set(options.value("affinitize"), &mut said.pinned);
        check_scenario(options)?;
        let profile = options.value("exec").unwrap_or("lowlat");
        let known = |name: &str| means(profile, name);
        if known("scavenger") {
            said.urgency = Urgency::Low;
            said.count = Some(1);
        } else if known("realtime") {
            said.pinned = true;
            urgent = true;
        } else if !known("lowlat") && !known("maxtput") {
            return Err(Refusal::plain(format!("Failed to parse execution profile[{profile}]!")));
        }
        if urgent {
            said.urgency = Urgency::High;
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
fn parse_processors(list: &str, has_processor: impl Fn(u32) -> bool) -> Result<Vec<u32>, Refusal> {
    if parse_leading(list) == -1 {
        return Ok(Vec::new());
    }
    let mut processors: Vec<u32> = Vec::new();
    for said in list.split(',').take(PROCESSOR_LIMIT) {
        let processor = parse_u32(said);
        if !has_processor(processor) {
            return Err(Refusal::plain("Failed to set execution config 22".to_owned()));
        }
        if !processors.contains(&processor) {
            processors.push(processor);
        }
    }
    Ok(processors)
}
