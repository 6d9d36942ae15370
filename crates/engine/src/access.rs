//! Who may measure against whom: the server's key, and the key that both may share.

use std::fmt;

/// Decides whether the key with this fingerprint (SHA-256 of the server's certificate, in
/// hexadecimal) is the server's. An `Err` is told to the user and ends the run.
pub type Trust = Box<dyn Fn(&str) -> Result<(), String> + Send>;

/// What a client does about the server's key and about its own admission.
pub struct Access {
    /// Whether the server's key is the server's.
    pub trust: Trust,
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

/// The server's certificate and private key (DER).
#[derive(Clone)]
pub struct Identity {
    /// The certificate, self-signed.
    pub certificate_der: Vec<u8>,
    /// The private key (PKCS #8).
    pub private_key_der: Vec<u8>,
}
