//! A test that is held open while others attack its setup or its flow.

use std::time::{Duration, Instant};

use linerate_wire::native::frame::encode_frame;
use serde_json::{Value, json};

use crate::address::Address;
use crate::conversation::{Conversation, workload};

/// A server ends a test that hasn't begun 60 s after it was admitted: well before that it is
/// replaced.
const LONGEST_BEGINNING: Duration = Duration::from_secs(40);

/// A test whose owner pings for as long as it is admitted.
pub(crate) struct HeldTest {
    conversation: Conversation,
    pub(crate) token: [u8; 16],
    pub(crate) owner: Address,
    port: u16,
    kind: &'static str,
    transport: &'static str,
    /// Whether its only flow runs; otherwise its flows, 3, are still to come.
    runs: bool,
    admitted: Instant,
}

impl HeldTest {
    /// A test of requests (`rr` or `connect`) over UDP or TCP that isn't begun.
    pub(crate) fn beginning(port: u16, kind: &'static str, transport: &'static str) -> Self {
        Self::admitted(port, kind, transport, false)
    }

    /// A test over UDP whose flow runs.
    pub(crate) fn running(port: u16) -> Self {
        let mut test = Self::admitted(port, "rr", "udp", true);
        test.owner.prove(0, test.token);
        test.conversation.await_kind("ready");
        test.conversation.say(&json!({ "kind": "start" }));
        test.conversation.await_kind("started");
        test
    }

    fn admitted(port: u16, kind: &'static str, transport: &'static str, runs: bool) -> Self {
        let mut conversation = Conversation::connect(port);
        conversation.greet();
        let mut words = json!({
            "name": kind, "request_bytes": 64, "response_bytes": 64, "timeout_ns": 1_000_000_000,
        });
        if kind == "connect" {
            words["close"] = json!("fin");
        }
        let token = conversation.ask(&workload(&words, transport, if runs { 1 } else { 3 }));
        let (owner, admitted) = (Address::new(port), Instant::now());
        Self { conversation, token, owner, port, kind, transport, runs, admitted }
    }

    /// Whether it isn't over, by its time or by a mutant, nor will be soon.
    pub(crate) fn stands(&mut self) -> bool {
        let ping = frame(&json!({ "kind": "ping", "sent_ns": 1 }));
        self.is_young() && self.conversation.say_bytes(&ping).is_ok() && {
            let mut answers = std::iter::from_fn(|| self.conversation.hear_or_end());
            answers.any(|answer| answer["kind"] == "pong")
        }
    }

    pub(crate) fn is_young(&self) -> bool {
        self.runs || self.admitted.elapsed() < LONGEST_BEGINNING
    }

    /// One that doesn't stand is replaced.
    pub(crate) fn keep(&mut self) {
        if !self.stands() {
            *self = match self.runs {
                true => Self::running(self.port),
                false => Self::beginning(self.port, self.kind, self.transport),
            };
        }
    }
}

pub(crate) fn frame(message: &Value) -> Vec<u8> {
    encode_frame(message.to_string().as_bytes(), usize::MAX).unwrap()
}
