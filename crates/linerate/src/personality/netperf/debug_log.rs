//! The file that a netserver in the background tells what happens (`-d`).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use super::lot::draw;

/// How its name begins; the original's.
const NAME: &str = "netserver.debug_";
/// Letters that are drawn by lot for its end.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// How many.
const LENGTH: u32 = 6;

/// A file of this process alone.
pub(super) struct DebugLog {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

impl DebugLog {
    /// Makes one where temporary files belong, which others can neither read nor have made before.
    pub(super) fn create() -> io::Result<Self> {
        let path = std::env::temp_dir().join(name(draw()?));
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| {
            io::Error::new(error.kind(), format!("can't make {}: {error}", path.display()))
        })?;
        Ok(Self { path, file })
    }

    /// Removes it where nothing was told.
    pub(super) fn end(self) {
        if self.file.metadata().is_ok_and(|facts| facts.len() == 0) {
            let _stays_at_worst = fs::remove_file(&self.path);
        }
    }
}

fn name(lot: u128) -> String {
    let letter = |place: u32| {
        let index = (lot >> (place * 5)) as usize % LETTERS.len();
        LETTERS.get(index).map_or('x', |letter| char::from(*letter))
    };
    NAME.chars().chain((0..LENGTH).map(letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names_end_with_six_letters_drawn_by_lot() {
        assert_eq!(name(0), "netserver.debug_aaaaaa");
        assert_eq!(name(u128::MAX), "netserver.debug_777777");
        assert_eq!(name(1 | 2 << 5), "netserver.debug_bcaaaa");
    }
}
