use linerate_wire::ctstraffic::transfer::Turn;

use super::*;
use crate::ctstraffic::command_line::{CommandLine, parse_command_line};

fn options(line: &str) -> Options {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match parse_command_line(&words) {
        Ok(CommandLine::Run(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn defaults_are_the_originals() {
    let client = options("-target:h");
    assert_eq!((client.port(), client.connections(), client.throttle()), (4444, 8, Some(1000)));
    assert_eq!((client.total_connections(), client.verbosity()), (None, 4));
    assert_eq!((client.status_update_ms(), client.rate_period_ms()), (5000, 100));
    assert_eq!((client.outstanding_receives(), client.outstanding_sends()), (1, 1));
    assert_eq!((client.has_keepalive(), options("-listen:*").has_keepalive()), (false, true));
    let plan = client.transfer_plan(ConnectionDraws::default());
    let expected = TransferPlan {
        role: Role::Client,
        pattern: Pattern::Push,
        total_bytes: 1 << 30,
        push_bytes: 1 << 20,
        pull_bytes: 1 << 20,
        buffer_bytes: Span::of(65_536),
        outstanding_sends: 1,
        pace: PaceSettings::None,
        shutdown: Shutdown::Graceful,
    };
    assert_eq!(plan, expected);
    assert_eq!((client.stream_shape(), client.receive_buffer_bytes()), (None, None));
}

#[test]
fn limits_of_0_are_no_limits() {
    let client = options("-target:h -iterations:0 -throttleconnections:0");
    assert_eq!((client.total_connections(), client.throttle()), (None, None));
    assert_eq!(options("-listen:* -serverexitlimit:0").server_exit_limit(), None);
    let many = options("-target:h -connections:4 -iterations:-1");
    assert_eq!(many.total_connections(), Some(u64::MAX));
    assert_eq!(options("-target:h -connections:2 -iterations:2").total_connections(), Some(4));
}

#[test]
fn ranges_are_drawn() {
    let client = options("-target:h -transfer:[10,20] -ratelimit:[1000,2000] -shutdown:random");
    let most = ConnectionDraws { total: u64::MAX, rate: u64::MAX, shutdown: u64::MAX };
    let [least, most] = [ConnectionDraws::default(), most].map(|draws| client.transfer_plan(draws));
    assert_eq!((least.total_bytes, most.total_bytes), (10, 20));
    assert_eq!(least.pace, PaceSettings::Rate { bytes_per_s: 1000, period_ms: 100 });
    assert_eq!(most.pace, PaceSettings::Rate { bytes_per_s: 2000, period_ms: 100 });
    assert_eq!((least.shutdown, most.shutdown), (Shutdown::Graceful, Shutdown::Rude));
    let by_name = options("-target:h -conn:ConnectByName");
    assert_eq!(by_name.transfer_plan(ConnectionDraws::default()).shutdown, Shutdown::Rude);
    assert_eq!(options("-target:h -io:rioiocp").outstanding_sends(), 0);
}

#[test]
fn a_stream_is_computed_from_its_options() {
    let line = "-protocol:udp -bitspersecond:2000000 -framerate:25 -streamlength:5";
    let client = options(&format!("-target:h {line}"));
    let shape = client.stream_shape().unwrap().unwrap();
    assert_eq!((shape.frames, shape.frame_bytes, shape.datagram_bytes), (125, 10_000, 1400));
    assert_eq!((client.connections(), client.outstanding_receives()), (1, 2));
    assert_eq!(client.receive_buffer_bytes(), Some(1 << 20));
    let settings = client.receiver_settings().unwrap();
    assert_eq!((settings.buffered_frames, settings.is_strict), (25, false));
    let server = options(&format!("-listen:* {line}"));
    assert_eq!((server.receive_buffer_bytes(), server.has_keepalive()), (None, false));
}

#[test]
fn a_life_does_what_the_plan_does() {
    for (pattern, pace) in [
        ("push", ""),
        ("pull", "-ratelimit:500000"),
        ("duplex", "-burstcount:4 -burstdelay:200"),
        ("pushpull", "-buffer:[10,700]"),
    ] {
        let line = format!("-pattern:{pattern} {pace} -transfer:10001");
        for end in ["-target:h -shutdown:rude", "-listen:*"] {
            let options = options(&format!("{end} {line}"));
            let life = options.life();
            let Turn { send_bytes, receive_bytes } =
                options.transfer_plan(ConnectionDraws::default()).amounts();
            assert_eq!(life.amounts(), (send_bytes, receive_bytes), "{end} {line}");
            let close = if options.is_server() { Close::AfterPeer } else { Close::Reset };
            assert_eq!((life.close, life.steps.len()), (close, 3));
            assert_eq!(life.pace.is_some(), pace.contains("-ratelimit") || pace.contains("-burst"));
        }
    }
}
