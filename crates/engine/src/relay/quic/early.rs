//! What a target is sent before its handshake is done (0-RTT), kept until it is known whether the target takes it.

use bytes::Bytes;

use crate::transport::quic::{Connection, Dir, StreamId};

/// What was done with streams of the target, in order.
enum Early {
    Opened(Dir),
    Sent(StreamId, Bytes),
    Finished(StreamId),
    Reset(StreamId, u64),
    Stopped(StreamId, u64),
}

/// What was sent early. The pieces are shared with QUIC's send buffer, which bounds them.
#[derive(Default)]
pub(super) struct EarlyData {
    steps: Vec<Early>,
}

impl EarlyData {
    pub(super) fn record_opened(&mut self, dir: Dir) {
        self.steps.push(Early::Opened(dir));
    }

    pub(super) fn record_sent(&mut self, id: StreamId, piece: Bytes) {
        self.steps.push(Early::Sent(id, piece));
    }

    pub(super) fn record_finished(&mut self, id: StreamId) {
        self.steps.push(Early::Finished(id));
    }

    pub(super) fn record_reset(&mut self, id: StreamId, code: u64) {
        self.steps.push(Early::Reset(id, code));
    }

    pub(super) fn record_stopped(&mut self, id: StreamId, code: u64) {
        self.steps.push(Early::Stopped(id, code));
    }

    /// The streams that were opened.
    pub(super) fn streams(&self) -> Vec<StreamId> {
        let sent = self.steps.iter().filter_map(|step| match step {
            Early::Sent(id, _) => Some(*id),
            _ => None,
        });
        let mut streams: Vec<StreamId> = sent.collect();
        streams.sort_unstable();
        streams.dedup();
        streams
    }

    /// Does all of it again over a connection that has dropped it; whether the target still allows as much.
    pub(super) fn repeat(self, to: &mut Connection) -> bool {
        self.steps.into_iter().all(|step| match step {
            Early::Opened(dir) => to.open_stream(dir).is_some(),
            Early::Sent(id, piece) => send_all(to, id, piece),
            Early::Finished(id) => to.finish(id).is_ok(),
            Early::Reset(id, code) => {
                to.reset(id, code);
                true
            }
            Early::Stopped(id, code) => {
                to.stop_sending(id, code);
                true
            }
        })
    }
}

fn send_all(to: &mut Connection, id: StreamId, mut piece: Bytes) -> bool {
    while !piece.is_empty() {
        if to.send_part(id, &mut piece).is_err() {
            return false;
        }
    }
    true
}
