//! The machine and the program.

use std::collections::HashSet;
use std::fs;

use linerate_measure::report::HostFacts;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::Error;

/// The facts of this machine.
pub fn host_facts() -> HostFacts {
    let system = rustix::system::uname();
    let shown = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    HostFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: shown(system.nodename()),
        kernel: format!("{} {}", shown(system.sysname()), shown(system.release())),
        architecture: shown(system.machine()),
        cpu_model: cpu_model(),
        cpus_online: cpus_online(),
        ran_on_cpus: Vec::new(),
        load_average_1m: fs::read_to_string("/proc/loadavg")
            .ok()
            .and_then(|text| text.split(' ').next()?.parse().ok()),
    }
}

/// Lets this process have as many open files as its user may allow it, and says how many those
/// are: shells give far fewer, for programs that know no better.
pub fn raise_open_files_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Refused: then the old limit holds.
    let _as_before = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Processors in use by the kernel, at least one.
pub fn cpus_online() -> u32 {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let counted = online.and_then(|list| Some(parse_cpu_list(&list)?.len()));
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(counted.unwrap_or_else(available).max(1)).unwrap_or(u32::MAX)
}

/// Processors that a load may have: those that it is pinned to, or those that this process may run on and has a share
/// of (sched_getaffinity(2), and the quota of its control group). At least one.
pub fn processors(pinned_to: &[u32]) -> u32 {
    let pinned: HashSet<_> = pinned_to.iter().collect();
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let count = if pinned.is_empty() { available() } else { pinned.len() };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Memory that this process may have: the machine's, or its container's where that is less (cgroups(7), version 2).
pub fn memory_bytes() -> u64 {
    let machine = rustix::system::sysinfo();
    let bytes = (machine.totalram as u64).saturating_mul(machine.mem_unit.into());
    // `max` is no limit.
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    bytes.min(limit.trim().parse().unwrap_or(u64::MAX))
}

/// The processor's name: x86 says "model name", others "uarch", "cpu" or "Processor"
/// (/proc/cpuinfo, proc(5)).
fn cpu_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    ["model name", "uarch", "Processor", "cpu model", "cpu"].iter().find_map(|wanted| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == *wanted).then(|| value.trim().to_owned())
        })
    })
}

/// The processors near a network interface: of its NUMA node, or all where it has none.
///
/// # Errors
///
/// When there is no such interface.
pub fn cpus_near(interface: &str) -> Result<Vec<u32>, Error> {
    let legal = !interface.is_empty() && !interface.contains(['/', '\0']) && interface != "..";
    let directory = format!("/sys/class/net/{interface}");
    if !legal || fs::metadata(&directory).is_err() {
        return Err(Error::Plan(format!(
            "there is no network interface \"{interface}\" on this machine (ip link shows those \
             there are)"
        )));
    }
    let local = fs::read_to_string(format!("{directory}/device/local_cpulist")).ok();
    let all = || fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let list = local.or_else(all).and_then(|text| parse_cpu_list(&text));
    Ok(list.unwrap_or_default())
}

/// Reads a list of processors as the kernel writes it: `0-3,8`.
pub(super) fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_read_as_the_kernel_writes_them() {
        assert_eq!(parse_cpu_list("0-2,7\n"), Some(vec![0, 1, 2, 7]));
        assert_eq!(parse_cpu_list("\n"), Some(vec![]));
        assert_eq!(parse_cpu_list("a-b"), None);
    }

    #[test]
    fn an_interface_that_is_none_is_named() {
        for name in ["", "..", "../lo", "nosuchinterface0"] {
            assert!(cpus_near(name).unwrap_err().to_string().contains("network interface"));
        }
        assert!(!cpus_near("lo").unwrap().is_empty());
    }
}
