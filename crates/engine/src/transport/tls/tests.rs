//! Our records against rustls's own, in both roles.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ContentType, ServerConnection};

use super::{Negotiation, TlsStream};
use crate::perf::configurations;
use crate::transport::ByteStream;

const BYTES: usize = 300_007;

/// The other end, all of it rustls's.
struct Theirs {
    connection: Connection,
    socket: TcpStream,
}

/// Both ends of a connection over loopback, before the handshake. Servers give tickets.
fn ends(ours_serves: bool, suites: u8) -> (TlsStream, Theirs) {
    let (mut client, mut server) =
        configurations(suites).map(|(c, s)| ((*c).clone(), (*s).clone())).unwrap();
    client.enable_secret_extraction = true;
    server.enable_secret_extraction = true;
    server.send_tls13_tickets = 2;
    let (client, server) = (Arc::new(client), Arc::new(server));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let ours = Arc::new(listener.accept().unwrap().0.into());
    theirs.set_nodelay(true).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let (negotiation, connection) = if ours_serves {
        let theirs = ClientConnection::new(client, name).unwrap();
        (Negotiation::server(server).unwrap(), Connection::from(theirs))
    } else {
        let theirs = ServerConnection::new(server).unwrap();
        (Negotiation::client(&client, name).unwrap(), Connection::from(theirs))
    };
    (TlsStream::new(ours, negotiation), Theirs { connection, socket: theirs })
}

/// Both ends after the handshake.
fn standing(ours_serves: bool, suites: u8) -> (TlsStream, Theirs) {
    let (mut ours, mut theirs) = ends(ours_serves, suites);
    let theirs = thread::spawn(move || {
        while theirs.connection.is_handshaking() {
            theirs.connection.complete_io(&mut theirs.socket).unwrap();
        }
        theirs.flush();
        theirs
    });
    ours.establish().unwrap();
    (ours, theirs.join().unwrap())
}

impl Theirs {
    fn flush(&mut self) {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.socket).unwrap();
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = self.connection.writer().write(rest).unwrap();
            rest = &rest[taken..];
            self.flush();
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> usize {
        loop {
            match self.connection.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                length => return length.unwrap(),
            }
            self.connection.read_tls(&mut self.socket).unwrap();
            self.connection.process_new_packets().unwrap();
            self.flush();
        }
    }

    fn receive_exactly(&mut self, bytes: usize) -> Vec<u8> {
        let mut all = vec![0; bytes];
        let mut filled = 0;
        while filled < bytes {
            let length = self.receive(&mut all[filled..]);
            assert!(length > 0, "{filled} of {bytes} bytes came");
            filled += length;
        }
        all
    }
}

fn some_bytes() -> Vec<u8> {
    (0..BYTES).map(|place| (place % 251) as u8).collect()
}

/// Sends everything through ours, in pieces of this size.
fn send_all(ours: &mut TlsStream, bytes: &[u8], unit_bytes: usize) {
    let mut sent = 0;
    while sent < bytes.len() {
        sent += ours.send(&bytes[sent..bytes.len().min(sent + unit_bytes)]).unwrap();
    }
}

fn receive_exactly(ours: &mut TlsStream, bytes: usize, unit_bytes: usize) -> Vec<u8> {
    let mut all = Vec::new();
    let mut space = vec![0; unit_bytes];
    while all.len() < bytes {
        let most = unit_bytes.min(bytes - all.len());
        let mut seen = Vec::new();
        let length = ours
            .receive_in_place(&mut space[..most], &mut |piece| seen.extend_from_slice(piece))
            .unwrap();
        assert!(length > 0 && length <= most && length == seen.len());
        all.append(&mut seen);
    }
    all
}

#[test]
fn every_cipher_suite_carries_bytes_from_and_to_rustls_in_both_roles() {
    for (ours_serves, suites) in
        [(true, 1), (true, 2), (true, 4), (false, 1), (false, 2), (false, 4)]
    {
        let (mut ours, mut theirs) = standing(ours_serves, suites);
        let theirs = thread::spawn(move || {
            theirs.send(&some_bytes());
            assert!(theirs.receive_exactly(BYTES) == some_bytes());
            theirs.connection.send_close_notify();
            theirs.flush();
            assert_eq!(theirs.receive(&mut [0; 10]), 0, "ours has said that it is over");
        });
        // Fewer bytes at once than a record has, and more.
        let unit_bytes = if ours_serves { 1000 } else { 200_000 };
        assert!(receive_exactly(&mut ours, BYTES, unit_bytes) == some_bytes());
        send_all(&mut ours, &some_bytes(), unit_bytes);
        assert_eq!(ours.receive(&mut [0; 10]).unwrap(), 0);
        assert_eq!(ours.receive(&mut [0; 10]).unwrap(), 0, "an end stays one");
        ours.finish_sending().unwrap();
        theirs.join().unwrap();
    }
}

