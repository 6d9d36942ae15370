//! Network namespaces that are hosts: one for the controller, and one with an sshd for each host.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linerate_lab::plan::SshHost;
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::process::{PATIENCE, Place, signal};

/// The first part of every namespace's name; the process id comes next.
const PREFIX: &str = "linerate-test-";

/// Hosts in namespaces; all is gone when it is dropped.
pub(crate) struct Fleet {
    pub(crate) place: Place,
    name: String,
    hosts: usize,
    daemons: Vec<Child>,
    mounts: Vec<PathBuf>,
}

impl Fleet {
    /// Makes a namespace for the controller and one for each host; says what is missing where it can't.
    pub(crate) fn create(hosts: usize) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        for tool in ["ip", "nsenter"] {
            run(&[tool, "-V"]).map_err(|why| format!("{tool} is needed: {why}"))?;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let (daemons, mounts) = (Vec::new(), Vec::new());
        let fleet = Self { place: Place::new(), name, hosts, daemons, mounts };
        fleet.join().map_err(|why| format!("network namespaces need root: {why}"))?;
        Ok(fleet)
    }

    /// The namespace of a host.
    pub(crate) fn namespace(&self, host: usize) -> String {
        format!("{}-{host}", self.name)
    }

    fn controllers(&self) -> String {
        format!("{}-c", self.name)
    }

    /// A bridge in the controller's namespace, with a device to each host.
    fn join(&self) -> Result<(), String> {
        let controllers = self.controllers();
        run(&["ip", "netns", "add", &controllers])?;
        let ours = |words: &[&str]| run(&[&["ip", "-n", &controllers][..], words].concat());
        ours(&["link", "set", "lo", "up"])?;
        ours(&["link", "add", "bridge", "type", "bridge"])?;
        ours(&["addr", "add", "10.78.0.1/24", "dev", "bridge"])?;
        ours(&["link", "set", "bridge", "up"])?;
        for host in 0..self.hosts {
            let (namespace, device) = (self.namespace(host), format!("h{host}"));
            run(&["ip", "netns", "add", &namespace])?;
            ours(&[
                "link", "add", &device, "type", "veth", "peer", "name", "eth0", "netns", &namespace,
            ])?;
            ours(&["link", "set", &device, "master", "bridge", "up"])?;
            let theirs = |words: &[&str]| run(&[&["ip", "-n", &namespace][..], words].concat());
            theirs(&["link", "set", "lo", "up"])?;
            theirs(&["addr", "add", &format!("{}/24", address(host)), "dev", "eth0"])?;
            theirs(&["link", "set", "eth0", "up"])?;
        }
        Ok(())
    }

