//! Putting a binary on a host.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::RemoteHost;
use super::script::{PUT, render_put};
use super::texts::explain;
use crate::host::channel::end;
use crate::host::{Executable, HostError, HostErrorKind, LastWords};

/// A binary takes at most so long.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often the transfer's end is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What is kept of what was printed, bytes.
const MAX_PRINTED: u64 = 16 << 10;

/// Puts the binary in its place.
pub(super) fn put(
    host: &RemoteHost,
    binary: &Executable,
    ends: &AtomicBool,
) -> Result<(), HostError> {
    let file = File::open(&binary.path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (bytes, file) = file.map_err(|error| {
        let program = binary.path.display().to_string();
        HostError::new(HostErrorKind::NoProgram { program }, &error.to_string())
    })?;
    let mut child = host
        .ssh(&render_put(&host.spec, binary, bytes))
        .stdin(Stdio::from(file))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| {
            let kind = HostErrorKind::NoProgram { program: "ssh".to_owned() };
            HostError::new(kind, &error.to_string())
        })?;
    // Each is read to its end beside the other, so that neither pipe fills up.
    let stdout = child.stdout.take().map(|pipe| thread::spawn(move || read_beginning(pipe)));
    let stderr = child.stderr.take().map(|pipe| thread::spawn(move || read_beginning(pipe)));
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until
        && !ends.load(Ordering::Relaxed)
        && matches!(child.try_wait(), Ok(None))
    {
        thread::sleep(LOOK_EVERY);
    }
    let code = end(child, Duration::ZERO);
    let text = |reader: Option<thread::JoinHandle<String>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    let last = LastWords { stdout: text(stdout), stderr: text(stderr), code, ended: true };
    if code == Some(0) && last.stdout.lines().any(|line| line == PUT) {
        return Ok(());
    }
    Err(why_not_put(&last))
}

fn read_beginning(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // What was read before an error counts.
    let _cut = pipe.by_ref().take(MAX_PRINTED).read_to_end(&mut bytes);
    let _rest = std::io::copy(&mut pipe, &mut std::io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

fn why_not_put(last: &LastWords) -> HostError {
    let said = last.stderr.as_str();
    let has = |text: &str| said.contains(text);
    let kind = if last.code == Some(255) {
        return explain(last);
    } else if has("No space left on device") || has("Disk quota exceeded") {
        HostErrorKind::DiskFull
    } else if ["mkdir:", "cannot create", "Read-only file system", "Permission denied"]
        .iter()
        .any(|text| has(text))
    {
        HostErrorKind::NoHome
    } else {
        HostErrorKind::NotPut
    };
    HostError::new(kind, said)
}
