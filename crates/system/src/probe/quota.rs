//! The CPU quota of this process's control group.

use std::fs;
use std::path::{Path, PathBuf};

use linerate_measure::report::Quota;

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";
/// Where version 1 keeps those of its `cpu` controller.
const MOUNTS_OF_V1: [&str; 2] = ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"];
/// Groups that one lies in.
const MOST_GROUPS: usize = 32;

/// The periods so far of the quotas of this process's control group and of those around it, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas(Vec<(PathBuf, Quota)>);

impl Quotas {
    /// Reads them (cgroups(7), cpu.stat); none where the kernel doesn't tell.
    pub fn read() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let read = |folder: PathBuf| {
            let text = fs::read_to_string(folder.join("cpu.stat")).ok()?;
            Some((folder, parse(&text)?))
        };
        Self(folders(&groups).into_iter().filter_map(read).collect())
    }

    /// The periods since an earlier reading, of the group whose quota was used up in the most of them; `None` where no
    /// group had a quota both times.
    pub fn since(&self, earlier: &Self) -> Option<Quota> {
        let of_group = |(folder, now): &(PathBuf, Quota)| {
            let (_, base) = earlier.0.iter().find(|(other, _)| other == folder)?;
            Some(now.since(*base))
        };
        // Of equals the last is taken.
        self.0.iter().rev().filter_map(of_group).max_by_key(|quota| quota.throttled_periods)
    }
}

/// The folders of a process's groups, by what its /proc/self/cgroup says.
fn folders(groups: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let mounts: &[&str] = match controllers {
            "" => &[MOUNT],
            _ if controllers.split(',').any(|name| name == "cpu") => &MOUNTS_OF_V1,
            _ => continue,
        };
        let inner = Path::new(path.trim_start_matches('/'));
        for mount in mounts {
            let all = inner.ancestors().take(MOST_GROUPS);
            folders.extend(all.map(|inner| Path::new(mount).join(inner)));
        }
    }
    folders
}

fn parse(text: &str) -> Option<Quota> {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse().ok()
    };
    let periods = value("nr_periods").filter(|periods| *periods > 0)?;
    Some(Quota { periods, throttled_periods: value("nr_throttled")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_found_with_those_around_them() {
        let named = |text: &str| -> Vec<String> {
            folders(text).iter().map(|path| path.display().to_string()).collect()
        };
        let v2 = named("0::/a/b\n");
        assert_eq!(v2, ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"]);
        let v1 = named("4:memory:/m\n3:cpu,cpuacct:/c\n");
        assert_eq!(v1.len(), 4);
        assert!(v1.contains(&"/sys/fs/cgroup/cpu/c".to_owned()), "{v1:?}");
        assert!(named("nonsense").is_empty());
    }

    #[test]
    fn the_group_that_was_throttled_most_since_an_earlier_reading_counts() {
        let quotas = |periods: [(u64, u64); 3]| {
            let of = |(folder, (periods, throttled_periods)): (&str, (u64, u64))| {
                (PathBuf::from(folder), Quota { periods, throttled_periods })
            };
            Quotas(["/a/b", "/a", "/"].into_iter().zip(periods).map(of).collect())
        };
        let earlier = quotas([(10, 0), (1000, 900), (1000, 0)]);
        let later = quotas([(30, 15), (1100, 901), (1200, 0)]);
        assert_eq!(later.since(&earlier), Some(Quota { periods: 20, throttled_periods: 15 }));
        assert_eq!(later.since(&later), Some(Quota::default()), "nothing since");
        let calm = quotas([(30, 0), (1100, 900), (1200, 0)]);
        assert_eq!(calm.since(&earlier), Some(Quota { periods: 20, throttled_periods: 0 }));
        assert_eq!(later.since(&Quotas::default()), None);
    }

    #[test]
    fn periods_read_as_the_kernel_writes_them() {
        let text = "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 7\n";
        assert_eq!(parse(text), Some(Quota { periods: 10, throttled_periods: 3 }));
        assert_eq!(parse("usage_usec 5\nnr_periods 0\nnr_throttled 0\n"), None, "no quota");
        assert_eq!(parse("usage_usec 5\n"), None);
    }
}