    /// Starts an sshd on each host. What is executed there runs through a script of this text, which ends with the
    /// command that was asked for.
    pub(crate) fn serve_ssh(&mut self, login: &str) -> Result<(), String> {
        run(&["sshd", "-V"]).or_else(|why| match why.contains("OpenSSH") {
            true => Ok(()),
            false => Err(format!("openssh-server is needed: {why}")),
        })?;
        // Each connection is served by a process that gives up its rights there.
        fs::create_dir_all("/run/sshd").map_err(|error| format!("sshd needs root: {error}"))?;
        for key in ["host_key", "user_key", "strange_key"] {
            let file = self.path(key);
            run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &file])?;
        }
        fs::copy(self.path("user_key.pub"), self.path("authorized_keys")).unwrap();
        self.write_known_hosts();
        for host in 0..self.hosts {
            self.write_login(host, login);
            let config = self.path(&format!("sshd_config-{host}"));
            let lines = [
                format!("ListenAddress {}", address(host)),
                format!("HostKey {}", self.path("host_key")),
                format!("AuthorizedKeysFile {}", self.path("authorized_keys")),
                format!("ForceCommand {}", self.path(&format!("login-{host}"))),
                "PermitRootLogin prohibit-password\nPasswordAuthentication no\nUsePAM no"
                    .to_owned(),
                "StrictModes no\nPidFile none\nUseDNS no\nLogLevel INFO\nPrintMotd no".to_owned(),
            ];
            fs::write(&config, lines.join("\n") + "\n").unwrap();
            // The daemon changes its directory: only absolute paths work.
            let log = self.path(&format!("sshd_log-{host}"));
            let net = format!("--net=/run/netns/{}", self.namespace(host));
            let daemon = Command::new("nsenter")
                .args([&net, "--", "/usr/sbin/sshd", "-D", "-f", &config, "-E", &log])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| error.to_string())?;
            self.daemons.push(daemon);
        }
        self.await_daemons();
        Ok(())
    }

    fn await_daemons(&self) {
        for host in 0..self.hosts {
            let until = Instant::now() + PATIENCE;
            let log = self.path(&format!("sshd_log-{host}"));
            while !fs::read_to_string(&log).unwrap_or_default().contains("Server listening") {
                assert!(Instant::now() < until, "{:?}", fs::read_to_string(&log));
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// The script that a login on this host runs through: with a home of its own.
    pub(crate) fn write_login(&self, host: usize, login: &str) {
        let home = self.path(&format!("home-{host}"));
        fs::create_dir_all(&home).unwrap();
        let script = self.path(&format!("login-{host}"));
        let text =
            format!("#!/bin/bash\nexport HOME={home}\n{login}\neval \"$SSH_ORIGINAL_COMMAND\"\n");
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Makes a host's home a file system of 64 KiB.
    pub(crate) fn shrink_home(&mut self, host: usize) -> Result<(), String> {
        let home = self.path(&format!("home-{host}"));
        run(&["mount", "-t", "tmpfs", "-o", "size=64k", "linerate-test", &home])?;
        self.mounts.push(home.into());
        Ok(())
    }

    fn write_known_hosts(&self) {
        let key = fs::read_to_string(self.path("host_key.pub")).unwrap();
        let lines: String =
            (0..self.hosts).map(|host| format!("{} {key}", address(host))).collect();
        fs::write(self.path("known_hosts"), lines).unwrap();
    }

    /// How a host is reached in a plan.
    pub(crate) fn spec(&self, host: usize) -> SshHost {
        self.spec_with(host, "user_key", "known_hosts")
    }

    /// The same with another key of the user, or another list of hosts.
    pub(crate) fn spec_with(&self, host: usize, key: &str, known: &str) -> SshHost {
        // Nothing of the machine's own configuration counts.
        let words = [
            "-F".to_owned(),
            "/dev/null".to_owned(),
            "-i".to_owned(),
            self.path(key),
            "-oIdentitiesOnly=yes".to_owned(),
            format!("-oUserKnownHostsFile={}", self.path(known)),
            "-oGlobalKnownHostsFile=/dev/null".to_owned(),
            "-oStrictHostKeyChecking=yes".to_owned(),
        ];
        let address = format!("root@{}", address(host));
        SshHost { address, ssh_options: words.to_vec(), ..SshHost::default() }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.place.path().join(name).to_string_lossy().into_owned()
    }

    /// Does something in a thread that is in the controller's namespace, with all that it starts.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = fs::File::open(Path::new("/run/netns").join(self.controllers())).unwrap();
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Cuts the controller off from all hosts.
    pub(crate) fn cut(&self) {
        run(&["ip", "-n", &self.controllers(), "link", "set", "bridge", "down"]).unwrap();
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ended = daemon.kill();
            let _reaped = daemon.wait();
        }
        // A session whose network was cut waits for ever.
        for host in 0..self.hosts {
            let pids = Command::new("ip").args(["netns", "pids", &self.namespace(host)]).output();
            let pids = pids.map(|output| output.stdout).unwrap_or_default();
            for pid in String::from_utf8_lossy(&pids).lines() {
                let _killed = pid.parse().map(|pid| signal(pid, Signal::KILL));
            }
        }
        for mount in &self.mounts {
            let _unmounted = run(&["umount", "-l", &mount.to_string_lossy()]);
        }
        for host in 0..self.hosts {
            let _deleted = run(&["ip", "netns", "del", &self.namespace(host)]);
        }
        let _deleted = run(&["ip", "netns", "del", &self.controllers()]);
    }
}

/// The address of a host.
pub(crate) fn address(host: usize) -> String {
    format!("10.78.0.{}", host + 10)
}

/// Runs a program; what it printed on standard error if it failed.
fn run(words: &[&str]) -> Result<(), String> {
    let output = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", words[0]))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
