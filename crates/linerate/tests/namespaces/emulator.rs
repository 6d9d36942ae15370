//! The one way to build a path: `linerate link`, from a description.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::network::{Company, Network, run};

/// A priority before that of other programs: the least number is -20.
const URGENT: i32 = -15;

/// Two namespaces and an emulated link between them; gone when dropped.
pub(crate) struct Emulator {
    pub(crate) network: Network,
    process: Child,
    home: TempDir,
}

impl Emulator {
    /// Starts the link that a description in TOML gives.
    pub(crate) fn start(description: &str) -> Result<Self, String> {
        Self::start_in(Company::Shared, description)
    }

    /// Likewise, in this company.
    pub(crate) fn start_in(company: Company, description: &str) -> Result<Self, String> {
        let network = Network::name(company)?;
        // What is judged is the path: its ends come before other programs where this user may have it so. None has
        // much to do, and a thread hands its priority on to what it starts (setpriority(2)).
        let _as_before = rustix::process::setpriority_process(None, URGENT);
        let home = TempDir::new().unwrap();
        std::fs::write(home.path().join("path.toml"), description).unwrap();
        let mut process = link(&network, &home, &[]).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        for line in lines.by_ref().map_while(Result::ok) {
            said += &line;
            said.push('\n');
            if line.contains("the link is up") {
                // What it says later is read and forgotten, so that its pipe never fills up.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(Self { network, process, home });
            }
        }
        let _ = process.wait();
        Err(said)
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The directory that it has for a home.
    pub(crate) fn home(&self) -> &TempDir {
        &self.home
    }

    /// Ends it as a user would; its report.
    pub(crate) fn stop(mut self) -> Value {
        run(&["kill", "-INT", &self.process.id().to_string()]).unwrap();
        self.process.wait().unwrap();
        let text = std::fs::read_to_string(self.home.path().join("report.json")).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["schema"], "linerate.link/1");
        report
    }

    /// Kills it as a crash would, and waits for its end.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // An interrupt, so that it can remove what it has made; there may be none any more.
        if matches!(self.process.try_wait(), Ok(None)) {
            let _ = run(&["kill", "-INT", &self.process.id().to_string()]);
            let _ = self.process.wait();
        }
    }
}

/// The command, with the namespaces of this network and the description in this home.
pub(crate) fn link(network: &Network, home: &TempDir, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command
        .arg("link")
        .arg(home.path().join("path.toml"))
        .args(["--left", &network.client, "--right", &network.server, "--json", "--output"])
        .arg(home.path().join("report.json"))
        .args(more)
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}
