//! A piece of a stream on its way to a connection.

use bytes::Bytes;
use quinn_proto::StreamId;

use super::super::connection::Connection;
use crate::transport::multiplexer::Sending;

/// A whole stream of so little is delivered whole, or not.
const BRIEF_BYTES: usize = 16 << 10;
/// Bytes that are copied before it is seen how many of them there is room for.
const COPIED_AT_ONCE_BYTES: usize = 64 << 10;

/// Whether there is no need to watch how much of a stream is delivered before its end.
pub(super) fn is_brief(sending: &Sending<'_>) -> bool {
    sending.opens && sending.finishes && sending.bytes.len() <= BRIEF_BYTES
}

/// Sends the beginning of some bytes, from where they are if they were lent; says how many. `None`: the connection
/// tells when there is room.
pub(super) fn send_piece(
    connection: &mut Connection,
    id: StreamId,
    bytes: &[u8],
    lent: Option<&Bytes>,
    is_watched: bool,
) -> Option<usize> {
    let mut taken = 0;
    // Only a send that takes nothing makes the connection tell when there is room.
    while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
        if taken > 0 && connection.send(id, &[]).is_err() {
            break;
        }
        let sent = match lent {
            Some(lent) if is_watched => connection.send_watched(id, lent.slice(taken..)),
            Some(lent) => connection.send_shared(id, lent.slice(taken..)),
            None if is_watched => {
                let some = rest.get(..COPIED_AT_ONCE_BYTES).unwrap_or(rest);
                connection.send_watched(id, Bytes::copy_from_slice(some))
            }
            None => connection.send(id, rest),
        };
        match sent {
            Ok(bytes) => taken += bytes,
            Err(_) if taken == 0 => return None,
            Err(_) => break,
        }
    }
    Some(taken)
}
