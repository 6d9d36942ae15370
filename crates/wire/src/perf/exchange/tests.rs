use super::*;

const BLOCK_BYTES: u32 = 1000;

fn shape(upload: u64, download: u64, timed: bool) -> Shape {
    Shape { upload, download, timed, block_bytes: BLOCK_BYTES }
}

/// Sends all there is, at most `most_bytes` at a time, all at one time; how many bytes, and how often
/// the end was said.
fn send_all(exchange: &mut Exchange, most_bytes: usize, now_us: u64) -> (u64, u32) {
    let (mut bytes, mut ends) = (0, 0);
    while let Some(piece) = exchange.poll_send(now_us) {
        assert_eq!(piece.opens, bytes == 0);
        assert_eq!(piece.offset as u64, bytes % u64::from(BLOCK_BYTES));
        assert!(piece.offset + piece.length <= BLOCK_BYTES as usize);
        let taken = piece.length.min(most_bytes);
        exchange.record_sent(&piece, taken);
        bytes += taken as u64;
        ends += u32::from(piece.finishes && taken == piece.length);
    }
    (bytes, ends)
}

#[test]
fn an_upload_has_its_length_however_it_is_taken() {
    for upload in [1, 4, 8, 999, 1000, 1001, 2000, 12_345] {
        for most_bytes in [1, 7, 999, 1000, 5000] {
            let mut exchange = Exchange::new(shape(upload, 0, false), 0);
            assert_eq!(
                send_all(&mut exchange, most_bytes, 5),
                (upload, 1),
                "{most_bytes} at a time"
            );
        }
    }
    let mut exchange = Exchange::new(shape(0, 77, false), 0);
    assert_eq!(send_all(&mut exchange, 3, 5), (8, 1), "a request without length is its header");
}

#[test]
fn a_completed_exchange_has_its_figures() {
    let mut exchange = Exchange::new(shape(1500, 300, false), 1_000_000);
    send_all(&mut exchange, 1000, 1_000_001);
    exchange.handle_delivered(1000, 1_000_100);
    assert!(!exchange.handle_received(100, false, 1_000_150));
    exchange.handle_delivered(500, 1_000_200);
    assert!(!exchange.is_over());
    assert!(!exchange.handle_received(200, true, 1_000_500));
    assert!(exchange.is_over());
    let outcome = exchange.outcome();
    assert_eq!(outcome.upload, Some(Transfer { bytes: 1500, elapsed_us: 500 }));
    assert_eq!(outcome.download, Some(Transfer { bytes: 300, elapsed_us: 500 }));
    assert_eq!(outcome.latency_us, Some(500));
    assert_eq!(outcome.upload.map(|upload| upload.rate_kbps()), Some(24_000));
}

#[test]
fn a_timed_upload_ends_with_the_block_after_its_time() {
    let mut exchange = Exchange::new(shape(1_000_000, 0, true), 0);
    assert_eq!(exchange.shape.header(), UNLIMITED);
    for now_us in [0, 500_000, 999_999] {
        let piece = exchange.poll_send(now_us).unwrap();
        assert!(!piece.finishes);
        exchange.record_sent(&piece, piece.length);
    }
    let piece = exchange.poll_send(1_000_000).unwrap();
    assert!(piece.finishes);
    exchange.record_sent(&piece, 10);
    let rest = exchange.poll_send(1_000_001).unwrap();
    assert_eq!((rest.offset, rest.length, rest.finishes), (10, 990, true));
    exchange.record_sent(&rest, 990);
    assert_eq!(exchange.poll_send(1_000_002), None);
    exchange.handle_delivered(4000, 1_100_000);
    assert!(exchange.handle_received(20, false, 1_200_000), "its answer is stopped at once");
    let elapsed_us = 1_200_000;
    assert_eq!(exchange.outcome().upload, Some(Transfer { bytes: 4000, elapsed_us }));
    assert_eq!(exchange.outcome().download, None);
}

#[test]
fn a_timed_download_runs_from_its_first_byte() {
    let mut exchange = Exchange::new(shape(0, 1000, true), 0);
    assert_eq!(send_all(&mut exchange, 9999, 0), (1000, 1));
    exchange.handle_delivered(1000, 10);
    assert!(!exchange.handle_received(5000, false, 70_000));
    assert!(!exchange.handle_received(5000, false, 70_999));
    assert!(exchange.handle_received(5000, false, 71_000));
    assert!(!exchange.handle_received(5000, false, 72_000), "what comes later doesn't count");
    let download = Some(Transfer { bytes: 15_000, elapsed_us: 71_000 });
    assert_eq!(exchange.outcome().download, download);
    assert_eq!(exchange.outcome().upload, None);
}

#[test]
fn exchange_cut_short_is_no_success() {
    let mut short_answer = Exchange::new(shape(0, 100, false), 0);
    send_all(&mut short_answer, 9999, 0);
    short_answer.handle_delivered(8, 1);
    short_answer.handle_received(99, true, 2);
    assert_eq!(short_answer.outcome(), Outcome::default());

    let mut truncated_header = Exchange::new(shape(4, 0, false), 0);
    send_all(&mut truncated_header, 9999, 0);
    truncated_header.handle_delivered(4, 1);
    truncated_header.handle_receive_aborted(2);
    assert!(truncated_header.is_over());
    assert_eq!(truncated_header.outcome(), Outcome::default());

    let mut stopped = Exchange::new(shape(100, 0, false), 0);
    stopped.handle_send_aborted(1);
    assert_eq!(stopped.poll_send(2), None);
    stopped.handle_received(0, true, 3);
    assert_eq!(stopped.outcome(), Outcome::default());
}

