//! What each end reports when the other one does something else.

use linerate_wire::ctstraffic::connection::{Close, Connection, Fault, Outgoing, Receivable};
use linerate_wire::ctstraffic::transfer::{Pattern, Shutdown, TransferPlan};

use crate::pair::{End, Pair, Pipe, RESET, id, plan, reference};

const ABORTED: i32 = 103;
const TIMED_OUT: i32 = 110;
const BROKEN_PIPE: i32 = 32;

/// One end after the other has sent these bytes and, where `ends`, closed.
fn end_against(machine: Connection, sent: &[u8], ends: bool, most: u64) -> End {
    let reference = reference();
    let mut end = End::new(machine);
    let (mut from, mut to) = (Pipe::default(), Pipe::default());
    from.write(sent);
    from.ended = ends;
    for _ in 0..10_000 {
        if end.closed.is_some() {
            break;
        }
        let moved =
            end.write(&mut to, most, reference) | end.read(&mut from, most, Some(reference));
        end.close(&mut to);
        if !moved {
            break;
        }
    }
    end
}

fn client(pattern: Pattern) -> Connection {
    Connection::client(plan(pattern, 100, 40), 0)
}

fn server(pattern: Pattern) -> Connection {
    Connection::server(plan(pattern, 100, 40), id(), 0)
}

/// What a server sends to a client, with so much data.
fn down(data: usize, after: &[u8]) -> Vec<u8> {
    [&id().wire()[..], &up(data), after].concat()
}

/// Data from its beginning on.
fn up(data: usize) -> Vec<u8> {
    reference().part(0, data).to_vec()
}

const TOO_FEW: Option<Fault> = Some(Fault::NotAllDataTransferred);
const TOO_MANY: Option<Fault> = Some(Fault::TooMuchDataTransferred);

#[test]
fn a_client_reports_what_the_original_reports() {
    let push = Pattern::Push;
    let pull = Pattern::Pull;
    let id = id();
    let cases: Vec<(&str, Pattern, Vec<u8>, Option<Fault>)> = vec![
        ("end before the id", push, Vec::new(), TOO_FEW),
        ("end inside the id", push, id.wire()[..20].to_vec(), TOO_FEW),
        ("end in the data", pull, down(60, b""), TOO_FEW),
        ("end in place of DONE", pull, down(100, b""), TOO_FEW),
        ("end in place of DONE, push", push, down(0, b""), TOO_FEW),
        ("end inside DONE", pull, down(100, b"DON"), TOO_FEW),
        ("other bytes for DONE", pull, down(100, b"DONT"), TOO_FEW),
        ("DONE in the wrong case", pull, down(100, b"done"), TOO_FEW),
        ("more data before DONE", pull, down(101, b"DONE"), TOO_FEW),
        ("bytes after DONE", pull, down(100, b"DONE!"), TOO_MANY),
        ("bytes after DONE, push", push, down(0, b"DONEDONE"), TOO_MANY),
        ("data of a pulling server to a pushing client", push, down(100, b"DONE"), TOO_FEW),
        ("all well", pull, down(100, b"DONE"), None),
    ];
    for (what, pattern, sent, expected) in cases {
        for most in [1, 5, u64::MAX] {
            let end = end_against(client(pattern), &sent, true, most);
            assert_eq!(end.machine.fault(), expected, "{what}, {most} bytes at a time");
            let closed = if expected.is_some() { Close::Reset } else { Close::Orderly };
            assert_eq!(end.closed, Some(closed), "{what}");
        }
    }
}

#[test]
fn a_server_reports_what_the_original_reports() {
    let cases = [
        ("end without data", Vec::new(), TOO_FEW),
        ("an early end", up(99), TOO_FEW),
        ("more than all", up(101), TOO_MANY),
        ("bytes after DONE", [&up(100)[..], b"x"].concat(), TOO_MANY),
        ("all well", up(100), None),
    ];
    for (what, sent, expected) in cases {
        for most in [1, 7, u64::MAX] {
            let end = end_against(server(Pattern::Push), &sent, true, most);
            assert_eq!(end.machine.fault(), expected, "{what}, {most} bytes at a time");
        }
    }
}

#[test]
fn a_peer_that_says_nothing_more_is_waited_for() {
    for (machine, sent) in [
        (client(Pattern::Pull), down(100, b"")),
        (client(Pattern::Pull), down(100, b"DONE")),
        (client(Pattern::Push), Vec::new()),
        (server(Pattern::Push), up(60)),
        (server(Pattern::Push), up(100)),
    ] {
        let end = end_against(machine, &sent, false, 9);
        assert_eq!((end.machine.fault(), end.machine.is_over()), (None, false));
    }
}

#[test]
fn every_wrong_bit_fails_its_connection_at_its_offset() {
    for place in 0..100 {
        for bit in 0..8 {
            let mut sent = up(100);
            sent[place] ^= 1 << bit;
            let end = end_against(server(Pattern::Push), &sent, true, 33);
            let Some(Fault::DataDidNotMatchBitPattern(wrong)) = end.machine.fault() else {
                panic!("{:?}", end.machine.fault())
            };
            assert_eq!((wrong.offset, wrong.found), (place as u64, sent[place]));
            assert_eq!(wrong.extent_bytes, 1);
            assert_eq!(end.closed, Some(Close::Reset));
            let mut from_server = down(100, b"DONE");
            from_server[37 + place] ^= 1 << bit;
            let end = end_against(client(Pattern::Duplex), &from_server[..87], true, 33);
            let is_in_half = place < 50;
            let is_wrong = matches!(end.machine.fault(), Some(Fault::DataDidNotMatchBitPattern(_)));
            assert_eq!(is_wrong, is_in_half);
        }
    }
}

