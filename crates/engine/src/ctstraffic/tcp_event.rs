//! What happens while a client or a server runs over TCP.

use std::net::SocketAddr;

use linerate_measure::Sample;
use linerate_measure::sample::TcpStatus as KernelStatus;
use linerate_measure::step::{ID_BYTES, LifeFault};
use linerate_wire::ctstraffic::ConnectionId;
use linerate_wire::ctstraffic::Fault;
use linerate_wire::ctstraffic::data::Mismatch;

use crate::connections::{Call, Failure, Finished};
use crate::socket::TcpCounts;

/// Something that happened. Times are nanoseconds since the run began.
#[derive(Clone, Debug)]
pub enum TcpEvent {
    /// A connection stands.
    Established {
        /// When.
        at_ns: u64,
        /// This end and the other.
        addresses: Option<(SocketAddr, SocketAddr)>,
    },
    /// A connection came to its end, for better or worse.
    Finished(Box<TcpConnectionEnd>),
    /// A row of status: at the start, at each interval's end, and at the end.
    Status(TcpStatus),
    /// An interval is over.
    Sample(Box<Sample>),
    /// What a user should know of how it runs, as a sentence.
    Note(String),
    /// The time limit was reached.
    TimeIsUp,
    /// The pause before the end begins.
    Pausing,
}

/// A connection that came to its end.
#[derive(Clone, Debug)]
pub struct TcpConnectionEnd {
    /// When.
    pub at_ns: u64,
    /// This end and the other, where it stood.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// Its id: [`ConnectionId::NONE`] before it came, absent where the connection never stood.
    pub id: Option<ConnectionId>,
    /// Bytes of data sent.
    pub sent_bytes: u64,
    /// Bytes of data received.
    pub received_bytes: u64,
    /// From when it stood until its last data was transferred, or until it failed.
    pub elapsed_ns: u64,
    /// Why it failed, where it did.
    pub fault: Option<Fault>,
    /// The system call that was made last: the one that failed where the system reports an error.
    pub call: Call,
    /// What the kernel knew of it, where that is asked for.
    pub kernel: Option<TcpKernelFigures>,
}

/// What the kernel knew of a connection when it ended.
#[derive(Clone, Copy, Debug)]
pub struct TcpKernelFigures {
    /// Least round-trip time.
    pub min_rtt_us: Option<u32>,
    /// The largest segment.
    pub mss_bytes: u32,
    /// Bytes that were sent again.
    pub retransmitted_bytes: Option<u64>,
    /// How often this end's first segment was sent again.
    pub syn_retransmissions: Option<u64>,
    /// Retransmission time-outs.
    pub timeouts: Option<u64>,
}

/// A row of status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpStatus {
    /// The end of the row's time.
    pub at_ns: u64,
    /// The row's time.
    pub slice_ns: u64,
    /// Bytes sent in that time, ids and `DONE` included.
    pub sent_bytes: u64,
    /// Bytes received in that time, likewise.
    pub received_bytes: u64,
    /// Connections until now.
    pub totals: TcpTotals,
}

/// What came of a run's connections so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpTotals {
    /// Connections that stand now.
    pub open: u64,
    /// Those that were completed.
    pub completed: u64,
    /// Those that an error of the network ended.
    pub network_errors: u64,
    /// Those that an error of the protocol ended: data that was wrong, missing or too much.
    pub data_errors: u64,
}

impl TcpTotals {
    /// Connections that came to their end.
    pub fn ended(&self) -> u64 {
        self.completed.saturating_add(self.failed())
    }

    /// Connections that failed.
    pub fn failed(&self) -> u64 {
        self.network_errors.saturating_add(self.data_errors)
    }

    /// Counts one that came to its end.
    pub(super) fn count(&mut self, fault: Option<&Fault>) {
        let count = match fault {
            None => &mut self.completed,
            Some(Fault::Network(_)) => &mut self.network_errors,
            Some(_) => &mut self.data_errors,
        };
        *count += 1;
    }
}

impl TcpConnectionEnd {
    /// One of a run that began at this time; `None` where the run itself ended it.
    pub(super) fn new(finished: &Finished, began_ns: u64) -> Option<Self> {
        let fault = match finished.failure {
            Some(Failure::GivenUp) => return None,
            failure => failure.map(fault),
        };
        let id = match finished.id {
            id if id == [0; ID_BYTES] => ConnectionId::NONE,
            id => ConnectionId::of_wire(id),
        };
        let ended_ns = match finished.transferred_ns {
            _ if !finished.has_lived => finished.began_ns,
            0 => finished.at_ns,
            transferred_ns => transferred_ns,
        };
        Some(Self {
            at_ns: finished.at_ns.saturating_sub(began_ns),
            addresses: finished.addresses,
            id: finished.has_lived.then_some(id),
            sent_bytes: finished.sent_bytes,
            received_bytes: finished.received_bytes,
            elapsed_ns: ended_ns.saturating_sub(finished.began_ns),
            fault,
            call: finished.call,
            kernel: finished.tcp.map(|(status, counts)| kernel_figures(status, counts)),
        })
    }
}

fn kernel_figures(status: KernelStatus, counts: TcpCounts) -> TcpKernelFigures {
    TcpKernelFigures {
        min_rtt_us: status.min_rtt_us,
        mss_bytes: status.mss_bytes,
        retransmitted_bytes: counts.retransmitted_bytes,
        syn_retransmissions: counts.syn_retransmissions,
        timeouts: counts.timeouts,
    }
}

/// A failure by the dialect's kinds.
fn fault(failure: Failure) -> Fault {
    match failure {
        Failure::Fault(LifeFault::Corrupt(wrong)) => Fault::DataDidNotMatchBitPattern(Mismatch {
            offset: wrong.offset,
            expected: wrong.expected,
            found: wrong.found,
            extent_bytes: wrong.extent_bytes,
            wrong_bytes: wrong.wrong_bytes,
            received_bytes: wrong.received_bytes,
        }),
        Failure::Fault(LifeFault::Excess) => Fault::TooMuchDataTransferred,
        Failure::Fault(LifeFault::WrongText) | Failure::EndedEarly => Fault::NotAllDataTransferred,
        Failure::Silent => Fault::Network(libc::ETIMEDOUT),
        // Connections that the run itself ended aren't reported.
        Failure::GivenUp => Fault::Network(libc::ECANCELED),
        Failure::System(number) => Fault::Network(number),
    }
}
