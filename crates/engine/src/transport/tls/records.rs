//! What records say, once keys are agreed on: data, the end of it, and new keys.

use std::ops::Range;

use rustls::{
    AlertDescription, ContentType, Error, ExtractedSecrets, HandshakeType, InvalidMessage,
    PeerMisbehaved, SupportedCipherSuite,
};

use super::keys::{CONTENT_LIMIT_BYTES, HEADER_BYTES, RecordKey};
use super::negotiation::Successor;

/// The longest handshake message that is accepted.
const MESSAGE_LIMIT_BYTES: usize = 64 << 10;
/// Records without data, one after the other, that are accepted. Each costs time, and a peer that sends nothing
/// else would hold up the load.
const DATALESS_LIMIT: u32 = 1024;
/// New keys of the peer before it sends data again, likewise.
const KEY_UPDATE_LIMIT: u32 = 32;

/// Both directions of a connection after its handshake.
pub(super) struct Records {
    sealing: RecordKey,
    opening: RecordKey,
    successor: Successor,
    /// How many records a key may seal.
    key_records: u64,
    /// The beginning of a message that isn't whole.
    message: Vec<u8>,
    dataless: u32,
    key_updates: u32,
    /// The peer wants to see that its new keys are known.
    owes_update: bool,
}

/// What a record was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Data, at this place in the record; it may be none.
    Data(Range<usize>),
    /// Nothing that concerns the load.
    Other,
    /// The peer sends nothing more.
    Finished,
}

impl Records {
    pub(super) fn new(secrets: ExtractedSecrets, successor: Successor) -> Result<Self, Error> {
        let suite = successor.suite();
        let limit = match suite {
            SupportedCipherSuite::Tls13(suite) => suite.common.confidentiality_limit,
            _ => return Err(Error::General("not TLS 1.3".to_owned())),
        };
        Ok(Self {
            sealing: RecordKey::new(secrets.tx)?,
            opening: RecordKey::new(secrets.rx)?,
            successor,
            key_records: limit / 2,
            message: Vec::new(),
            dataless: 0,
            key_updates: 0,
            owes_update: false,
        })
    }

    pub(super) fn suite(&self) -> SupportedCipherSuite {
        self.successor.suite()
    }

    /// Seals the beginning of `data` as one record at the beginning of `place`, after what must be said
    /// before it; says how much of it, and how long all that is.
    pub(super) fn seal_data(
        &mut self,
        data: &[u8],
        place: &mut [u8],
    ) -> Result<(usize, usize), Error> {
        let mut length = 0;
        if self.owes_update || self.sealing.sequence() >= self.key_records {
            length = self.update_keys(place)?;
        }
        let taken = data.get(..CONTENT_LIMIT_BYTES).unwrap_or(data);
        let place = place.get_mut(length..).unwrap_or_default();
        length += self.sealing.seal(ContentType::ApplicationData, taken, place)?;
        Ok((taken.len(), length))
    }

    /// Says that nothing more will be sent (RFC 8446, section 6.1).
    pub(super) fn seal_end(&mut self, place: &mut [u8]) -> Result<usize, Error> {
        const WARNING: u8 = 1;
        let alert = [WARNING, AlertDescription::CloseNotify.into()];
        self.sealing.seal(ContentType::Alert, &alert, place)
    }

    /// Tells the peer of the next key, and goes over to it (RFC 8446, section 4.6.3). The peer's own stays
    /// as it is: the sealing end counts its records.
    #[cold]
    fn update_keys(&mut self, place: &mut [u8]) -> Result<usize, Error> {
        const NOT_REQUESTED: u8 = 0;
        let message = [HandshakeType::KeyUpdate.into(), 0, 0, 1, NOT_REQUESTED];
        let length = self.sealing.seal(ContentType::Handshake, &message, place)?;
        self.renew_sealing()?;
        self.owes_update = false;
        Ok(length)
    }

    fn renew_sealing(&mut self) -> Result<(), Error> {
        self.sealing = RecordKey::new(match &mut self.successor {
            Successor::Client(client) => client.update_tx_secret(),
            Successor::Server(server) => server.update_tx_secret(),
        }?)?;
        Ok(())
    }

