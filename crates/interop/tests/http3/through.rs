//! What an HTTP/3 client finds behind the proxy.

use bytes::Bytes;
use rustix::process::Signal;

use crate::ends::{Client, REFUSED, REQUEST_REJECTED, run, serve};
use crate::fixture::Proxy;

/// HTTP/3 alone.
const H3: &[&str] = &["h3"];

#[test]
fn requests_of_all_sizes_are_answered_through_the_proxy() {
    let body: Bytes = (0..1_000_000_u32).map(|n| (n / 7) as u8).collect();
    for words in ["", "--alpn h3", "--wait-for-svr", "--alpn h3 --early-data"] {
        let summary = run(async {
            let (_server, port) = serve(H3);
            let proxy = Proxy::start_with(port, words);
            let client = Client::of_http3(proxy.port).await;
            assert_eq!(client.exchange("/0", None).await.unwrap().len(), 0);
            assert_eq!(client.exchange("/3000000", None).await.unwrap().len(), 3_000_000);
            assert_eq!(client.exchange("/", Some(body.clone())).await.unwrap(), body);
            client.close().await;
            proxy.stop(Signal::INT)
        });
        assert!(summary.text.contains("1 connections, 0 refused, 0 failed"), "{}", summary.text);
    }
}

#[test]
fn many_requests_at_once_are_answered_each_with_its_own() {
    run(async {
        let (_server, port) = serve(H3);
        let proxy = Proxy::start_with(port, "--alpn h3 --streams 20");
        let client = std::sync::Arc::new(Client::of_http3(proxy.port).await);
        let mut requests = tokio::task::JoinSet::new();
        for number in 0..200_usize {
            let client = std::sync::Arc::clone(&client);
            requests.spawn(async move {
                let body = Bytes::from(vec![number as u8; number * 37]);
                let echoed = client.exchange("/", Some(body.clone())).await.unwrap();
                assert_eq!(echoed, body, "{number}");
            });
        }
        while let Some(done) = requests.join_next().await {
            done.unwrap();
        }
    });
}

#[test]
fn an_answer_that_the_server_gives_up_fails_with_its_code_and_others_go_on() {
    run(async {
        let (_server, port) = serve(H3);
        let proxy = Proxy::start_with(port, "--alpn h3");
        let client = Client::of_http3(proxy.port).await;
        let error = client.exchange(REFUSED, None).await.unwrap_err();
        let code = h3::error::Code::from(REQUEST_REJECTED).to_string();
        assert!(error.contains(&code), "{error} is not {code}");
        assert_eq!(client.exchange("/7", None).await.unwrap().len(), 7);
    });
}

#[test]
fn the_server_chooses_the_protocol_as_without_a_proxy() {
    for (offered, served, agreed) in [
        (&["h3"][..], H3, Some("h3")),
        (&["other", "h3"], H3, Some("h3")),
        (&["other", "h3"], &["h3", "other"], Some("h3")),
        (&["other", "another"], H3, None),
    ] {
        run(async {
            let (_server, port) = serve(served);
            let direct = Client::connect(port, offered).await;
            let proxy = Proxy::start_with(port, "");
            let proxied = Client::connect(proxy.port, offered).await;
            for client in [direct, proxied] {
                let protocol = client.ok().and_then(|client| client.protocol());
                assert_eq!(protocol.as_deref(), agreed.map(str::as_bytes), "{offered:?}");
            }
        });
    }
}

#[test]
fn a_target_that_is_down_fails_the_connection() {
    run(async {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let down = free.local_addr().unwrap().port();
        drop(free);
        let proxy = Proxy::start_with(down, "--alpn h3 --wait-for-svr");
        let why = Client::connect(proxy.port, H3).await.err().unwrap();
        assert!(why.contains("refused"), "{why}");
    });
}
