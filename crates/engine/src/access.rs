//! Trust between the ends: the server's key, and the key that both may share.

use std::fmt;

/// Decides whether the key with this fingerprint (SHA-256 of the server's certificate, in
/// hexadecimal) is the server's. An `Err` is told to the user and ends the run.
pub type Trust = Box<dyn Fn(&str) -> Result<(), String> + Send>;

/// What a client does about the server's key and about its own admission.
pub struct Access {
    /// Whether the server's key is the server's.
    pub trust: Trust,
    /// The authority for the server's certificate; the client's first TLS message names the plan's
    /// host (SNI).
    pub authority: Option<Authority>,
    /// The note in the result if the server's key was not checked.
    pub doubt: Option<String>,
    /// The key shared with a server that asks for one.
    pub shared_key: Option<SharedKey>,
}

/// A key that client and server share; any bytes. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey(pub Vec<u8>);

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey(..)")
    }
}

/// The certificates (DER) of an authority: a server's certificate must be signed by one of them, at
/// the end of its chain.
#[derive(Clone, Debug)]
pub struct Authority {
    /// At least one.
    pub certificates_der: Vec<Vec<u8>>,
}

/// The server's certificate and private key (DER).
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate_der: Vec<u8>,
    /// Those that vouch for it, each for the one before; none where it is signed by itself.
    pub chain_der: Vec<Vec<u8>>,
    /// The private key (PKCS #8, PKCS #1 or SEC 1).
    pub private_key_der: Vec<u8>,
}
