//! The frames of a packet (RFC 9000, section 19) as quicly's events.

use std::fmt::Write;

use super::super::hello::take_varint;
use super::super::qlog::PacketKind;

/// The lines of one packet.
pub(super) struct Frames {
    text: String,
    number: u64,
    time_ms: i64,
    kind: PacketKind,
}

/// A value of an event.
#[derive(Clone, Copy)]
enum Value<'a> {
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
    (0xaf, ["ack-frequency-send", "ack-frequency-receive"],
     &["sequence", "packet-tolerance", "max-ack-delay", "reordering-threshold"]),
];

/// Those that come in two kinds, for streams of both directions and of one.
const LIMITS: &[(u64, [&str; 2])] = &[
    (0x12, ["max-streams-send", "max-streams-receive"]),
    (0x16, ["streams-blocked-send", "streams-blocked-receive"]),
];

impl Frames {
    pub(super) fn new(number: u64, time_ms: i64, kind: PacketKind) -> Self {
        Self { text: String::with_capacity(512), number, time_ms, kind }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn add(&mut self, event: &str, fields: &[(&str, Value<'_>)]) {
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
    fn packet_type(&self) -> Value<'static> {
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

    pub(super) fn record_received(&mut self, packet: u64, length: usize) {
        let fields = [
            ("pn", Number(packet)),
            ("decrypted-len", Number(length as u64)),
            ("packet-type", self.packet_type()),
        ];
        self.add("packet-received", &fields);
    }

    /// The frames of a payload that is sent, or received; whether they acknowledge and do nothing else. What can't be
    /// read ends them.
    pub(super) fn record_frames(&mut self, is_sent: bool, payload: &[u8]) -> bool {
        let (mut rest, mut acknowledges, mut alone) = (payload, false, true);
        while !rest.is_empty() {
            let Some(kind) = take_varint(&mut rest) else { break };
            acknowledges |= matches!(kind, 0x02 | 0x03);
            alone &= matches!(kind, 0x00 | 0x02 | 0x03);
            if self.record_frame(is_sent, kind, &mut rest).is_none() {
                break;
            }
        }
        acknowledges && alone
    }

    fn record_frame(&mut self, is_sent: bool, kind: u64, rest: &mut &[u8]) -> Option<()> {
        let way = |[sent, received]: [&'static str; 2]| if is_sent { sent } else { received };
        if let Some((_, events, names)) = PLAIN.iter().find(|(one, ..)| *one == kind) {
            let mut fields = Vec::with_capacity(names.len());
            for name in *names {
                fields.push((*name, Number(take_varint(rest)?)));
            }
            self.add(way(*events), &fields);
            return Some(());
        }
        if let Some((first, events)) = LIMITS.iter().find(|(one, _)| one | 1 == kind | 1) {
            let maximum = Number(take_varint(rest)?);
            let is_one_way = Number(u64::from(kind != *first));
            self.add(way(*events), &[("maximum", maximum), ("is-unidirectional", is_one_way)]);
            return Some(());
        }
        match kind {
            0x00 => Some(()),
            0x02 | 0x03 => self.record_ack(is_sent, kind == 0x03, rest),
            0x06 => {
                let (offset, length) = (take_varint(rest)?, take_varint(rest)?);
                take(rest, length)?;
                let id = match self.kind {
                    PacketKind::Initial => -1,
                    PacketKind::Early => -2,
                    PacketKind::Handshake => -3,
                    PacketKind::Data => -4,
                };
                self.record_stream(is_sent, (Below(id), offset, length, false));
                Some(())
            }
            0x07 => {
                let length = take_varint(rest)?;
                let token = Bytes(take(rest, length)?);
                let fields = [("token", token), ("len", Number(length)), ("generation", Number(0))];
                self.add(way(["new-token-send", "new-token-receive"]), &fields);
                Some(())
            }
            0x08..=0x0f => {
                let id = Number(take_varint(rest)?);
                let offset = if kind & 4 != 0 { take_varint(rest)? } else { 0 };
                let length = if kind & 2 != 0 { take_varint(rest)? } else { rest.len() as u64 };
                take(rest, length)?;
                self.record_stream(is_sent, (id, offset, length, kind & 1 != 0));
                Some(())
            }
            0x18 => self.record_connection_id(is_sent, rest),
            0x1a | 0x1b => take(rest, 8).map(|_| ()),
            0x1c | 0x1d => self.record_close(is_sent, kind == 0x1d, rest),
            0x30 | 0x31 => {
                let length = if kind == 0x31 { take_varint(rest)? } else { rest.len() as u64 };
                take(rest, length)?;
                let fields = [("payload-len", Number(length))];
                self.add(way(["datagram-send", "datagram-receive"]), &fields);
                Some(())
            }
            _ => None,
        }
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

    fn record_ack(&mut self, is_sent: bool, counts_marks: bool, rest: &mut &[u8]) -> Option<()> {
        let mut largest = take_varint(rest)?;
        let delay = Number(take_varint(rest)?);
        let more = take_varint(rest)?;
        let mut smallest = largest.checked_sub(take_varint(rest)?)?;
        if is_sent {
            let fields = [("largest-acked", Number(largest)), ("ack-delay", delay)];
            self.add("ack-send", &fields);
        }
        let mut blocks = vec![(smallest, largest)];
        for _ in 0..more {
            largest = smallest.checked_sub(take_varint(rest)?.checked_add(2)?)?;
            smallest = largest.checked_sub(take_varint(rest)?)?;
            blocks.push((smallest, largest));
        }
        if counts_marks {
            for _ in 0..3 {
                take_varint(rest)?;
            }
        }
        if !is_sent {
            for (begin, end) in blocks {
                let fields = [("ack-block-begin", Number(begin)), ("ack-block-end", Number(end))];
                self.add("ack-block-received", &fields);
            }
            self.add("ack-delay-received", &[("ack-delay", delay)]);
        }
        Some(())
    }

    fn record_connection_id(&mut self, is_sent: bool, rest: &mut &[u8]) -> Option<()> {
        let (sequence, retired) = (take_varint(rest)?, take_varint(rest)?);
        let length = take_varint(rest)?;
        let id = Bytes(take(rest, length)?);
        let fields = [
            ("sequence", Number(sequence)),
            ("retire-prior-to", Number(retired)),
            ("cid", id),
            ("stateless-reset-token", Bytes(take(rest, 16)?)),
        ];
        let event = if is_sent { "new-connection-id-send" } else { "new-connection-id-receive" };
        self.add(event, &fields);
        Some(())
    }

    fn record_close(
        &mut self,
        is_sent: bool,
        of_application: bool,
        rest: &mut &[u8],
    ) -> Option<()> {
        let mut fields = vec![("error-code", Number(take_varint(rest)?))];
        if !of_application {
            fields.push(("frame-type", Number(take_varint(rest)?)));
        }
        let length = take_varint(rest)?;
        fields.push(("reason-phrase", Text(take(rest, length)?)));
        let event = match (of_application, is_sent) {
            (false, true) => "transport-close-send",
            (false, false) => "transport-close-receive",
            (true, true) => "application-close-send",
            (true, false) => "application-close-receive",
        };
        self.add(event, &fields);
        Some(())
    }
}

fn take<'a>(rest: &mut &'a [u8], bytes: u64) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(is_sent: bool, payload: &[u8]) -> (Vec<String>, bool) {
        let mut frames = Frames::new(3, 1_638_358_712_345, PacketKind::Data);
        let alone = frames.record_frames(is_sent, payload);
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
