//! The netperf dialect's machines. Takes any bytes and panics only when a machine is wrong.

use linerate_wire::netperf::client::{Client, ClientEvent};
use linerate_wire::netperf::message::Form;
use linerate_wire::netperf::omni;
use linerate_wire::netperf::server::{Server, ServerEvent};
use linerate_wire::netperf::test::{Part, Request, Results, Setup, Transport};
use linerate_wire::{Machine, Now};

/// Every test that has a classic request.
const CLASSIC: [(Part, Transport); 7] = [
    (Part::Receive, Transport::Tcp),
    (Part::Send, Transport::Tcp),
    (Part::Answer, Transport::Tcp),
    (Part::AnswerOnce, Transport::Tcp),
    (Part::Accept, Transport::Tcp),
    (Part::Receive, Transport::Udp),
    (Part::Answer, Transport::Udp),
];
/// What the server that wants one wants to hear first.
const PASSPHRASE: &[u8] = b"sesame";

/// Servers, one of which wants a passphrase, and clients, of which one asks for an omni test and
/// each other for one of before 2.6, all with a peer that says anything, in pieces of any size. What a
/// server understands it understands again when a client of ours says it.
pub fn netperf_messages(data: &[u8]) {
    let Some((piece_bytes, stream)) = data.split_first() else { return };
    let mut open = Server::new(None, 0);
    let mut guarded = Server::new(std::str::from_utf8(PASSPHRASE).ok(), 0);
    let was_said = stream.windows(PASSPHRASE.len()).any(|said| said == PASSPHRASE);
    let omni = client(Form::Long, Part::Receive, Transport::Tcp);
    let classic = CLASSIC.map(|(part, transport)| client(Form::Short, part, transport));
    let mut clients: Vec<Client> = std::iter::once(omni).chain(classic).collect();
    let mut now_ns = 0;
    let pieces = stream.chunks(usize::from(*piece_bytes).max(1));
    for piece in pieces.chain(std::iter::once(&[][..])) {
        now_ns += 300_000_000;
        serve(&mut open, piece, now_ns);
        let asked = serve(&mut guarded, piece, now_ns);
        assert!(asked == 0 || was_said, "a server with a passphrase does nothing without it");
        for client in &mut clients {
            client.handle_bytes(Now::at(now_ns), piece);
            while let Some(event) = client.poll_event() {
                if let ClientEvent::Setup(setup) = event {
                    assert!(setup.data_port > 0, "a client connects to a port only");
                }
            }
        }
    }
}

/// A client that has asked for a test, and said a passphrase before it.
fn client(form: Form, part: Part, transport: Transport) -> Client {
    let mut client = Client::new(form, std::str::from_utf8(PASSPHRASE).ok());
    let asked = client.request(0, &Request::new(part, transport), None);
    assert_eq!(asked, Ok(()), "every test here has a message");
    while let Some(message) = client.poll_message() {
        assert_eq!(message.len(), form.message_bytes(), "messages are whole");
    }
    client
}

/// Feeds a server a piece; how much it was asked for.
fn serve(server: &mut Server, piece: &[u8], now_ns: u64) -> u32 {
    let mut asked = 0;
    // Time passes before a piece: only then are messages known to be short.
    server.handle_timeout(Now::at(now_ns));
    server.handle_bytes(Now::at(now_ns), piece);
    while let Some(event) = server.poll_event() {
        match event {
            ServerEvent::Test { request, .. } => {
                check_round_trip(&request);
                server.set_up(&Setup { data_port: 1, ..Setup::default() });
                server.finish(now_ns, &Results::default());
                asked += 1;
            }
            ServerEvent::Calibration => {
                server.calibrate(now_ns, 100.0, 1);
                asked += 1;
            }
            ServerEvent::Ended | ServerEvent::Failed(_) => {}
        }
    }
    while let Some(message) = server.poll_message() {
        let whole = [Form::Short, Form::Long].map(Form::message_bytes);
        assert!(whole.contains(&message.len()), "messages are whole");
    }
    asked
}

fn check_round_trip(request: &Request) {
    let message = omni::encode_request(Form::Long, request, None);
    let again = omni::decode_request(&message).map(|again| (again.part, again.length));
    // No classic test is beyond what an omni request says, but for lengths of datagrams' counts.
    assert_eq!(again, Ok((request.part, request.length)));
}