    /// Opens a whole record where it lies.
    pub(super) fn open(&mut self, record: &mut [u8]) -> Result<Content, Error> {
        let (kind, length) = self.opening.open(record)?;
        if kind == ContentType::ApplicationData && length > 0 && self.message.is_empty() {
            (self.dataless, self.key_updates) = (0, 0);
            return Ok(Content::Data(HEADER_BYTES..HEADER_BYTES + length));
        }
        let content = record.get(HEADER_BYTES..HEADER_BYTES + length).unwrap_or_default();
        self.handle_other(kind, content)
    }

    #[cold]
    fn handle_other(&mut self, kind: ContentType, content: &[u8]) -> Result<Content, Error> {
        self.dataless += 1;
        if self.dataless > DATALESS_LIMIT {
            return Err(PeerMisbehaved::TooManyEmptyFragments.into());
        }
        match kind {
            ContentType::Handshake => self.handle_handshake(content).map(|()| Content::Other),
            _ if !self.message.is_empty() => {
                Err(PeerMisbehaved::MessageInterleavedWithHandshakeMessage.into())
            }
            ContentType::ApplicationData => Ok(Content::Other),
            ContentType::Alert => handle_alert(content),
            _ => Err(Error::InappropriateMessage {
                expect_types: vec![ContentType::ApplicationData, ContentType::Handshake],
                got_type: kind,
            }),
        }
    }

    fn handle_handshake(&mut self, content: &[u8]) -> Result<(), Error> {
        if content.is_empty() {
            return Err(InvalidMessage::InvalidEmptyPayload.into());
        }
        let mut message = std::mem::take(&mut self.message);
        message.extend_from_slice(content);
        let mut rest = message.as_slice();
        while let Some((&[kind, a, b, c], after)) = rest.split_first_chunk() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if length > MESSAGE_LIMIT_BYTES {
                return Err(InvalidMessage::HandshakePayloadTooLarge.into());
            }
            let Some((body, after)) = after.split_at_checked(length) else { break };
            self.handle_message(HandshakeType::from(kind), body, after.is_empty())?;
            rest = after;
        }
        self.message = rest.to_vec();
        Ok(())
    }

    fn handle_message(
        &mut self,
        kind: HandshakeType,
        body: &[u8],
        is_last: bool,
    ) -> Result<(), Error> {
        match (kind, &mut self.successor) {
            (HandshakeType::NewSessionTicket, Successor::Client(client)) => {
                client.handle_new_session_ticket(body)
            }
            (HandshakeType::KeyUpdate, successor) => {
                if !is_last {
                    return Err(PeerMisbehaved::KeyEpochWithPendingFragment.into());
                }
                self.key_updates += 1;
                if self.key_updates > KEY_UPDATE_LIMIT {
                    return Err(PeerMisbehaved::TooManyKeyUpdateRequests.into());
                }
                match body {
                    [0] => {}
                    [1] => self.owes_update = true,
                    _ => return Err(InvalidMessage::InvalidKeyUpdate.into()),
                }
                self.opening = RecordKey::new(match successor {
                    Successor::Client(client) => client.update_rx_secret(),
                    Successor::Server(server) => server.update_rx_secret(),
                }?)?;
                Ok(())
            }
            (got_type, _) => Err(Error::InappropriateHandshakeMessage {
                expect_types: vec![HandshakeType::NewSessionTicket, HandshakeType::KeyUpdate],
                got_type,
            }),
        }
    }
}

fn handle_alert(content: &[u8]) -> Result<Content, Error> {
    let &[_, description] = content else {
        return Err(InvalidMessage::MissingData("AlertMessagePayload").into());
    };
    match AlertDescription::from(description) {
        AlertDescription::CloseNotify => Ok(Content::Finished),
        // Another alert says what follows from it.
        AlertDescription::UserCanceled => Ok(Content::Other),
        other => Err(Error::AlertReceived(other)),
    }
}

/// What tests make of records.
#[cfg(test)]
impl Records {
    pub(super) fn set_key_records(&mut self, records: u64) {
        self.key_records = records;
    }

    pub(super) fn seal(&mut self, kind: ContentType, content: &[u8], place: &mut [u8]) -> usize {
        self.sealing.seal(kind, content, place).expect("there is room")
    }

    pub(super) fn renew(&mut self) -> Result<(), Error> {
        self.renew_sealing()
    }
}
