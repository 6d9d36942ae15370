//! The frames of a packet as qlog names them.

use std::fmt::Write;

use super::super::frames::{Ack, Close, Frame, take_frame};

/// Frames that are numbers and nothing else: type, name, what the numbers are.
const NUMBERS: &[(u64, &str, &[&str])] = &[
    (0x01, "ping", &[]),
    (0x04, "reset_stream", &["stream_id", "error_code", "final_size"]),
    (0x05, "stop_sending", &["stream_id", "error_code"]),
    (0x10, "max_data", &["maximum"]),
    (0x11, "max_stream_data", &["stream_id", "maximum"]),
    (0x14, "data_blocked", &["limit"]),
    (0x15, "stream_data_blocked", &["stream_id", "limit"]),
    (0x19, "retire_connection_id", &["sequence_number"]),
    (0x1e, "handshake_done", &[]),
    (0x1f, "immediate_ack", &[]),
    (
        0xaf,
        "ack_frequency",
        &[
            "sequence_number",
            "ack_eliciting_threshold",
            "requested_max_ack_delay",
            "reordering_threshold",
        ],
    ),
];

/// Those that come in two kinds, for streams of both directions and of one.
const LIMITS: &[(u64, &str, &str)] =
    &[(0x12, "max_streams", "maximum"), (0x16, "streams_blocked", "limit")];

/// Writes the frames of a payload, as parts of an array; what can't be read is one of unknown type. The delay
/// of an acknowledgement is in units of 2^`ack_delay_exponent` µs.
pub(super) fn render_frames(payload: &[u8], ack_delay_exponent: u8, into: &mut String) {
    let mut rest = payload;
    while !rest.is_empty() {
        let kind = rest.first().copied().unwrap_or(0);
        match take_frame(&mut rest) {
            Some(frame) => render_frame(&frame, ack_delay_exponent, into),
            None => {
                add(into, "unknown", &[("raw_frame_type", kind.into())]);
                rest = &[];
            }
        }
        if !rest.is_empty() {
            into.push(',');
        }
    }
}

/// Writing to text can't fail.
macro_rules! say {
    ($into:expr, $($text:tt)*) => { let _written = write!($into, $($text)*); };
}

fn add(into: &mut String, name: &str, fields: &[(&str, u64)]) {
    say!(into, "{{\"frame_type\":\"{name}\"");
    for (field, value) in fields {
        say!(into, ",\"{field}\":{value}");
    }
    into.push('}');
}

fn render_frame(frame: &Frame<'_>, ack_delay_exponent: u8, into: &mut String) {
    match *frame {
        Frame::Padding(bytes) => add(into, "padding", &[("payload_length", bytes as u64)]),
        Frame::Numbers(kind, numbers) => render_numbers(kind, numbers, into),
        Frame::Ack(ack) => render_ack(&ack, ack_delay_exponent, into),
        Frame::Crypto { offset, data } => {
            add(into, "crypto", &[("offset", offset), ("length", data.len() as u64)]);
        }
        Frame::NewToken(token) => add(into, "new_token", &[("length", token.len() as u64)]),
        Frame::Stream { id, offset, bytes, is_last } => {
            say!(
                into,
                "{{\"frame_type\":\"stream\",\"stream_id\":{id},\"offset\":{offset},\
                 \"length\":{bytes},\"fin\":{is_last}}}"
            );
        }
        Frame::NewConnectionId { sequence, retire_prior_to, id, .. } => {
            let fields = [
                ("sequence_number", sequence),
                ("retire_prior_to", retire_prior_to),
                ("length", id.len() as u64),
            ];
            add(into, "new_connection_id", &fields);
        }
        Frame::PathChallenge => add(into, "path_challenge", &[]),
        Frame::PathResponse => add(into, "path_response", &[]),
        Frame::Close(close) => render_close(&close, into),
        Frame::Datagram(bytes) => add(into, "datagram", &[("length", bytes)]),
    }
}

fn render_numbers(kind: u64, numbers: [u64; 4], into: &mut String) {
    if let Some((_, name, fields)) = NUMBERS.iter().find(|(one, ..)| *one == kind) {
        let said: Vec<_> = fields.iter().copied().zip(numbers).collect();
        add(into, name, &said);
    } else if let Some((first, name, field)) = LIMITS.iter().find(|(one, ..)| one | 1 == kind | 1) {
        let way = if kind == *first { "bidirectional" } else { "unidirectional" };
        let [value, ..] = numbers;
        say!(into, "{{\"frame_type\":\"{name}\",\"stream_type\":\"{way}\",\"{field}\":{value}}}");
    }
}

fn render_ack(ack: &Ack<'_>, ack_delay_exponent: u8, into: &mut String) {
    let delay_ms = ack.delay as f64 * 2_f64.powi(ack_delay_exponent.into()) / 1e3;
    say!(into, "{{\"frame_type\":\"ack\",\"ack_delay\":{delay_ms:.3},\"acked_ranges\":[");
    for (place, (smallest, largest)) in ack.ranges().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        say!(into, "{comma}[{smallest},{largest}]");
    }
    into.push(']');
    for (name, count) in ["ect0", "ect1", "ce"].into_iter().zip(ack.marks.iter().flatten()) {
        say!(into, ",\"{name}\":{count}");
    }
    into.push('}');
}

fn render_close(close: &Close<'_>, into: &mut String) {
    let reason = serde_json::Value::from(String::from_utf8_lossy(close.reason));
    let space = if close.frame.is_none() { "application" } else { "transport" };
    let code = close.code;
    say!(
        into,
        "{{\"frame_type\":\"connection_close\",\"error_space\":\"{space}\",\"error_code\":{code},\
         \"reason\":{reason}}}"
    );
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(payload: &[u8]) -> Value {
        let mut text = "[".to_owned();
        render_frames(payload, 3, &mut text);
        text.push(']');
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn frames_are_named_and_counted() {
        let ack = [0x03, 0x0a, 0x02, 0x01, 0x03, 0x00, 0x01, 0x05, 0x06, 0x07];
        let stream = [0x0f, 0x04, 0x40, 0x64, 0x03, 1, 2, 3];
        let close = b"\x1d\x05\x04\"why";
        let padding = [0; 3];
        let payload = [&ack[..], &stream, &[0x12, 0x08], close, &padding].concat();
        assert_eq!(
            read(&payload),
            json!([
                {"frame_type": "ack", "ack_delay": 0.016, "acked_ranges": [[7, 10], [4, 5]],
                 "ect0": 5, "ect1": 6, "ce": 7},
                {"frame_type": "stream", "stream_id": 4, "offset": 100, "length": 3, "fin": true},
                {"frame_type": "max_streams", "stream_type": "bidirectional", "maximum": 8},
                {"frame_type": "connection_close", "error_space": "application", "error_code": 5,
                 "reason": "\"why"},
                {"frame_type": "padding", "payload_length": 3},
            ])
        );
        assert_eq!(read(&[0x01, 0x21, 9])[1]["frame_type"], "unknown");
        assert_eq!(read(&[]), json!([]));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_an_array(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100)
        ) {
            proptest::prop_assert!(read(&bytes).is_array());
        }
    }
}
