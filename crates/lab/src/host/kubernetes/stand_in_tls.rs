//! TLS before the API server of the tests: an authority, a server's certificate, and the bytes of each connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// How long one direction of a connection is looked at before the other.
const TURN: Duration = Duration::from_millis(5);

/// Accepts TLS on an address of its own and passes the bytes on.
pub(super) struct Tls {
    address: SocketAddr,
    authority: Vec<u8>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    ends: AtomicBool,
    in_clear: AtomicUsize,
}

impl Tls {
    /// Before this server.
    pub(super) fn before(server: SocketAddr) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer_key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&issuer_key).unwrap();
        let issuer = Issuer::from_params(&params, &issuer_key);
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.ends.load(Ordering::Relaxed) {
                    return;
                }
                let (shared, config) = (Arc::clone(&of_thread), Arc::clone(&config));
                thread::spawn(move || shared.pass(config, stream.unwrap(), server));
            }
        });
        Self { address, authority: authority.pem().into_bytes(), shared }
    }

    /// The authority's certificate as a kubeconfig has it.
    pub(super) fn authority(&self) -> String {
        base64::engine::general_purpose::STANDARD.encode(&self.authority)
    }

    /// The kubeconfig of the server behind, changed to this address.
    pub(super) fn kubeconfig(&self, of_server: &str) -> String {
        let (before, rest) = of_server.split_once("server: 'http://").unwrap();
        let (_, after) = rest.split_once('\'').unwrap();
        let (address, authority) = (self.address, self.authority());
        format!(
            "{before}server: 'https://{address}', certificate-authority-data: {authority}{after}"
        )
    }

    /// How many connections did not begin as TLS does.
    pub(super) fn connections_in_clear(&self) -> usize {
        self.shared.in_clear.load(Ordering::Relaxed)
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        let _woken = TcpStream::connect(self.address);
    }
}

impl Shared {
    /// Passes bytes both ways until one end is gone.
    fn pass(&self, config: Arc<ServerConfig>, client: TcpStream, server: SocketAddr) {
        let mut first = [0];
        if client.peek(&mut first).is_ok_and(|count| count == 1 && first != [22]) {
            self.in_clear.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let connection = ServerConnection::new(config).unwrap();
        let mut tls = StreamOwned::new(connection, client);
        while tls.conn.is_handshaking() {
            if tls.conn.complete_io(&mut tls.sock).is_err() {
                return;
            }
        }
        let mut plain = TcpStream::connect(server).unwrap();
        tls.sock.set_read_timeout(Some(TURN)).unwrap();
        plain.set_read_timeout(Some(TURN)).unwrap();
        while !self.ends.load(Ordering::Relaxed) {
            if !(pass_some(&mut tls, &mut plain) && pass_some(&mut plain, &mut tls)) {
                return;
            }
        }
    }
}

/// Passes on what is there. False at the end.
fn pass_some(from: &mut impl Read, into: &mut impl Write) -> bool {
    let mut bytes = [0; 64 << 10];
    match from.read(&mut bytes) {
        Ok(0) => false,
        Ok(count) => into.write_all(&bytes[..count]).and_then(|()| into.flush()).is_ok(),
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}
