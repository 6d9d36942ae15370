//! ctsTraffic's datagrams. Each function takes any bytes and panics only when the
//! machine or decoder is wrong.

use linerate_wire::ctstraffic::data::Reference;
use linerate_wire::ctstraffic::media::datagram::{
    Datagram, HEADER_BYTES, START, check_start, encode_id,
};
use linerate_wire::ctstraffic::media::receiver::{ReceiverSettings, StreamReceiver};
use linerate_wire::ctstraffic::media::sender::{Outgoing, StreamSender};
use linerate_wire::ctstraffic::media::shape::{StreamShape, TrainLimits};

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

/// The numbers of a stream, what one call sends, and a datagram to a server: a frame's datagrams add up to its bytes,
/// each with a header and a byte at least, in trains of one length.
pub fn ctstraffic_frames(data: &[u8]) {
    let Some((numbers, start)) = data.split_first_chunk::<16>() else { return };
    assert_eq!(check_start(start).is_ok(), start == START);
    let [bits, rate, lengths, limits] = [0, 4, 8, 12].map(|at| {
        let four = numbers.get(at..at + 4).and_then(<[u8]>::first_chunk);
        four.map_or(0, |four| u32::from_le_bytes(*four))
    });
    let (length_s, datagram_bytes) = (lengths & 0xffff, lengths >> 16);
    let Ok(shape) = StreamShape::derive(bits.into(), rate, length_s, datagram_bytes) else {
        return;
    };
    assert!(
        shape.frames > 0 && shape.total_bytes() <= u64::from(bits) / 8 * u64::from(length_s.max(1))
    );
    let limits = TrainLimits { most_datagrams: limits & 0xff, most_bytes: limits >> 8 };
    let mut sender = StreamSender::new(shape, 0);
    assert_eq!(sender.poll_send(0, limits), Some(Outgoing::Id));
    // As many frames as a target has time for.
    let (mut frames, mut left, mut sends) = (0, 0, 0);
    while let Some(due_ns) = sender.next_time().filter(|_| sends < 5000) {
        let Some(Outgoing::Data { sequence, train, .. }) = sender.poll_send(due_ns, limits) else {
            unreachable!("what is due is sent")
        };
        if left == 0 {
            (frames, left) = (frames + 1, shape.frame_bytes);
        }
        assert_eq!(sequence, frames);
        let mut rest = Some(train);
        while let Some(train) = rest {
            let bytes = train.datagram_bytes.min(train.bytes);
            assert!(bytes as usize > HEADER_BYTES && bytes <= datagram_bytes.max(53));
            left -= bytes;
            rest = train.after_first();
        }
        assert!(train.bytes <= limits.most_bytes.max(train.datagram_bytes));
        sends += 1;
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
