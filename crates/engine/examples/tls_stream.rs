//! Bulk TLS 1.3 over TCP with nothing but rustls and blocking sockets: the bar that a bulk transfer
//! over TLS is measured against. It takes the options of the C loops in `benches/baseline` and prints
//! what they print. Both ways that rustls offers are here: over streams, and, with `--unbuffered`, between
//! buffers of the loop's own.
//!
//!     tls_stream server PORT [--size BYTES] [--unbuffered]
//!     tls_stream client HOST PORT [--size BYTES] [--time SECONDS] [--unbuffered]

#![allow(
    clippy::print_stdout,
    reason = "what it prints is all that it is for, and its reader is a script"
)]

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, ServerConfig, ServerConnection,
    SignatureScheme, StreamOwned,
};

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let value = |flag: &str| {
        let place = words.iter().position(|word| *word == flag);
        place.and_then(|place| words.get(place + 1).copied())
    };
    let size: usize = value("--size").map_or(Ok(128 << 10), str::parse)?;
    let seconds: f64 = value("--time").map_or(Ok(2.0), str::parse)?;
    let unbuffered = words.contains(&"--unbuffered");
    match words.as_slice() {
        ["server", port, ..] => {
            let (config, socket) = accept(port.parse()?)?;
            let (bytes, calls, elapsed_s) = if unbuffered {
                unbuffered::receive(config, socket, size)
            } else {
                receive(config, socket, size)
            }?;
            report("server", bytes, calls, elapsed_s)
        }
        ["client", host, port, ..] => {
            let (config, socket) = connect(host, port.parse()?)?;
            let (bytes, calls, elapsed_s) = if unbuffered {
                unbuffered::send(config, socket, size, seconds)
            } else {
                send(config, socket, size, seconds)
            }?;
            report("client", bytes, calls, elapsed_s)
        }
        _ => Err("tls_stream server PORT | client HOST PORT, --size BYTES, --time SECONDS, \
                  --unbuffered"
            .into()),
    }
}

/// Bytes, calls, and seconds.
type Done = Result<(u64, u64, f64), Failed>;

fn accept(port: u16) -> Result<(Arc<ServerConfig>, TcpStream), Failed> {
    let identity = linerate_engine::make_identity()?;
    let key = PrivateKeyDer::try_from(identity.private_key_der)?;
    let chain = vec![CertificateDer::from(identity.certificate_der)];
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.send_tls13_tickets = 0;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    println!("{{\"port\": {}}}", listener.local_addr()?.port());
    let (socket, _) = listener.accept()?;
    Ok((Arc::new(config), socket))
}

fn receive(config: Arc<ServerConfig>, socket: TcpStream, size: usize) -> Done {
    let mut stream = StreamOwned::new(ServerConnection::new(config)?, socket);
    let mut buffer = vec![0; size];
    let (mut bytes, mut calls, mut start) = (0_u64, 0_u64, Instant::now());
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => bytes += length as u64,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error.into()),
        }
        if calls == 0 {
            start = Instant::now();
        }
        calls += 1;
    }
    Ok((bytes, calls, start.elapsed().as_secs_f64()))
}

