//! A flow's bytes under TLS: sealed from the load's memory, opened where they were received.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::report::SocketFacts;
use rustix::net::RecvFlags;
use rustls::Error;
use socket2::Socket;

use super::buffers::{Incoming, Outgoing};
use super::negotiation::Negotiation;
use super::records::{Content, Records};
use crate::control::cipher_of;
use crate::transport::ByteStream;

/// Data that is sealed before any of it is sent.
const SEALED_AT_ONCE_BYTES: usize = 128 << 10;

/// A connected TCP socket whose bytes go under TLS.
pub(crate) struct TlsStream {
    socket: Arc<Socket>,
    stage: Stage,
    incoming: Incoming,
    outgoing: Outgoing,
    /// Why nothing more can be received.
    end: Option<End>,
    closing: bool,
}

enum Stage {
    /// Keys are being agreed on.
    Agreeing(Box<Negotiation>),
    /// What is sent and received is sealed.
    Sealed(Box<Records>),
    /// Agreed on, and of no use.
    Lost,
}

enum End {
    Finished,
    Failed(Error),
}

impl TlsStream {
    pub(crate) fn new(socket: Arc<Socket>, negotiation: Negotiation) -> Self {
        Self {
            socket,
            stage: Stage::Agreeing(Box::new(negotiation)),
            incoming: Incoming::new(),
            outgoing: Outgoing::new(SEALED_AT_ONCE_BYTES),
            end: None,
            closing: false,
        }
    }

    #[cfg(test)]
    pub(super) fn records(&mut self) -> Option<&mut Records> {
        match &mut self.stage {
            Stage::Sealed(records) => Some(records),
            _ => None,
        }
    }

    fn send_queued(&mut self) -> io::Result<()> {
        while !self.outgoing.unsent().is_empty() {
            match self.socket.send(self.outgoing.unsent()) {
                Ok(sent) => self.outgoing.record_sent(sent),
                // Sealed data counts as sent: an error here would make the caller send it twice.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        // A caller that waits for the answer to unsent data would wait for ever.
        let all_sent = self.outgoing.unsent().is_empty();
        let flags = if all_sent { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let (length, _) = rustix::net::recv(self.socket.as_fd(), self.incoming.vacant(), flags)?;
        if length == 0 {
            // No session ends without a word of its own (RFC 8446, section 6.1), and one that hasn't
            // begun would wait for ever.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.incoming.record_filled(length);
        Ok(())
    }

    /// Goes on with the handshake as far as what has come allows; whether the keys are agreed on.
    fn agree(&mut self) -> Result<bool, Error> {
        let negotiation = match &mut self.stage {
            Stage::Agreeing(negotiation) => negotiation,
            Stage::Sealed(_) => return Ok(true),
            Stage::Lost => return Err(Error::HandshakeNotComplete),
        };
        let mut said = Vec::new();
        loop {
            let done = negotiation.advance(self.incoming.offered(), &mut said)?;
            self.incoming.take_offered(done);
            // One record at a time: what comes after the handshake isn't rustls's.
            if !negotiation.is_open() || !self.incoming.offer_record()? {
                break;
            }
        }
        self.outgoing.queue(&said);
        let Stage::Agreeing(negotiation) = std::mem::replace(&mut self.stage, Stage::Lost) else {
            return Ok(true);
        };
        if negotiation.is_open() {
            self.stage = Stage::Agreeing(negotiation);
            return Ok(false);
        }
        let (secrets, successor) = negotiation.into_secrets()?;
        self.stage = Stage::Sealed(Box::new(Records::new(secrets, successor)?));
        Ok(true)
    }

    /// Opens what has come until there is data; whether there is.
    fn open_data(&mut self) -> bool {
        while self.end.is_none() {
            let Stage::Sealed(records) = &mut self.stage else { return false };
            let opened = self.incoming.take_record(|record| records.open(record));
            match opened {
                Ok(None) => return false,
                Ok(Some(Content::Data(place))) => {
                    self.incoming.set_plain(place);
                    return true;
                }
                Ok(Some(Content::Other)) => {}
                Ok(Some(Content::Finished)) => self.end = Some(End::Finished),
                Err(error) => self.end = Some(End::Failed(error)),
            }
        }
        false
    }

    /// Has `look` see what comes, up to so many bytes; says how many.
    fn take(&mut self, most: usize, look: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        loop {
            let mut total = 0;
            while total < most && (self.incoming.has_plain() || self.open_data()) {
                let piece = self.incoming.take_plain(most - total);
                look(piece);
                total += piece.len();
            }
            if total > 0 || most == 0 {
                return Ok(total);
            }
            match &self.end {
                Some(End::Finished) => return Ok(0),
                Some(End::Failed(error)) => return Err(invalid(error.clone())),
                None => {
                    self.flush()?;
                    self.fill()?;
                }
            }
        }
    }
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl ByteStream for TlsStream {
    /// Records come one by one, and more may wait in the socket.
    const SHORT_MEANS_EMPTY: bool = false;

    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn establish(&mut self) -> io::Result<()> {
        loop {
            self.send_queued()?;
            let agreed = self.agree().map_err(invalid)?;
            self.send_queued()?;
            if agreed {
                return Ok(());
            }
            self.fill()?;
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send_queued()?;
        let Stage::Sealed(records) = &mut self.stage else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let most = bytes.len().min(SEALED_AT_ONCE_BYTES);
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..most).filter(|rest| !rest.is_empty()) {
            let (piece, sealed) =
                records.seal_data(rest, self.outgoing.vacant()).map_err(invalid)?;
            self.outgoing.record_queued(sealed);
            taken += piece;
        }
        self.flush()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.send_queued() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (most, mut rest) = (into.len(), into);
        self.take(most, &mut |piece| {
            let (place, after) = std::mem::take(&mut rest).split_at_mut(piece.len());
            place.copy_from_slice(piece);
            rest = after;
        })
    }

    fn receive_in_place(
        &mut self,
        into: &mut [u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> io::Result<usize> {
        self.take(into.len(), look)
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.send_queued()?;
        if let (false, Stage::Sealed(records)) = (self.closing, &mut self.stage) {
            let sealed = records.seal_end(self.outgoing.vacant()).map_err(invalid)?;
            self.outgoing.record_queued(sealed);
        }
        self.closing = true;
        self.send_queued()?;
        self.socket.shutdown(Shutdown::Write)
    }

    fn complete(&self, facts: SocketFacts) -> SocketFacts {
        let Stage::Sealed(records) = &self.stage else { return facts };
        let cipher = cipher_of(records.suite().suite());
        SocketFacts { cipher: cipher.map(|cipher| cipher.name().to_owned()), ..facts }
    }
}
