//! The framing over TCP and its keys, from the specification alone: TLS's handshake without records,
//! then frames of a key, a kind, a length, a payload and a seal.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305};
use aws_lc_rs::aead::{LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hmac::{self, HMAC_SHA256, HMAC_SHA384};
use rustls::KeyLog;
use rustls::quic::{ClientConnection, Connection, KeyChange, ServerConnection, Version};

use crate::trust;

/// The bits of a stream's word above its number.
pub(crate) const OPEN: u32 = 0x2000_0000;
pub(crate) const FIN: u32 = 0x4000_0000;
pub(crate) const ABORT: u32 = 0x8000_0000;

/// The most data of a stream in a frame of 16 KiB.
const MOST_DATA: usize = 16_384 - 4 - 4 - 16;
const SEAL: usize = 16;
/// The longest that an end is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What TLS would write to a log of its keys.
#[derive(Debug, Default)]
struct Secrets(Mutex<HashMap<String, Vec<u8>>>);

impl KeyLog for Secrets {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        self.0.lock().unwrap().insert(label.to_owned(), secret.to_vec());
    }
}

/// A key of one direction. The nonce is twelve zeros, always.
struct Key(LessSafeKey);

impl Key {
    /// `HKDF-Expand-Label(secret, "tcp key", "", length)` (RFC 8446, section 7.1), of which one block of
    /// HKDF-Expand (RFC 5869) is enough.
    fn new(secret: &[u8], suite: u16) -> Self {
        let (cipher, hash) = match suite {
            0x1301 => (&AES_128_GCM, HMAC_SHA256),
            0x1302 => (&AES_256_GCM, HMAC_SHA384),
            0x1303 => (&CHACHA20_POLY1305, HMAC_SHA256),
            other => panic!("suite {other:#x}"),
        };
        let length = cipher.key_len();
        let mut label = vec![0, length as u8, 13];
        label.extend_from_slice(b"tls13 tcp key");
        label.extend_from_slice(&[0, 1]);
        let block = hmac::sign(&hmac::Key::new(hash, secret), &label);
        let key = UnboundKey::new(cipher, &block.as_ref()[..length]).unwrap();
        Self(LessSafeKey::new(key))
    }

    fn nonce() -> Nonce {
        Nonce::assume_unique_for_key([0; 12])
    }

    fn seal(&self, header: [u8; 4], payload: &mut Vec<u8>) {
        self.0.seal_in_place_append_tag(Self::nonce(), Aad::from(header), payload).unwrap();
    }

    fn open(&self, header: [u8; 4], sealed: &mut Vec<u8>) {
        let opened = self.0.open_in_place(Self::nonce(), Aad::from(header), sealed);
        let length = opened.expect("the seal is right").len();
        sealed.truncate(length);
    }
}

/// A piece of a stream.
#[derive(Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) stream: u32,
    pub(crate) open: bool,
    pub(crate) fin: bool,
    pub(crate) abort: bool,
    pub(crate) data: Vec<u8>,
}

/// A connection that stands, at either end.
pub(crate) struct Framed {
    pub(crate) socket: TcpStream,
    tls: Connection,
    secrets: Arc<Secrets>,
    is_server: bool,
    /// What is sealed with now, and the keys to seal and to open with: of the handshake, and of the data.
    level: u8,
    keys: [Option<(Key, Key)>; 2],
}

