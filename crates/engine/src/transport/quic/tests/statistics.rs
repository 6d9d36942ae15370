//! What a connection counts of the packets that came, beside what a path did to them.

use super::super::connection::Connection;
use super::relayed::Passed;
use super::*;

/// Ends that count, with a path between them that loses, repeats, delays and spoils or not, when a stream
/// has gone one way.
fn after_a_transfer(loses: bool, clear_packets: bool) -> (Relayed, [SharedConnection; 2]) {
    let extras = || Extras { counts: true, clear_packets, ..Extras::default() };
    let mut pair = Relayed::new(&Settings::default(), (extras(), extras()), loses);
    // No more on a good path than a socket has room for at once: what it drops, the path has not lost.
    let bytes = vec![7; if loses { 600_000 } else { 60_000 }];
    let (mut id, mut sent, mut stream, mut read_bytes, mut server) = (None, 0, None, 0, None);
    pair.run(|(near, established), far| {
        let mut near = near.borrow_mut();
        if established && id.is_none() {
            id = near.open_stream(Dir::Bi);
        }
        if let Some(id) = id {
            sent += near.send(id, &bytes[sent..]).unwrap_or(0);
        }
        server = Some(SharedConnection::clone(far));
        let mut far = far.borrow_mut();
        stream = stream.or_else(|| far.accept_stream(Dir::Bi));
        if let Some(id) = stream {
            read_bytes += far.receive(id, usize::MAX, &mut |_| {}).map_or(0, |(bytes, _)| bytes);
        }
        read_bytes == bytes.len()
    });
    pair.settle();
    let near = SharedConnection::clone(pair.near.connection(pair.link).unwrap());
    (pair, [near, server.unwrap()])
}

/// Packets that came and that were taken.
fn came_and_taken(connection: &Connection) -> (u64, u64) {
    let counted = connection.statistics();
    let came = counted.received_packets.unwrap();
    (came, came - counted.dropped_packets.unwrap())
}

#[test]
fn all_that_came_is_counted_and_nothing_is_dropped_on_a_good_path() {
    for clear in [false, true] {
        let (pair, [near, far]) = after_a_transfer(false, clear);
        let ways = [(&near, &far, pair.up.counts), (&far, &near, pair.down.counts)];
        for (from, to, passed) in ways {
            let (came, taken) = came_and_taken(&to.borrow());
            assert_eq!(came, passed.packets, "{passed:?}");
            let sent = from.borrow().statistics().sent_packets;
            // The last ones may not be handed on yet.
            assert!(came <= sent && came + 20 >= sent, "{came} of {sent}");
            let counted = to.borrow().statistics();
            let none = [counted.reordered_packets, counted.duplicate_packets];
            assert_eq!(none, [Some(0); 2], "{counted:?}");
            assert_eq!(counted.decryption_failures, Some(0), "{counted:?}");
            // First packets may come when nobody has their keys any more.
            assert!(taken + 3 >= came, "{counted:?}");
        }
    }
}

#[test]
fn packet_counts_match_the_path() {
    let (pair, [near, far]) = after_a_transfer(true, false);
    let Passed { packets, lost, repeated, late, wrong } = pair.up.counts;
    let (came, taken) = came_and_taken(&far.borrow());
    let counted = far.borrow().statistics();
    let what = format!("{counted:?}, {:?}", pair.up.counts);
    // One whose connection id was spoiled is nobody's.
    assert!(came <= packets && came + wrong >= packets, "{what}");
    let within =
        |count: Option<u64>, most: u64| count.is_some_and(|count| 0 < count && count <= most);
    assert!(within(counted.duplicate_packets, repeated), "{what}");
    assert!(within(counted.reordered_packets, late + repeated), "{what}");
    assert!(within(counted.decryption_failures, wrong), "{what}");
    let sent = near.borrow().statistics().sent_packets;
    assert!(taken <= sent, "{sent} sent, {what}");
    assert!(taken + lost + wrong + late + 20 >= sent, "{sent} sent, {what}");
    assert!(taken + late + wrong >= packets - repeated - wrong, "{what}");
}

#[test]
fn nothing_is_claimed_of_packets_that_nobody_counts() {
    let (_pair, near, _far) = Pair::established(&Settings::default());
    let counted = near.borrow().statistics();
    let came = [counted.received_packets, counted.dropped_packets, counted.duplicate_packets];
    assert_eq!(came, [None; 3]);
}
