//! What ssh, sudo and the host's shell print, as kinds of errors.

use crate::host::{HostError, HostErrorKind, LastWords};

/// ssh's own exit code, as opposed to the command's (ssh(1), EXIT STATUS).
const OF_SSH: i32 = 255;

/// Texts of OpenSSH and of the C library, the more telling ones first: a changed host key is followed by
/// "Permission denied" where passwords are disabled for it.
const TEXTS: [(&str, HostErrorKind); 13] = [
    ("Host key verification failed", HostErrorKind::HostKey),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", HostErrorKind::HostKey),
    ("host key is known for", HostErrorKind::HostKey),
    ("Could not resolve hostname", HostErrorKind::Unresolved),
    ("Permission denied", HostErrorKind::PermissionDenied),
    ("Too many authentication failures", HostErrorKind::PermissionDenied),
    ("Connection refused", HostErrorKind::Refused),
    ("Connection timed out", HostErrorKind::Unreachable),
    ("Operation timed out", HostErrorKind::Unreachable),
    ("No route to host", HostErrorKind::Unreachable),
    ("Network is unreachable", HostErrorKind::Unreachable),
    ("Host is down", HostErrorKind::Unreachable),
    ("timed out", HostErrorKind::Unreachable),
];

/// Why no agent answered.
pub(super) fn explain(last: &LastWords) -> HostError {
    let said = last.stderr.as_str();
    let kind = match last.code {
        Some(OF_SSH) => {
            let known = TEXTS.iter().find(|(text, _)| said.contains(text));
            known.map_or(HostErrorKind::Ssh, |(_, kind)| kind.clone())
        }
        _ if said.lines().any(|line| line.starts_with("sudo:")) => HostErrorKind::Sudo,
        // The shell's codes for what can't be executed, and the dynamic linker's.
        Some(126 | 127) => HostErrorKind::NotRunnable,
        _ => return HostError::from_last_words(last),
    };
    HostError::new(kind, said)
}
