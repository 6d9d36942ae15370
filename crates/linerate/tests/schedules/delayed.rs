//! Tests with what both ends' threads had to wait for processors.

use std::time::Duration;

use crate::document::Document;
use crate::ends::{Client, Ended, Server};
use crate::run_delay::RunDelays;

/// Waits for a client's end; takes down what its threads and the server's wait meanwhile.
pub(crate) fn finish(mut client: Client, server: &Server, delays: &mut RunDelays) -> Ended {
    while client.is_running() {
        delays.look(client.pid());
        delays.look(server.pid());
        std::thread::sleep(Duration::from_millis(10));
    }
    client.finish()
}

/// The document of a client that is run to its end, and the seconds that threads of both ends waited.
#[track_caller]
pub(crate) fn measure(server: &Server, words: &str) -> (Document, f64) {
    let mut delays = RunDelays::since_now(server.pid());
    let document = finish(server.start_client(words), server, &mut delays).document(0);
    (document, delays.total_s())
}
