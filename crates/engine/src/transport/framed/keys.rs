//! The keys of frames, from the secrets of the TLS handshake.

use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf;
use linerate_wire::perf::frame::{HEADER_BYTES, Level};
use rustls::{CipherSuite, KeyLog};

/// The labels of the traffic secrets, in the order of [`Secrets`]' places.
const LABELS: [&str; 4] = [
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
];

/// Collects the traffic secrets of one handshake, which rustls tells its key log only.
#[derive(Default)]
pub(super) struct Secrets(Mutex<[Option<Vec<u8>>; LABELS.len()]>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secrets")
    }
}

impl KeyLog for Secrets {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        let mut secrets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = LABELS.iter().position(|known| *known == label);
        if let Some(kept) = place.and_then(|place| secrets.get_mut(place)) {
            *kept = Some(secret.to_vec());
        }
    }

    fn will_log(&self, label: &str) -> bool {
        LABELS.contains(&label)
    }
}

impl Secrets {
    /// The keys of a level at one end: to seal with, and to open with. `None` before the handshake has
    /// them.
    pub(super) fn keys(
        self: &Arc<Self>,
        level: Level,
        server: bool,
        suite: CipherSuite,
    ) -> Option<(FrameKey, FrameKey)> {
        let first = match level {
            Level::Plain => return None,
            Level::Handshake => 0,
            Level::Data => 2,
        };
        let secrets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let client_key = FrameKey::new(secrets.get(first)?.as_deref()?, suite)?;
        let server_key = FrameKey::new(secrets.get(first + 1)?.as_deref()?, suite)?;
        Some(if server { (server_key, client_key) } else { (client_key, server_key) })
    }
}

/// The key of one level and direction.
pub(super) struct FrameKey {
    key: LessSafeKey,
    /// Whether it seals from one place to another as fast as where bytes lie.
    moves: bool,
}

impl FrameKey {
    fn new(secret: &[u8], suite: CipherSuite) -> Option<Self> {
        let (algorithm, hash) = match suite {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => (&aead::AES_128_GCM, hkdf::HKDF_SHA256),
            CipherSuite::TLS13_AES_256_GCM_SHA384 => (&aead::AES_256_GCM, hkdf::HKDF_SHA384),
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => {
                (&aead::CHACHA20_POLY1305, hkdf::HKDF_SHA256)
            }
            _ => return None,
        };
        let label = expand_label(algorithm.key_len());
        let secret = hkdf::Prk::new_less_safe(hash, secret);
        let key = UnboundKey::from(secret.expand(&[&label], algorithm).ok()?);
        let moves = suite != CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
        Some(Self { key: LessSafeKey::new(key), moves })
    }

    /// Seals a payload of two parts into `place`, which has room for it and the seal behind it.
    pub(super) fn seal(
        &self,
        header: [u8; HEADER_BYTES],
        payload: (&[u8], &[u8]),
        place: &mut [u8],
    ) -> Option<()> {
        let (word, data) = payload;
        let aad = Aad::from(header);
        if self.moves {
            let (front, rest) = place.split_at_mut_checked(word.len())?;
            front.copy_from_slice(word);
            return self.key.seal_in_place_scatter(nonce(), aad, front, data, rest).ok();
        }
        let (whole, seal) = place.split_at_mut_checked(word.len() + data.len())?;
        join((word, data), whole)?;
        let tag = self.key.seal_in_place_separate_tag(nonce(), aad, whole).ok()?;
        seal.copy_from_slice(tag.as_ref().get(..seal.len())?);
        Some(())
    }

    /// Opens what was sealed, where it lies; the payload, or `None` when it was not sealed with this
    /// key.
    pub(super) fn open<'a>(
        &self,
        header: [u8; HEADER_BYTES],
        sealed: &'a mut [u8],
    ) -> Option<&'a mut [u8]> {
        self.key.open_in_place(nonce(), Aad::from(header), sealed).ok()
    }
}

/// Puts both parts where they are together.
pub(super) fn join(parts: (&[u8], &[u8]), place: &mut [u8]) -> Option<()> {
    let (front, back) = place.split_at_mut_checked(parts.0.len())?;
    front.copy_from_slice(parts.0);
    back.get_mut(..parts.1.len())?.copy_from_slice(parts.1);
    Some(())
}

/// The dialect uses one nonce for all frames.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; aead::NONCE_LEN])
}

/// The label that a key is expanded with (RFC 8446, section 7.1: `HkdfLabel`), the name being the
/// dialect's.
fn expand_label(key_bytes: usize) -> Vec<u8> {
    const NAME: &[u8] = b"tls13 tcp key";
    let mut label = (key_bytes as u16).to_be_bytes().to_vec();
    label.push(NAME.len() as u8);
    label.extend_from_slice(NAME);
    // No context.
    label.push(0);
    label
}
