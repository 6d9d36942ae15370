//! A QUIC client's first packets by hand (RFC 9000, section 17.2.2; RFC 9001, section 5), with whatever is wanted
//! in them.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, DirectionalKeys, Keys, Version};

use crate::any_certificate::tls_config;
use crate::random::Random;

/// A first datagram is never shorter (RFC 9000, section 14.1).
pub(crate) const LEAST_BYTES: usize = 1_200;
const NUMBER_BYTES: usize = 4;
const SEAL_BYTES: usize = 16;

/// Transport parameters that servers take: an idle time of 30 s; room for data and streams; packets in clear
/// (0xbaad). The id of the source's connection comes behind them.
const PARAMETERS: [u8; 31] = [
    0x01, 4, 0x80, 0x00, 0x75, 0x30, 0x04, 4, 0x80, 0x10, 0x00, 0x00, 0x05, 4, 0x80, 0x10, 0x00,
    0x00, 0x08, 1, 0x10, 0x09, 1, 0x10, 0x80, 0x00, 0xba, 0xad, 0x00, 0x0f, 8,
];

/// What a client says first, once made and often sent.
pub(crate) struct Opening {
    /// A CRYPTO frame with the whole of TLS's first message.
    pub(crate) frames: Vec<u8>,
    /// The connection id that answers go to.
    pub(crate) source: [u8; 8],
}

impl Opening {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self::begin(random).0
    }

    /// One that goes on.
    pub(crate) fn begin(random: &mut Random) -> (Self, ClientConnection) {
        let source = random.number().to_be_bytes();
        let parameters = [&PARAMETERS[..], &source].concat();
        let name = ServerName::try_from("localhost").unwrap();
        let config = Arc::new(tls_config(&[b"perf"]));
        let mut tls = ClientConnection::new(config, Version::V1, name, parameters).unwrap();
        let mut hello = Vec::new();
        assert!(tls.write_hs(&mut hello).is_none(), "the first message has no keys");
        let mut frames = vec![0x06, 0x00];
        frames.extend((hello.len() as u16 | 0x4000).to_be_bytes());
        frames.extend(hello);
        (Self { frames, source }, tls)
    }

    /// These frames in a first packet to this connection id, sealed as they must be, and padded.
    pub(crate) fn packet(&self, destination: [u8; 8], number: u32, frames: &[u8]) -> Vec<u8> {
        let mut header = self.header(0xc3, &destination);
        // No token.
        header.push(0);
        let padded = LEAST_BYTES - header.len() - 2 - NUMBER_BYTES - SEAL_BYTES;
        let mut payload = frames.to_vec();
        payload.resize(payload.len().max(padded), 0);
        sealed(header, number, payload, &first_keys(destination).local)
    }

    /// The beginning of a long header (RFC 9000, section 17.2).
    pub(crate) fn header(&self, first: u8, destination: &[u8]) -> Vec<u8> {
        let mut header = vec![first, 0, 0, 0, 1, destination.len() as u8];
        header.extend(destination);
        header.push(8);
        header.extend(self.source);
        header
    }
}

/// The keys of the first packets to this connection id.
pub(crate) fn first_keys(destination: [u8; 8]) -> Keys {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().unwrap().quic_suite().unwrap();
    suite.keys(&destination, rustls::Side::Client, Version::V1)
}

/// A packet whose long header wants but its length and number.
pub(crate) fn sealed(
    mut header: Vec<u8>,
    number: u32,
    mut payload: Vec<u8>,
    keys: &DirectionalKeys,
) -> Vec<u8> {
    let length = NUMBER_BYTES + payload.len() + SEAL_BYTES;
    header.extend((length as u16 | 0x4000).to_be_bytes());
    let number_at = header.len();
    header.extend(number.to_be_bytes());
    let seal = keys.packet.encrypt_in_place(number.into(), &header, &mut payload).unwrap();
    let mut bytes = [&header[..], &payload, seal.as_ref()].concat();
    let (first, rest) = bytes.split_at_mut(number_at);
    let (hidden, sample) = rest.split_at_mut(NUMBER_BYTES);
    let sample = &sample[..keys.header.sample_len()];
    keys.header.encrypt_in_place(sample, &mut first[0], hidden).unwrap();
    bytes
}
