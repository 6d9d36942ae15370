//! What a connection's peer may do, and does of it.

use std::net::SocketAddr;

use quinn_proto::Dir;

use super::Connection;

impl Connection {
    /// How many streams the peer may have open.
    pub(crate) fn set_stream_limit(&mut self, dir: Dir, streams: u32) {
        self.proto.set_max_concurrent_streams(dir, streams.into());
        self.touch();
    }

    /// How many streams of this sort the peer has open.
    pub(crate) fn peer_streams(&mut self, dir: Dir) -> u64 {
        self.proto.streams().remote_open_streams(dir)
    }

    /// How much the peer may have on its way in all streams together.
    pub(crate) fn set_window(&mut self, bytes: u32) {
        self.proto.set_receive_window(bytes.into());
        self.touch();
    }

    /// Where the peer is.
    pub(crate) fn remote_address(&self) -> SocketAddr {
        self.proto.remote_address()
    }

    /// Whether the peer has closed the connection, be it in answer.
    pub(in super::super) fn is_closed_by_peer(&self) -> bool {
        self.proto.stats().frame_rx.connection_close > 0
    }
}
