//! The repository's files, and cargo's own account of the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What is not ours or not kept: build products, history, what fuzzing found.
const LEFT_OUT: [&str; 5] = ["target", ".git", "corpus", "artifacts", "coverage"];

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two levels up").to_owned()
}

/// Every file whose name ends so, with its path relative to the root, sorted.
pub(crate) fn files(endings: &[&str]) -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_symlink() || LEFT_OUT.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending))
                && let Ok(text) = fs::read_to_string(&path)
            {
                let relative = path.strip_prefix(&root).expect("under the root");
                found.push((relative.to_string_lossy().into_owned(), text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no file ends with {endings:?}");
    found
}

/// `cargo metadata` for this platform. What cargo has fetched to build the tests is enough for it;
/// only where it isn't may cargo ask its registry.
pub(crate) fn metadata() -> Value {
    let triple = host_triple();
    let run = |extra: &[&str]| {
        Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--filter-platform", &triple])
            .args(extra)
            .current_dir(root())
            .output()
            .expect("cargo starts")
    };
    let mut output = run(&["--offline"]);
    if !output.status.success() {
        output = run(&[]);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {errors}");
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

fn host_triple() -> String {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(rustc).arg("-vV").output().expect("rustc starts");
    let text = String::from_utf8(output.stdout).expect("rustc prints text");
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host line").to_owned()
}
