//! A run file of Crucible over two namespaces, and over ssh: servers tell the addresses of their interfaces.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::in_network;
use crate::network::{Network, SERVER_DEVICE, SERVER_V4, run};
use crate::skipped::skip;

#[test]
fn client_reaches_the_address_of_the_servers_interface() {
    in_network(|network| {
        let folder = tempfile::tempdir().unwrap();
        let remote = |role: &str, namespace: &str| {
            let engines = [json!({"role": role, "ids": 1})];
            json!({"engines": engines, "config": {"namespace": namespace}})
        };
        let file = json!({
            "benchmarks": [{"name": "iperf", "ids": 1, "mv-params": {"sets": [{"params": [
                {"arg": "time", "vals": ["1"]}, {"arg": "bitrate", "vals": ["4M"]},
                {"arg": "ipv", "vals": ["4", "6"], "role": "all"},
                {"arg": "ifname", "vals": [SERVER_DEVICE], "role": "server"}]}]}}],
            "run-params": {"max-sample-failures": 3},
            "endpoints": [{"type": "netns", "remotes": [
                remote("client", &network.client), remote("server", &network.server)]}],
        });
        fs::write(folder.path().join("run.json"), file.to_string()).unwrap();
        let crucible = |words: &str| {
            let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
                .arg("crucible")
                .args(words.split_whitespace())
                .current_dir(folder.path())
                .env("LINERATE_STORE", folder.path().join("results.db"))
                .output()
                .unwrap();
            // A busy machine's measurement is not to be trusted.
            assert!(matches!(output.status.code(), Some(0 | 6)), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        crucible("run run.json --id run-1");
        let shown = crucible("get result --run run-1 --output-format json");
        let document: Value = serde_json::from_str(&shown).unwrap();
        for iteration in document["runs"][0]["iterations"].as_array().unwrap() {
            let value = iteration["samples"][0]["values"]["iperf::rx-Gbps"].as_f64().unwrap();
            assert!(value > 0.0, "{document}");
        }
    });
}

/// The server's host is reached by ssh, the client's is this machine.
#[test]
fn remotehost_serves_over_ssh() {
    in_network(|network| {
        let folder = tempfile::tempdir().unwrap();
        let _daemon = match Sshd::start(network, folder.path()) {
            Ok(daemon) => daemon,
            Err(why) => return skip(&why),
        };
        let engine = |role: &str| json!([{"role": role, "ids": 1}]);
        let file = json!({
            "benchmarks": [{"name": "iperf", "ids": 1, "mv-params": {"sets": [{"params": [
                {"arg": "time", "vals": ["1"]}, {"arg": "bitrate", "vals": ["4M"]},
                {"arg": "ifname", "vals": [SERVER_DEVICE], "role": "server"}]}]}}],
            "run-params": {"max-sample-failures": 3},
            "endpoints": [
                {"type": "local", "engines": engine("client")},
                {"type": "remotehosts", "settings": {"user": "root", "osruntime": "chroot"},
                    "remotes": [{"engines": engine("server"), "config": {"host": SERVER_V4}}]}],
        });
        fs::write(folder.path().join("run.json"), file.to_string()).unwrap();
        let crucible = |words: &str| -> Output {
            let path = std::env::var("PATH").unwrap_or_default();
            Command::new("ip")
                .args([
                    "netns",
                    "exec",
                    &network.client,
                    env!("CARGO_BIN_EXE_linerate"),
                    "crucible",
                ])
                .args(words.split_whitespace())
                .current_dir(folder.path())
                .env("LINERATE_STORE", folder.path().join("results.db"))
                .env("PATH", format!("{}:{path}", folder.path().join("bin").display()))
                .output()
                .unwrap()
        };
        let output = crucible("run run.json --id run-1");
        // A busy machine's measurement is not to be trusted.
        assert!(matches!(output.status.code(), Some(0 | 6)), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("osruntime"), "{output:?}");
        let shown = crucible("get result --run run-1 --output-format json").stdout;
        let document: Value = serde_json::from_slice(&shown).unwrap();
        let sample = &document["runs"][0]["iterations"][0]["samples"][0];
        assert!(sample["values"]["iperf::rx-Gbps"].as_f64().unwrap() > 0.0, "{document}");
        // The agent is there because ssh put it there.
        let put = fs::read_dir(folder.path().join("home/.cache/linerate/bin")).unwrap();
        assert_eq!(put.count(), 1);
    });
}

/// An sshd in the server's namespace, and a program `ssh` that knows its keys; the daemon ends when it is dropped.
struct Sshd(Child);

impl Sshd {
    fn start(network: &Network, folder: &Path) -> Result<Self, String> {
        const DAEMON: &str = "/usr/sbin/sshd";
        if !Path::new(DAEMON).exists() {
            return Err("openssh-server is needed".to_owned());
        }
        fs::create_dir_all("/run/sshd").map_err(|error| format!("sshd needs root: {error}"))?;
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        for key in ["host_key", "user_key"] {
            run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &path(key)])?;
        }
        let write = |name: &str, text: String| fs::write(path(name), text).unwrap();
        let host_key = fs::read_to_string(path("host_key.pub")).unwrap();
        write("known_hosts", format!("{SERVER_V4} {host_key}"));
        for made in ["home", "bin"] {
            fs::create_dir(path(made)).unwrap();
        }
        let home = path("home");
        write("login", format!("#!/bin/sh\nexport HOME={home}\neval \"$SSH_ORIGINAL_COMMAND\"\n"));
        let config = path("ssh_config");
        write("bin/ssh", format!("#!/bin/sh\nexec /usr/bin/ssh -F {config} \"$@\"\n"));
        for script in ["login", "bin/ssh"] {
            fs::set_permissions(path(script), Permissions::from_mode(0o755)).unwrap();
        }
        let of_client = format!(
            "IdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\nStrictHostKeyChecking yes\n",
            path("user_key"),
            path("known_hosts")
        );
        write("ssh_config", of_client);
        let of_daemon = format!(
            "ListenAddress {SERVER_V4}\nHostKey {}\nAuthorizedKeysFile {}\nForceCommand {}\n\
             PermitRootLogin prohibit-password\nPasswordAuthentication no\nUsePAM no\n\
             StrictModes no\nPidFile none\nUseDNS no\nPrintMotd no\n",
            path("host_key"),
            path("user_key.pub"),
            path("login")
        );
        write("sshd_config", of_daemon);
        let (config, log) = (path("sshd_config"), path("sshd_log"));
        let daemon = Command::new("ip")
            .args(["netns", "exec", &network.server, DAEMON, "-D", "-f", &config, "-E", &log])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let daemon = Self(daemon.map_err(|error| error.to_string())?);
        let until = Instant::now() + Duration::from_secs(60);
        while !fs::read_to_string(&log).unwrap_or_default().contains("Server listening") {
            assert!(Instant::now() < until, "{:?}", fs::read_to_string(&log));
            thread::sleep(Duration::from_millis(20));
        }
        Ok(daemon)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}
