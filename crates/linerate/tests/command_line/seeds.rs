//! Replays the seeds of the fuzz targets of command lines through what the program makes of them:
//! plans for the engine.

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use linerate::personality::iperf3::plan::{serve_plan, test_plan};
use linerate::personality::iperf3::read;
use linerate::personality::netperf::check_command_line;
use linerate_personality::iperf3::release::Release;

use replay::replay;

#[test]
fn iperf3_options() {
    replay("iperf3_options", |data| {
        let Ok(text) = std::str::from_utf8(data) else { return };
        let words: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let Ok(options) = read(&words) else { return };
        // Names are left to the resolver, files to the system: here there are neither.
        let is_alone = options.connection.bind.is_none()
            && options.credentials.public_key.is_none()
            && options.server.private_key.is_none()
            && options.payload.file.is_none();
        if is_alone && options.host().is_some() {
            assert!(test_plan(&options, Release::V3_21, || None).is_ok());
        } else if is_alone {
            assert!(serve_plan(&options, Release::default()).is_ok());
        }
    });
}

#[test]
fn netperf_options() {
    replay("netperf_options", |data| {
        let Ok(text) = std::str::from_utf8(data) else { return };
        let words: Vec<String> = text.lines().map(str::to_owned).collect();
        if let Err(told) = check_command_line(&words) {
            assert!(!told.is_empty());
        }
    });
}
