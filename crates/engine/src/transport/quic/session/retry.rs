//! Whether a Retry packet comes from a server that has seen the first packet (RFC 9001, section 5.8).

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use quinn_proto::ConnectionId;
use rustls::quic::Version;

const RETRY_KEY_V1: [u8; 16] = 0xbe0c690b9f66575a1d766b54e368c84e_u128.to_be_bytes();
const RETRY_NONCE_V1: [u8; 12] =
    [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];
const RETRY_KEY_DRAFT: [u8; 16] = 0xccce187ed09a09d05728155a6cb96be1_u128.to_be_bytes();
const RETRY_NONCE_DRAFT: [u8; 12] =
    [0xe5, 0x49, 0x30, 0xf9, 0x7f, 0x21, 0x36, 0xf0, 0x53, 0x0a, 0x8c, 0x1c];

pub(super) fn is_valid(
    version: Version,
    orig_dst_cid: &ConnectionId,
    header: &[u8],
    payload: &[u8],
) -> bool {
    let Some(tag_at) = payload.len().checked_sub(AES_128_GCM.tag_len()) else { return false };
    let (rest, tag) = payload.split_at(tag_at);
    let cid: &[u8] = orig_dst_cid;
    let said = [&[cid.len() as u8], cid, header, rest].concat();
    let (key, nonce) = match version {
        Version::V1Draft => (RETRY_KEY_DRAFT, RETRY_NONCE_DRAFT),
        _ => (RETRY_KEY_V1, RETRY_NONCE_V1),
    };
    let Ok(key) = UnboundKey::new(&AES_128_GCM, &key) else { return false };
    let nonce = Nonce::assume_unique_for_key(nonce);
    let mut tag = tag.to_vec();
    LessSafeKey::new(key).open_in_place(nonce, Aad::from(said), &mut tag).is_ok()
}