impl Framed {
    pub(crate) fn connect(port: u16) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let secrets = Arc::<Secrets>::default();
        let mut config = trust::client();
        config.key_log = secrets.clone();
        let name = "localhost".try_into().unwrap();
        let tls = ClientConnection::new(Arc::new(config), Version::V1, name, vec![0, 0]).unwrap();
        Self::greet(socket, Connection::Client(tls), secrets)
    }

    pub(crate) fn accept(socket: TcpStream) -> Self {
        let secrets = Arc::<Secrets>::default();
        let mut config = trust::server();
        config.key_log = secrets.clone();
        let tls = ServerConnection::new(Arc::new(config), Version::V1, vec![0, 0]).unwrap();
        Self::greet(socket, Connection::Server(tls), secrets)
    }

    fn greet(socket: TcpStream, tls: Connection, secrets: Arc<Secrets>) -> Self {
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let is_server = matches!(tls, Connection::Server(_));
        let keys = [None, None];
        let mut framed = Self { socket, tls, secrets, is_server, level: 0, keys };
        framed.say_handshake();
        while framed.tls.is_handshaking() || framed.keys[1].is_none() {
            let (kind, message) = framed.read_frame().unwrap().expect("the handshake goes on");
            assert_eq!(kind, 0, "only the handshake may come before its end");
            framed.tls.read_hs(&message).unwrap();
            framed.say_handshake();
        }
        framed
    }

    fn say_handshake(&mut self) {
        loop {
            let mut said = Vec::new();
            let change = self.tls.write_hs(&mut said);
            if !said.is_empty() {
                self.write_frame(self.level, 0, said).unwrap();
            }
            match change {
                Some(KeyChange::Handshake { .. }) => self.take_keys(2, "HANDSHAKE_TRAFFIC_SECRET"),
                Some(KeyChange::OneRtt { .. }) => self.take_keys(3, "TRAFFIC_SECRET_0"),
                None => return,
            }
        }
    }

    fn take_keys(&mut self, level: u8, label: &str) {
        let suite = self.tls.negotiated_cipher_suite().unwrap().suite().into();
        let secrets = self.secrets.0.lock().unwrap();
        let key = |who: &str| Key::new(&secrets[&format!("{who}_{label}")], suite);
        let (ours, theirs) =
            if self.is_server { ("SERVER", "CLIENT") } else { ("CLIENT", "SERVER") };
        self.keys[usize::from(level - 2)] = Some((key(ours), key(theirs)));
        self.level = level;
    }

    /// A frame as it goes on the wire.
    fn frame(&self, level: u8, kind: u8, payload: Vec<u8>) -> Vec<u8> {
        let mut sealed = payload;
        let length = (sealed.len() as u16).to_le_bytes();
        let header = [level, kind, length[0], length[1]];
        match level {
            0 => sealed.resize(sealed.len() + SEAL, 0),
            _ => self.keys[usize::from(level - 2)].as_ref().unwrap().0.seal(header, &mut sealed),
        }
        [&header[..], &sealed].concat()
    }

    /// This payload behind this header, whatever it says, under the seal of data.
    pub(crate) fn sealed(&self, header: [u8; 4], payload: Vec<u8>) -> Vec<u8> {
        let mut sealed = payload;
        self.keys[1].as_ref().unwrap().0.seal(header, &mut sealed);
        [&header[..], &sealed].concat()
    }

    fn write_frame(&mut self, level: u8, kind: u8, payload: Vec<u8>) -> io::Result<()> {
        let frame = self.frame(level, kind, payload);
        self.socket.write_all(&frame)
    }

    /// The kind and the payload of the next frame; `None` at the end of the connection.
    fn read_frame(&mut self) -> io::Result<Option<(u8, Vec<u8>)>> {
        let mut header = [0; 4];
        match self.socket.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let [level, kind, low, high] = header;
        let length = usize::from(u16::from_le_bytes([low, high]));
        assert!(length <= MOST_DATA + 4, "a frame of {length} bytes");
        let mut payload = vec![0; length + SEAL];
        self.socket.read_exact(&mut payload)?;
        match level {
            0 => payload.truncate(length),
            2 | 3 => {
                let keys = self.keys[usize::from(level - 2)].as_ref();
                keys.expect("the keys are there").1.open(header, &mut payload);
            }
            other => panic!("key {other}"),
        }
        Ok(Some((kind, payload)))
    }

    /// A frame of a stream as it goes on the wire.
    pub(crate) fn stream_frame(&self, stream: u32, flags: u32, data: &[u8]) -> Vec<u8> {
        let word = (stream | flags).to_le_bytes();
        let payload = [&word[..], data].concat();
        let [low, high] = (payload.len() as u16).to_le_bytes();
        self.sealed([3, 1, low, high], payload)
    }

    /// Sends a piece of a stream, in as many frames as it takes.
    pub(crate) fn send(&mut self, stream: u32, flags: u32, data: &[u8]) -> io::Result<()> {
        let (mut rest, mut first) = (data, true);
        loop {
            let (now, later) = rest.split_at(rest.len().min(MOST_DATA));
            let open = if first { flags & OPEN } else { 0 };
            let fin = if later.is_empty() { flags & FIN } else { 0 };
            let frame = self.stream_frame(stream, open | fin | flags & ABORT, now);
            self.socket.write_all(&frame)?;
            (rest, first) = (later, false);
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Whether something has come that nobody has read, the end of the connection included.
    pub(crate) fn has_input(&self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let peeked = self.socket.peek(&mut [0]);
        self.socket.set_nonblocking(false).unwrap();
        !matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// The next piece of a stream; `None` at the end of the connection.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Piece>> {
        let Some((kind, payload)) = self.read_frame()? else { return Ok(None) };
        assert_eq!(kind, 1, "only streams come after the handshake");
        let (word, data) = payload.split_first_chunk::<4>().expect("a stream's word");
        let word = u32::from_le_bytes(*word);
        Ok(Some(Piece {
            stream: word & (OPEN - 1),
            open: word & OPEN != 0,
            fin: word & FIN != 0,
            abort: word & ABORT != 0,
            data: data.to_vec(),
        }))
    }
}
