//! Sealing and opening single records (RFC 8446, section 5.2).

use aws_lc_rs::aead::{self, Aad, LessSafeKey, UnboundKey};
use rustls::crypto::cipher::{Iv, Nonce, make_tls13_aad};
use rustls::{ConnectionTrafficSecrets, ContentType, Error, PeerMisbehaved};

/// Bytes of a record's header: what it pretends to be, a version of old, its length.
pub(super) const HEADER_BYTES: usize = 5;
/// The most content of one record.
pub(super) const CONTENT_LIMIT_BYTES: usize = 1 << 14;
/// What a record has beside its content: the header, the kind of the content, the seal.
pub(super) const OVERHEAD_BYTES: usize = HEADER_BYTES + 1 + SEAL_BYTES;
/// The longest record of any version that a handshake may bring.
const RECORD_LIMIT_BYTES: usize = CONTENT_LIMIT_BYTES + 2048;
const SEAL_BYTES: usize = 16;
/// What all sealed records pretend to be.
const OUTER_KIND: u8 = 23;

/// The key of one direction, and the number of the next record.
pub(super) struct RecordKey {
    key: LessSafeKey,
    iv: Iv,
    sequence: u64,
}

impl RecordKey {
    pub(super) fn new((sequence, secrets): (u64, ConnectionTrafficSecrets)) -> Result<Self, Error> {
        let (algorithm, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&aead::AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&aead::AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (&aead::CHACHA20_POLY1305, key, iv)
            }
            _ => {
                return Err(Error::General(
                    "linerate doesn't support this cipher suite".to_owned(),
                ));
            }
        };
        let key = UnboundKey::new(algorithm, key.as_ref()).map_err(|_| Error::EncryptError)?;
        Ok(Self { key: LessSafeKey::new(key), iv, sequence })
    }

    /// The number of the next record.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    fn take_nonce(&mut self) -> Result<aead::Nonce, Error> {
        let nonce = Nonce::new(&self.iv, self.sequence);
        self.sequence = self.sequence.checked_add(1).ok_or(Error::EncryptError)?;
        Ok(aead::Nonce::assume_unique_for_key(nonce.0))
    }

    /// Makes a record of `content` at the beginning of `place`; says how long it is.
    pub(super) fn seal(
        &mut self,
        kind: ContentType,
        content: &[u8],
        place: &mut [u8],
    ) -> Result<usize, Error> {
        let record_bytes = content.len() + OVERHEAD_BYTES;
        let place = place.get_mut(..record_bytes).ok_or(Error::EncryptError)?;
        let (header, sealed) = place.split_at_mut(HEADER_BYTES);
        let (sealed, end) = sealed.split_at_mut(content.len());
        // The header is what is sealed besides the content, and has its length.
        let aad = make_tls13_aad(record_bytes - HEADER_BYTES);
        header.copy_from_slice(&aad);
        let nonce = self.take_nonce()?;
        self.key
            .seal_out_of_place_scatter(nonce, Aad::from(aad), content, sealed, &[kind.into()], end)
            .map_err(|_| Error::EncryptError)?;
        Ok(record_bytes)
    }

    /// Opens a whole record where it lies; says what is in it, which begins behind the header, and how
    /// long that is.
    pub(super) fn open(&mut self, record: &mut [u8]) -> Result<(ContentType, usize), Error> {
        let Some((header, sealed)) = record.split_at_mut_checked(HEADER_BYTES) else {
            return Err(Error::DecryptError);
        };
        let aad = make_tls13_aad(sealed.len());
        if header.first() != Some(&OUTER_KIND) {
            return Err(PeerMisbehaved::IllegalTlsInnerPlaintext.into());
        }
        let nonce = self.take_nonce()?;
        let inner = self
            .key
            .open_in_place(nonce, Aad::from(aad), sealed)
            .map_err(|_| Error::DecryptError)?;
        // What comes last and isn't zero says what it is; zeros behind it are padding.
        let end = inner.iter().rposition(|byte| *byte != 0);
        let kind = end.and_then(|end| inner.get(end).map(|kind| (ContentType::from(*kind), end)));
        match kind {
            Some((_, length)) if length > CONTENT_LIMIT_BYTES => {
                Err(Error::PeerSentOversizedRecord)
            }
            Some(found) => Ok(found),
            None => Err(PeerMisbehaved::IllegalTlsInnerPlaintext.into()),
        }
    }
}

/// How long the record is that begins here; `None` before its header has come.
pub(super) fn record_bytes(bytes: &[u8]) -> Result<Option<usize>, Error> {
    let Some(&[kind, major, _, high, low]) = bytes.first_chunk() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if !(20..=23).contains(&kind) || major != 3 {
        return Err(rustls::InvalidMessage::InvalidContentType.into());
    }
    if length > RECORD_LIMIT_BYTES {
        return Err(Error::PeerSentOversizedRecord);
    }
    Ok(Some(HEADER_BYTES + length))
}
