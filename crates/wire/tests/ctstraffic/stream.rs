//! Media streams: times, frames that are completed, dropped or repeated, and bad datagrams.

use linerate_wire::ctstraffic::Fault;
use linerate_wire::ctstraffic::media::datagram::DatagramError;
use linerate_wire::ctstraffic::media::receiver::{
    FrameCounts, ReceiverSettings, Reception, Rendered, StreamReceiver,
};
use linerate_wire::ctstraffic::media::sender::StreamSender;
use linerate_wire::ctstraffic::media::shape::{Split, StreamShape};
use proptest::prelude::*;

use crate::stream_pair::{FREQUENCY, MS, SINGLE, Sent, id, receive, reference, send_all, settings};

/// 125 frames of 10,000 bytes, 40 ms apart.
fn shape() -> StreamShape {
    StreamShape::derive(2_000_000, 25, 5, 1400).unwrap()
}

fn counts(arrivals: Vec<Sent>) -> (FrameCounts, Vec<Rendered>) {
    let mut receiver = StreamReceiver::new(settings(shape(), 1), 0);
    let rendered = receive(&mut receiver, arrivals);
    assert_eq!(receiver.fault(), None);
    (receiver.counts(), rendered)
}

/// Every datagram as `change` lets it arrive: none, one or several times, at some time.
fn changed(change: impl Fn(Sent) -> Vec<Sent>) -> Vec<Sent> {
    send_all(shape(), 0).into_iter().flat_map(change).collect()
}

#[test]
fn frames_leave_one_frame_time_apart() {
    let sent = send_all(shape(), 7 * MS);
    assert_eq!((sent[0].sequence, sent[0].at_ns), (0, 7 * MS));
    assert_eq!(sent.len(), 1 + 125 * 8);
    for datagram in &sent[1..] {
        assert_eq!(datagram.at_ns, (7 + 40 * datagram.sequence as u64) * MS);
    }
    // 7 frames a second: no time is rounded to milliseconds, so none adds up.
    let odd = StreamShape::derive(8_000_000, 7, 3, 1400).unwrap();
    let last = send_all(odd, 0).pop().unwrap();
    assert_eq!((last.sequence, last.at_ns), (21, 3_000 * MS));
}

#[test]
fn late_frames_are_sent_at_once_and_none_is_left_out() {
    let mut sender = StreamSender::new(shape(), 0);
    let mut datagrams = 0;
    while sender.poll_send(1000 * MS, SINGLE).is_some() {
        datagrams += 1;
    }
    assert_eq!(datagrams, 1 + 25 * 8);
    assert_eq!(sender.next_time(), Some(26 * 40 * MS));
}

#[test]
fn an_undisturbed_stream_is_completed() {
    let (counts, rendered) = counts(send_all(shape(), 3 * MS));
    let expected = FrameCounts { completed: 125, bits: 10_000_000, ..FrameCounts::default() };
    assert_eq!(counts, expected);
    let rows: Vec<_> = rendered.iter().filter_map(Rendered::row).collect();
    assert_eq!(rows.len(), 125);
    assert!(rows.iter().all(|row| row.relative_ms == 0.0 && row.change_ms == 0.0));
    let mut receiver = StreamReceiver::new(settings(shape(), 1), 0);
    receive(&mut receiver, send_all(shape(), 2 * MS));
    assert_eq!(receiver.elapsed_ns(u64::MAX), 5002 * MS, "the last frame stops the clock");
    assert_eq!(receiver.id(), Some(id()));
}

#[test]
fn an_impaired_path_counts_as_the_original_counts_it() {
    // Frame 10 lost, a datagram of 20 lost, one of 30 doubled, 40 doubled, 60 three seconds late.
    let arrivals = changed(|sent| match (sent.sequence, sent.part) {
        (10, _) | (20, 3) => vec![],
        (30, 2) | (40, _) => vec![sent.clone(), sent],
        (60, _) => vec![Sent { at_ns: sent.at_ns + 3000 * MS, ..sent }],
        _ => vec![sent],
    });
    let (counts, rendered) = counts(arrivals);
    let FrameCounts { completed, dropped, repeated, errors, .. } = counts;
    assert_eq!((completed, dropped, repeated, errors), (120, 3, 2, 8));
    assert_eq!(rendered[29], Rendered::Repeated);
    let row = rendered[9].row().unwrap();
    assert_eq!((row.sequence, row.stamps.receiver_counter, row.relative_ms), (10, 0, 0.0));
}

