//! Handshakes of a TLS client that can be replayed, so that tickets outlive the program.
//!
//! rustls gives the secret of a ticket to nobody, so that a ticket can't be written down. How it came about can be:
//! all that is random or of the clock at this end, and all that the other end said. Fed with the same again, rustls
//! comes to the same ticket.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use aws_lc_rs::encoding::{AsBigEndian, EcPrivateKeyBin};
use aws_lc_rs::rand;
use rustls::crypto::{
    ActiveKeyExchange, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::quic::{ClientConnection, Version};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, Error, NamedGroup};

/// What the other end may say in a handshake that is kept: certificates and tickets.
const MOST_HEARD_BYTES: usize = 64 << 10;

/// What went into a handshake.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Handshake {
    /// Whether it was one of a draft of QUIC.
    pub(super) is_draft: bool,
    /// The name that was asked for.
    pub(super) server: String,
    /// Transport parameters.
    pub(super) parameters: Vec<u8>,
    pub(super) random: Vec<u8>,
    /// The private key, big-endian.
    pub(super) key: Vec<u8>,
    /// What the clock said, seconds since 1970.
    pub(super) times_s: Vec<u64>,
    /// What the other end said, piece by piece.
    pub(super) heard: Vec<Vec<u8>>,
}

/// What goes into a handshake: it is noted, or comes from notes.
pub(crate) struct Inputs {
    replays: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    handshake: Handshake,
    random_at: usize,
    time_at: usize,
    heard_bytes: usize,
}

impl fmt::Debug for Inputs {
    /// Without the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs").field("replays", &self.replays).finish_non_exhaustive()
    }
}

impl Inputs {
    /// Those of a handshake that is to come. rustls wants them for as long as the program runs.
    pub(super) fn noted() -> &'static Self {
        Box::leak(Box::new(Self { replays: false, state: Mutex::default() }))
    }

    fn replaying(handshake: &Handshake) -> &'static Self {
        let state = State { handshake: handshake.clone(), ..State::default() };
        Box::leak(Box::new(Self { replays: true, state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handshake begins. What was noted of an earlier one, which came to nothing, is dropped.
    pub(crate) fn record_start(&self, version: Version, server: &str, parameters: &[u8]) {
        let handshake = Handshake {
            is_draft: matches!(version, Version::V1Draft),
            server: server.to_owned(),
            parameters: parameters.to_vec(),
            ..Handshake::default()
        };
        *self.state() = State { handshake, ..State::default() };
    }

    /// The other end has said something.
    pub(crate) fn record_heard(&self, bytes: &[u8]) {
        let mut state = self.state();
        state.heard_bytes = state.heard_bytes.saturating_add(bytes.len());
        if state.heard_bytes <= MOST_HEARD_BYTES {
            state.handshake.heard.push(bytes.to_vec());
        }
    }

    /// What was noted, if that is all that there was.
    pub(super) fn handshake(&self) -> Option<Handshake> {
        let state = self.state();
        (state.heard_bytes <= MOST_HEARD_BYTES).then(|| state.handshake.clone())
    }
}

impl SecureRandom for Inputs {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        let mut state = self.state();
        if self.replays {
            let (from, to) = (state.random_at, state.random_at.saturating_add(bytes.len()));
            let noted = state.handshake.random.get(from..to).ok_or(GetRandomFailed)?;
            bytes.copy_from_slice(noted);
            state.random_at = to;
        } else {
            rand::fill(bytes).map_err(|_| GetRandomFailed)?;
            state.handshake.random.extend_from_slice(bytes);
        }
        Ok(())
    }
}

/// The clock of a handshake.
#[derive(Debug)]
pub(super) struct Clock(pub(super) &'static Inputs);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let mut state = self.0.state();
        if !self.0.replays {
            let now = UnixTime::now();
            state.handshake.times_s.push(now.as_secs());
            return Some(now);
        }
        let noted = state.handshake.times_s.get(state.time_at).copied();
        state.time_at += 1;
        noted.map(|seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// The key exchange over P-256, the one that qperf's original offers.
impl SupportedKxGroup for Inputs {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let failed = |_| Error::FailedToGetRandomBytes;
        let mut state = self.state();
        let key = if self.replays {
            PrivateKey::from_private_key(&ECDH_P256, &state.handshake.key)
                .map_err(|_| Error::FailedToGetRandomBytes)?
        } else {
            let key = PrivateKey::generate(&ECDH_P256).map_err(failed)?;
            let bytes: EcPrivateKeyBin<'_> = key.as_be_bytes().map_err(failed)?;
            state.handshake.key = bytes.as_ref().to_vec();
            key
        };
        let public = key.compute_public_key().map_err(failed)?.as_ref().to_vec();
        Ok(Box::new(Exchange { key, public }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::secp256r1
    }
}

struct Exchange {
    key: PrivateKey,
    public: Vec<u8>,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer = UnparsedPublicKey::new(&ECDH_P256, peer);
        let wrong = Error::PeerMisbehaved(rustls::PeerMisbehaved::InvalidKeyShare);
        agree(&self.key, peer, wrong, |secret| Ok(SharedSecret::from(secret)))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::secp256r1
    }
}

/// Goes through a handshake again, with TLS as `config` makes it of the notes. Its tickets go where the first ones
/// went.
///
/// # Errors
///
/// Where the notes are no handshake of this program.
pub(super) fn replay(
    handshake: &Handshake,
    config: impl FnOnce(&'static Inputs) -> Result<ClientConfig, crate::error::Error>,
) -> Result<(), String> {
    let config = config(Inputs::replaying(handshake)).map_err(|error| error.to_string())?;
    let version = if handshake.is_draft { Version::V1Draft } else { Version::V1 };
    let name = ServerName::try_from(handshake.server.as_str())
        .map_err(|error| error.to_string())?
        .to_owned();
    let wrong = |error: Error| error.to_string();
    let mut tls =
        ClientConnection::new(Arc::new(config), version, name, handshake.parameters.clone())
            .map_err(wrong)?;
    let mut said = Vec::new();
    while tls.write_hs(&mut said).is_some() {}
    for heard in &handshake.heard {
        tls.read_hs(heard).map_err(wrong)?;
        while tls.write_hs(&mut said).is_some() {}
    }
    Ok(())
}
