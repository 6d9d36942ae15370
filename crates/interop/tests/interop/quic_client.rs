//! s2n-quic asks, `linerate secnetperf` answers.

use s2n_quic::connection::Handle;

use crate::fixture::Server;
use crate::quic::{End, connect, end_of, exchange, run};
use crate::request::{ENDLESS, request};

#[test]
fn requests_of_every_size_are_answered() {
    let server = Server::start("");
    run(async {
        let (_client, connection) = connect(server.port).await;
        let mut handle = connection.handle();
        for (wanted, request_bytes) in
            [(0, 8), (1, 8), (0, 9), (100, 500), (65_537, 8), (0, 1_000_000), (1_000_000, 300_000)]
        {
            let end = exchange(&mut handle, request(wanted, request_bytes)).await;
            assert_eq!(end, End::Finished(wanted), "for {request_bytes} bytes");
        }
    });
}

#[test]
fn many_streams_at_a_time_are_answered_each() {
    let server = Server::start("");
    run(async {
        let (_client, connection) = connect(server.port).await;
        let handle = connection.handle();
        let mut streams = tokio::task::JoinSet::new();
        for number in 0..60_u64 {
            let mut handle = handle.clone();
            let (wanted, request_bytes) = (number * 1_111, 8 + number as usize * 777);
            streams.spawn(async move {
                let end = exchange(&mut handle, request(wanted, request_bytes)).await;
                assert_eq!(end, End::Finished(wanted));
            });
        }
        let mut done = 0;
        while let Some(ended) = streams.join_next().await {
            ended.unwrap();
            done += 1;
        }
        assert_eq!(done, 60);
    });
}

#[test]
fn connections_beside_each_other_are_answered() {
    let server = Server::start("");
    run(async {
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(connect(server.port).await);
        }
        for (_, connection) in &clients {
            let end = exchange(&mut connection.handle(), request(20_000, 20_000)).await;
            assert_eq!(end, End::Finished(20_000));
        }
    });
}

/// Keys change every few hundred packets at our end, which the other stack has to follow.
#[test]
fn megabytes_pass_both_ways_at_once() {
    let server = Server::start("");
    run(async {
        let (_client, connection) = connect(server.port).await;
        let (mut up, mut down) = (connection.handle(), connection.handle());
        let (up, down) = tokio::join!(
            exchange(&mut up, request(0, 4_000_000)),
            exchange(&mut down, request(6_000_000, 8)),
        );
        assert_eq!((up, down), (End::Finished(0), End::Finished(6_000_000)));
    });
}

#[test]
fn a_request_without_a_whole_header_is_given_up() {
    let server = Server::start("");
    run(async {
        let (_client, connection) = connect(server.port).await;
        let mut handle = connection.handle();
        for length in 0..8 {
            let end = exchange(&mut handle, vec![0; length]).await;
            assert_eq!(end, End::Reset(0), "{length} bytes");
        }
        assert_still_serves(&mut handle).await;
    });
}

#[test]
fn a_request_that_is_reset_is_given_up_both_ways() {
    let server = Server::start("");
    run(async {
        let (_client, connection) = connect(server.port).await;
        let mut handle = connection.handle();
        let stream = handle.open_bidirectional_stream().await.unwrap();
        let (mut receive, mut send) = stream.split();
        send.send(request(1_000, 100).into()).await.unwrap();
        send.flush().await.unwrap();
        send.reset(7_u8.into()).unwrap();
        assert_eq!(end_of(&mut receive).await, End::Reset(0));
        assert_still_serves(&mut handle).await;
    });
}

#[test]
fn an_endless_answer_goes_on_until_it_is_stopped() {
    let server = Server::start("");
    run(async {
        let (_client, connection) = connect(server.port).await;
        let mut handle = connection.handle();
        let stream = handle.open_bidirectional_stream().await.unwrap();
        let (mut receive, mut send) = stream.split();
        send.send(request(ENDLESS, 8).into()).await.unwrap();
        send.finish().unwrap();
        let mut bytes = 0;
        while bytes < 2_000_000 {
            bytes += receive.receive().await.unwrap().unwrap().len();
        }
        receive.stop_sending(9_u8.into()).unwrap();
        assert_still_serves(&mut handle).await;
    });
}

#[test]
fn one_way_requests_are_answered_one_way() {
    let server = Server::start("");
    run(async {
        let (_client, connection) = connect(server.port).await;
        let (mut handle, mut acceptor) = connection.split();
        for wanted in [0_u64, 1, 200_000] {
            let mut send = handle.open_send_stream().await.unwrap();
            send.send(request(wanted, 5_000).into()).await.unwrap();
            send.close().await.unwrap();
            // A request for 0 bytes gets no stream: the next stream belongs to the next request.
            if wanted > 0 {
                let mut answer = acceptor.accept_receive_stream().await.unwrap().unwrap();
                assert_eq!(end_of(&mut answer).await, End::Finished(wanted));
            }
        }
        assert_still_serves(&mut handle).await;
    });
}

#[test]
fn one_way_streams_that_go_wrong_end_nobody() {
    let server = Server::start("");
    run(async {
        let (_client, connection) = connect(server.port).await;
        let (mut handle, mut acceptor) = connection.split();
        for length in 0..8 {
            let mut send = handle.open_send_stream().await.unwrap();
            send.send(vec![0; length].into()).await.unwrap();
            // The server may have stopped it before it has acknowledged its end.
            let _stopped = send.close().await;
        }
        let mut send = handle.open_send_stream().await.unwrap();
        send.send(request(100, 8).into()).await.unwrap();
        send.reset(3_u8.into()).unwrap();
        let mut send = handle.open_send_stream().await.unwrap();
        send.send(request(ENDLESS, 8).into()).await.unwrap();
        send.close().await.unwrap();
        let mut answer = acceptor.accept_receive_stream().await.unwrap().unwrap();
        answer.receive().await.unwrap().unwrap();
        answer.stop_sending(9_u8.into()).unwrap();
        assert_still_serves(&mut handle).await;
    });
}

async fn assert_still_serves(handle: &mut Handle) {
    assert_eq!(exchange(handle, request(77, 8)).await, End::Finished(77));
}
