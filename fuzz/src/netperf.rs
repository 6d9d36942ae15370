//! The netperf dialect's machines. Takes any bytes and panics only when a machine is wrong.

use linerate_wire::netperf::client::{Client, ClientEvent};
use linerate_wire::netperf::message::Form;
use linerate_wire::netperf::omni;
use linerate_wire::netperf::server::{Server, ServerEvent};
use linerate_wire::netperf::test::{Carrier, Part, Request, Results, Setup};

/// A server and a client, each with a peer that says anything, in pieces of any size. What a server
/// understands it understands again when a client of ours says it.
pub fn netperf_messages(data: &[u8]) {
    let Some((piece_bytes, stream)) = data.split_first() else { return };
    let mut server = Server::new(None, 0);
    let mut client = Client::new(Form::Long, None);
    let asked = client.request(&Request::new(Part::Receive, Carrier::Tcp), None, 0);
    assert_eq!(asked, Ok(()), "an omni request has a message");
    let mut now_ns = 0;
    for piece in stream.chunks(usize::from(*piece_bytes).max(1)) {
        now_ns += 300_000_000;
        server.handle_bytes(piece, now_ns);
        server.handle_timeout(now_ns);
        while let Some(event) = server.poll_event() {
            match event {
                ServerEvent::Test { request, .. } => {
                    check_round_trip(&request);
                    server.set_up(&Setup { data_port: 1, ..Setup::default() });
                    server.finish(&Results::default(), now_ns);
                }
                ServerEvent::Calibration => server.calibrate(100.0, 1, now_ns),
                ServerEvent::Ended | ServerEvent::Failed(_) => {}
            }
        }
        while let Some(message) = server.poll_write() {
            let whole = [Form::Short, Form::Long].map(Form::message_bytes);
            assert!(whole.contains(&message.len()), "messages are whole");
        }
        client.handle_bytes(piece, now_ns);
        while let Some(event) = client.poll_event() {
            if let ClientEvent::Setup(setup) = event {
                assert!(setup.data_port > 0, "a client connects to a port only");
            }
        }
    }
}

fn check_round_trip(request: &Request) {
    let message = omni::encode_request(Form::Long, request, None);
    let again = omni::decode_request(&message).map(|again| (again.part, again.length));
    // No classic test is beyond what an omni request says, but for lengths of datagrams' counts.
    assert_eq!(again, Ok((request.part, request.length)));
}
