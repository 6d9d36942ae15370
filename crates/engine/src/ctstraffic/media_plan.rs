//! What an end of media streams is to do.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use linerate_wire::ctstraffic::media::receiver::ReceiverSettings;
use linerate_wire::ctstraffic::media::shape::StreamShape;

use super::media_run::MediaTimes;
use super::sockets::Sockets;
use crate::error::Error;

/// What a server of media streams is to do.
#[derive(Clone, Debug)]
pub struct MediaServerPlan {
    /// Where it listens.
    pub listen: Vec<SocketAddr>,
    /// The frames of each stream.
    pub shape: StreamShape,
    /// It ends after so many streams; absent: never.
    pub limit: Option<u64>,
    /// The rate of all streams together, bits per second; absent: no limit.
    pub max_rate_bps: Option<u64>,
    /// The rate of the streams to one address, likewise.
    pub max_address_rate_bps: Option<u64>,
    /// Whether its thread never sleeps, so that frames are sent when they are due.
    pub spins: bool,
    /// How its sockets are made.
    pub sockets: Sockets,
    /// The processors that its thread runs on; none: all.
    pub cpus: Vec<u32>,
    /// When rows are due, and when the run ends.
    pub times: MediaTimes,
}

impl MediaServerPlan {
    /// Bits per second of one stream, rounded up.
    pub fn stream_bps(&self) -> u64 {
        let StreamShape { frame_bytes, frame_rate, .. } = self.shape;
        8 * u64::from(frame_bytes) * u64::from(frame_rate)
    }

    /// Refuses a server that anybody could have send any number of streams anywhere: START comes from any
    /// address, forged ones included.
    pub(super) fn check(&self) -> Result<(), Error> {
        let is_open = self.listen.iter().find(|address| !address.ip().is_loopback());
        match (is_open, self.max_rate_bps) {
            (Some(address), None) => Err(Error::Plan(format!(
                "a server of media streams at {address} sends whole streams to any address that asks, forged \
                 ones included: give --max-rate, the bits per second of all streams together"
            ))),
            _ => Ok(()),
        }
    }
}

/// What a client of media streams is to do.
#[derive(Clone)]
pub struct MediaClientPlan {
    /// The route of the stream with this number.
    pub route: Arc<dyn Fn(u64) -> MediaRoute + Send + Sync>,
    /// How many routes there are, all local ports counted.
    pub routes: u64,
    /// Streams at the same time.
    pub streams: u32,
    /// Streams in all; absent: without end.
    pub total: Option<u64>,
    /// How each is received.
    pub receiver: ReceiverSettings,
    /// Whether data is compared.
    pub verifies_data: bool,
    /// Whether each frame's row of jitter is told.
    pub tells_jitter: bool,
    /// How its sockets are made.
    pub sockets: Sockets,
    /// The processors that its thread runs on; none: all.
    pub cpus: Vec<u32>,
    /// When rows are due, and when the run ends.
    pub times: MediaTimes,
}

impl fmt::Debug for MediaClientPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { streams, total, receiver, .. } = self;
        let fields = (streams, total, receiver);
        formatter.debug_tuple("MediaClientPlan").field(&fields).finish()
    }
}

/// Where a stream comes from, and where to.
#[derive(Clone, Copy, Debug)]
pub struct MediaRoute {
    /// The server.
    pub server: SocketAddr,
    /// The local address and port; a port of 0 is the kernel's choice. Absent: both are.
    pub local: Option<SocketAddr>,
}
