//! `-P`: chains of a client, proxies and a server.

use super::fixture::Server;

fn proxy(to: &Server, words: &str) -> Server {
    Server::proxy(&format!("-P 127.0.0.1 -p {} {words}", to.port))
}

#[test]
fn a_client_downloads_through_two_proxies_and_its_close_reaches_the_server() {
    let server = Server::start("");
    let far = proxy(&server, "--wait-for-svr");
    let near = proxy(&far, "-i 0.5 -w 100");
    let ended = near.client("-t 2 -i 0.5 --print-raw");
    assert_eq!(ended.exit_code, 0, "{ended:?}");
    let total = ended.stdout.lines().last().unwrap();
    let bytes: u64 = total.split([' ', ',']).find_map(|word| word.parse().ok()).unwrap();
    assert!(bytes > 1_000_000, "{total}");
    let close = "closed by remote: transport close: code=0x0; frame=0; reason=runtime_reached";
    server.await_said(close);
    near.await_said("binding 0 removed");
    let (said, _folder) = server.stop();
    assert!(said.stdout.contains(close), "{}", said.stdout);
    let said = near.stop().0.stdout;
    for line in [
        "starting proxy with pid ",
        "binding 0 src connected to 127.0.0.1:",
        "binding 0 dst connected to 127.0.0.1:",
        "binding 0 stream 0 opened",
        "connection 0 second 0.5: ",
        "send window: ",
        close,
        "connection 0 total: bytes sent: ",
        "binding 0 removed",
    ] {
        assert!(said.contains(line), "{line} is not in {said}");
    }
}

#[test]
fn a_target_that_is_down_is_told_and_the_proxy_goes_on() {
    let server = Server::start("");
    let port = server.port;
    let near = proxy(&server, "");
    server.stop();
    let ended = near.client("-e");
    assert_ne!(ended.exit_code, 0, "{ended:?}");
    let (ended, _folder) = near.stop();
    assert!(ended.stderr.contains(&format!("the target 127.0.0.1:{port} ")), "{ended:?}");
    assert!(ended.stdout.contains("binding 0 removed"), "{ended:?}");
}

#[test]
fn the_total_of_a_connection_has_what_no_interval_told() {
    let server = Server::start("");
    let near = proxy(&server, "-i 60");
    let ended = near.client("-t 1");
    assert_eq!(ended.exit_code, 0, "{ended:?}");
    let bytes = |text: &str, line: &str| {
        let said = text.lines().find_map(|one| one.strip_prefix(line)).unwrap();
        said.split(',').next().unwrap().parse::<u64>().unwrap()
    };
    let received = bytes(&ended.stdout, "total: bytes received: ");
    let said = near.stop().0.stdout;
    assert!(!said.contains("connection 0 second"), "{said}");
    let sent = bytes(&said, "connection 0 total: bytes sent: ");
    assert!(sent >= received && received > 0, "{sent} of {received}");
    // The request is all that goes to the target.
    assert!(said.contains("connection 1 total: bytes sent: 19, "), "{said}");
}
