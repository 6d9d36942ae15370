//! What a connection's peer may do, and does of it.

use std::net::SocketAddr;

use quinn_proto::Dir;

use super::super::stock::{Share, Stock, kept_bytes};
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

    /// Enlarges that from what it was to as much of this as the stock has, halved until it has it.
    pub(crate) fn enlarge_window(&mut self, from: u32, most: u32, stock: &Stock) {
        let share = self.share.get_or_insert_with(|| Share::none_of(stock.clone()));
        let mut window_bytes = most;
        while window_bytes > from && !share.grow(kept_bytes(window_bytes - from)) {
            window_bytes /= 2;
        }
        if window_bytes > from {
            self.set_window(window_bytes);
        }
    }

    /// Whether the peer has closed the connection, be it in answer.
    pub(in super::super) fn is_closed_by_peer(&self) -> bool {
        self.proto.stats().frame_rx.connection_close > 0
    }
}
