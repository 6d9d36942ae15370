//! One connection of a server, and what it sends.

use std::collections::HashMap;

use bytes::Bytes;

use super::counts::{Counts, Interval, Meter, sent};
use crate::transport::quic::{SharedConnection, StreamId, StreamRead};

/// What a stream is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its request is still coming.
    Asking,
    /// It is sent data.
    Sending,
}

/// What came of a look at a stream's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Nothing new.
    Pending,
    /// It is complete.
    Complete,
    /// The client gave it up, with this code.
    Reset(u64),
}

/// One connection.
pub(super) struct Binding {
    connection: SharedConnection,
    /// When it was accepted, on the monotonic clock.
    pub(super) accepted_ns: u64,
    /// Its number, once it was told.
    pub(super) number: Option<u64>,
    streams: HashMap<StreamId, Stage>,
    /// From the first request on.
    meter: Option<Meter>,
}

impl Binding {
    pub(super) fn new(connection: SharedConnection, accepted_ns: u64) -> Self {
        Self { connection, accepted_ns, number: None, streams: HashMap::new(), meter: None }
    }

    /// The client has opened a stream.
    pub(super) fn insert(&mut self, id: StreamId) {
        self.streams.insert(id, Stage::Asking);
    }

    /// Reads a request, of which only the end matters.
    pub(super) fn read(&mut self, id: StreamId) -> Request {
        if self.streams.get(&id) != Some(&Stage::Asking) {
            return Request::Pending;
        }
        // The receive window bounds what is there.
        match self.connection.borrow_mut().read(id, usize::MAX, &mut |_| ()) {
            StreamRead::Finished(_) => {
                self.streams.insert(id, Stage::Sending);
                Request::Complete
            }
            StreamRead::Reset(code) => Request::Reset(code),
            StreamRead::Bytes(_) | StreamRead::Blocked | StreamRead::Closed => Request::Pending,
        }
    }

    /// Sends on a stream what there is room for.
    pub(super) fn send(&mut self, id: StreamId, fill: &Bytes) {
        if self.streams.get(&id) != Some(&Stage::Sending) {
            return;
        }
        let mut connection = self.connection.borrow_mut();
        connection.fit_send_window();
        // An event tells when there is room again, or why there won't be.
        while connection.send_shared(id, fill.clone()).is_ok() {}
    }

    /// Nothing more goes on a stream, whose client gave it up.
    pub(super) fn give_up(&mut self, id: StreamId, code: u64) {
        if self.streams.remove(&id).is_some() {
            let mut connection = self.connection.borrow_mut();
            connection.reset(id, code);
            connection.stop_sending(id, code);
        }
    }

    /// The first interval begins, if none has.
    pub(super) fn begin_intervals(&mut self, interval_ns: u64, now_ns: u64) {
        if self.meter.is_none() {
            self.meter = Some(Meter::begin(interval_ns, now_ns, self.counts()));
        }
    }

    /// When an interval is over.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.meter.as_ref().map(Meter::next_ns)
    }

    /// When the first interval began.
    pub(super) fn began_ns(&self) -> Option<u64> {
        self.meter.as_ref().map(Meter::began_ns)
    }

    /// The interval that is over, and the congestion window at its end, bytes.
    pub(super) fn tick(&mut self, now_ns: u64) -> Option<(Interval, u64)> {
        let mut meter = self.meter.take()?;
        let interval = meter.tick(now_ns, || self.counts());
        self.meter = Some(meter);
        Some((interval?, self.connection.borrow().status().cwnd_bytes))
    }

    /// All that was sent.
    pub(super) fn counts(&self) -> Counts {
        sent(&self.connection)
    }

    /// Says goodbye.
    pub(super) fn close(&self) {
        self.connection.borrow_mut().close_as(true, 0, STOPPED);
    }
}

/// What a server that is stopped closes its connections with, as the transport.
const STOPPED: &[u8] = b"server_stopped";
