//! However bytes are moved, the kernel counts as many as the streams say.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;

use socket2::Socket;

use super::*;
use crate::pattern::Pattern;
use crate::socket::tcp_bytes;

const BYTES: usize = 3_000_007;
const UNIT_BYTES: usize = 100_000;

/// Both ends of a connection.
fn connection() -> (Arc<Socket>, Arc<Socket>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let opened = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (Arc::new(opened.into()), Arc::new(listener.accept().unwrap().0.into()))
}

/// Sends everything through one stream while the other receives it; says what became of lent
/// memory, and what the bytes were that the receiver found in its buffer.
fn carry(
    sender: impl FnOnce(Arc<Socket>) -> Box<dyn DynStream>,
    receiver: impl FnOnce(Arc<Socket>) -> Box<dyn DynStream>,
) -> (Option<Lent>, Vec<u8>) {
    let (near, far) = connection();
    let (mut sender, mut receiver) = (sender(Arc::clone(&near)), receiver(Arc::clone(&far)));
    let pattern = Pattern::lasting();
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sender.establish().unwrap();
            let mut left = BYTES;
            while left > 0 {
                let position = (BYTES - left) as u64;
                left -= sender.send(pattern.slice(position, UNIT_BYTES.min(left))).unwrap();
            }
        });
        receiver.establish().unwrap();
        let mut buffer = vec![0; UNIT_BYTES];
        let mut received = 0;
        while received < BYTES {
            let length = receiver.receive(&mut buffer).unwrap();
            assert!(length > 0);
            seen.extend_from_slice(&buffer[..length.min(buffer.len())]);
            received += length;
        }
        assert_eq!(received, BYTES);
    });
    let (_, come) = tcp_bytes(far.as_fd()).unwrap();
    assert_eq!(come, BYTES as u64);
    let has_all = || (0..=1).contains(&(tcp_bytes(near.as_fd()).unwrap().0 - BYTES as u64));
    // The last acknowledgement may be on its way.
    (0..1000).find(|_| {
        std::thread::sleep(std::time::Duration::from_millis(2));
        tcp_bytes(near.as_fd()).unwrap().0 >= BYTES as u64
    });
    assert!(has_all());
    sender.finish_sending().unwrap();
    assert_eq!(receiver.receive(&mut [0; 10]).unwrap(), 0);
    (sender.lent(), seen)
}

/// A stream as an object, which the engine never needs.
trait DynStream: Send {
    fn establish(&mut self) -> io::Result<()>;
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize>;
    fn finish_sending(&mut self) -> io::Result<()>;
    fn lent(&mut self) -> Option<Lent>;
}

impl<S: ByteStream + Send> DynStream for S {
    fn establish(&mut self) -> io::Result<()> {
        ByteStream::establish(self)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        ByteStream::send(self, bytes)
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        ByteStream::receive(self, into)
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        ByteStream::finish_sending(self)
    }

    fn lent(&mut self) -> Option<Lent> {
        ByteStream::lent(self)
    }
}

fn plain(socket: Arc<Socket>) -> Box<dyn DynStream> {
    Box::new(Tcp(socket))
}

#[test]
fn lent_memory_arrives_and_comes_back() {
    let (lent, seen) = carry(|socket| Box::new(ZeroCopy::new(socket)), plain);
    assert_eq!(seen, Pattern::new(BYTES).slice(0, BYTES));
    let lent = lent.unwrap();
    assert!(lent.sends >= (BYTES / UNIT_BYTES) as u64, "{lent:?}");
    assert_eq!((lent.returned, lent.copied), (lent.sends, lent.sends), "loopback copies");
}

#[test]
fn a_file_arrives_as_it_is() {
    let file = PageCache::of(Pattern::new(UNIT_BYTES).slice(0, UNIT_BYTES)).unwrap();
    let (lent, seen) = carry(|socket| Box::new(FromPageCache::new(Tcp(socket), file)), plain);
    assert_eq!((lent, seen.len()), (None, BYTES));
    assert_eq!(&seen[..1000], Pattern::new(1000).slice(0, 1000));
}

#[test]
fn bytes_are_dropped_unread() {
    let (_, seen) = carry(plain, |socket| Box::new(Discarding(Tcp(socket))));
    assert!(seen.iter().all(|byte| *byte == 0));
    let (_, seen) = carry(plain, |socket| Box::new(IntoNowhere(Tcp(socket))));
    assert!(seen.iter().all(|byte| *byte == 0));
}
