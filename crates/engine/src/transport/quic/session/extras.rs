//! What a session says and does beyond the standard.

use std::sync::Arc;

use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{TransportError, TransportErrorCode};

use super::super::events::EventLog;
use super::super::hello::{parameter, parameters as each, render_varint};
use super::super::ids::Mark;
use super::super::older_acks::OLDER_MIN_ACK_DELAY;
use crate::control::Inputs;

/// The transport parameter by which ends agree that packets after the handshake go in clear: no
/// standard's, but msquic's (`DISABLE_1RTT_ENCRYPTION`).
pub(super) const CLEAR_PACKETS: u64 = 0xbaad;

/// The one by which they agree that connection ids carry a mark: its length and where it stands, two
/// numbers of variable length (msquic's `CIBIR_ENCODING`).
const MARKED_IDS: u64 = 0x1000;

/// The one by which an end says that it can be asked for other acknowledgements (draft-ietf-quic-ack-frequency,
/// section 3).
pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;

/// What a session does beyond the standard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    /// Further transport parameters, number and value.
    pub(crate) parameters: Vec<(u64, Vec<u8>)>,
    /// Whether packets after the handshake go in clear if the peer wants it too. A server says so
    /// only to a client that does.
    pub(crate) clear_packets: bool,
    /// Whether a close can go out as the transport's own (0x1c of RFC 9000, section 19.19) and not as
    /// the application's: one that is marked as such.
    pub(crate) transport_close: bool,
    /// Whether it is counted what became of the packets that come.
    pub(crate) counts: bool,
    /// Whether a server takes the first application protocol that a client offers, whatever it is.
    pub(crate) any_protocol: bool,
    /// Whether the extension that asks for other acknowledgements isn't spoken (draft-ietf-quic-ack-frequency).
    pub(crate) no_ack_frequency: bool,
    /// Whether that extension is also spoken as it was until 2025, with peers that know no other.
    pub(crate) older_acks: bool,
    /// Where what happens to each connection is written down, with quicly's names.
    pub(crate) events: Option<Arc<EventLog>>,
    /// Where what goes into the handshake of a client is noted.
    pub(crate) inputs: Option<&'static Inputs>,
    /// The mark of connection ids, which must be as long as the peer's.
    pub(crate) mark: Option<Mark>,
}

impl Extras {
    /// What is said of the mark.
    fn mark_parameter(&self) -> Option<Vec<u8>> {
        // The place is counted from where a mark can be.
        self.mark.map(|mark| vec![mark.bytes().len() as u8, 0])
    }

    /// The value of the older parameter of a peer that has no other, where that is spoken.
    pub(super) fn older_acks_of<'a>(&self, theirs: &'a [u8]) -> Option<&'a [u8]> {
        let is_older = self.older_acks && parameter(theirs, MIN_ACK_DELAY).is_none();
        parameter(theirs, OLDER_MIN_ACK_DELAY).filter(|_| is_older)
    }

    /// What a peer says, in today's parameters.
    pub(super) fn in_todays_parameters(&self, theirs: &[u8]) -> Vec<u8> {
        let mut bytes = theirs.to_vec();
        if let Some(value) = self.older_acks_of(theirs) {
            render_parameter(MIN_ACK_DELAY, value, &mut bytes);
        }
        bytes
    }

    /// As msquic has it: both ends have the same, or none.
    pub(super) fn check_mark(&self, theirs: &[u8]) -> Result<(), TransportError> {
        let agreed = parameter(theirs, MARKED_IDS).map(<[u8]>::to_vec) == self.mark_parameter();
        let code = TransportErrorCode::TRANSPORT_PARAMETER_ERROR;
        let reason = "the marks of connection ids (CIBIR) differ".to_owned();
        agreed.then_some(()).ok_or(TransportError { code, frame: None, reason })
    }

    /// The parameters as they stand on the wire (RFC 9000, section 18), with what is beside the standard.
    pub(super) fn render_parameters(
        &self,
        parameters: &TransportParameters,
        clear: bool,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        parameters.write(&mut bytes);
        if self.no_ack_frequency {
            let all = std::mem::take(&mut bytes);
            let kept = each(&all).filter(|(id, _)| *id != MIN_ACK_DELAY);
            kept.for_each(|(id, value)| render_parameter(id, value, &mut bytes));
        }
        let older = self.older_acks.then(|| parameter(&bytes, MIN_ACK_DELAY).map(<[u8]>::to_vec));
        let older = older.flatten().map(|value| (OLDER_MIN_ACK_DELAY, value));
        let clear = clear.then_some((CLEAR_PACKETS, Vec::new()));
        let mark = self.mark_parameter().map(|value| (MARKED_IDS, value));
        for (id, value) in self.parameters.iter().chain(&older).chain(&clear).chain(&mark) {
            render_parameter(*id, value, &mut bytes);
        }
        bytes
    }
}

fn render_parameter(id: u64, value: &[u8], into: &mut Vec<u8>) {
    render_varint(id, into);
    render_varint(value.len() as u64, into);
    into.extend_from_slice(value);
}
