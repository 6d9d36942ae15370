//! Which connections receive in bulk.

use std::io::ErrorKind;

use super::*;

#[test]
fn an_endpoint_is_in_bulk_while_much_comes_and_not_after_an_empty_turn() {
    let (mut pair, near, _far) = Pair::established(&Settings::default());
    let id = near.borrow_mut().open_stream(Dir::Uni).unwrap();
    let mut seen = false;
    pair.run(|near_end, far_end| {
        while near_end.poll_event().is_some() {}
        while far_end.poll_event().is_some() {}
        if !seen {
            let sent = near.borrow_mut().send(id, &[7; 100_000]);
            // Where the packets of many turns come in one, the windows are full before that.
            assert!(sent.is_ok() || sent.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
        }
        // What comes back is acknowledgements.
        assert!(!near_end.is_in_bulk());
        seen |= far_end.is_in_bulk();
        seen && !far_end.is_in_bulk()
    });
}
