//! Peers whose bytes are changed, cut or too many: each connection has the result that the protocol gives its bytes.

use linerate_measure::random::next_word;

use crate::faults::{
    Act, GOOD, TOO_FEW, TOO_MANY, Then, WRONG, concat, results_at_client, results_at_server,
};
use crate::peer::{ID, data};

/// Connections of each pattern at each end.
const MUTANTS: usize = 40;

const TURNS: &str = "pushpull -pushbytes:1000 -pullbytes:700";

/// The patterns with the bytes that the client sends and those that the server sends, of 5,000.
const PATTERNS: [(&str, usize, usize); 4] =
    [("push", 5000, 0), ("pull", 0, 5000), ("duplex", 2500, 2500), (TURNS, 3000, 2000)];

/// A random number below this one.
fn below(most: usize, state: &mut u64) -> usize {
    (next_word(state) % most as u64) as usize
}

/// Changes the bytes in a few places.
fn mutate(mut bytes: Vec<u8>, state: &mut u64) -> Vec<u8> {
    for _ in 0..1 + below(3, state) {
        let at = below(bytes.len() + 1, state);
        let end = (at + below(60, state)).min(bytes.len());
        match below(6, state) {
            0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << below(8, state)),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            4 => bytes.extend_from_slice(&b"DONE".repeat(1 + below(3, state))),
            _ => bytes[at..end].fill(0xff),
        }
    }
    bytes
}

/// The result at a server to which these bytes come, and then the end.
fn result_at_server(came: &[u8], wanted: usize) -> &'static str {
    let length = came.len().min(wanted);
    match came.len() {
        _ if came[..length] != data(0, length) => WRONG,
        more if more > wanted => TOO_MANY,
        less if less < wanted => TOO_FEW,
        _ => GOOD,
    }
}

/// Likewise at a client.
fn result_at_client(came: &[u8], wanted: usize) -> &'static str {
    let Some(came) = came.get(ID.len()..) else { return TOO_FEW };
    let (data, done) = came.split_at(came.len().min(wanted));
    match result_at_server(data, wanted) {
        GOOD if done == b"DONE" => GOOD,
        GOOD if done.starts_with(b"DONE") => TOO_MANY,
        GOOD => TOO_FEW,
        fault => fault,
    }
}

/// Mutants of these bytes with their results.
fn mutants(
    bytes: &[u8],
    result: impl Fn(&[u8]) -> &'static str,
    state: &mut u64,
) -> (Vec<Act>, Vec<&'static str>) {
    let mutants = (0..MUTANTS).map(|_| mutate(bytes.to_vec(), state));
    mutants.map(|bytes| ((bytes.clone(), Then::Finish), result(&bytes))).unzip()
}

#[test]
fn a_server_gives_each_mutant_of_a_client_the_result_that_its_bytes_have() {
    let mut state = 27;
    for (pattern, sent, _) in PATTERNS {
        let result = |came: &[u8]| result_at_server(came, sent);
        let (acts, expected) = mutants(&data(0, sent), result, &mut state);
        let (results, ended, _) =
            results_at_server(&format!("-pattern:{pattern} -transfer:5000"), acts);
        assert_eq!(results, expected, "{pattern}");
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    }
}

#[test]
fn a_client_gives_each_mutant_of_a_server_the_result_that_its_bytes_have() {
    let mut state = 28;
    for (pattern, _, sent) in PATTERNS {
        let bytes = concat(&[ID, &data(0, sent), b"DONE"]);
        let result = |came: &[u8]| result_at_client(came, sent);
        let (acts, expected) = mutants(&bytes, result, &mut state);
        for piece_bytes in [100, usize::MAX] {
            let (results, _) = results_at_client(pattern, acts.clone(), piece_bytes);
            assert_eq!(results, expected, "{pattern}");
        }
    }
}
