//! What a target is sent before its handshake is done (0-RTT). It is kept until the target takes or refuses it.

use bytes::Bytes;

use crate::transport::quic::{Connection, StreamId};

/// What was done with streams of the target, in order.
enum Early {
    Opened(StreamId),
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
    pub(super) fn record_opened(&mut self, id: StreamId) {
        self.steps.push(Early::Opened(id));
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

    /// The streams that were opened, also those that could send nothing.
    pub(super) fn streams(&self) -> Vec<StreamId> {
        let opened = self.steps.iter().filter_map(|step| match step {
            Early::Opened(id) => Some(*id),
            _ => None,
        });
        opened.collect()
    }

    /// Does all of it again over a connection that has dropped it; whether the target still allows as much.
    pub(super) fn repeat(self, to: &mut Connection) -> bool {
        self.steps.into_iter().all(|step| match step {
            Early::Opened(id) => to.open_stream(id.dir()) == Some(id),
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
