//! Lines and rows of connections and streams.

use std::net::SocketAddr;

use linerate_wire::ctstraffic::ConnectionId;
use linerate_wire::ctstraffic::Fault;
use linerate_wire::ctstraffic::media::receiver::FrameCounts;

use super::system::SystemError;
use super::{per_second, render_address, render_time};

/// The head of a csv file of TCP connections.
pub const TCP_CSV_HEAD: &str = "TimeSlice,LocalAddress,RemoteAddress,SendBytes,SendBps,RecvBytes,\
                                RecvBps,TimeMs,Result,ConnectionId";

/// The head of a csv file of UDP streams.
pub const UDP_CSV_HEAD: &str = "TimeSlice,LocalAddress,RemoteAddress,Bits/Sec,Completed,Dropped,\
                                Repeated,Errors,Result,ConnectionId";

/// What came of a connection or stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All went well.
    Succeeded,
    /// A protocol error, by the original's name.
    Protocol(&'static str),
    /// An error of the system.
    System(SystemError),
}

impl Outcome {
    /// What came of a connection that has failed, or hasn't.
    pub fn of(fault: Option<Fault>) -> Self {
        match fault {
            None => Self::Succeeded,
            Some(Fault::Network(number)) => Self::System(SystemError::of(number)),
            Some(fault) => Self::Protocol(fault.protocol_error().unwrap_or_default()),
        }
    }

    /// The cell of a csv file.
    pub fn cell(&self) -> String {
        match self {
            Self::Succeeded => "Succeeded".to_owned(),
            Self::Protocol(name) => (*name).to_owned(),
            Self::System(error) => format!("{}: {}", error.code, error.words.replace(',', " ")),
        }
    }

    /// What stands in a line behind the protocol's name.
    fn words(&self) -> String {
        match self {
            Self::Succeeded => "connection succeeded".to_owned(),
            Self::Protocol(name) => format!("connection failed with the protocol error {name}"),
            Self::System(SystemError { code, words }) => {
                format!("connection failed with the error {code}: {words}")
            }
        }
    }
}

/// The ends of a connection or stream, and when something happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// When, ms since the program's start.
    pub time_ms: u64,
    /// This end's address; absent where a connection was never established.
    pub local: Option<SocketAddr>,
    /// The other end's.
    pub remote: Option<SocketAddr>,
}

impl Ends {
    /// The line of a TCP connection that is established.
    pub fn tcp_established(&self) -> String {
        format!("[{}] TCP connection established {}", render_time(self.time_ms), self.bracketed())
    }

    /// The line of a UDP stream that is established: a client has requested it, or a server begins it.
    pub fn udp_established(&self) -> String {
        format!("[{}] UDP connection established {}", render_time(self.time_ms), self.bracketed())
    }

    fn bracketed(&self) -> String {
        format!("[{} - {}]", render_address(self.local), render_address(self.remote))
    }

    /// The first three cells of a row.
    pub(super) fn cells(&self, separator: &str) -> String {
        let (local, remote) = (render_address(self.local), render_address(self.remote));
        [render_time(self.time_ms), local, remote].join(separator)
    }
}

/// The cell or word of an id; nothing where there is none.
pub(super) fn render_id(id: Option<ConnectionId>) -> String {
    id.map(|id| id.text()).unwrap_or_default()
}

/// A TCP connection that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConnection {
    /// Its ends, and when it was over.
    pub ends: Ends,
    /// Its id: [`ConnectionId::NONE`] before it came, absent where the connection was never established.
    pub id: Option<ConnectionId>,
    /// Bytes of data sent.
    pub sent_bytes: u64,
    /// Bytes of data received.
    pub received_bytes: u64,
    /// How long the data took, ms.
    pub elapsed_ms: u64,
    /// What came of it.
    pub outcome: Outcome,
}

impl TcpConnection {
    /// The line of the console and of a text file.
    pub fn line(&self) -> String {
        // The original has a blank before the colon of failures alone.
        let colon = if self.outcome == Outcome::Succeeded { ":" } else { " :" };
        format!(
            "[{}] TCP {} : {} [{}]{colon} SendBytes[{}]  SendBps[{}]  RecvBytes[{}]  RecvBps[{}]  \
             Time[{} ms]",
            render_time(self.ends.time_ms),
            self.outcome.words(),
            self.ends.bracketed(),
            render_id(self.id),
            self.sent_bytes,
            per_second(self.sent_bytes, self.elapsed_ms),
            self.received_bytes,
            per_second(self.received_bytes, self.elapsed_ms),
            self.elapsed_ms,
        )
    }

    /// The row of a csv file.
    pub fn csv_row(&self) -> String {
        let (ends, result) = (self.ends.cells(","), self.outcome.cell());
        let amounts = self.amounts().map(|amount| amount.to_string()).join(",");
        format!("{ends},{amounts},{result},{}", render_id(self.id))
    }

    /// What was sent and received, with rates, and the time.
    pub(super) fn amounts(&self) -> [u64; 5] {
        [
            self.sent_bytes,
            per_second(self.sent_bytes, self.elapsed_ms),
            self.received_bytes,
            per_second(self.received_bytes, self.elapsed_ms),
            self.elapsed_ms,
        ]
    }
}

/// A UDP stream that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpStream {
    /// Its ends, and when it was over.
    pub ends: Ends,
    /// Its id; absent where it didn't come.
    pub id: Option<ConnectionId>,
    /// How long it took, ms: at a client until the last frame came.
    pub elapsed_ms: u64,
    /// Its frames and bits; a server knows only bits.
    pub counts: FrameCounts,
    /// What came of it.
    pub outcome: Outcome,
}

impl UdpStream {
    /// The line of the console and of a text file.
    pub fn line(&self) -> String {
        let FrameCounts { completed, dropped, repeated, errors, bits } = self.counts;
        format!(
            "[{}] UDP {} : {} [{}] : BitsPerSecond [{}]  Completed [{completed}]  \
             Dropped [{dropped}]  Repeated [{repeated}]  Errors [{errors}]",
            render_time(self.ends.time_ms),
            self.outcome.words(),
            self.ends.bracketed(),
            render_id(self.id),
            per_second(bits, self.elapsed_ms),
        )
    }

    /// The row of a csv file.
    pub fn csv_row(&self) -> String {
        let FrameCounts { completed, dropped, repeated, errors, bits } = self.counts;
        let rate = per_second(bits, self.elapsed_ms);
        let (ends, result) = (self.ends.cells(","), self.outcome.cell());
        let id = render_id(self.id);
        format!("{ends},{rate},{completed},{dropped},{repeated},{errors},{result},{id}")
    }
}

#[cfg(test)]
mod tests;