fn connect(host: &str, port: u16) -> Result<(Arc<ClientConfig>, TcpStream), Failed> {
    let provider = Arc::new(default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    Ok((Arc::new(config), TcpStream::connect((host, port))?))
}

/// The clock is read once in 64 sends, as by the C loops.
fn send(config: Arc<ClientConfig>, socket: TcpStream, size: usize, seconds: f64) -> Done {
    let connection = ClientConnection::new(config, ServerName::try_from("linerate")?)?;
    let mut stream = StreamOwned::new(connection, socket);
    let buffer = vec![0; size];
    let (mut bytes, mut calls, start) = (0_u64, 0_u64, Instant::now());
    while !calls.is_multiple_of(64) || start.elapsed().as_secs_f64() < seconds {
        stream.write_all(&buffer)?;
        bytes += buffer.len() as u64;
        calls += 1;
    }
    let elapsed_s = start.elapsed().as_secs_f64();
    stream.conn.send_close_notify();
    stream.flush()?;
    // An end that closes before the other end has read everything would discard data.
    stream.sock.shutdown(Shutdown::Write)?;
    while stream.sock.read(&mut [0; 4096])? > 0 {}
    Ok((bytes, calls, elapsed_s))
}

/// The same between buffers of the loop's own.
mod unbuffered {
    use super::*;
    use rustls::client::UnbufferedClientConnection;
    use rustls::server::UnbufferedServerConnection;
    use rustls::unbuffered::{ConnectionState, EncodeError};

    const RECORD_BYTES: usize = 16 << 10;

    /// What a connection asks for.
    enum Asks {
        Again,
        More,
        Ready,
        Over,
    }

    /// Follows one step of a connection, of which records go to `sink` and handshakes to the socket.
    macro_rules! follow {
        ($status:expr, $socket:expr, $sink:expr) => {{
            let status = $status;
            let mut discard = status.discard;
            let asks = match status.state? {
                ConnectionState::EncodeTlsData(mut message) => {
                    let mut said = vec![0; 4096];
                    let mut length = message.encode(&mut said);
                    if let Err(EncodeError::InsufficientSize(lack)) = &length {
                        said.resize(lack.required_size, 0);
                        length = message.encode(&mut said);
                    }
                    $socket.write_all(&said[..length?])?;
                    Asks::Again
                }
                ConnectionState::TransmitTlsData(sent) => {
                    sent.done();
                    Asks::Again
                }
                ConnectionState::BlockedHandshake => Asks::More,
                ConnectionState::ReadTraffic(mut data) => {
                    while let Some(record) = data.next_record() {
                        let record = record?;
                        discard += record.discard;
                        $sink(record.payload);
                    }
                    Asks::Again
                }
                ConnectionState::WriteTraffic(_) => Asks::Ready,
                _ => Asks::Over,
            };
            (discard, asks)
        }};
    }

    pub(super) fn receive(config: Arc<ServerConfig>, mut socket: TcpStream, size: usize) -> Done {
        let mut connection = UnbufferedServerConnection::new(config)?;
        let mut buffer = vec![0; size.max(2 * RECORD_BYTES)];
        let mut held = 0..0;
        let (mut bytes, mut calls, mut start) = (0_u64, 0_u64, Instant::now());
        loop {
            let status = connection.process_tls_records(&mut buffer[held.clone()]);
            let (discard, asks) = follow!(status, socket, |data: &[u8]| bytes += data.len() as u64);
            held.start += discard;
            match asks {
                Asks::Again => {}
                Asks::Over => break,
                Asks::More | Asks::Ready => {
                    if calls == 0 && bytes > 0 {
                        start = Instant::now();
                    }
                    calls += u64::from(bytes > 0);
                    buffer.copy_within(held.clone(), 0);
                    held = 0..held.len();
                    match socket.read(&mut buffer[held.end..])? {
                        0 => break,
                        length => held.end += length,
                    }
                }
            }
        }
        Ok((bytes, calls, start.elapsed().as_secs_f64()))
    }

    pub(super) fn send(
        config: Arc<ClientConfig>,
        mut socket: TcpStream,
        size: usize,
        seconds: f64,
    ) -> Done {
        let mut connection =
            UnbufferedClientConnection::new(config, ServerName::try_from("linerate")?)?;
        let mut incoming = vec![0; 4 * RECORD_BYTES];
        let mut held = 0..0;
        loop {
            let status = connection.process_tls_records(&mut incoming[held.clone()]);
            let (discard, asks) = follow!(status, socket, |_: &[u8]| {});
            held.start += discard;
            match asks {
                Asks::Again => {}
                Asks::Ready => break,
                Asks::Over => return Err("the handshake failed".into()),
                Asks::More => match socket.read(&mut incoming[held.end..])? {
                    0 => return Err("the server has gone".into()),
                    length => held.end += length,
                },
            }
        }
        let buffer = vec![0; size];
        let mut sealed = vec![0; size + (size / RECORD_BYTES + 1) * 64];
        let (mut bytes, mut calls, start) = (0_u64, 0_u64, Instant::now());
        loop {
            let over = calls.is_multiple_of(64) && start.elapsed().as_secs_f64() >= seconds;
            let state = connection.process_tls_records(&mut []).state?;
            let ConnectionState::WriteTraffic(mut traffic) = state else {
                return Err("the connection ended".into());
            };
            let mut length = 0;
            if over {
                length += traffic.queue_close_notify(&mut sealed)?;
                socket.write_all(&sealed[..length])?;
                break;
            }
            for part in buffer.chunks(RECORD_BYTES) {
                length += traffic.encrypt(part, &mut sealed[length..])?;
            }
            socket.write_all(&sealed[..length])?;
            bytes += buffer.len() as u64;
            calls += 1;
        }
        let elapsed_s = start.elapsed().as_secs_f64();
        socket.shutdown(Shutdown::Write)?;
        while socket.read(&mut [0; 4096])? > 0 {}
        Ok((bytes, calls, elapsed_s))
    }
}

fn report(role: &str, bytes: u64, calls: u64, elapsed_s: f64) -> Result<(), Failed> {
    // The processor time of the process, in hundredths of a second (proc(5)).
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks =
        |place| after_name.split_whitespace().nth(place).and_then(|n| n.parse::<f64>().ok());
    let cpu_s = (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0;
    println!(
        "{{\"role\": \"{role}\", \"bytes\": {bytes}, \"calls\": {calls}, \
         \"elapsed_s\": {elapsed_s:.6}, \"cpu_s\": {cpu_s:.2}}}"
    );
    Ok(())
}

/// Takes any certificate.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}
