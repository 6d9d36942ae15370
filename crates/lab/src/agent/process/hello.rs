//! Who an agent is, read from the machine that it runs on.

use std::env;
use std::path::Path;

use rustix::process::{Resource, geteuid, getrlimit};

use crate::agent::{AgentHello, Capability};

/// Programs that measurements can use.
const TOOLS: [&str; 6] = ["ethtool", "ip", "iperf3", "nft", "ss", "tc"];

/// Who an agent of this version and SHA-256 is on this machine. The version of the protocol is set when the controller
/// has said which it speaks.
pub fn hello(version: &str, sha256: &str) -> AgentHello {
    let name = rustix::system::uname();
    AgentHello {
        protocol: 0,
        version: version.to_owned(),
        sha256: sha256.to_owned(),
        os: env::consts::OS.to_owned(),
        arch: env::consts::ARCH.to_owned(),
        uid: geteuid().as_raw(),
        hostname: name.nodename().to_string_lossy().into_owned(),
        kernel: name.release().to_string_lossy().into_owned(),
        capabilities: capabilities(),
        tools: tools(),
    }
}

/// Bits of CapEff (capabilities(7)).
fn capabilities() -> Vec<Capability> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    let mask = mask.unwrap_or(0);
    let has = |bit: u32| mask >> bit & 1 == 1;
    // No limit reads as none.
    let may_be_real_time = getrlimit(Resource::Rtprio).current.is_none_or(|limit| limit > 0);
    [
        (Capability::RealTime, has(23) || may_be_real_time),
        (Capability::NetAdmin, has(12)),
        (Capability::LowPorts, has(10)),
        (Capability::SysAdmin, has(21)),
    ]
    .into_iter()
    .filter_map(|(capability, has)| has.then_some(capability))
    .collect()
}

fn tools() -> Vec<String> {
    let path = env::var_os("PATH").unwrap_or_default();
    // A login over ssh that is no terminal's often lacks them.
    let also = ["/usr/sbin", "/sbin"].map(|directory| Path::new(directory).to_owned());
    let directories: Vec<_> = env::split_paths(&path).chain(also).collect();
    let is_there = |tool: &str| directories.iter().any(|directory| directory.join(tool).is_file());
    TOOLS.into_iter().filter(|tool| is_there(tool)).map(str::to_owned).collect()
}