#[test]
fn keys_are_renewed_from_both_ends() {
    for ours_serves in [true, false] {
        let (mut ours, mut theirs) = standing(ours_serves, 0);
        let theirs = thread::spawn(move || {
            for part in some_bytes().chunks(50_000) {
                theirs.send(part);
                // It asks for new keys of ours too.
                theirs.connection.refresh_traffic_keys().unwrap();
            }
            assert!(theirs.receive_exactly(BYTES) == some_bytes());
        });
        assert!(receive_exactly(&mut ours, BYTES, 64 << 10) == some_bytes());
        ours.records().unwrap().set_key_records(5);
        send_all(&mut ours, &some_bytes(), 100_000);
        theirs.join().unwrap();
    }
}

#[test]
fn a_handshake_cut_at_every_byte_is_the_same() {
    for ours_serves in [true, false] {
        let (mut ours, mut theirs) = ends(ours_serves, 0);
        ours.socket().set_nonblocking(true).unwrap();
        theirs.socket.set_nonblocking(true).unwrap();
        let mut is_established = false;
        while !is_established || theirs.connection.is_handshaking() {
            let mut said = Vec::new();
            while theirs.connection.wants_write() {
                theirs.connection.write_tls(&mut said).unwrap();
            }
            for byte in said.chunks(1) {
                theirs.socket.write_all(byte).unwrap();
                match ours.establish() {
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                    Ok(()) => is_established = true,
                }
            }
            is_established = is_established || ours.establish().is_ok();
            match theirs.connection.read_tls(&mut theirs.socket) {
                Ok(_) => drop(theirs.connection.process_new_packets().unwrap()),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        theirs.socket.set_nonblocking(false).unwrap();
        ours.socket().set_nonblocking(false).unwrap();
        theirs.send(b"hello");
        assert_eq!(receive_exactly(&mut ours, 5, 10), b"hello");
    }
}

#[test]
fn a_stream_that_is_cut_has_no_end() {
    for kind in ["between records", "in a record", "in the handshake"] {
        let (mut ours, mut theirs) = match kind {
            "in the handshake" => ends(true, 0),
            _ => standing(true, 0),
        };
        let mut sealed = Vec::new();
        if kind != "in the handshake" {
            theirs.connection.writer().write_all(&[7; 1000]).unwrap();
        }
        theirs.connection.write_tls(&mut sealed).unwrap();
        let cut = if kind == "between records" { 0 } else { 10 };
        theirs.socket.write_all(&sealed[..sealed.len() - cut]).unwrap();
        theirs.socket.shutdown(Shutdown::Write).unwrap();
        if kind == "between records" {
            assert_eq!(ours.receive(&mut [0; 2000]).unwrap(), 1000);
        }
        let result = match kind {
            "in the handshake" => ours.establish(),
            _ => ours.receive(&mut [0; 2000]).map(drop),
        };
        assert_eq!(result.unwrap_err().kind(), ErrorKind::UnexpectedEof, "{kind}");
    }
}

#[test]
fn altered_record_is_refused_after_the_intact_ones_before_it() {
    for place in [0, 1, 3, 5, 500, 1020] {
        let (mut ours, mut theirs) = standing(true, 0);
        theirs.send(b"good");
        let mut sealed = Vec::new();
        theirs.connection.writer().write_all(&[7; 1000]).unwrap();
        theirs.connection.write_tls(&mut sealed).unwrap();
        sealed[place] ^= 0x40;
        theirs.socket.write_all(&sealed).unwrap();
        theirs.socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(receive_exactly(&mut ours, 4, 2000), b"good");
        for _ in 0..2 {
            let error = ours.receive(&mut [0; 2000]).unwrap_err();
            // A record that pretends to be longer never comes whole.
            let expected =
                if place == 3 { ErrorKind::UnexpectedEof } else { ErrorKind::InvalidData };
            assert_eq!(error.kind(), expected, "{place}: {error}");
        }
    }
}

/// What a peer seals with the right keys and yet must not.
#[test]
fn a_peer_that_holds_up_the_load_or_breaks_the_rules_is_refused() {
    let key_update = [24, 0, 0, 1, 1];
    let ticket_of_a_client = [4, 0, 0, 1, 0];
    for (name, kind, content, times) in [
        ("nothing", ContentType::ApplicationData, &[][..], 1025),
        ("warnings", ContentType::Alert, &[1, 90], 1025),
        ("no message", ContentType::Handshake, &[], 1),
        ("two key updates in one", ContentType::Handshake, &[24, 0, 0, 1, 0, 24, 0, 0, 1, 0], 1),
        ("no key update", ContentType::Handshake, &[24, 0, 0, 1, 2], 1),
        ("a ticket", ContentType::Handshake, &ticket_of_a_client, 1),
        ("a long message", ContentType::Handshake, &[24, 255, 0, 0], 1),
        ("a change of ciphers", ContentType::ChangeCipherSpec, &[1], 1),
        ("an alert", ContentType::Alert, &[2, 40], 1),
        ("half an alert", ContentType::Alert, &[2], 1),
        ("half a message and data", ContentType::Handshake, &[24, 0, 0], 1),
    ] {
        let (mut ours, mut theirs) = pair();
        let mut sealed = vec![0; 64 << 10];
        let mut length = 0;
        for _ in 0..times {
            length += theirs.records().unwrap().seal(kind, content, &mut sealed[length..]);
        }
        let data = theirs.records().unwrap().seal_data(b"data", &mut sealed[length..]).unwrap();
        theirs.socket().send(&sealed[..length + data.1]).unwrap();
        let error = ours.receive(&mut [0; 100]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{name}: {error}");
    }
    let (mut ours, mut theirs) = pair();
    for _ in 0..40 {
        let mut sealed = vec![0; 100];
        let length =
            theirs.records().unwrap().seal(ContentType::Handshake, &key_update, &mut sealed);
        theirs.socket().send(&sealed[..length]).unwrap();
        theirs.records().unwrap().renew().unwrap();
    }
    theirs.finish_sending().unwrap();
    let error = ours.receive(&mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "new keys again and again: {error}");
}

/// Both ends ours.
fn pair() -> (TlsStream, TlsStream) {
    let (client, server) = configurations(0).unwrap();
    let (mut client, mut server) = ((*client).clone(), (*server).clone());
    (client.enable_secret_extraction, server.enable_secret_extraction) = (true, true);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let far = listener.accept().unwrap().0;
    let name = ServerName::try_from("localhost").unwrap();
    let near = Negotiation::client(&Arc::new(client), name)
        .map(|one| TlsStream::new(Arc::new(near.into()), one));
    let far =
        Negotiation::server(Arc::new(server)).map(|one| TlsStream::new(Arc::new(far.into()), one));
    let (mut near, mut far) = (near.unwrap(), far.unwrap());
    thread::scope(|scope| {
        scope.spawn(|| near.establish().unwrap());
        far.establish().unwrap();
    });
    (near, far)
}

/// Where the socket blocks: an answer comes after the whole of its request.
#[test]
fn unsent_bytes_leave_before_an_answer_is_awaited() {
    let (mut ours, mut theirs) = standing(false, 0);
    // Longer than the kernel's retransmissions, which may find room once more.
    let moment = Duration::from_millis(300);
    ours.socket().set_write_timeout(Some(moment)).unwrap();
    ours.socket().set_send_buffer_size(4096).unwrap();
    let request = some_bytes();
    let (mut requests, mut into) = (0, [0; 16]);
    // The peer takes nothing yet, so what is taken last can't leave.
    while ours.send(&request[..1000]).is_ok() {
        requests += 1;
    }
    // If an end waited for ever, the other end would give up and fail the test.
    theirs.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let answering = thread::spawn(move || {
        // By then ours awaits the answer.
        thread::sleep(3 * moment);
        assert!(theirs.receive_exactly(1000 * requests) == request[..1000].repeat(requests));
        theirs.send(b"answer");
        theirs
    });
    let length = loop {
        match ours.receive(&mut into) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            length => break length.unwrap(),
        }
    };
    assert_eq!(&into[..length], b"answer");
    drop(answering.join().unwrap());
}