#[test]
fn reordering_within_the_window_is_harmless() {
    let arrivals = changed(|sent| {
        let later = if sent.part % 2 == 0 { 300 * MS } else { 0 };
        vec![Sent { at_ns: sent.at_ns + later, ..sent }]
    });
    assert_eq!(counts(arrivals).0.completed, 125);
}

#[test]
fn a_copy_that_makes_up_for_a_loss_counts_as_completed() {
    let arrivals = changed(|sent| match (sent.sequence, sent.part) {
        (50, 1) => vec![],
        (50, 2) => vec![sent.clone(), sent],
        _ => vec![sent],
    });
    assert_eq!(counts(arrivals).0.completed, 125, "the wire has no number of a datagram");
}

#[test]
fn start_is_repeated_until_something_comes() {
    let mut receiver = StreamReceiver::new(settings(shape(), 3), 0);
    assert!(receiver.poll_start(0) && !receiver.poll_start(539 * MS));
    assert_eq!(receiver.next_time(), Some(540 * MS));
    assert!(receiver.poll_start(540 * MS));
    let sent = send_all(shape(), 600 * MS);
    receiver.handle_datagram(600 * MS, &sent[0].bytes, (0, FREQUENCY), None);
    assert!(!receiver.poll_start(1200 * MS));
    assert_eq!(receiver.next_time(), Some(3000 * MS));
}

#[test]
fn a_stream_that_never_comes_fails_with_all_frames_dropped() {
    let mut receiver = StreamReceiver::new(settings(shape(), 1), 0);
    assert_eq!(receive(&mut receiver, Vec::new()), []);
    assert_eq!(receiver.fault(), Some(Fault::NotAllDataTransferred));
    assert_eq!(receiver.counts().dropped, 125);
    assert!(!receiver.poll_start(u64::MAX) && receiver.poll_frame(u64::MAX).is_none());
}

#[test]
fn without_its_id_a_stream_is_completed() {
    let arrivals = changed(|sent| if sent.sequence == 0 { vec![] } else { vec![sent] });
    let mut receiver = StreamReceiver::new(settings(shape(), 1), 0);
    receive(&mut receiver, arrivals);
    assert_eq!((receiver.id(), receiver.counts().completed), (None, 125));
}

/// A bad datagram of each kind.
fn bad_datagrams() -> Vec<Vec<u8>> {
    let good = send_all(shape(), 0)[1].bytes.clone();
    let mut corrupt = good.clone();
    corrupt[900] ^= 0x20;
    let unknown = [&[0, 0x20][..], &good[2..]].concat();
    vec![Vec::new(), vec![0], good[..20].to_vec(), vec![0, 0x10, 1], unknown, corrupt]
}

#[test]
fn bad_datagrams_count_as_errors_and_fail_a_strict_stream() {
    let reference = reference();
    for bad in bad_datagrams() {
        let mut arrivals = send_all(shape(), 0);
        arrivals.insert(5, Sent { bytes: bad.clone(), ..arrivals[4].clone() });
        let counts = ended_stream(arrivals).counts();
        assert_eq!((counts.completed, counts.errors), (125, 1));
        assert_eq!(counts.bits, 10_000_000, "bad datagrams are no bits of the stream");
        let strict = ReceiverSettings { is_strict: true, ..settings(shape(), 1) };
        let mut receiver = StreamReceiver::new(strict, 0);
        let reception = receiver.handle_datagram(5, &bad, (0, FREQUENCY), Some(reference));
        let is_wrong = bad.len() > 100 && bad[1] == 0;
        match receiver.fault() {
            Some(Fault::DataDidNotMatchBitPattern(wrong)) => {
                assert!(is_wrong && wrong.offset == 900 - 26);
                assert_eq!(reception, Reception::Wrong(wrong));
            }
            fault => {
                assert!(!is_wrong && fault == Some(Fault::NotAllDataTransferred));
                assert!(matches!(reception, Reception::Malformed(_)));
            }
        }
        assert_eq!(receiver.counts().errors, 0, "the original counts none of them");
        let after = receiver.handle_datagram(9, &bad, (0, FREQUENCY), None);
        assert_eq!(after, Reception::Ignored);
    }
    let empty = DatagramError::TooShort { length: 0, least: 2 };
    let mut receiver = StreamReceiver::new(settings(shape(), 1), 0);
    let reception = receiver.handle_datagram(0, &[], (0, FREQUENCY), None);
    assert_eq!(reception, Reception::Malformed(empty));
}

