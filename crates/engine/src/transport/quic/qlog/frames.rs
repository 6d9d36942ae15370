//! The frames of a packet (RFC 9000, section 19) as qlog names them.

use std::fmt::Write;

use super::super::hello::take_varint;

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
        &["sequence_number", "ack_eliciting_threshold", "requested_max_ack_delay", "reordering"],
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
        let before = into.len();
        let kind = rest.first().copied().unwrap_or(0);
        if render_frame(&mut rest, ack_delay_exponent, into).is_none() {
            into.truncate(before);
            add(into, "unknown", &[("raw_frame_type", kind.into())]);
            rest = &[];
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

fn render_frame(rest: &mut &[u8], ack_delay_exponent: u8, into: &mut String) -> Option<()> {
    let kind = take_varint(rest)?;
    if let Some((_, name, fields)) = NUMBERS.iter().find(|(one, ..)| *one == kind) {
        let mut said = Vec::with_capacity(fields.len());
        for field in *fields {
            said.push((*field, take_varint(rest)?));
        }
        add(into, name, &said);
        return Some(());
    }
    if let Some((first, name, field)) = LIMITS.iter().find(|(one, ..)| one | 1 == kind | 1) {
        let way = if kind == *first { "bidirectional" } else { "unidirectional" };
        let value = take_varint(rest)?;
        say!(into, "{{\"frame_type\":\"{name}\",\"stream_type\":\"{way}\",\"{field}\":{value}}}");
        return Some(());
    }
    match kind {
        0x00 => {
            let more = rest.iter().take_while(|byte| **byte == 0).count();
            skip(rest, more as u64)?;
            add(into, "padding", &[("payload_length", more as u64 + 1)]);
        }
        0x02 => render_ack(false, rest, ack_delay_exponent, into)?,
        0x03 => render_ack(true, rest, ack_delay_exponent, into)?,
        0x06 => {
            let (offset, length) = (take_varint(rest)?, take_varint(rest)?);
            skip(rest, length)?;
            add(into, "crypto", &[("offset", offset), ("length", length)]);
        }
        0x07 => {
            let length = take_varint(rest)?;
            skip(rest, length)?;
            add(into, "new_token", &[("length", length)]);
        }
        0x08..=0x0f => render_stream(kind, rest, into)?,
        0x18 => {
            let (number, retired) = (take_varint(rest)?, take_varint(rest)?);
            let length = take_varint(rest)?;
            // The id and the token of its reset.
            skip(rest, length.checked_add(16)?)?;
            let fields =
                [("sequence_number", number), ("retire_prior_to", retired), ("length", length)];
            add(into, "new_connection_id", &fields);
        }
        0x1a | 0x1b => {
            skip(rest, 8)?;
            add(into, if kind == 0x1a { "path_challenge" } else { "path_response" }, &[]);
        }
        0x1c | 0x1d => render_close(kind == 0x1d, rest, into)?,
        0x30 | 0x31 => {
            let length = if kind == 0x31 { take_varint(rest)? } else { rest.len() as u64 };
            skip(rest, length)?;
            add(into, "datagram", &[("length", length)]);
        }
        _ => return None,
    }
    Some(())
}

fn skip(rest: &mut &[u8], bytes: u64) -> Option<()> {
    *rest = rest.get(usize::try_from(bytes).ok()?..)?;
    Some(())
}

fn render_stream(kind: u64, rest: &mut &[u8], into: &mut String) -> Option<()> {
    let id = take_varint(rest)?;
    let offset = if kind & 4 != 0 { take_varint(rest)? } else { 0 };
    let length = if kind & 2 != 0 { take_varint(rest)? } else { rest.len() as u64 };
    skip(rest, length)?;
    let fin = kind & 1 != 0;
    say!(
        into,
        "{{\"frame_type\":\"stream\",\"stream_id\":{id},\"offset\":{offset},\"length\":{length},\
         \"fin\":{fin}}}"
    );
    Some(())
}

fn render_ack(
    counts_marks: bool,
    rest: &mut &[u8],
    ack_delay_exponent: u8,
    into: &mut String,
) -> Option<()> {
    let mut largest = take_varint(rest)?;
    let delay_ms = take_varint(rest)? as f64 * 2_f64.powi(ack_delay_exponent.into()) / 1e3;
    let more = take_varint(rest)?;
    say!(into, "{{\"frame_type\":\"ack\",\"ack_delay\":{delay_ms:.3},\"acked_ranges\":[");
    let mut smallest = largest.checked_sub(take_varint(rest)?)?;
    say!(into, "[{smallest},{largest}]");
    for _ in 0..more {
        largest = smallest.checked_sub(take_varint(rest)?.checked_add(2)?)?;
        smallest = largest.checked_sub(take_varint(rest)?)?;
        say!(into, ",[{smallest},{largest}]");
    }
    into.push(']');
    if counts_marks {
        for name in ["ect0", "ect1", "ce"] {
            say!(into, ",\"{name}\":{}", take_varint(rest)?);
        }
    }
    into.push('}');
    Some(())
}

fn render_close(of_application: bool, rest: &mut &[u8], into: &mut String) -> Option<()> {
    let code = take_varint(rest)?;
    if !of_application {
        take_varint(rest)?;
    }
    let length = take_varint(rest)?;
    let reason = rest.get(..usize::try_from(length).ok()?)?;
    let reason = serde_json::Value::from(String::from_utf8_lossy(reason));
    skip(rest, length)?;
    let space = if of_application { "application" } else { "transport" };
    say!(
        into,
        "{{\"frame_type\":\"connection_close\",\"error_space\":\"{space}\",\"error_code\":{code},\
         \"reason\":{reason}}}"
    );
    Some(())
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
