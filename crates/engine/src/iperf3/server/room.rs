//! Which test makes room when there are too many.

use std::collections::BTreeMap;

use super::reception::Entry;
use crate::pending::Origin;

/// The oldest test without streams of the place that has the most such, for one that comes from
/// `newcomer`. Nobody makes room for another of its own place, nor who is alone in his.
pub(super) fn first_to_go<'a>(
    oldest_first: impl Iterator<Item = &'a Entry>,
    newcomer: Origin,
) -> Option<&'a Entry> {
    let mut places: BTreeMap<Origin, (usize, &Entry)> = BTreeMap::new();
    for entry in oldest_first.filter(|entry| !entry.complete && !entry.turned_out.requested()) {
        places.entry(entry.origin).or_insert((0, entry)).0 += 1;
    }
    let (origin, (count, entry)) = places.into_iter().max_by_key(|(_, (count, _))| *count)?;
    (count > 1 && origin != newcomer).then_some(entry)
}
