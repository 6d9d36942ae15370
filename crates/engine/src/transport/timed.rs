//! A way whose calls are timed, for tests that ask how long each call takes.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use linerate_measure::histogram::Histogram;
use linerate_measure::report::SocketFacts;
use linerate_measure::sample::QuicStatus;
use socket2::Socket;

use super::{ByteStream, DatagramPath, Lent};
use crate::clock::monotonic_ns;

/// What the calls of one flow have taken: its way records it, its thread alone reads it.
pub(crate) type CallTimes = Rc<RefCell<Histogram>>;

/// A way whose sends and receives are timed. One that can't go on and is tried again has taken as
/// long as it was until it went on; one that fails isn't counted, nor is the peer's end.
pub(crate) struct Timed<W> {
    way: W,
    times: CallTimes,
    /// When the call that could not go on was first tried.
    began_ns: Option<u64>,
}

impl<W> Timed<W> {
    pub(crate) fn new(way: W, times: CallTimes) -> Self {
        Self { way, times, began_ns: None }
    }

    fn time(&mut self, call: impl FnOnce(&mut W) -> io::Result<usize>) -> io::Result<usize> {
        let began_ns = self.began_ns.take().unwrap_or_else(monotonic_ns);
        let outcome = call(&mut self.way);
        match &outcome {
            Ok(0) => {}
            Ok(_) => {
                let took_ns = monotonic_ns().saturating_sub(began_ns);
                self.times.borrow_mut().record_ns(took_ns);
            }
            Err(error) => {
                let again = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
                self.began_ns = again.contains(&error.kind()).then_some(began_ns);
            }
        }
        outcome
    }
}

impl<S: ByteStream> ByteStream for Timed<S> {
    const SHORT_MEANS_EMPTY: bool = S::SHORT_MEANS_EMPTY;

    fn socket(&self) -> &Socket {
        self.way.socket()
    }

    fn establish(&mut self) -> io::Result<()> {
        self.way.establish()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.time(|stream| stream.send(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.way.flush()
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.time(|stream| stream.receive(into))
    }

    fn receive_in_place(
        &mut self,
        into: &mut [u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> io::Result<usize> {
        self.time(|stream| stream.receive_in_place(into, look))
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.way.finish_sending()
    }

    fn lent(&mut self) -> Option<Lent> {
        self.way.lent()
    }

    fn quic(&self) -> Option<QuicStatus> {
        self.way.quic()
    }

    fn complete(&self, facts: SocketFacts) -> SocketFacts {
        self.way.complete(facts)
    }
}

/// Sends are timed, each of one datagram; received are many at once, and so aren't.
impl<P: DatagramPath> DatagramPath for Timed<P> {
    fn socket(&self) -> &Socket {
        self.way.socket()
    }

    fn carries(&mut self, bytes: usize) -> io::Result<bool> {
        self.way.carries(bytes)
    }

    fn begin_sending(&mut self, unit_bytes: usize, _most: usize) -> usize {
        self.way.begin_sending(unit_bytes, 1)
    }

    fn send(&mut self, batch: &[u8], unit_bytes: usize) -> io::Result<usize> {
        self.time(|path| path.send(batch, unit_bytes))
    }

    fn adapt(&mut self, error: &io::Error, most: usize) -> Option<usize> {
        self.way.adapt(error, most)
    }

    fn is_flushed(&mut self) -> bool {
        self.way.is_flushed()
    }

    fn take_refused(&mut self) -> u64 {
        self.way.take_refused()
    }

    fn end_sent_warm_up(&mut self) {
        self.way.end_sent_warm_up();
    }

    fn begin_receiving(&mut self) {
        self.way.begin_receiving();
    }

    fn receive(
        &mut self,
        unit_bytes: usize,
        buffer: &mut [u8],
        look: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.way.receive(unit_bytes, buffer, look)
    }

    fn receive_one(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.way.receive_one(into)
    }

    fn offload(&self) -> (bool, bool) {
        self.way.offload()
    }

    fn outlives(&self, error: &io::Error) -> bool {
        self.way.outlives(error)
    }

    fn end_warm_up(&mut self) {
        self.way.end_warm_up();
    }

    fn drops(&self) -> Option<u64> {
        self.way.drops()
    }

    fn quic(&self) -> Option<QuicStatus> {
        self.way.quic()
    }

    fn complete(&self, facts: SocketFacts) -> SocketFacts {
        self.way.complete(facts)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::Arc;

    use super::super::{Tcp, Udp};
    use super::*;
    use crate::clock::MILLISECOND_NS;

    fn pair() -> (Tcp, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Tcp(Arc::new(stream.into())), listener.accept().unwrap().0)
    }

    #[test]
    fn a_call_that_had_to_wait_took_as_long_as_that() {
        let (near, mut far) = pair();
        near.socket().set_nonblocking(true).unwrap();
        let times = CallTimes::default();
        let mut timed = Timed::new(near, Rc::clone(&times));
        let mut into = [0; 16];
        assert_eq!(timed.receive(&mut into).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        std::thread::sleep(std::time::Duration::from_millis(30));
        io::Write::write_all(&mut far, b"abc").unwrap();
        let length = loop {
            match timed.receive(&mut into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => break outcome.unwrap(),
            }
        };
        assert_eq!((length, times.borrow().len()), (3, 1));
        assert!(times.borrow().counts().all(|(took_ns, _)| took_ns >= 29 * MILLISECOND_NS));
        assert_eq!(timed.send(b"answer").unwrap(), 6);
        drop(far);
        while timed.receive(&mut into).is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock) {}
        assert_eq!(times.borrow().len(), 2, "the end of the peer is no call that moved anything");
    }

    #[test]
    fn every_datagram_has_a_call_of_its_own() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        let times = CallTimes::default();
        let mut timed = Timed::new(Udp::new(Arc::new(near.into()), true), Rc::clone(&times));
        assert_eq!(timed.begin_sending(100, 8), 1);
        assert_eq!(timed.send(&[1; 100], 100).unwrap(), 1);
        assert_eq!((far.recv(&mut [0; 1000]).unwrap(), times.borrow().len()), (100, 1));
        assert!(!timed.offload().0);
    }
}
