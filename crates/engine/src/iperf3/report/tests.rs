//! What old and new peers' results come to.

use super::*;

/// What 3.12 says, with so many datagrams in all, so many of them lost, and so many bytes counted.
fn of_old(packets: u64, errors: i64, bytes: u64) -> StreamResult {
    StreamResult { id: 1, packets, errors, bytes, ..StreamResult::default() }
}

fn figures(result: &StreamResult, omit_s: u32) -> (u64, Option<i64>) {
    let parameters = Parameters { omit_s, block_bytes: 1000, ..Parameters::default() };
    datagrams(result, 95, &parameters)
}

#[test]
fn datagrams_of_the_omitted_time_do_not_count_whether_a_peer_tells_them_or_not() {
    // Without such a time all that is told counts.
    assert_eq!(figures(&of_old(200, 7, 193_000), 0), (200, Some(7)));
    // The other end began to count at another datagram than this one.
    assert_eq!(figures(&of_old(200, 0, 103_000), 1), (103, Some(0)));
    assert_eq!(figures(&of_old(200, 7, 100_000), 1), (105, None));
    assert_eq!(figures(&of_old(10, 7, 1000), 1), (0, None));
    let newer = StreamResult {
        omitted_packets: Some(98),
        omitted_errors: Some(5),
        ..of_old(200, 7, 100_000)
    };
    assert_eq!(figures(&newer, 1), (102, Some(2)));
    let late = StreamResult { errors: 1, ..newer };
    assert_eq!(figures(&late, 1), (102, Some(0)));
}
