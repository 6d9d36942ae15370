//! The record of namespaces that an emulator has made, so that the next one can remove what a
//! crash has left, and nothing else: a record names this boot of the machine, the process and each
//! namespace's inode.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::namespaces::{NETNS_DIRECTORY, delete_namespace};
use linerate_system::error::Error;

/// A record is named so, with the process id between.
const PREFIX: &str = "link-";
const SUFFIX: &str = ".json";

/// The record of this process; its file is gone when it is dropped.
#[derive(Debug)]
pub(super) struct Record {
    file: PathBuf,
    namespaces: Vec<Value>,
}

impl Record {
    /// An empty record in this directory, which is made if it isn't there.
    pub(super) fn create(directory: &Path) -> Result<Self, Error> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|source| cant("make the directory", directory, source))?;
        let file = directory.join(format!("{PREFIX}{}{SUFFIX}", std::process::id()));
        let record = Self { file, namespaces: Vec::new() };
        record.write()?;
        Ok(record)
    }

    /// Adds a namespace that has just been made.
    pub(super) fn add(&mut self, name: &str) -> Result<(), Error> {
        let inode = namespace_inode(name)
            .map_err(|source| cant("look at the namespace", Path::new(name), source))?;
        self.namespaces.push(json!({ "name": name, "inode": inode }));
        self.write()
    }

    fn write(&self) -> Result<(), Error> {
        let content = json!({
            "boot": boot(),
            "process": std::process::id(),
            "process_started": process_started(std::process::id()),
            "namespaces": self.namespaces,
        });
        // Beside it first, then renamed: a reader sees a whole record or none.
        let beside = self.file.with_extension("tmp");
        fs::write(&beside, content.to_string())
            .and_then(|()| fs::rename(&beside, &self.file))
            .map_err(|source| cant("write", &self.file, source))
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // Where it stays, the next start finds nothing to remove by it.
        let _ = fs::remove_file(&self.file);
    }
}

/// Removes what crashed emulators have left. Says what it removed.
pub(super) fn remove_leftovers(directory: &Path) -> Vec<String> {
    let mut notes = Vec::new();
    let Ok(entries) = fs::read_dir(directory) else { return notes };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(PREFIX) || !name.ends_with(SUFFIX) {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let Ok(record) = serde_json::from_str::<Value>(&text) else { continue };
        if is_alive(&record) {
            continue;
        }
        if record["boot"].as_str() == boot().as_deref() {
            for namespace in record["namespaces"].as_array().into_iter().flatten() {
                notes.extend(remove_leftover(namespace));
            }
        }
        let _ = fs::remove_file(entry.path());
    }
    notes
}

fn remove_leftover(namespace: &Value) -> Option<String> {
    let name = namespace["name"].as_str()?;
    let inode = namespace["inode"].as_u64()?;
    if namespace_inode(name).ok()? != inode {
        // Another process has it by now.
        return None;
    }
    Some(match delete_namespace(name) {
        Ok(()) => format!("removed the namespace {name}, left by an emulator that has crashed"),
        Err(why) => format!("could not remove the namespace {name}, left by a crash: {why}"),
    })
}

/// Whether the process that wrote the record still runs, and isn't another one of that number.
fn is_alive(record: &Value) -> bool {
    let process = record["process"].as_u64().and_then(|process| u32::try_from(process).ok());
    let started = process.and_then(process_started);
    record["boot"].as_str() == boot().as_deref()
        && started.is_some()
        && started == record["process_started"].as_u64()
}

/// Names this boot of the machine (random(4)).
fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// When a process started, in clock ticks since boot: field 22 of /proc/PID/stat (proc(5)). A
/// process that is dead and not yet waited for has none.
fn process_started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before may have any character; what follows its last parenthesis is plain.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok())?
}

fn namespace_inode(name: &str) -> io::Result<u64> {
    Ok(fs::metadata(Path::new(NETNS_DIRECTORY).join(name))?.ino())
}

fn cant(operation: &'static str, path: &Path, source: io::Error) -> Error {
    let address = path.display().to_string();
    if source.kind() == ErrorKind::PermissionDenied {
        return Error::Host(format!("can't {operation} {address}: {source}"));
    }
    Error::Io { operation, address, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_others_of_its_number_are_not() {
        let process = std::process::id();
        let mut record = json!({
            "boot": boot(), "process": process, "process_started": process_started(process),
        });
        assert!(is_alive(&record));
        record["process_started"] = json!(1);
        assert!(!is_alive(&record));
        record["process_started"] = json!(process_started(process));
        record["boot"] = json!("another");
        assert!(!is_alive(&record));
    }
}
