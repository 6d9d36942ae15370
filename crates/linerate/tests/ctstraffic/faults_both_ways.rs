//! Faults of peers where both ends send: at once or in turns. And those of a client that only receives.

use crate::faults::{
    Act, GOOD, RESET, TOO_FEW, TOO_MANY, Then, WRONG, concat, results_at_client, results_at_server,
    with_wrong_bit,
};
use crate::peer::{ID, data};

/// Turns of 5,000 bytes: the client sends 1,000 three times, the server 700 twice and then 600.
const TURNS: &str = "pushpull -pushbytes:1000 -pullbytes:700";

/// Shows that our client gives each of these servers this result, in pieces or whole.
fn assert_at_client(pattern: &str, cases: Vec<(&str, Act)>) {
    let (expected, acts): (Vec<&str>, Vec<Act>) = cases.into_iter().unzip();
    for piece_bytes in [7, usize::MAX] {
        assert_eq!(results_at_client(pattern, acts.clone(), piece_bytes).0, expected);
    }
}

/// Likewise our server each of these clients.
fn assert_at_server(words: &str, cases: Vec<(&str, Act)>) {
    let (expected, acts): (Vec<&str>, Vec<Act>) = cases.into_iter().unzip();
    let (results, ended, _) = results_at_server(words, acts);
    assert_eq!(results, expected, "{ended:?}");
    let failed = expected.iter().filter(|result| **result != GOOD).count();
    assert_eq!(ended.exit_code, failed as i32, "{ended:?}");
}

/// A server's connection with so much data, and what is behind it.
fn told(bytes: usize, rest: &[u8]) -> Vec<u8> {
    concat(&[ID, &data(0, bytes), rest])
}

#[test]
fn a_client_of_duplex_names_each_fault_of_a_server() {
    use Then::{Finish, Reset};
    assert_at_client(
        "duplex",
        vec![
            (GOOD, (told(2500, b"DONE"), Finish)),
            (TOO_FEW, (vec![], Finish)),
            (TOO_FEW, (told(0, b""), Finish)),
            (TOO_FEW, (told(2499, b""), Finish)),
            (TOO_FEW, (told(2500, b""), Finish)),
            (WRONG, (with_wrong_bit(told(2500, b"DONE"), 37), Finish)),
            (WRONG, (with_wrong_bit(told(2500, b"DONE"), 37 + 2499), Finish)),
            (TOO_FEW, (told(2500, b"DON"), Finish)),
            (TOO_FEW, (told(2500, b"DONT"), Finish)),
            (TOO_FEW, (told(2501, b"DONE"), Finish)),
            (TOO_MANY, (told(2500, b"DONE!"), Finish)),
            (RESET, (told(0, b""), Reset(0))),
            (RESET, (told(1000, b""), Reset(2500))),
            (RESET, (told(2500, b""), Reset(2500))),
            (RESET, (told(2500, b"DONE"), Reset(2500))),
            (GOOD, (told(2500, b"DONE"), Finish)),
        ],
    );
}

#[test]
fn a_client_of_pushpull_names_each_fault_of_a_server() {
    use Then::{Finish, Reset};
    assert_at_client(
        TURNS,
        vec![
            // What comes before its turn is taken in its turn.
            (GOOD, (told(2000, b"DONE"), Finish)),
            (TOO_FEW, (told(0, b""), Finish)),
            (TOO_FEW, (told(500, b""), Finish)),
            (TOO_FEW, (told(700, b""), Finish)),
            (TOO_FEW, (told(1999, b""), Finish)),
            (TOO_FEW, (told(2000, b""), Finish)),
            (WRONG, (with_wrong_bit(told(2000, b"DONE"), 37), Finish)),
            (WRONG, (with_wrong_bit(told(2000, b"DONE"), 37 + 700), Finish)),
            (WRONG, (with_wrong_bit(told(2000, b"DONE"), 37 + 1999), Finish)),
            // Each turn's data begins anew.
            (WRONG, (told(700, &concat(&[&data(0, 700), &data(0, 600), b"DONE"])), Finish)),
            (TOO_FEW, (told(2000, b"DON"), Finish)),
            (TOO_FEW, (told(2000, b"DONT"), Finish)),
            (TOO_FEW, (told(2001, b"DONE"), Finish)),
            (TOO_MANY, (told(2000, b"DONE!"), Finish)),
            (RESET, (told(0, b""), Reset(1000))),
            (RESET, (told(700, b""), Reset(2000))),
            (RESET, (told(2000, b"DONE"), Reset(3000))),
            (GOOD, (told(2000, b"DONE"), Finish)),
        ],
    );
}

