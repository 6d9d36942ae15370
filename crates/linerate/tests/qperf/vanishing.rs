//! A client that is gone without a word.

use std::time::Duration;

use rustix::process::Signal;

use super::fixture::{Running, Server, command};

#[test]
fn a_client_that_vanishes_is_given_up_after_30_s_and_others_are_served_meanwhile() {
    let server = Server::start("");
    let words = format!("-c 127.0.0.1 -p {} -t 1000", server.port);
    let client = Running::start(command(&words, server.folder.path()));
    std::thread::sleep(Duration::from_secs(1));
    client.signal(Signal::KILL);
    assert_eq!(server.client("-e").exit_code, 0);
    // The time-out and a probe of the server's before it.
    std::thread::sleep(Duration::from_secs(40));
    assert_eq!(server.client("-e").exit_code, 0);
    let (served, _folder) = server.stop();
    assert!(served.stdout.contains("binding 0 closed: idle timeout\n"), "{}", served.stdout);
    assert!(served.stdout.contains("binding 0 removed\n"), "{}", served.stdout);
}
