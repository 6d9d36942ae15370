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
    let life = client.life();
    assert_eq!(life.steps[1], LifeStep::Send { bytes: Size::Fixed(1 << 30) });
    assert_eq!((life.unit_bytes, life.pace), (Some(Size::Fixed(65_536)), None));
    assert_eq!((life.close, client.segment_bytes()), (Close::Graceful, (1 << 20, 1 << 20)));
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
    let life = client.life();
    let bytes = Size::Range { low_bytes: 10, high_bytes: 20 };
    assert_eq!(life.steps[1], LifeStep::Send { bytes });
    let bytes_per_s = Size::Range { low_bytes: 1000, high_bytes: 2000 };
    assert_eq!(life.pace, Some(LifePace::Rate { bytes_per_s, slice_ns: 100_000_000 }));
    assert_eq!((life.close, life.draws), (Close::Drawn, Draws::Each));
    assert_eq!(options("-target:h -conn:ConnectByName").life().close, Close::Reset);
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
    for (pattern, pace, (client, server)) in [
        ("push", "", (10_001, 0)),
        ("pull", "-ratelimit:500000", (0, 10_001)),
        ("duplex", "-burstcount:4 -burstdelay:200", (5001, 5001)),
        ("pushpull", "-buffer:[10,700] -pushbytes:1000 -pullbytes:3000", (3000, 7001)),
    ] {
        let line = format!("-pattern:{pattern} {pace} -transfer:10001");
        for end in ["-target:h -shutdown:rude", "-listen:*"] {
            let options = options(&format!("{end} {line}"));
            let life = options.life();
            let amounts = if options.is_server() { (server, client) } else { (client, server) };
            assert_eq!(life.amounts(), amounts, "{end} {line}");
            let close = if options.is_server() { Close::AfterPeer } else { Close::Reset };
            assert_eq!((life.close, life.steps.len()), (close, 3));
            assert_eq!(life.pace.is_some(), pace.contains("-ratelimit") || pace.contains("-burst"));
        }
    }
}
