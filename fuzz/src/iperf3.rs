//! iperf3's machines, documents and datagrams. Each function takes any bytes and panics only when
//! the machine or decoder is wrong.

use linerate_wire::iperf3::client::{Client, ClientEvent};
use linerate_wire::iperf3::datagram::{Arrivals, Header, is_answer};
use linerate_wire::iperf3::server::{Server, ServerEvent};
use linerate_wire::iperf3::token::Token;
use linerate_wire::iperf3::{Code, Cookie, Parameters, Results};
use linerate_wire::{Machine, Now};

/// A client whose caller answers it, and a server that says anything: the first byte says in what
/// pieces the rest comes.
pub fn iperf3_client(data: &[u8]) {
    let Some((piece, rest)) = data.split_first() else { return };
    let mut client = Client::new(Cookie::of_random([1; 36]), 0);
    let mut ends = 0;
    for (at, piece) in rest.chunks(usize::from(*piece).max(1)).enumerate() {
        let now_ns = at as u64 * 1_000_000;
        let was_over = client.is_over();
        client.handle_bytes(Now::at(now_ns), piece);
        client.handle_timeout(Now::at(now_ns));
        while let Some(event) = client.poll_event() {
            assert!(!was_over, "nothing happens after the end");
            match event {
                ClientEvent::ParametersWanted => client.send_parameters(&Parameters::default()),
                ClientEvent::Go => client.end_test(now_ns),
                ClientEvent::ResultsWanted => client.send_results(&Results::default()),
                ClientEvent::StreamsWanted | ClientEvent::Prepare => {}
                ClientEvent::Results(_)
                | ClientEvent::ServerTerminated
                | ClientEvent::Failed(_) => ends += 1,
            }
        }
        while client.poll_message().is_some() {}
    }
    client.handle_end(Now::at(0));
    while client.poll_event().is_some() {
        ends += 1;
    }
    assert!(client.is_over() && ends == 1, "a conversation ends once");
}

/// A server whose caller answers it, and a client that says anything, likewise.
pub fn iperf3_server(data: &[u8]) {
    let Some((piece, rest)) = data.split_first() else { return };
    let mut server = Server::new(0);
    let mut ends = 0;
    for (at, piece) in rest.chunks(usize::from(*piece).max(1)).enumerate() {
        let now_ns = at as u64 * 1_000_000;
        let was_over = server.is_over();
        server.handle_bytes(Now::at(now_ns), piece);
        server.handle_timeout(Now::at(now_ns));
        while let Some(event) = server.poll_event() {
            assert!(!was_over, "nothing happens after the end");
            match event {
                ServerEvent::Asked(_) => {
                    server.create_streams();
                    server.start();
                }
                ServerEvent::Ended => server.exchange_results(now_ns),
                ServerEvent::Results(theirs) => server.send_results(now_ns, &theirs),
                ServerEvent::Done
                | ServerEvent::ClientTerminated
                | ServerEvent::Left
                | ServerEvent::Failed(_) => ends += 1,
            }
        }
        while server.poll_message().is_some() {}
    }
    server.handle_end(Now::at(0));
    while server.poll_event().is_some() {
        ends += 1;
    }
    assert!(server.is_over() && ends == 1, "a conversation ends once");
}

/// JSON of both kinds, and tokens: what is read is written and read again alike.
pub fn iperf3_documents(data: &[u8]) {
    match Parameters::parse(data) {
        Ok(parameters) => {
            assert!((1..=2 << 20).contains(&parameters.total_streams()));
            assert!((1..=1 << 20).contains(&parameters.block_bytes));
            assert_eq!(Parameters::parse(parameters.render().as_bytes()), Ok(parameters));
        }
        Err(code) => assert_ne!(code, Code(0)),
    }
    // So few that texts of the fuzzer's length have more.
    let most_streams = 4;
    if let Ok(results) = Results::parse(data, most_streams) {
        assert!(results.streams.len() <= most_streams);
        let again = Results::parse(results.render().as_bytes(), most_streams);
        assert!(again.is_ok_and(|again| again.streams.len() == results.streams.len()));
    }
    if let Some(token) = Token::parse(data) {
        assert!(!token.user.contains('\n'));
    }
}

/// Datagrams of 20 bytes, in a row.
pub fn iperf3_datagram(data: &[u8]) {
    let mut arrivals = Arrivals::default();
    for (at, datagram) in data.chunks(20).enumerate() {
        let wide = at % 2 == 0;
        let Some(header) = Header::decode(wide, datagram) else {
            assert!(datagram.len() < 16);
            continue;
        };
        let mut again = datagram.to_vec();
        header.encode(wide, &mut again);
        // A wire whose microseconds make a second or more comes back with the second carried.
        let wrap_ns = (1_u64 << 32) * 1_000_000_000;
        let same = |again: Header| {
            again.number == header.number && again.sent_ns % wrap_ns == header.sent_ns % wrap_ns
        };
        assert!(Header::decode(wide, &again).is_some_and(same));
        assert!(!is_answer(datagram) || header.number == 0);
        arrivals.record(header, at as u64);
        assert!(arrivals.jitter_s() >= 0.0);
        assert!(arrivals.highest >= header.number);
    }
}