#[test]
fn an_upload_that_is_cut_off_lasted_until_its_last_delivery() {
    for vanished in [false, true] {
        let mut exchange = Exchange::new(shape(9_000_000, 0, true), 1_000_000);
        for now_us in [1_000_000, 2_000_000, 3_000_000] {
            let piece = exchange.poll_send(now_us).unwrap();
            exchange.record_sent(&piece, piece.length);
        }
        exchange.record_delivered(1_000, 2_100_000);
        exchange.record_delivered(2_000, 3_000_000);
        exchange.record_delivered(2_000, 3_900_000);
        if vanished {
            exchange.handle_vanished()
        } else {
            exchange.handle_cut(4_000_000)
        }
        let upload = Some(Transfer { bytes: 2_000, elapsed_us: 2_000_000 });
        assert_eq!(exchange.outcome().upload, upload, "vanished {vanished}");
    }
}

#[test]
fn what_is_still_on_its_way_when_an_upload_is_cut_off_does_not_count() {
    let mut exchange = Exchange::new(shape(9_000_000, 0, true), 0);
    for now_us in [0, 1_000_000, 2_000_000] {
        let piece = exchange.poll_send(now_us).unwrap();
        exchange.record_sent(&piece, piece.length);
        exchange.record_delivered(u64::MAX, now_us);
    }
    assert_eq!(exchange.take_back_delivered(1_200, Some(2_500_000)), 1_200);
    exchange.handle_cut(2_500_000);
    let upload = Some(Transfer { bytes: 1_800, elapsed_us: 2_500_000 });
    assert_eq!(exchange.outcome().upload, upload);
    assert_eq!(exchange.take_back_delivered(1_200, None), 0, "it is over");
    let mut unheard = Exchange::new(shape(9_000_000, 0, true), 0);
    let piece = unheard.poll_send(0).unwrap();
    unheard.record_sent(&piece, piece.length);
    unheard.handle_delivered(700, 5);
    assert_eq!(unheard.take_back_delivered(9_000, None), 700);
    unheard.handle_cut(2_500_000);
    assert_eq!(unheard.outcome(), Outcome::default());
}

#[test]
fn an_upload_of_which_nothing_was_delivered_has_no_rate() {
    for vanished in [false, true] {
        let mut exchange = Exchange::new(shape(9_000_000, 0, true), 1_000_000);
        let piece = exchange.poll_send(1_000_000).unwrap();
        exchange.record_sent(&piece, piece.length);
        if vanished {
            exchange.handle_vanished()
        } else {
            exchange.handle_cut(4_000_000)
        }
        assert_eq!(exchange.outcome(), Outcome::default(), "vanished {vanished}");
    }
}

#[test]
fn a_cut_download_keeps_the_time_of_the_upload_before_it() {
    let mut exchange = Exchange::new(shape(1_000, 1_000_000, true), 0);
    send_all(&mut exchange, 9999, 1_000);
    exchange.record_delivered(2_000, 50_000);
    exchange.handle_received(700, false, 60_000);
    exchange.handle_received(700, false, 70_000);
    exchange.handle_cut(80_000);
    let outcome = exchange.outcome();
    assert_eq!(outcome.upload.map(|upload| upload.elapsed_us), Some(80_000));
    assert_eq!(outcome.download, Some(Transfer { bytes: 1_400, elapsed_us: 80_000 }));
}

#[test]
fn a_rate_is_kept_in_32_bits() {
    assert_eq!(Transfer { bytes: 1_000_000, elapsed_us: 21_541 }.rate_kbps(), 371_384);
    assert_eq!(
        Transfer { bytes: u64::MAX, elapsed_us: 0 }.rate_kbps(),
        (u128::from(u64::MAX) * 8000) as u32
    );
}

#[test]
fn a_run_of_blocks_sends_what_single_blocks_would() {
    for upload in [1, 1000, 1001, 7_999, 8_000, 12_345] {
        let mut exchange = Exchange::new(shape(upload, 0, false), 0);
        let mut bytes = 0;
        while let Some(piece) = exchange.poll_run(5, 4) {
            assert_eq!(piece.offset as u64, bytes % u64::from(BLOCK_BYTES));
            assert!(piece.offset + piece.length <= 4 * BLOCK_BYTES as usize);
            let taken = piece.length.min(1_700);
            exchange.record_sent(&piece, taken);
            bytes += taken as u64;
            assert_eq!(piece.finishes && taken == piece.length, bytes == upload);
        }
        assert_eq!(bytes, upload);
    }
}

#[test]
fn a_timed_run_is_no_longer_than_what_a_millisecond_takes() {
    let run_blocks = |rate_bytes_per_ms: u64| {
        let mut exchange = Exchange::new(shape(u64::MAX, 0, true), 0);
        let mut now_us = 0;
        while exchange.sent_bytes < 4 * SETTLED_BYTES {
            now_us = 1000 * exchange.sent_bytes.div_ceil(rate_bytes_per_ms);
            let piece = exchange.poll_send(now_us).unwrap();
            exchange.record_sent(&piece, piece.length);
        }
        exchange.poll_run(now_us, 8).unwrap().length / BLOCK_BYTES as usize
    };
    assert_eq!([10, 1_500, 3_500, 1_000_000].map(run_blocks), [1, 1, 3, 8]);
    let mut first = Exchange::new(shape(1_000_000, 0, true), 0);
    assert_eq!(first.poll_run(0, 8).unwrap().length, BLOCK_BYTES as usize);
}
