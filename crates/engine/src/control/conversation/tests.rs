use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use linerate_wire::Now;
use socket2::Socket;

use super::*;
use crate::clock::SECOND_NS;
use crate::control::TcpChannel;

/// Says what it is given to say, and notes what it hears.
#[derive(Default)]
struct Parrot {
    says: Vec<Vec<u8>>,
    heard: Vec<u8>,
    ends: u32,
    due_ns: Option<u64>,
}

impl Machine for Parrot {
    type Event = ();

    fn handle_bytes(&mut self, _now: Now, bytes: &[u8]) {
        self.heard.extend_from_slice(bytes);
    }

    fn handle_end(&mut self, _now: Now) {
        self.ends += 1;
    }

    fn handle_timeout(&mut self, _now: Now) {
        self.due_ns = None;
    }

    fn poll_transmit(&mut self, into: &mut Vec<u8>) -> bool {
        let message = self.says.pop();
        into.extend(message.iter().flatten());
        message.is_some()
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn next_time(&self) -> Option<u64> {
        self.due_ns
    }

    fn is_over(&self) -> bool {
        self.heard.ends_with(b"bye")
    }
}

fn pair() -> (Conversation<Parrot, TcpChannel>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let socket = Socket::from(listener.accept().unwrap().0);
    socket.set_nonblocking(true).unwrap();
    (Conversation::new(Parrot::default(), TcpChannel::new(socket, None)), stream)
}

fn pump_until(
    conversation: &mut Conversation<Parrot, TcpChannel>,
    is_done: impl Fn(&Parrot) -> bool,
) -> Result<(), Lost> {
    let until_ns = monotonic_ns() + 10 * SECOND_NS;
    while !is_done(&conversation.machine) && monotonic_ns() < until_ns {
        conversation.wait(None, &[], until_ns);
        conversation.pump()?;
    }
    Ok(())
}

#[test]
fn bytes_times_and_the_end_come_to_the_machine() {
    let (mut conversation, mut peer) = pair();
    conversation.machine.says = vec![b"hello".to_vec()];
    conversation.machine.due_ns = Some(monotonic_ns() + SECOND_NS / 100);
    peer.write_all(b"word").unwrap();
    pump_until(&mut conversation, |parrot| parrot.due_ns.is_none() && parrot.heard == b"word")
        .unwrap();
    let mut said = [0; 5];
    peer.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"hello");
    drop(peer);
    pump_until(&mut conversation, |parrot| parrot.ends > 0).unwrap();
    assert_eq!(conversation.machine.ends, 1);
}

#[test]
fn a_reason_that_came_before_the_connection_broke_is_heard() {
    for (last, is_lost) in [(&b"bye"[..], false), (&b"by"[..], true)] {
        let (mut conversation, mut peer) = pair();
        conversation.channel().socket().shutdown(std::net::Shutdown::Write).unwrap();
        peer.write_all(last).unwrap();
        conversation.wait(None, &[], monotonic_ns() + 10 * SECOND_NS);
        conversation.machine.says = vec![b"hello".to_vec()];
        let said = conversation.say();
        assert_eq!(matches!(said, Err(Lost::Writing(_))), is_lost);
        assert_eq!((&conversation.machine.heard[..], conversation.machine.ends), (last, 1));
        assert!(conversation.is_closed());
    }
}

#[test]
fn messages_that_the_peer_does_not_read_wait_in_the_machine() {
    let (mut conversation, mut peer) = pair();
    conversation.machine.says = vec![vec![7; 1 << 20]; 40];
    conversation.say().unwrap();
    let waiting = conversation.machine.says.len();
    assert!(waiting > 0 && conversation.channel().has_unwritten());
    let reader = std::thread::spawn(move || {
        let mut taken = Vec::new();
        peer.read_to_end(&mut taken).unwrap();
        taken.len()
    });
    pump_until(&mut conversation, |parrot| parrot.says.is_empty()).unwrap();
    conversation.close(10 * SECOND_NS);
    assert_eq!(reader.join().unwrap(), 40 << 20);
}
