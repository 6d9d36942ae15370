//! A small client and a small server of the protocol, with blocking calls.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

/// An id as it is on the wire.
pub(crate) const ID: &[u8; 37] = b"b060598b-3bdb-4b90-9b3b-cfc0a15e636b\0";

/// The data of a direction: 16-bit numbers from 0 to 0x7fff, the low byte first, over and over.
pub(crate) fn data(from: u64, count: usize) -> Vec<u8> {
    (from..).take(count).map(byte).collect()
}

fn byte(offset: u64) -> u8 {
    let number = (offset / 2) % 0x8000;
    if offset.is_multiple_of(2) { (number & 0xff) as u8 } else { (number >> 8) as u8 }
}

/// Receives so many bytes of data and checks them.
pub(crate) fn take_data(peer: &mut TcpStream, from: u64, count: usize) {
    let mut came = vec![0; count];
    peer.read_exact(&mut came).unwrap();
    assert!(came == data(from, count), "wrong data between {from} and {}", from + count as u64);
}

/// How many bytes each end sends, turn by turn: pairs of bytes from the client and from the server.
pub(crate) fn turns(pattern: &str, total: u64, push: u64, pull: u64) -> Vec<(u64, u64)> {
    match pattern {
        "push" => vec![(total, 0)],
        "pull" => vec![(0, total)],
        "duplex" => vec![(total.div_ceil(2), total.div_ceil(2))],
        _ => {
            let (mut left, mut turns) = (total, Vec::new());
            while left > 0 {
                let mine = push.min(left);
                let theirs = pull.min(left - mine);
                turns.push((mine, theirs));
                left -= mine + theirs;
            }
            turns
        }
    }
}

/// Moves the data of a connection at one end: `sends` and `receives` of each turn.
fn transfer(peer: &mut TcpStream, turns: &[(u64, u64)], sends_first: bool, at_once: bool) {
    let (mut sent, mut received) = (0, 0);
    for &(send, receive) in turns {
        let outgoing = data(sent, send as usize);
        (sent, received) = (sent + send, received + receive);
        let from = received - receive;
        if at_once {
            let mut writer = peer.try_clone().unwrap();
            let writing = std::thread::spawn(move || writer.write_all(&outgoing).unwrap());
            take_data(peer, from, receive as usize);
            writing.join().unwrap();
        } else if sends_first {
            peer.write_all(&outgoing).unwrap();
            take_data(peer, from, receive as usize);
        } else {
            take_data(peer, from, receive as usize);
            peer.write_all(&outgoing).unwrap();
        }
    }
}

/// A client's whole connection; the id.
pub(crate) fn be_client(
    mut peer: TcpStream,
    pattern: &str,
    turns: &[(u64, u64)],
    rude: bool,
) -> String {
    peer.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut id = [0; 37];
    peer.read_exact(&mut id).unwrap();
    assert_eq!(id[36], 0);
    transfer(&mut peer, turns, true, pattern == "duplex");
    let mut done = [0; 4];
    peer.read_exact(&mut done).unwrap();
    assert_eq!(&done, b"DONE");
    if rude {
        reset(peer);
    } else {
        peer.shutdown(Shutdown::Write).unwrap();
        assert_eq!(peer.read(&mut [0]).unwrap(), 0);
    }
    String::from_utf8(id[..36].to_vec()).unwrap()
}

/// A server's whole connection. Where it is `split`, the texts are sent in pieces.
pub(crate) fn be_server(mut peer: TcpStream, pattern: &str, turns: &[(u64, u64)], split: bool) {
    peer.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    peer.set_nodelay(true).unwrap();
    let send = |peer: &mut TcpStream, text: &[u8]| {
        let (first, second) = text.split_at(if split { 2 } else { text.len() });
        peer.write_all(first).unwrap();
        if split {
            std::thread::sleep(Duration::from_millis(30));
        }
        peer.write_all(second).unwrap();
    };
    send(&mut peer, ID);
    let mirrored: Vec<_> = turns.iter().map(|&(client, server)| (server, client)).collect();
    transfer(&mut peer, &mirrored, false, pattern == "duplex");
    send(&mut peer, b"DONE");
    let ended = peer.read(&mut [0]);
    assert!(matches!(&ended, Ok(0)) || ended.is_err(), "{ended:?}");
}

/// Closes by a reset.
pub(crate) fn reset(peer: TcpStream) {
    set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
    drop(peer);
}
