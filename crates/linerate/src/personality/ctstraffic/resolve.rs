//! From names to addresses.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use linerate_engine::ctstraffic::Sockets;
use linerate_personality::ctstraffic::Refusal;
use linerate_personality::ctstraffic::addresses::{
    ClientAddresses, EVERYWHERE, UNSPECIFIED, match_families, unresolved,
};
use linerate_personality::ctstraffic::options::{HostOptions, Options};
use linerate_personality::ctstraffic::output::banner::RunAddresses;
use linerate_wire::ctstraffic::Span;

/// What a run looks up on this machine.
#[derive(Default)]
pub(super) struct Found {
    /// Server: where it listens.
    pub(super) listen: Vec<SocketAddr>,
    /// Client: where it connects to, and from where.
    pub(super) addresses: ClientAddresses,
    /// Client: where it connects to, with the port.
    targets: Vec<SocketAddr>,
    /// The device that sockets are bound to.
    pub(super) device: Option<String>,
    /// The processors of its threads; all where there are none.
    pub(super) processors: Vec<u32>,
}

impl Found {
    /// Looks up what the options name.
    pub(super) fn look_up(options: &Options) -> Result<Self, Refusal> {
        let (hosts, port) = (&options.hosts, options.port());
        let mut found = Self::default();
        if options.is_server() {
            found.listen = listening(hosts, port)?;
        } else {
            found.addresses = client_addresses(hosts)?;
            let targets = found.addresses.targets.iter();
            found.targets = targets.map(|target| with_port(*target, port)).collect();
        }
        found.device = device(hosts)?;
        found.processors = processors(options.run.cpu_group)?;
        Ok(found)
    }

    /// How sockets are made.
    pub(super) fn sockets(&self, options: &Options) -> Sockets {
        let idle_ms = options.sockets.keepalive_idle_ms;
        Sockets {
            keepalive: options.has_keepalive(),
            keepalive_idle: idle_ms.map(|ms| Duration::from_millis(ms.into())),
            receive_buffer_bytes: options.receive_buffer_bytes(),
            send_buffer_bytes: options.sockets.send_buffer_bytes,
            dscp: options.sockets.dscp,
            device: self.device.clone(),
        }
    }

    /// The addresses as they are printed.
    pub(super) fn run_addresses(&self, options: &Options) -> RunAddresses<'_> {
        match options.is_server() {
            true => RunAddresses::Server(&self.listen),
            false => RunAddresses::Client { targets: &self.targets, binds: &self.addresses.binds },
        }
    }
}

/// Where a server listens.
fn listening(hosts: &HostOptions, port: u16) -> Result<Vec<SocketAddr>, Refusal> {
    let addresses = resolve(&hosts.listen, "listen")?;
    Ok(addresses.into_iter().map(|address| with_port(address, port)).collect())
}

/// Where a client connects to, and from where.
fn client_addresses(hosts: &HostOptions) -> Result<ClientAddresses, Refusal> {
    match_families(&resolve(&hosts.targets, "target")?, &resolve(&hosts.binds, "bind")?)
}

