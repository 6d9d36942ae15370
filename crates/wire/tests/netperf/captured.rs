//! What netperf 2.7.1 and its netserver said to each other.

use linerate_wire::netperf::message::Form;

/// The messages of one control connection, in order: whether the client's, and all its bytes.
pub(crate) fn captured(name: &str) -> Vec<(bool, Vec<u8>)> {
    let path = format!("{}/tests/netperf/captured/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut messages: Vec<(bool, Vec<u8>)> = Vec::new();
    for line in text.lines() {
        match line {
            "client" | "server" => messages.push((line == "client", Vec::new())),
            words => {
                let (_, bytes) = messages.last_mut().unwrap();
                for word in words.split_whitespace() {
                    bytes.extend(u32::from_str_radix(word, 16).unwrap().to_be_bytes());
                }
            }
        }
    }
    // Zeros at the end were left out.
    messages.iter_mut().for_each(|(_, bytes)| bytes.resize(Form::Long.message_bytes(), 0));
    messages
}

/// The first request of a control connection.
pub(crate) fn request_of(name: &str) -> Vec<u8> {
    let is_request =
        |(client, bytes): &(bool, Vec<u8>)| *client && !bytes.starts_with(&[0, 0, 0, 6]);
    captured(name).into_iter().find(is_request).unwrap().1
}
