//! A thousand connections through a proxy at once.

use rustix::process::Signal;

use super::alone;
use super::perf::{Server, results, run};
use super::proxy::Proxy;

#[test]
fn a_thousand_connections_pass_a_proxy_at_once() {
    let _alone = alone();
    let server = Server::start("");
    let proxy = Proxy::start(server.port, "");
    let ended = run(&proxy.words("-conns:1000 -streams:1 -up:500 -down:2000"));
    assert_eq!(results(&ended), ["Completed 1000 connections and 1000 streams!"]);
    let summary = proxy.stop(Signal::TERM);
    assert!(summary.text.contains("1.00k connections, 0 refused, 0 failed"), "{}", summary.text);
}