/// The address with this port. A link-local one keeps its interface.
pub(super) fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// The addresses of names, each once. The interface of a link-local address stands behind a `%`.
fn resolve(names: &[String], option: &str) -> Result<Vec<SocketAddr>, Refusal> {
    let mut addresses = Vec::new();
    for name in names {
        let found = match name.as_str() {
            EVERYWHERE => UNSPECIFIED.map(|address| SocketAddr::new(address, 0)).to_vec(),
            name => (name, 0).to_socket_addrs().map_err(|_| unresolved(option))?.collect(),
        };
        for address in found {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    match addresses.is_empty() && !names.is_empty() {
        true => Err(unresolved(option)),
        false => Ok(addresses),
    }
}

/// How many routes a client's connections have in turn: after a common multiple of the numbers of ports and of local
/// addresses the first pair of them comes again.
pub(super) fn route_count(addresses: &ClientAddresses, local_ports: Option<Span>) -> u64 {
    let ports = local_ports.map_or(1, |ports| ports.high.saturating_sub(ports.low) + 1);
    let binds = addresses.binds.len().max(1) as u64;
    let mut multiples = (1..=binds).map(|rounds| ports.saturating_mul(rounds));
    multiples.find(|count| count.is_multiple_of(binds)).unwrap_or(ports)
}

/// The device that sockets are bound to, where one is named or numbered.
fn device(hosts: &HostOptions) -> Result<Option<String>, Refusal> {
    let index = match (hosts.interface_index, &hosts.compartment) {
        (Some(_), Some(_)) => {
            let text =
                "-IfIndex and -Compartment cannot both be set: each names the device of sockets";
            return Err(Refusal::new(text));
        }
        (None, Some(name)) if !is_device(name) => {
            return Err(Refusal::new(format!("-Compartment: there is no device {name}")));
        }
        (None, compartment) => return Ok(compartment.clone()),
        (Some(index), None) => index,
    };
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names = entries.filter(|entry| {
        let number = fs::read_to_string(entry.path().join("ifindex")).unwrap_or_default();
        number.trim().parse() == Ok(index)
    });
    let name = names.find_map(|entry| entry.file_name().into_string().ok());
    name.map(Some).ok_or_else(|| Refusal::new("-IfIndex"))
}

/// Whether this machine has a device of this name.
fn is_device(name: &str) -> bool {
    // A name with a slash names something else in that folder.
    !name.contains('/') && Path::new("/sys/class/net").join(name).join("ifindex").exists()
}

/// The processors of a NUMA node; all of them where none is named.
fn processors(node: Option<u32>) -> Result<Vec<u32>, Refusal> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let path = format!("/sys/devices/system/node/node{node}/cpulist");
    let list = fs::read_to_string(path).ok().filter(|list| !list.trim().is_empty());
    let ranges = list.as_deref().unwrap_or_default().trim().split(',');
    let mut processors = Vec::new();
    for range in ranges {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
            return Err(Refusal::new("-CpuSetGroupId"));
        };
        processors.extend(first..=last);
    }
    Ok(processors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_addresses_each_once() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let everywhere = resolve(&names("* 0.0.0.0 127.0.0.1 ::1"), "listen").unwrap();
        let text: Vec<String> = everywhere.iter().map(|found| found.ip().to_string()).collect();
        assert_eq!(text, ["0.0.0.0", "::", "127.0.0.1", "::1"]);
        let refused = resolve(&names("no-such-name.invalid"), "target").unwrap_err();
        assert_eq!(refused.text, "-target value did not resolve to an IP address");
        assert!(resolve(&[], "bind").unwrap().is_empty());
    }

    #[test]
    fn link_local_addresses_keep_their_interface() {
        let hosts =
            HostOptions { targets: vec!["fe80::1%lo".to_owned()], ..HostOptions::default() };
        let addresses = client_addresses(&hosts).unwrap();
        let SocketAddr::V6(target) = with_port(addresses.targets[0], 7) else { panic!("IPv6") };
        assert_eq!((target.scope_id(), target.port()), (1, 7));
        let nowhere = resolve(&["fe80::1%no-such-device".to_owned()], "target").unwrap_err();
        assert_eq!(nowhere.text, "-target value did not resolve to an IP address");
    }

    #[test]
    fn interfaces_have_numbers() {
        let hosts = |index| HostOptions { interface_index: Some(index), ..HostOptions::default() };
        assert_eq!(device(&hosts(1)).unwrap().as_deref(), Some("lo"));
        assert_eq!(device(&hosts(u32::MAX)).unwrap_err().text, "-IfIndex");
    }

    #[test]
    fn compartments_are_devices() {
        let hosts = |name: &str| HostOptions {
            compartment: Some(name.to_owned()),
            ..HostOptions::default()
        };
        assert_eq!(device(&hosts("lo")).unwrap().as_deref(), Some("lo"));
        for name in ["no-such-device", "lo/queues", "../net/lo", "."] {
            let text = device(&hosts(name)).unwrap_err().text;
            assert_eq!(text, format!("-Compartment: there is no device {name}"));
        }
        let both = HostOptions { interface_index: Some(1), ..hosts("lo") };
        let text = device(&both).unwrap_err().text;
        assert!(text.starts_with("-IfIndex and -Compartment cannot both be set"), "{text}");
    }

    #[test]
    fn ports_and_addresses_meet_after_their_least_common_multiple() {
        let binds = resolve(
            &["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"].map(str::to_owned),
            "bind",
        );
        let binds = binds.unwrap();
        for (ports, count, expected) in [(4, 2, 4), (4, 3, 12), (6, 4, 12), (1, 1, 1), (7, 1, 7)] {
            let addresses =
                ClientAddresses { binds: binds[..count].to_vec(), ..Default::default() };
            let ports = Span { low: 5000, high: 5000 + ports - 1 };
            assert_eq!(route_count(&addresses, Some(ports)), expected);
        }
    }
}