/// A stream that has received these datagrams, and has come to its end.
fn ended_stream(arrivals: Vec<Sent>) -> StreamReceiver {
    let mut receiver = StreamReceiver::new(settings(shape(), 1), 0);
    for sent in arrivals {
        while receiver.poll_frame(sent.at_ns).is_some() {}
        receiver.handle_datagram(sent.at_ns, &sent.bytes, (0, FREQUENCY), Some(reference()));
    }
    while let Some(time_ns) = receiver.next_time() {
        receiver.poll_start(time_ns);
        receiver.poll_frame(time_ns);
    }
    receiver
}

#[test]
fn a_stream_goes_on_after_a_bad_datagram_and_fails_at_its_end() {
    for bad in bad_datagrams() {
        let is_wrong = bad.len() > 100 && bad[1] == 0;
        let mut arrivals = send_all(shape(), 0);
        arrivals.insert(5, Sent { bytes: bad, ..arrivals[4].clone() });
        let receiver = ended_stream(arrivals);
        assert_eq!((receiver.counts().completed, receiver.counts().errors), (125, 1));
        let fault = receiver.fault();
        assert_eq!(matches!(fault, Some(Fault::DataDidNotMatchBitPattern(_))), is_wrong);
        assert_eq!(fault == Some(Fault::NotAllDataTransferred), !is_wrong, "{fault:?}");
    }
    assert_eq!(ended_stream(send_all(shape(), 0)).fault(), None);
}

#[test]
fn a_stream_fails_whose_id_came_and_none_of_its_frames() {
    let id = send_all(shape(), 0).remove(0);
    let receiver = ended_stream(vec![id]);
    assert_eq!(receiver.fault(), Some(Fault::NotAllDataTransferred));
    assert_eq!((receiver.counts().completed, receiver.counts().dropped), (0, 125));
}

#[test]
fn datagrams_that_are_too_long_fail_the_stream() {
    let mut receiver = StreamReceiver::new(settings(shape(), 1), 0);
    assert_eq!(receiver.datagram_most_bytes(), 1400);
    receiver.handle_truncated(5);
    assert_eq!(receiver.fault(), Some(Fault::Network(90)));
    assert!(receiver.is_over() && receiver.next_time().is_none());
}

#[test]
fn frames_outside_the_window_are_errors() {
    let reception = |sequence: i64| {
        let mut receiver = StreamReceiver::new(settings(shape(), 1), 0);
        let mut datagram = send_all(shape(), 0)[1].bytes.clone();
        datagram[2..10].copy_from_slice(&sequence.to_le_bytes());
        let reception = receiver.handle_datagram(5, &datagram, (0, FREQUENCY), None);
        assert_eq!(receiver.counts().bits, 1400 * 8, "the bits count");
        (reception, receiver.counts().errors)
    };
    // The window is twice the 25 frames that are held back.
    for inside in [1, 25, 50] {
        assert_eq!(reception(inside), (Reception::Counted, 0));
    }
    for outside in [0, -1, 51, 125, 126, i64::MAX, i64::MIN] {
        assert_eq!(reception(outside), (Reception::OutsideWindow, 1));
    }
}

proptest! {
    #[test]
    fn datagrams_of_a_frame_add_up(frame_bytes in 40_u32..200_000, most in 53_u32..3000) {
        let sizes: Vec<u32> = Split::new(frame_bytes, most).collect();
        prop_assert_eq!(sizes.iter().sum::<u32>(), frame_bytes);
        prop_assert!(sizes.iter().all(|size| (27..=most).contains(size)), "{:?}", sizes);
        prop_assert_eq!(sizes.len() as u32, frame_bytes.div_ceil(most));
    }

    #[test]
    fn every_frame_is_counted_once(fates in prop::collection::vec(0_u8..6, 125 * 8)) {
        let mut fates = fates.into_iter();
        let arrivals = send_all(shape(), 0).into_iter().flat_map(|sent| {
            match if sent.sequence == 0 { 9 } else { fates.next().unwrap() } {
                0 => vec![],
                1 => vec![sent.clone(), sent],
                2 => vec![Sent { at_ns: sent.at_ns + 1500 * MS, ..sent }],
                _ => vec![sent],
            }
        });
        let (counts, rendered) = counts(arrivals.collect());
        prop_assert_eq!(counts.completed + counts.dropped + counts.repeated, 125);
        prop_assert_eq!(rendered.len(), 125);
    }
}