/// A connection in each stage, and whether it is its server that awaits the end.
fn stages() -> Vec<(Connection, bool)> {
    let reference = reference();
    let mut found = Vec::new();
    for pattern in [Pattern::Push, Pattern::Pull, Pattern::Duplex] {
        let mut pair = Pair::new(plan(pattern, 100, 40), plan(pattern, 100, 40));
        loop {
            for (end, is_server) in [(&pair.client, false), (&pair.server, true)] {
                let awaits = matches!(end.machine.receivable(0), Some(Receivable::End(_)));
                if !end.machine.is_over() {
                    found.push((end.machine.clone(), is_server && awaits));
                }
            }
            let moved = pair.server.write(&mut pair.down, 20, reference)
                | pair.client.read(&mut pair.down, 20, Some(reference))
                | pair.client.write(&mut pair.up, 20, reference)
                | pair.server.read(&mut pair.up, 20, Some(reference));
            pair.client.close(&mut pair.up);
            if !moved || pair.server.machine.is_over() {
                break;
            }
        }
    }
    found
}

#[test]
fn an_error_fails_every_stage_but_a_server_that_awaits_the_end() {
    let all = stages();
    assert!(all.iter().any(|(_, tolerates)| *tolerates) && all.len() > 20);
    for (machine, tolerates) in all {
        for number in [RESET, ABORTED, TIMED_OUT, BROKEN_PIPE] {
            let mut machine = machine.clone();
            machine.handle_error(9, number);
            let expected = (!tolerates || number == BROKEN_PIPE).then_some(Fault::Network(number));
            assert_eq!(machine.fault(), expected);
            assert!(machine.is_over());
            let close = if expected.is_some() { Close::Reset } else { Close::Orderly };
            assert_eq!((machine.poll_close(), machine.poll_close()), (Some(close), None));
        }
    }
}

#[test]
fn nothing_is_given_out_after_a_failure_and_the_first_fault_stays() {
    for (mut machine, _) in stages() {
        machine.handle_error(1, BROKEN_PIPE);
        machine.handle_error(2, RESET);
        machine.handle_received(3, b"more", None);
        machine.handle_data(3, 5, None);
        machine.handle_sent(3, 5);
        machine.handle_end(4);
        let first = Some(Fault::Network(BROKEN_PIPE));
        assert_eq!(machine.fault(), first);
        assert_eq!((machine.poll_send(5, 0), machine.receivable(0)), (None, None));
    }
}

#[test]
fn more_than_was_given_out_is_too_much() {
    let mut sender = client(Pattern::Push);
    sender.handle_received(0, id().wire(), None);
    assert!(sender.poll_send(0, 0).is_some());
    sender.handle_sent(0, 41);
    assert_eq!(sender.fault(), TOO_MANY);
    let mut receiver = server(Pattern::Push);
    receiver.handle_sent(0, 37);
    receiver.handle_data(0, 101, None);
    assert_eq!(receiver.fault(), TOO_MANY);
    let mut long_id = client(Pattern::Push);
    long_id.handle_received(0, &[b'a'; 38], None);
    assert_eq!(long_id.fault(), TOO_MANY);
}

#[test]
fn several_outstanding_sends_of_which_one_fails_end_the_connection() {
    let plan = TransferPlan { outstanding_sends: 2, ..plan(Pattern::Push, 100, 40) };
    let mut machine = Connection::client(plan, 0);
    machine.handle_received(0, id().wire(), None);
    assert!(matches!(machine.poll_send(0, 0), Some(Outgoing::Data { offset: 0, .. })));
    assert!(matches!(machine.poll_send(0, 0), Some(Outgoing::Data { offset: 40, .. })));
    machine.handle_sent(0, 40);
    machine.handle_error(0, BROKEN_PIPE);
    machine.handle_sent(0, 40);
    assert_eq!(machine.fault(), Some(Fault::Network(BROKEN_PIPE)));
    assert_eq!(machine.transferred().send_bytes, 40);
}

#[test]
fn ends_with_different_options_report_what_the_original_reports() {
    let run = |client: TransferPlan, server: TransferPlan| {
        let mut pair = Pair::new(client, server);
        pair.run(50);
        (pair.client.machine.fault(), pair.server.machine.fault())
    };
    let push = |total| plan(Pattern::Push, total, 40);
    let (client, server) = run(push(200), push(100));
    assert_eq!(server, TOO_MANY);
    assert!(client.is_none() || client == Some(Fault::Network(RESET)));
    assert_eq!(run(push(100), push(200)), (None, None), "both wait");
    let (client, server) = run(push(100), plan(Pattern::Pull, 10_000, 60));
    assert_eq!(client, TOO_FEW, "data is taken for DONE");
    assert_eq!(server, Some(Fault::Network(RESET)));
    let rude = TransferPlan { shutdown: Shutdown::Rude, ..push(100) };
    assert_eq!(run(rude, push(100)), (None, None));
}

#[test]
fn faults_have_the_originals_names() {
    let names = [Fault::NotAllDataTransferred, Fault::TooMuchDataTransferred, Fault::Network(104)];
    let names = names.map(|fault| (fault.protocol_error(), fault.hint().is_some()));
    assert_eq!(
        names,
        [
            (Some("ErrorNotAllDataTransferred"), true),
            (Some("ErrorTooMuchDataTransferred"), true),
            (None, false)
        ]
    );
}
