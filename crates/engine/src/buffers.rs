//! What an end's buffers hold where a dialect says so, and what is done to them beside sending and
//! receiving: netperf's fill files and dirty counts.

use std::hint::black_box;
use std::sync::Arc;

use crate::pattern::Pattern;

/// What is written to and read of buffers beside what goes over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dirt {
    /// Written before each send.
    pub(crate) send_bytes: usize,
    /// Written before each receive.
    pub(crate) receive_bytes: usize,
    /// Read before each receive, behind those that are written.
    pub(crate) clean_bytes: usize,
}

impl Dirt {
    /// Writes to a buffer that is about to be sent.
    #[inline]
    pub(crate) fn before_send(&self, buffer: &mut [u8]) {
        write(buffer, self.send_bytes);
    }

    /// Writes to and reads of a buffer that is about to be filled.
    #[inline]
    pub(crate) fn before_receive(&self, buffer: &mut [u8]) {
        if self.receive_bytes == 0 && self.clean_bytes == 0 {
            return;
        }
        write(buffer, self.receive_bytes);
        let read = buffer.iter().skip(self.receive_bytes).take(self.clean_bytes);
        black_box(read.fold(0, |sum, byte| sum ^ byte));
    }
}

fn write(buffer: &mut [u8], bytes: usize) {
    for byte in buffer.iter_mut().take(bytes) {
        *byte = byte.wrapping_add(1);
    }
    black_box(buffer);
}

/// An end's buffers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    /// What sends carry, over and over; absent: a pattern.
    pub(crate) content: Option<Arc<Vec<u8>>>,
    pub(crate) dirt: Dirt,
}

impl Buffers {
    /// Whether they are as buffers always are.
    pub(crate) fn are_plain(&self) -> bool {
        self.content.is_none() && self.dirt == Dirt::default()
    }

    /// Buffers one behind the other, each of `unit_bytes`, with what is to be sent in them.
    pub(crate) fn filled(&self, unit_bytes: usize, count: usize) -> Vec<u8> {
        let bytes = unit_bytes.saturating_mul(count);
        match self.content.as_ref().filter(|content| !content.is_empty()) {
            Some(content) => content.iter().copied().cycle().take(bytes).collect(),
            None => Pattern::beginning(unit_bytes).slice(0, unit_bytes).repeat(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_requested_bytes_are_written() {
        let dirt = Dirt { send_bytes: 2, receive_bytes: 3, clean_bytes: 9 };
        let mut buffer = [5; 4];
        dirt.before_send(&mut buffer);
        assert_eq!(buffer, [6, 6, 5, 5]);
        dirt.before_receive(&mut buffer);
        assert_eq!(buffer, [7, 7, 6, 5]);
        dirt.before_send(&mut []);
    }

    #[test]
    fn a_file_goes_on_from_buffer_to_buffer_and_begins_again() {
        let content = Some(Arc::new(b"abc".to_vec()));
        let buffers = Buffers { content, ..Buffers::default() };
        assert_eq!(buffers.filled(2, 4), b"abcabcab");
        let plain = Buffers::default().filled(4, 2);
        assert_eq!((plain.len(), &plain[..4]), (8, &plain[4..]));
    }
}
