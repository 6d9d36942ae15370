//! What can be asked of TLS, over TCP and inside QUIC.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options for the keys of connections; absent: as both ends like it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TlsOptions {
    /// connect: how connections agree on their keys.
    pub handshake: Handshake,
    /// What seals records or packets after the handshake; absent: AES-128-GCM in QUIC, over TCP what
    /// both ends like best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cipher: Option<Cipher>,
    /// The protocol that ends say they speak inside (ALPN, RFC 7301); absent: `linerate` in QUIC, none
    /// over TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpn: Option<String>,
}

impl TlsOptions {
    /// Whether nothing was asked for.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What seals packets (RFC 9001, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cipher {
    /// AES-128-GCM.
    Aes128,
    /// AES-256-GCM.
    Aes256,
    /// ChaCha20-Poly1305.
    Chacha20,
}

/// How a connection agrees on its keys (RFC 8446, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Handshake {
    /// With the server's certificate.
    #[default]
    Full,
    /// With a ticket that an earlier connection was given.
    Resumed,
    /// Likewise, and the request leaves with the first packets (0-RTT; RFC 9001, section 4.6).
    Early,
}

impl Cipher {
    /// The name as users know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128 => "aes128",
            Self::Aes256 => "aes256",
            Self::Chacha20 => "chacha20",
        }
    }
}
