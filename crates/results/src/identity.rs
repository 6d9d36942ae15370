//! Names that no other run has.

use crate::StoreError;

/// The most bytes of a run's name.
const MOST_BYTES: usize = 100;

/// A random UUID of version 4 (RFC 9562, section 5.4).
pub(crate) fn random_uuid() -> Result<String, StoreError> {
    let mut bytes = [0u8; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if filled != Ok(bytes.len()) {
        return Err(StoreError::Unfit("a run: the kernel gave no random bytes".to_owned()));
    }
    Ok(format_uuid(u128::from_be_bytes(bytes), 4))
}

/// The number as a UUID of this version, whose bits replace six of its own (RFC 9562, section 4).
pub(crate) fn format_uuid(number: u128, version: u8) -> String {
    let version = u128::from(version & 0xf);
    let number = number & !(0xf << 76) & !(0b11 << 62) | version << 76 | 0b10 << 62;
    let hex = format!("{number:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
    parts.join("-")
}

/// Whether this can be a run's name: it is part of a file's name.
pub(crate) fn is_run_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (1..=MOST_BYTES).contains(&name.len()) && name.chars().all(allowed) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_of_version_four_and_differ() {
        let (one, other) = (random_uuid().unwrap(), random_uuid().unwrap());
        assert_ne!(one, other);
        for uuid in [one, other] {
            assert_eq!(uuid.len(), 36);
            assert_eq!(uuid.as_bytes()[14], b'4', "{uuid}");
            assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
            assert!(is_run_name(&uuid));
        }
        assert!(!is_run_name("") && !is_run_name("../a") && !is_run_name("a/b"));
    }
}
