//! Bulk TLS 1.3 over TCP with nothing but rustls and blocking sockets: the bar that a bulk transfer
//! over TLS is measured against. It takes the options of the C loops in `benches/baseline` and prints
//! what they print.
//!
//!     tls_stream server PORT [--size BYTES] | client HOST PORT [--size BYTES] [--time SECONDS]

#![allow(
    clippy::print_stdout,
    reason = "what it prints is all that it is for, and its reader is a script"
)]

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
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
    match words.as_slice() {
        ["server", port, ..] => serve(port.parse()?, size),
        ["client", host, port, ..] => send(host, port.parse()?, size, seconds),
        _ => Err("tls_stream server PORT | client HOST PORT, --size BYTES, --time SECONDS".into()),
    }
}

fn serve(port: u16, size: usize) -> Result<(), Failed> {
    let identity = linerate_engine::make_identity()?;
    let key = PrivateKeyDer::try_from(identity.private_key_der)?;
    let chain = vec![CertificateDer::from(identity.certificate_der)];
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    println!("{{\"port\": {}}}", listener.local_addr()?.port());
    let (socket, _) = listener.accept()?;
    let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config))?, socket);
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
    report("server", bytes, calls, start.elapsed().as_secs_f64())
}

/// The clock is read once in 64 sends, as by the C loops.
fn send(host: &str, port: u16, size: usize, seconds: f64) -> Result<(), Failed> {
    let provider = Arc::new(default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    let name = ServerName::try_from("linerate")?;
    let connection = ClientConnection::new(Arc::new(config), name)?;
    let mut stream = StreamOwned::new(connection, TcpStream::connect((host, port))?);
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
    report("client", bytes, calls, elapsed_s)
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
