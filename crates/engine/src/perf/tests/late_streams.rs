use super::super::quic;
use super::*;
use crate::transport::quic::{MultiplexedEndpoint, Stock};

/// Opens a stream that stays open and says no more.
fn opens(client: &mut MultiplexedEndpoint<'_>, link: Link) -> bool {
    let Some(stream) = client.open_stream(link) else { return false };
    let sending = Sending { bytes: &[7; 8], opens: true, finishes: false };
    client.send(link, stream, sending).is_some()
}

/// Gives both ends turns until this is so; whether it was in time.
fn comes_true(
    ends: &mut [MultiplexedEndpoint<'_>; 2],
    within: Duration,
    mut is_so: impl FnMut(&mut MultiplexedEndpoint<'_>) -> bool,
) -> bool {
    let end = Instant::now() + within;
    while Instant::now() < end {
        for endpoint in ends.iter_mut() {
            endpoint.wait(Duration::from_millis(1)).expect("the endpoint goes on");
            while endpoint.poll_event().is_some() {}
        }
        if is_so(&mut ends[1]) {
            return true;
        }
    }
    false
}

#[test]
fn streams_that_there_was_no_memory_for_are_allowed_once_there_is() {
    let plan = server_plan();
    let socket = quic::bind_server(plan.address).expect("a socket");
    let remote = socket.local_addr().unwrap().as_socket().unwrap();
    let tls = trust::server_config(0).expect("keys are made");
    let stock = Stock::new(0);
    let server = quic::server(tls, socket, &plan, 0, stock.clone()).expect("a server");
    let tls = trust::client_config(None).expect("keys are made");
    let mut client = test_client(tls, remote, false).expect("a client");
    let to = Destination { remote, local: None, server_name: String::new() };
    let link = client.connect(&to).expect("a connection begins");
    let mut ends = [server, client];
    let mut count = 0;
    let opened = comes_true(&mut ends, LIMIT, |client| {
        count += u32::from(opens(client, link));
        count == 16
    });
    assert!(opened, "{count} streams were opened");
    let more = |client: &mut MultiplexedEndpoint<'_>| opens(client, link);
    assert!(!comes_true(&mut ends, Duration::from_millis(300), more));
    stock.give_back(64 << 20);
    assert!(comes_true(&mut ends, LIMIT, more));
}
