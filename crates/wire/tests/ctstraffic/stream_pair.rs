//! A media stream from its sender to its receiver over a path that the test decides, under a virtual clock.

use std::sync::LazyLock;

use linerate_wire::ctstraffic::ConnectionId;
use linerate_wire::ctstraffic::data::Reference;
use linerate_wire::ctstraffic::media::datagram::{DataHeader, HEADER_BYTES, encode_id};
use linerate_wire::ctstraffic::media::receiver::{ReceiverSettings, Rendered, StreamReceiver};
use linerate_wire::ctstraffic::media::sender::{Outgoing, StreamSender};
use linerate_wire::ctstraffic::media::shape::{StreamShape, TrainLimits};

/// Data that all tests share: it takes a while to lay out.
pub(crate) fn reference() -> &'static Reference {
    static REFERENCE: LazyLock<Reference> = LazyLock::new(|| Reference::new(1 << 14));
    &REFERENCE
}

pub(crate) const MS: u64 = 1_000_000;
/// Ticks per second of both ends' counters.
pub(crate) const FREQUENCY: i64 = 10_000_000;

/// Datagrams are sent one by one.
pub(crate) const SINGLE: TrainLimits = TrainLimits { most_datagrams: 1, most_bytes: u32::MAX };

pub(crate) fn id() -> ConnectionId {
    ConnectionId::of_random([9; 16])
}

pub(crate) fn settings(shape: StreamShape, depth_s: u32) -> ReceiverSettings {
    let buffered_frames = shape.buffered_frames(depth_s).unwrap();
    ReceiverSettings { shape, buffered_frames, is_strict: false }
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at_ns: u64,
    /// 0 for the id.
    pub(crate) sequence: i64,
    /// Its place in its frame, from 0.
    pub(crate) part: usize,
    pub(crate) bytes: Vec<u8>,
}

/// All datagrams of a stream that begins at this time.
pub(crate) fn send_all(shape: StreamShape, begun_ns: u64) -> Vec<Sent> {
    let reference = reference();
    let mut sender = StreamSender::new(shape, begun_ns);
    let mut now_ns = begun_ns;
    let mut sent: Vec<Sent> = Vec::new();
    while let Some(due_ns) = sender.next_time() {
        now_ns = now_ns.max(due_ns);
        let (sequence, bytes) = match sender.poll_send(now_ns, SINGLE).unwrap() {
            Outgoing::Id => (0, encode_id(&id()).to_vec()),
            Outgoing::Data { sequence, train, due_ns } => {
                assert_eq!(due_ns, now_ns);
                let mut datagram = vec![0; HEADER_BYTES];
                let sender_counter = now_ns as i64 / 100;
                let header = DataHeader { sequence, sender_counter, sender_frequency: FREQUENCY };
                header.encode(&mut datagram);
                datagram.extend(reference.part(0, train.bytes as usize - HEADER_BYTES));
                (sequence, datagram)
            }
        };
        let part =
            sent.last().filter(|last| last.sequence == sequence).map_or(0, |last| last.part + 1);
        sent.push(Sent { at_ns: now_ns, sequence, part, bytes });
    }
    sent
}

/// Runs a receiver from time 0 on what arrives, in the order of its times; what came of the frames.
pub(crate) fn receive(receiver: &mut StreamReceiver, mut arrivals: Vec<Sent>) -> Vec<Rendered> {
    let reference = reference();
    arrivals.sort_by_key(|sent| sent.at_ns);
    let mut arrivals = arrivals.into_iter().peekable();
    let mut rendered = Vec::new();
    while let Some(time_ns) = receiver.next_time() {
        if let Some(sent) = arrivals.next_if(|sent| sent.at_ns < time_ns) {
            let stamp = (sent.at_ns as i64 / 100, FREQUENCY);
            receiver.handle_datagram(sent.at_ns, &sent.bytes, stamp, Some(reference));
            continue;
        }
        receiver.poll_start(time_ns);
        rendered.extend(receiver.poll_frame(time_ns));
    }
    rendered
}
