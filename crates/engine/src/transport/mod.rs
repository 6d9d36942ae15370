//! What carries a flow's bytes.

mod awake;
mod datagrams;
mod discard;
mod file;
pub(crate) mod framed;
pub(crate) mod multiplexer;
pub(crate) mod quic;
mod ring;
mod splice;
mod tcp;
mod timed;
mod tls;
mod zero_copy;

use std::io;

use linerate_measure::report::SocketFacts;
use linerate_measure::sample::QuicStatus;
use socket2::Socket;

pub(crate) use awake::Awake;
pub(crate) use datagrams::{DatagramPath, MOST_SEGMENTS_OF_OLD, Udp, most_of_one_call};
pub(crate) use discard::Discarding;
pub(crate) use file::{FromFile, IntoFile};
pub(crate) use ring::Ring;
pub(crate) use splice::{FromPageCache, IntoNowhere, PageCache, Pipe};
pub(crate) use tcp::Tcp;
pub(crate) use timed::{CallTimes, Timed};
pub(crate) use tls::{Negotiation, Tls, TlsStream};
pub(crate) use zero_copy::{Lent, ZeroCopy};

/// An ordered stream of bytes over a socket.
///
/// On a socket that doesn't block, an operation that can't go on fails with `WouldBlock` and is
/// tried again after the socket's next edge of readiness; on one that blocks, it waits.
pub(crate) trait ByteStream {
    /// Whether a receive that fills less than its buffer has taken all there was.
    const SHORT_MEANS_EMPTY: bool;

    /// What its bytes go over.
    fn socket(&self) -> &Socket;
    /// Does what comes before the first byte.
    fn establish(&mut self) -> io::Result<()>;
    /// Sends the beginning of `bytes`; says how many. 0: it has no more to send, where it sends bytes of its own.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Sends what an earlier send has taken and could not send at once.
    fn flush(&mut self) -> io::Result<()>;
    /// Receives into the beginning of `into`; says how many bytes, 0 when the peer has finished.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize>;
    /// Receives as much as would fit into `into`, and has `look` see it, piece by piece, wherever it
    /// is; what is already in memory of the program need not be copied there.
    fn receive_in_place(
        &mut self,
        into: &mut [u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> io::Result<usize> {
        let length = self.receive(into)?;
        look(into.get(..length).unwrap_or_default());
        Ok(length)
    }
    /// Says that nothing more will be sent.
    fn finish_sending(&mut self) -> io::Result<()>;
    /// What became of memory that was lent for sending; `None` where none ever is.
    fn lent(&mut self) -> Option<Lent> {
        None
    }
    /// What a QUIC connection says of its path.
    fn quic(&self) -> Option<QuicStatus> {
        None
    }
    /// Completes what is known of the socket by what the kernel doesn't know.
    fn complete(&self, facts: SocketFacts) -> SocketFacts {
        facts
    }
}

#[cfg(test)]
mod tests;
