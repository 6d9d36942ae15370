//! Two namespaces and the pair of devices between them.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The first part of every namespace's name here; the process id comes next.
const PREFIX: &str = "linerate-test-";

/// The server's addresses.
pub(crate) const SERVER_V4: &str = "10.77.0.2";
pub(crate) const SERVER_V6: &str = "fd77::2";

/// The devices, each in its namespace.
pub(crate) const CLIENT_DEVICE: &str = "c0";
pub(crate) const SERVER_DEVICE: &str = "s0";

/// Tests of which the machine's own speed is a part of the verdict have it alone; the others share it.
static MACHINE: RwLock<()> = RwLock::new(());

/// Whether other networks may be at work beside one.
#[derive(Clone, Copy)]
pub(crate) enum Company {
    Alone,
    Shared,
}

/// What is held of [`MACHINE`] until it is dropped.
enum Hold {
    Alone(#[expect(dead_code, reason = "kept to be dropped")] RwLockWriteGuard<'static, ()>),
    Shared(#[expect(dead_code, reason = "kept to be dropped")] RwLockReadGuard<'static, ()>),
}

impl Hold {
    fn of(company: Company) -> Self {
        match company {
            Company::Alone => Self::Alone(MACHINE.write().unwrap_or_else(PoisonError::into_inner)),
            Company::Shared => Self::Shared(MACHINE.read().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// Two namespaces, `client` and `server`, joined by a veth pair; both are gone when it is dropped.
pub(crate) struct Network {
    pub(crate) client: String,
    pub(crate) server: String,
    _hold: Hold,
}

impl Network {
    /// What the program prints with these words in the client's namespace. It must end well.
    #[track_caller]
    pub(crate) fn run_client(&self, words: &str) -> String {
        let program = ["netns", "exec", &self.client, env!("CARGO_BIN_EXE_linerate")];
        let output = Command::new("ip").args(program).args(words.split_whitespace()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Makes the namespaces, devices and addresses; says what is missing where it can't.
    pub(crate) fn create(company: Company) -> Result<Self, String> {
        let network = Self::name(company)?;
        network.join().map_err(|why| format!("network namespaces need root: {why}"))?;
        Ok(network)
    }

    /// Names that nobody has, and the right to use them in this company; nothing is made.
    pub(crate) fn name(company: Company) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let hold = Hold::of(company);
        for tool in ["ip", "tc", "nft", "ss"] {
            run(&[tool, "-V"]).map_err(|why| format!("{tool} is needed: {why}"))?;
        }
        remove_stale();
        let name =
            format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Self { client: format!("{name}-c"), server: format!("{name}-s"), _hold: hold })
    }

    fn join(&self) -> Result<(), String> {
        let (client, server) = (self.client.as_str(), self.server.as_str());
        run(&["ip", "netns", "add", client])?;
        run(&["ip", "netns", "add", server])?;
        let [ours, theirs] = [CLIENT_DEVICE, SERVER_DEVICE];
        let pair = [
            "ip", "link", "add", ours, "netns", client, "type", "veth", "peer", "name", theirs,
            "netns", server,
        ];
        run(&pair)?;
        for (namespace, device, v4, v6) in [
            (client, CLIENT_DEVICE, "10.77.0.1/24", "fd77::1/64"),
            (server, SERVER_DEVICE, "10.77.0.2/24", "fd77::2/64"),
        ] {
            run(&["ip", "-n", namespace, "link", "set", "lo", "up"])?;
            run(&["ip", "-n", namespace, "link", "set", device, "up"])?;
            run(&["ip", "-n", namespace, "addr", "add", v4, "dev", device])?;
            run(&["ip", "-n", namespace, "addr", "add", v6, "dev", device, "nodad"])?;
        }
        Ok(())
    }

    /// Limits what leaves the client's device to a rate in bits per second, link header included;
    /// more than `latency` of queue is dropped.
    pub(crate) fn limit_rate(&self, rate: &str, latency: &str) {
        let device = ["tc", "-n", &self.client, "qdisc", "add", "dev", CLIENT_DEVICE, "root"];
        let limit = ["tbf", "rate", rate, "burst", "32kb", "latency", latency];
        run(&[&device[..], &limit[..]].concat()).unwrap();
    }

    /// Sets what both devices carry, IP headers included.
    pub(crate) fn set_mtu(&self, bytes: u32) {
        let bytes = bytes.to_string();
        let devices = [(&self.client, CLIENT_DEVICE), (&self.server, SERVER_DEVICE)];
        for (namespace, device) in devices {
            run(&["ip", "-n", namespace, "link", "set", device, "mtu", &bytes]).unwrap();
        }
    }

    /// Installs an nftables rule set in the server's namespace.
    pub(crate) fn filter(&self, rules: &str) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), rules).unwrap();
        let path = file.path().to_str().unwrap();
        run(&["ip", "netns", "exec", &self.server, "nft", "-f", path]).unwrap();
    }

    /// Packets that a named counter of the rule set has seen.
    pub(crate) fn counted(&self, counter: &str) -> u64 {
        let list = ["nft", "-j", "list", "counter", "inet", "linerate", counter];
        let text = run(&[&["ip", "netns", "exec", &self.server], &list[..]].concat()).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let entries = json["nftables"].as_array().unwrap();
        entries.iter().find_map(|entry| entry["counter"]["packets"].as_u64()).unwrap()
    }

    /// A counter of `/proc/net/snmp` in the server's namespace, as in `("Udp", "RcvbufErrors")`.
    pub(crate) fn server_snmp(&self, protocol: &str, counter: &str) -> u64 {
        let text = run(&["ip", "netns", "exec", &self.server, "cat", "/proc/net/snmp"]).unwrap();
        let mut lines = text.lines().filter(|line| line.starts_with(&format!("{protocol}: ")));
        let names = lines.next().unwrap().split_whitespace();
        let values = lines.next().unwrap().split_whitespace();
        let found = names.zip(values).find(|(name, _)| *name == counter).unwrap();
        found.1.parse().unwrap()
    }

    /// Bytes that the client's device has sent, as the kernel counts them.
    pub(crate) fn client_sent_bytes(&self) -> u64 {
        let file = format!("/sys/class/net/{CLIENT_DEVICE}/statistics/tx_bytes");
        let counted = run(&["ip", "netns", "exec", &self.client, "cat", &file]).unwrap();
        counted.trim().parse().unwrap()
    }

    /// Sets a parameter of the kernel in the client's namespace.
    pub(crate) fn set_client_sysctl(&self, name: &str, value: &str) {
        let write = format!("echo {value} > /proc/sys/{}", name.replace('.', "/"));
        run(&["ip", "netns", "exec", &self.client, "sh", "-c", &write]).unwrap();
    }

    /// Gives the client's device another address.
    pub(crate) fn add_client_address(&self, address: &str) {
        run(&["ip", "-n", &self.client, "addr", "add", address, "dev", CLIENT_DEVICE]).unwrap();
    }

    /// Has the client's kernel keep the link address of the server's device, whatever becomes of the link.
    pub(crate) fn keep_server_neighbor(&self) {
        let file = format!("/sys/class/net/{SERVER_DEVICE}/address");
        let address = run(&["ip", "netns", "exec", &self.server, "cat", &file]).unwrap();
        let entry = ["ip", "-n", &self.client, "neigh", "replace", SERVER_V4, "dev", CLIENT_DEVICE];
        let kept = ["lladdr", address.trim(), "nud", "permanent"];
        run(&[&entry[..], &kept[..]].concat()).unwrap();
    }

    /// Takes the server's device down, or up again.
    pub(crate) fn set_server_link(&self, state: &str) {
        run(&["ip", "-n", &self.server, "link", "set", SERVER_DEVICE, state]).unwrap();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in [&self.client, &self.server] {
            let _ = run(&["ip", "netns", "delete", namespace]);
        }
    }
}

/// Removes what a crashed run left: namespaces whose process is gone, and what still runs in them.
fn remove_stale() {
    let listed = run(&["ip", "netns", "list"]).unwrap_or_default();
    for name in listed.lines().filter_map(|line| line.split_whitespace().next()) {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        let Some(owner) = owner.filter(|owner| !Path::new("/proc").join(owner).exists()) else {
            continue;
        };
        let pids = run(&["ip", "netns", "pids", name]).unwrap_or_default();
        for pid in pids.split_whitespace() {
            let _ = run(&["kill", pid]);
        }
        let _ = run(&["ip", "netns", "delete", name]);
        eprintln!("removed {name}, left by process {owner}");
    }
}

/// Runs a tool to its end: its output, or what it said was wrong.
pub(crate) fn run(argv: &[&str]) -> Result<String, String> {
    let output = Command::new(argv[0])
        .args(&argv[1..])
        .output()
        .map_err(|error| format!("{}: {error}", argv[0]))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}", argv.join(" "), errors.trim()))
}
