//! What the host's shell is to do.
//!
//! The login shell may be any: it is given one line that replaces it by `sh`, in single quotes and without
//! characters that some shell reads inside of them (`'`, `!`, backslash, line ends).

use crate::host::{Binaries, Executable};
use crate::plan::SshHost;

/// What `sh` prints where the binary is missing, before what `uname` says.
pub(super) const MISSING: &str = "linerate-missing: ";

/// What `sh` prints when the binary is in its place.
pub(super) const PUT: &str = "linerate-put";

/// Where binaries are kept unless the plan says otherwise.
const DIRECTORY: &str = "~/.cache/linerate/bin";

/// A line that becomes the agent, or prints [`MISSING`]. What login files print may have no line end.
pub(super) fn render_run(spec: &SshHost, binaries: &Binaries) -> String {
    let cases: String = binaries
        .iter()
        .map(|binary| format!("\"Linux {}\") s={};; ", binary.arch, binary.sha256))
        .collect();
    let sudo = if spec.sudo { "sudo -n -- " } else { "" };
    quote(&format!(
        "u=\"$(uname -s) $(uname -m)\"; s=; case \"$u\" in {cases}esac; p=\"{}/linerate-$s\"; \
         if [ -n \"$s\" ] && [ -x \"$p\" ]; then exec {sudo}\"$p\" agent; fi; \
         echo; echo \"{MISSING}$u\"",
        directory(spec)
    ))
}

/// A line that puts what comes on standard input in the binary's place, as a whole or not at all, and prints
/// [`PUT`].
pub(super) fn render_put(spec: &SshHost, binary: &Executable, bytes: u64) -> String {
    let directory = directory(spec);
    quote(&format!(
        "umask 077; d=\"{directory}\"; t=\"$d/.linerate-part.$$\"; mkdir -p \"$d\" || exit 1; \
         if cat >\"$t\" && [ \"$(wc -c <\"$t\")\" -eq {bytes} ] && chmod 700 \"$t\" && \
         mv -f \"$t\" \"$d/linerate-{}\"; then echo; echo {PUT}; else rm -f \"$t\"; exit 1; fi",
        binary.sha256
    ))
}

/// Whether a directory can be named to a shell: an absolute path, or one below the home (`~/`).
pub(super) fn check_directory(directory: &str) -> Result<(), String> {
    let is_rooted = directory.starts_with('/') || directory.starts_with("~/");
    let is_plain = |c: char| c.is_alphanumeric() || " ._-+,:@=%/~".contains(c);
    if is_rooted && directory.chars().all(is_plain) {
        return Ok(());
    }
    Err(format!(
        "binary_dir = '{directory}' is no directory for binaries: give a path that begins with / or ~/ and \
         has letters, digits, spaces and . _ - + , : @ = % only"
    ))
}

/// For double quotes.
fn directory(spec: &SshHost) -> String {
    let directory = spec.binary_dir.as_deref().unwrap_or(DIRECTORY);
    match directory.strip_prefix("~/") {
        Some(rest) => format!("$HOME/{rest}"),
        None => directory.to_owned(),
    }
}

fn quote(script: &str) -> String {
    format!("exec sh -c '{script}'")
}
