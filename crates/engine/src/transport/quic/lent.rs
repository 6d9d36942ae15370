//! Memory that streams are sent from where it is.

use std::sync::Arc;

use bytes::Bytes;

struct Owner(Arc<Vec<u8>>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The block as the transport takes it, not copied.
pub(super) fn lend(block: Arc<Vec<u8>>) -> Bytes {
    Bytes::from_owner(Owner(block))
}

/// The part of what was lent that these bytes are, where they are.
pub(super) fn part_of(block: &Bytes, bytes: &[u8]) -> Option<Bytes> {
    let start = (bytes.as_ptr() as usize).checked_sub(block.as_ptr() as usize)?;
    let end = start.checked_add(bytes.len())?;
    (end <= block.len()).then(|| block.slice(start..end))
}
