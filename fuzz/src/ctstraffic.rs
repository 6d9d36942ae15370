//! ctsTraffic's connections and datagrams. Each function takes any bytes and panics only when the
//! machine or decoder is wrong.

use linerate_wire::ctstraffic::connection::{Connection, Outgoing, Receivable};
use linerate_wire::ctstraffic::data::Reference;
use linerate_wire::ctstraffic::media::datagram::{Datagram, HEADER_BYTES, encode_id};
use linerate_wire::ctstraffic::media::receiver::{ReceiverSettings, StreamReceiver};
use linerate_wire::ctstraffic::media::shape::StreamShape;
use linerate_wire::ctstraffic::pace::PaceSettings;
use linerate_wire::ctstraffic::transfer::{Pattern, Shutdown, TransferPlan};
use linerate_wire::ctstraffic::{ConnectionId, Role, Span};

/// The most bytes of a fuzzed connection's data.
const DATA_MOST_BYTES: u64 = 256;

/// One end of a connection. The first two bytes pick end, pattern, size and pieces; the rest is what
/// the other end sends.
pub fn ctstraffic_connection(data: &[u8]) {
    let [choice, size, rest @ ..] = data else { return };
    let patterns = [Pattern::Push, Pattern::Pull, Pattern::PushPull, Pattern::Duplex];
    let plan = TransferPlan {
        role: Role::Client,
        pattern: patterns[usize::from(choice & 3)],
        total_bytes: u64::from(*size).min(DATA_MOST_BYTES),
        push_bytes: 7,
        pull_bytes: 5,
        buffer_bytes: Span { low: 3, high: 64 },
        outstanding_sends: u32::from(choice >> 6),
        pace: PaceSettings::None,
        shutdown: if choice & 4 == 0 { Shutdown::Graceful } else { Shutdown::Rude },
    };
    let is_server = choice & 8 != 0;
    let pieces = usize::from(choice >> 4) + 1;
    let whole = run(plan, is_server, rest, usize::MAX);
    let split = run(plan, is_server, rest, pieces);
    assert_eq!(whole, split, "the pieces in which bytes come change nothing");
}

/// One end after the other has sent these bytes and closed: whether it is over, the name
/// of its fault, and the bytes that it moved.
fn run(
    plan: TransferPlan,
    is_server: bool,
    mut arriving: &[u8],
    piece_bytes: usize,
) -> (bool, Option<&'static str>, u64, u64) {
    let reference = Reference::new(64);
    let mut end = match is_server {
        true => Connection::server(plan, ConnectionId::of_random([3; 16]), 0),
        false => Connection::client(plan, 0),
    };
    for word in 0.. {
        let mut moved = false;
        while let Some(outgoing) = end.poll_send(word, word) {
            let bytes = match outgoing {
                Outgoing::Id(id) => id.len() as u64,
                Outgoing::Done(done) => done.len() as u64,
                Outgoing::Data { bytes, .. } => bytes,
            };
            assert!(bytes > 0);
            end.handle_sent(word, bytes);
            moved = true;
        }
        let most = match end.receivable(word) {
            None => 0,
            Some(Receivable::Control(bytes) | Receivable::End(bytes)) => bytes,
            Some(Receivable::Data { bytes, .. }) => bytes as usize,
        };
        let count = most.min(piece_bytes).min(arriving.len());
        if count > 0 {
            let (now, later) = arriving.split_at(count);
            arriving = later;
            end.handle_received(word, now, Some(&reference));
            moved = true;
        } else if most > 0 {
            end.handle_end(word);
            moved = true;
        }
        if !moved {
            break;
        }
        assert!(word < 10_000, "an end that never rests");
    }
    assert_eq!(end.fault().is_some() || end.receivable(0).is_none(), end.is_over());
    let moved = end.transferred();
    let all = plan.all_bytes();
    assert!(moved.send_bytes + moved.receive_bytes <= all.max(moved.send_bytes));
    let name = end.fault().map(|fault| fault.protocol_error().unwrap_or_default());
    // How much of wrong data was taken in depends on the pieces.
    let is_wrong = name == Some("ErrorDataDidNotMatchBitPattern");
    let (sent, received) = (moved.send_bytes, moved.receive_bytes);
    (end.is_over(), name, sent, if is_wrong { 0 } else { received })
}

/// Datagrams for a stream's client, each behind its length: what decodes encodes to the same bytes,
/// and every frame is counted once.
pub fn ctstraffic_datagram(data: &[u8]) {
    let Some((choice, mut rest)) = data.split_first() else { return };
    let Ok(shape) = StreamShape::derive(8 * 40 * 8, 8, 2, 64) else { return };
    let is_strict = choice & 1 != 0;
    let settings = ReceiverSettings { shape, buffered_frames: 3, is_strict };
    let mut receiver = StreamReceiver::new(settings, 0);
    let reference = (choice & 2 != 0).then(|| Reference::new(64));
    let mut now_ns = 0;
    let mut frames = 0;
    while let Some((length, later)) = rest.split_first() {
        let (datagram, later) = later.split_at(usize::from(*length & 0x3f).min(later.len()));
        rest = later;
        check_datagram(datagram);
        let stamp = (now_ns as i64, 1_000_000_000);
        receiver.handle_datagram(now_ns, datagram, stamp, reference.as_ref());
        // The upper bits of a length are the time that passes, in tenths of a second.
        now_ns += u64::from(length >> 6) * 100_000_000;
        receiver.poll_start(now_ns);
        while receiver.poll_frame(now_ns).is_some() {
            frames += 1;
        }
    }
    while let Some(time_ns) = receiver.next_time() {
        receiver.poll_start(time_ns);
        frames += u64::from(receiver.poll_frame(time_ns).is_some());
    }
    let counts = receiver.counts();
    let judged = counts.completed + counts.dropped + counts.repeated;
    assert!(receiver.is_over());
    match receiver.fault() {
        None => assert_eq!((judged, frames), (shape.frames, shape.frames)),
        Some(_) => assert!(judged == frames || judged == shape.frames),
    }
}

fn check_datagram(bytes: &[u8]) {
    match Datagram::decode(bytes) {
        Ok(Datagram::Id(id)) => {
            let again = encode_id(&id);
            assert!(bytes.starts_with(&again));
            assert!(id.text().len() <= 36 && !id.text().contains(','));
        }
        Ok(Datagram::Data(header, data)) => {
            let mut again = [0; HEADER_BYTES];
            header.encode(&mut again);
            assert!(bytes.starts_with(&again) && bytes.len() == HEADER_BYTES + data.len());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
