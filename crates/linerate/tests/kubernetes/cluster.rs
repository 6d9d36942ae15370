//! A stand-in for a cluster whose pods are agents on this machine, and a directory for a controller.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use crate::stand_in::{Container, Fate, StandIn};

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

/// A cluster and who measures there.
pub(crate) struct Cluster {
    pub(crate) server: StandIn,
    folder: tempfile::TempDir,
}

/// What a pod's container runs.
fn agent() -> Container {
    // A directory of its own, as each container has: what servers keep there must not be shared.
    let home = tempfile::tempdir().unwrap();
    let mut child = Command::new(PROGRAM)
        .arg("agent")
        .env("HOME", home.path())
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_DATA_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    std::thread::spawn(move || {
        let _ended = child.wait();
        drop(home);
    });
    (Box::new(stdin), Box::new(stdout))
}

impl Cluster {
    pub(crate) fn new(fate: Fate) -> Self {
        let server = StandIn::new(fate, "v5.channel.k8s.io", Box::new(agent));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), server.kubeconfig()).unwrap();
        Self { server, folder }
    }

    /// A file of the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(words)
            .env("KUBECONFIG", self.path("kubeconfig"))
            .env("HOME", self.folder.path())
            .env("LINERATE_STORE", self.path("results.db"))
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_DATA_HOME")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Said {
        Said::of(&self.command(words).output().unwrap())
    }

    /// Measures by this plan.
    pub(crate) fn measure(&self, plan: &str) -> Said {
        let plan = self.write("plan.toml", plan);
        self.run(&["matrix", plan.to_str().unwrap(), "--json"])
    }

    pub(crate) fn begin(&self, plan: &str) -> Child {
        let plan = self.write("plan.toml", plan);
        self.command(&["matrix", plan.to_str().unwrap(), "--ndjson"])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap()
    }
}

/// What a command said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        };
        // What the test's output shows where an assertion fails.
        let _shown = write!(std::io::stderr(), "{}", said.stderr);
        said
    }
}