#[test]
fn a_server_of_duplex_names_each_fault_of_a_client() {
    use Then::{Finish, Reset};
    assert_at_server(
        "-pattern:duplex -transfer:5000",
        vec![
            // A client may end its direction before it has had the other.
            (GOOD, (data(0, 2500), Finish)),
            (TOO_FEW, (vec![], Finish)),
            (TOO_FEW, (data(0, 2499), Finish)),
            (WRONG, (with_wrong_bit(data(0, 2500), 0), Finish)),
            (WRONG, (with_wrong_bit(data(0, 2500), 2499), Finish)),
            (TOO_MANY, (data(0, 2501), Finish)),
            (RESET, (vec![], Reset(37))),
            (RESET, (data(0, 100), Reset(37))),
            (RESET, (data(0, 2499), Reset(37 + 2500))),
            // The client has had all that it needs.
            (GOOD, (data(0, 2500), Reset(37 + 2500 + 4))),
            (TOO_MANY, (concat(&[&data(0, 2500), b"DONE"]), Finish)),
            (GOOD, (data(0, 2500), Finish)),
        ],
    );
}

#[test]
fn a_server_of_pushpull_names_each_fault_of_a_client() {
    use Then::{Finish, Reset};
    assert_at_server(
        &format!("-pattern:{TURNS} -transfer:5000"),
        vec![
            (GOOD, (data(0, 3000), Finish)),
            (TOO_FEW, (vec![], Finish)),
            (TOO_FEW, (data(0, 999), Finish)),
            (TOO_FEW, (data(0, 1000), Finish)),
            (TOO_FEW, (data(0, 2999), Finish)),
            (WRONG, (with_wrong_bit(data(0, 3000), 0), Finish)),
            (WRONG, (with_wrong_bit(data(0, 3000), 1000), Finish)),
            (WRONG, (with_wrong_bit(data(0, 3000), 2999), Finish)),
            (WRONG, (data(0, 1000).repeat(3), Finish)),
            (TOO_MANY, (data(0, 3001), Finish)),
            (RESET, (data(0, 500), Reset(37))),
            (RESET, (data(0, 1000), Reset(37 + 700))),
            (GOOD, (data(0, 3000), Reset(37 + 2000 + 4))),
            (GOOD, (data(0, 3000), Finish)),
        ],
    );
}

#[test]
fn a_server_of_pull_names_each_fault_of_a_client() {
    use Then::{Finish, Reset};
    assert_at_server(
        "-pattern:pull -transfer:5000",
        vec![
            // It has nothing to send, and may say so at once.
            (GOOD, (vec![], Finish)),
            (TOO_MANY, (b"!".to_vec(), Finish)),
            (TOO_MANY, (data(0, 5000), Finish)),
            (GOOD, (vec![], Reset(37 + 5000 + 4))),
            (GOOD, (vec![], Finish)),
        ],
    );
    // More than the kernel holds: the server sends still.
    assert_at_server(
        "-pattern:pull -transfer:100000000",
        vec![(RESET, (vec![], Reset(37))), (RESET, (vec![], Reset(1_000_000)))],
    );
}

#[test]
fn data_that_is_not_verified_may_be_wrong_and_texts_may_not() {
    use Then::Finish;
    assert_at_server(
        "-pattern:duplex -transfer:5000 -verify:connection",
        vec![(GOOD, (vec![7; 2500], Finish)), (TOO_MANY, (vec![7; 2501], Finish))],
    );
    assert_at_client(
        "duplex -verify:connection",
        vec![
            (GOOD, (concat(&[ID, &[7; 2500], b"DONE"]), Finish)),
            (TOO_FEW, (concat(&[ID, &[7; 2500], b"DONT"]), Finish)),
        ],
    );
}
