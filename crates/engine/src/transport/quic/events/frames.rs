//! The frames of a packet as quicly's events.

use std::fmt::Write;

use super::super::frames::{ACK_FREQUENCY, Ack, Close, Frame, take_frame};
use super::super::qlog::PacketKind;

/// The lines of one packet, or of what became of others.
pub(super) struct Lines {
    text: String,
    number: u64,
    time_ms: i64,
    kind: PacketKind,
}

/// A value of an event.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Number(u64),
    /// Streams of the handshake have numbers below 0.
    Below(i64),
    Bytes(&'a [u8]),
    Text(&'a [u8]),
}

use Value::{Below, Bytes, Number, Text};

/// Frames that are numbers and nothing else: the type, the event that tells of it when it is sent, or received, and
/// what the numbers are.
type Plain = (u64, [&'static str; 2], &'static [&'static str]);

#[rustfmt::skip]
const PLAIN: &[Plain] = &[
    (0x01, ["ping-send", "ping-receive"], &[]),
    (0x04, ["reset-stream-send", "stream-on-receive-reset"], &["stream-id", "err", "final-size"]),
    (0x05, ["stop-sending-send", "stream-on-send-stop"], &["stream-id", "err"]),
    (0x10, ["max-data-send", "max-data-receive"], &["maximum"]),
    (0x11, ["max-stream-data-send", "max-stream-data-receive"], &["stream-id", "maximum"]),
    (0x14, ["data-blocked-send", "data-blocked-receive"], &["off"]),
    (0x15, ["stream-data-blocked-send", "stream-data-blocked-receive"], &["stream-id", "maximum"]),
    (0x19, ["retire-connection-id-send", "retire-connection-id-receive"], &["sequence"]),
    (0x1e, ["handshake-done-send", "handshake-done-receive"], &[]),
    (0x1f, ["immediate-ack-send", "immediate-ack-receive"], &[]),
];

/// Those that come in two kinds, for streams of both directions and of one.
const LIMITS: &[(u64, [&str; 2])] = &[
    (0x12, ["max-streams-send", "max-streams-receive"]),
    (0x16, ["streams-blocked-send", "streams-blocked-receive"]),
];

/// What the frames of a packet are together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    acknowledges: bool,
    is_padded: bool,
    closes: bool,
    elicits_ack: bool,
}

impl Content {
    /// Whether they acknowledge and do nothing else.
    pub(super) fn is_ack_only(self) -> bool {
        self.acknowledges && !self.elicits_ack && !self.closes
    }

    /// Whether their packet counts as in flight (RFC 9002, section 2).
    pub(super) fn is_in_flight(self) -> bool {
        self.elicits_ack || self.is_padded
    }
}

impl Lines {
    pub(super) fn new(number: u64, time_ms: i64, kind: PacketKind) -> Self {
        Self { text: String::with_capacity(512), number, time_ms, kind }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn add(&mut self, event: &str, fields: &[(&str, Value<'_>)]) {
        let Self { text, number, time_ms, .. } = self;
        // Writing to text can't fail.
        let _written =
            write!(text, "{{\"type\":\"{event}\", \"conn\":{number}, \"time\":{time_ms}");
        for (name, value) in fields {
            let _written = match value {
                Number(value) => write!(text, ", \"{name}\":{value}"),
                Below(value) => write!(text, ", \"{name}\":{value}"),
                Bytes(value) => {
                    let _written = write!(text, ", \"{name}\":\"");
                    value.iter().for_each(|byte| {
                        let _written = write!(text, "{byte:02x}");
                    });
                    write!(text, "\"")
                }
                Text(value) => {
                    let value = serde_json::Value::from(String::from_utf8_lossy(value));
                    write!(text, ", \"{name}\":{value}")
                }
            };
        }
        text.push_str("}\n");
    }

    /// The number of the kind in quicly's events.
    pub(super) fn packet_type(&self) -> Value<'static> {
        Number(match self.kind {
            PacketKind::Initial => 0,
            PacketKind::Early => 1,
            PacketKind::Handshake => 2,
            PacketKind::Data => 3,
        })
    }

    pub(super) fn record_prepared(&mut self, first: u8, destination: &[u8]) {
        let fields = [("first-octet", Number(first.into())), ("dcid", Bytes(destination))];
        self.add("packet-prepare", &fields);
    }

    pub(super) fn record_sent(&mut self, packet: u64, length: usize, acknowledges_alone: bool) {
        let fields = [
            ("pn", Number(packet)),
            ("len", Number(length as u64)),
            ("packet-type", self.packet_type()),
            ("ack-only", Number(acknowledges_alone.into())),
        ];
        self.add("packet-sent", &fields);
    }

    /// A packet that was sent has come to the other end, though it had been taken for lost where that is late.
    pub(super) fn record_acked(&mut self, packet: u64, is_late: bool) {
        let fields = [("pn", Number(packet)), ("is-late-ack", Number(is_late.into()))];
        self.add("packet-acked", &fields);
    }

    pub(super) fn record_received(&mut self, packet: u64, length: usize) {
        let fields = [
            ("pn", Number(packet)),
            ("decrypted-len", Number(length as u64)),
            ("packet-type", self.packet_type()),
        ];
        self.add("packet-received", &fields);
    }

    /// The frames of a payload that is sent, or received; what they are together. What can't be read ends them.
    pub(super) fn record_frames(&mut self, is_sent: bool, payload: &[u8]) -> Content {
        let (mut rest, mut content) = (payload, Content::default());
        while let Some(frame) = take_frame(&mut rest) {
            match frame {
                Frame::Ack(_) => content.acknowledges = true,
                Frame::Padding(_) => content.is_padded = true,
                Frame::Close(_) => content.closes = true,
                _ => content.elicits_ack = true,
            }
            self.record_frame(is_sent, &frame);
        }
        content
    }

    fn record_frame(&mut self, is_sent: bool, frame: &Frame<'_>) {
        let way = |[sent, received]: [&'static str; 2]| if is_sent { sent } else { received };
        match *frame {
            Frame::Padding(_) | Frame::PathChallenge | Frame::PathResponse => {}
            Frame::Numbers(kind, numbers) => self.record_numbers(is_sent, kind, numbers),
            Frame::Ack(ack) => self.record_ack(is_sent, &ack),
            Frame::Crypto { offset, data } => {
                let id = match self.kind {
                    PacketKind::Initial => -1,
                    PacketKind::Early => -2,
                    PacketKind::Handshake => -3,
                    PacketKind::Data => -4,
                };
                self.record_stream(is_sent, (Below(id), offset, data.len() as u64, false));
            }
            Frame::NewToken(token) => {
                let bytes = token.len() as u64;
                let fields =
                    [("token", Bytes(token)), ("len", Number(bytes)), ("generation", Number(0))];
                self.add(way(["new-token-send", "new-token-receive"]), &fields);
            }
            Frame::Stream { id, offset, bytes, is_last } => {
                self.record_stream(is_sent, (Number(id), offset, bytes, is_last));
            }
            Frame::NewConnectionId { sequence, retire_prior_to, id, reset_token } => {
                let fields = [
                    ("sequence", Number(sequence)),
                    ("retire-prior-to", Number(retire_prior_to)),
                    ("cid", Bytes(id)),
                    ("stateless-reset-token", Bytes(reset_token)),
                ];
                self.add(way(["new-connection-id-send", "new-connection-id-receive"]), &fields);
            }
            Frame::Close(close) => self.record_close(is_sent, &close),
            Frame::Datagram(bytes) => {
                let fields = [("payload-len", Number(bytes))];
                self.add(way(["datagram-send", "datagram-receive"]), &fields);
            }
        }
    }

    fn record_numbers(&mut self, is_sent: bool, kind: u64, numbers: [u64; 4]) {
        let way = |[sent, received]: [&'static str; 2]| if is_sent { sent } else { received };
        if kind == ACK_FREQUENCY {
            return self.record_ack_frequency(is_sent, numbers);
        }
        if let Some((_, events, names)) = PLAIN.iter().find(|(one, ..)| *one == kind) {
            let values = numbers.into_iter().map(Number);
            let fields: Vec<_> = names.iter().copied().zip(values).collect();
            self.add(way(*events), &fields);
        } else if let Some((first, events)) = LIMITS.iter().find(|(one, _)| one | 1 == kind | 1) {
            let [maximum, ..] = numbers;
            let maximum = ("maximum", Number(maximum));
            let is_one_way = ("is-unidirectional", Number(u64::from(kind != *first)));
            self.add(way(*events), &[maximum, is_one_way]);
        }
    }

    /// A request for other acknowledgements, in quicly's words, which are those of draft-ietf-quic-ack-frequency-02: the
    /// tolerance is one more than the threshold, and a reordering threshold of 0 ignores the order.
    fn record_ack_frequency(&mut self, is_sent: bool, numbers: [u64; 4]) {
        let [sequence, threshold, max_ack_delay_us, reordering_threshold] = numbers;
        let fields = [
            ("sequence", Number(sequence)),
            ("packet-tolerance", Number(threshold.saturating_add(1))),
            ("max-ack-delay", Number(max_ack_delay_us)),
            ("ignore-order", Number(u64::from(reordering_threshold == 0))),
            ("ignore-ce", Number(0)),
        ];
        let event = if is_sent { "ack-frequency-send" } else { "ack-frequency-receive" };
        self.add(event, &fields);
    }

    /// A piece of a stream: its number, where it begins, how long it is, and whether it is the last.
    fn record_stream(
        &mut self,
        is_sent: bool,
        (id, offset, length, is_last): (Value<'_>, u64, u64, bool),
    ) {
        let fields = [
            ("stream-id", id),
            ("off", Number(offset)),
            // Older converters read the one, newer ones the other.
            ("len", Number(length)),
            ("data-len", Number(length)),
            ("is-fin", Number(is_last.into())),
        ];
        self.add(if is_sent { "stream-send" } else { "stream-receive" }, &fields);
    }

    fn record_ack(&mut self, is_sent: bool, ack: &Ack<'_>) {
        let delay = ("ack-delay", Number(ack.delay));
        if is_sent {
            return self.add("ack-send", &[("largest-acked", Number(ack.largest)), delay]);
        }
        for (begin, end) in ack.ranges() {
            let fields = [("ack-block-begin", Number(begin)), ("ack-block-end", Number(end))];
            self.add("ack-block-received", &fields);
        }
        self.add("ack-delay-received", &[delay]);
    }

    fn record_close(&mut self, is_sent: bool, close: &Close<'_>) {
        let mut fields = vec![("error-code", Number(close.code))];
        fields.extend(close.frame.map(|frame| ("frame-type", Number(frame))));
        fields.push(("reason-phrase", Text(close.reason)));
        let event = match (close.frame, is_sent) {
            (Some(_), true) => "transport-close-send",
            (Some(_), false) => "transport-close-receive",
            (None, true) => "application-close-send",
            (None, false) => "application-close-receive",
        };
        self.add(event, &fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(is_sent: bool, payload: &[u8]) -> (Vec<String>, bool) {
        let mut frames = Lines::new(3, 1_638_358_712_345, PacketKind::Data);
        let alone = frames.record_frames(is_sent, payload).is_ack_only();
        (frames.text().lines().map(str::to_owned).collect(), alone)
    }

    #[test]
    fn frames_are_quicly_s_events() {
        let ack = [0x02, 0x0a, 0x02, 0x01, 0x03, 0x00, 0x01];
        let stream = [0x0f, 0x04, 0x40, 0x64, 0x03, 1, 2, 3];
        let close = b"\x1c\x00\x00\x04\"why";
        let payload = [&ack[..], &stream, &[0x12, 0x08, 0, 0], close].concat();
        let head = "\"conn\":3, \"time\":1638358712345";
        let (lines, alone) = read(true, &payload);
        assert_eq!(
            lines,
            [
                format!("{{\"type\":\"ack-send\", {head}, \"largest-acked\":10, \"ack-delay\":2}}"),
                format!(
                    "{{\"type\":\"stream-send\", {head}, \"stream-id\":4, \"off\":100, \"len\":3, \
                     \"data-len\":3, \"is-fin\":1}}"
                ),
                format!(
                    "{{\"type\":\"max-streams-send\", {head}, \"maximum\":8, \"is-unidirectional\":0}}"
                ),
                format!(
                    "{{\"type\":\"transport-close-send\", {head}, \"error-code\":0, \"frame-type\":0, \
                     \"reason-phrase\":\"\\\"why\"}}"
                ),
            ]
        );
        assert!(!alone);
        let (lines, alone) = read(false, &ack);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("\"ack-block-begin\":7, \"ack-block-end\":10"), "{lines:?}");
        assert!(lines[2].contains("\"type\":\"ack-delay-received\"") && alone, "{lines:?}");
    }

    #[test]
    fn requests_for_other_acknowledgements_have_quicly_s_fields() {
        let head = "\"conn\":3, \"time\":1638358712345";
        for (threshold, ignores_order) in [(0, 1), (1, 0), (3, 0)] {
            let (lines, _) = read(false, &[0x40, 0xaf, 5, 9, 25, threshold]);
            let expected = format!(
                "{{\"type\":\"ack-frequency-receive\", {head}, \"sequence\":5, \"packet-tolerance\":10, \
                 \"max-ack-delay\":25, \"ignore-order\":{ignores_order}, \"ignore-ce\":0}}"
            );
            assert_eq!(lines, [expected]);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_lines_of_json(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100),
            is_sent in proptest::prelude::any::<bool>(),
        ) {
            for line in read(is_sent, &bytes).0 {
                let event: serde_json::Value = serde_json::from_str(&line).unwrap();
                proptest::prop_assert!(event["type"].is_string());
            }
        }
    }
}
