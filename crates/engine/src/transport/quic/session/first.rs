//! The keys of every connection's first packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quinn_proto::crypto::{Keys, UnsupportedVersion};
use rustls::quic::{Suite, Version};

use super::super::counted::CountedPacket;

pub(in super::super) fn version_of(version: u32) -> Result<Version, UnsupportedVersion> {
    match version {
        0xff00_001d..=0xff00_0020 => Ok(Version::V1Draft),
        0x0000_0001 | 0xff00_0021..=0xff00_0022 => Ok(Version::V1),
        _ => Err(UnsupportedVersion),
    }
}

/// The suite of every connection's first packets, whatever suites the packets after them may have.
pub(in super::super) fn initial_suite() -> Option<Suite> {
    rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()
}

/// Keys that note the number of what they open: a server's first packet is opened before its session begins.
pub(super) fn noted(mut keys: Keys, number: &Arc<AtomicU64>) -> Keys {
    let number = Arc::clone(number);
    let record = move |opened: Option<u64>| {
        if let Some(opened) = opened {
            number.store(opened, Ordering::Relaxed);
        }
    };
    keys.packet.remote = Box::new(CountedPacket { inner: keys.packet.remote, record, sent: None });
    keys
}
