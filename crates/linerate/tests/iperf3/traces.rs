//! What a test leaves where the system shows it, while it runs.

use crate::skipped::skip;

/// A flow label that no other test has.
pub(crate) const FLOW_LABEL: u32 = 0x4321;

/// The processors that this process may run on, as ranges and numbers.
fn allowed_cpus() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    allowed.trim().to_owned()
}

/// The first processor that this process may run on.
pub(crate) fn first_cpu() -> String {
    allowed_cpus().split(['-', ',']).next().unwrap().to_owned()
}

/// Whether there is more than one; where there is not, nothing is seen of a choice among them.
pub(crate) fn has_processors_to_choose() -> bool {
    let several = allowed_cpus().contains(['-', ',']);
    if !several {
        skip("with one processor nothing shows that -A is followed");
    }
    several
}

/// Whether a file names a process.
pub(crate) fn names(path: &str, process: u32) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text == process.to_string())
}

/// Whether a thread of a process may run on the first processor alone.
pub(crate) fn is_kept_to_one_cpu(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return false };
    let mut status =
        threads.flatten().filter_map(|one| std::fs::read_to_string(one.path().join("status")).ok());
    let wanted = first_cpu();
    status.any(|status| {
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        allowed.is_some_and(|allowed| allowed.trim() == wanted)
    })
}

/// Whether somebody has the flow label.
pub(crate) fn has_flow_label() -> bool {
    let table = std::fs::read_to_string("/proc/net/ip6_flowlabel").unwrap_or_default();
    table.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Label, share, owner, users.
        matches!(fields[..], [label, _, _, users, ..]
            if u32::from_str_radix(label, 16) == Ok(FLOW_LABEL) && users != "0")
    })
}
