//! What the original said, captured on loopback between its releases, replayed to each of our ends.

use linerate_wire::iperf3::client::{Client, ClientEvent};
use linerate_wire::iperf3::server::{Server, ServerEvent};
use linerate_wire::iperf3::{Cookie, Parameters, Protocol, Results};
use linerate_wire::{Machine, Now};

use crate::pair::cookie;

const CAPTURES: &[(&str, &str)] = &[
    ("authorized", include_str!("captures/authorized.txt")),
    ("server_output", include_str!("captures/server_output.txt")),
    ("tcp_3.12", include_str!("captures/tcp_3.12.txt")),
    ("tcp_3.12_3.21", include_str!("captures/tcp_3.12_client_3.21_server.txt")),
    ("tcp_3.21", include_str!("captures/tcp_3.21.txt")),
    ("tcp_3.21_3.12", include_str!("captures/tcp_3.21_client_3.12_server.txt")),
    ("tcp_bidir", include_str!("captures/tcp_bidir.txt")),
    ("tcp_two_reverse", include_str!("captures/tcp_two_reverse.txt")),
    ("udp_3.12", include_str!("captures/udp_3.12.txt")),
    ("udp_3.21", include_str!("captures/udp_3.21.txt")),
    ("udp_bidir", include_str!("captures/udp_bidir.txt")),
    ("udp_two_omit", include_str!("captures/udp_two_omit.txt")),
];

/// One end's part: states and JSON texts, in order.
enum Said {
    Bytes(Vec<u8>),
    Json(String),
}

impl Said {
    fn wire(&self) -> Vec<u8> {
        match self {
            Said::Bytes(bytes) => bytes.clone(),
            Said::Json(text) => {
                let length = u32::try_from(text.len()).unwrap().to_be_bytes();
                [length.as_slice(), text.as_bytes()].concat()
            }
        }
    }
}

fn said_by(who: &str, capture: &str) -> Vec<Said> {
    let mut said = Vec::new();
    for line in capture.lines().filter_map(|line| line.strip_prefix(who)) {
        let (kind, rest) = line.trim_start().split_once(' ').unwrap();
        match kind {
            "json" => said.push(Said::Json(rest.to_owned())),
            "bytes" => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap() as u8;
                let byte = |pair: &[u8]| digit(&pair[0]) << 4 | digit(&pair[1]);
                said.push(Said::Bytes(rest.as_bytes().chunks(2).map(byte).collect()));
            }
            "cookie" => assert_eq!(rest.len(), 36),
            other => panic!("{other}"),
        }
    }
    said
}

fn jsons(said: &[Said]) -> Vec<&str> {
    said.iter()
        .filter_map(|said| match said {
            Said::Json(text) => Some(text.as_str()),
            Said::Bytes(_) => None,
        })
        .collect()
}

/// Feeds what was said in pieces of a size to a machine, which is asked for events after each.
fn feed(said: &[Said], piece_bytes: usize, mut handle: impl FnMut(&[u8])) {
    for words in said {
        words.wire().chunks(piece_bytes).for_each(&mut handle);
    }
}

#[test]
fn our_server_understands_the_original_client() {
    for (name, capture) in CAPTURES {
        let client = said_by("client", capture);
        let [asked, counted] = jsons(&client)[..] else { panic!("{name}") };
        for piece_bytes in [1, 3, 64, 100_000] {
            let mut server = Server::new(0);
            let mut events = Vec::new();
            feed(&client, piece_bytes, |bytes| {
                server.handle_bytes(Now::at(0), bytes);
                while let Some(event) = server.poll_event() {
                    match &event {
                        ServerEvent::Asked(_) => {
                            server.create_streams();
                            server.start();
                        }
                        ServerEvent::Ended => server.exchange_results(0),
                        ServerEvent::Results(results) => server.send_results(0, results),
                        _ => {}
                    }
                    events.push(event);
                }
            });
            let parameters = Parameters::parse(asked.as_bytes()).unwrap();
            let streams = parameters.total_streams();
            let results = Results::parse(counted.as_bytes(), streams).unwrap();
            let expected = [
                ServerEvent::Asked(Box::new(parameters)),
                ServerEvent::Ended,
                ServerEvent::Results(Box::new(results)),
                ServerEvent::Done,
            ];
            assert_eq!(events, expected, "{name} {piece_bytes}");
        }
    }
}

#[test]
fn our_client_understands_the_original_server() {
    for (name, capture) in CAPTURES {
        let server = said_by("server", capture);
        let [counted] = jsons(&server)[..] else { panic!("{name}") };
        let asked = jsons(&said_by("client", capture))[0].to_owned();
        let parameters = Parameters::parse(asked.as_bytes()).unwrap();
        for piece_bytes in [1, 3, 64, 100_000] {
            let mut client = Client::new(cookie(), 0);
            let mut events = Vec::new();
            feed(&server, piece_bytes, |bytes| {
                client.handle_bytes(Now::at(0), bytes);
                while let Some(event) = client.poll_event() {
                    match event {
                        ClientEvent::ParametersWanted => client.send_parameters(&parameters),
                        ClientEvent::Go => {
                            client.end_test(0);
                            client.handle_bytes(Now::at(0), &[]);
                        }
                        _ => {}
                    }
                    events.push(event);
                }
            });
            let results = Results::parse(counted.as_bytes(), parameters.total_streams()).unwrap();
            let expected = [
                ClientEvent::ParametersWanted,
                ClientEvent::StreamsWanted,
                ClientEvent::Prepare,
                ClientEvent::Go,
                ClientEvent::ResultsWanted,
                ClientEvent::Results(Box::new(results)),
            ];
            assert_eq!(events, expected, "{name} {piece_bytes}");
        }
    }
}

#[test]
fn parameters_mean_what_the_original_was_told() {
    let asked = |name: &str| {
        let (_, capture) = CAPTURES.iter().find(|(other, _)| *other == name).unwrap();
        let client = said_by("client", capture);
        Parameters::parse(jsons(&client)[0].as_bytes()).unwrap()
    };
    let tcp = asked("tcp_3.12");
    assert_eq!((tcp.protocol, tcp.num_bytes, tcp.time_s), (Protocol::Tcp, 262_144, 0));
    assert_eq!((tcp.block_bytes, tcp.bandwidth_bps), (32_768, 8_000_000));
    assert_eq!(tcp.client_version, "3.12");
    let reverse = asked("tcp_two_reverse");
    assert!(reverse.reverse && reverse.parallel == 2 && !reverse.bidirectional);
    assert!((0..2).all(|index| !reverse.client_sends(index)));
    let both = asked("tcp_bidir");
    assert_eq!(
        (both.total_streams(), both.client_sends(0), both.client_sends(1)),
        (2, true, false)
    );
    let udp = asked("udp_bidir");
    assert_eq!((udp.protocol, udp.block_bytes), (Protocol::Udp, 1000));
    assert_eq!((udp.offload.gso, udp.offload.gso_buffer_bytes), (false, 65_507));
    assert!(asked("authorized").auth_token.is_some_and(|token| token.len() == 344));
    assert!(asked("server_output").get_server_output);
}

#[test]
fn results_mean_what_the_original_counted() {
    let server = said_by("server", include_str!("captures/tcp_3.12.txt"));
    let results = Results::parse(jsons(&server)[0].as_bytes(), 1).unwrap();
    // 3.12 writes -1 as the largest number of 64 bits.
    assert_eq!(results.sender_has_retransmits, -1);
    let stream = results.stream(1).unwrap();
    assert_eq!((stream.bytes, stream.retransmits), (229_376, None));
    assert_eq!(stream.seconds(), Some(0.277783));
    assert_eq!(stream.omitted_packets, None);
    assert_eq!(results.congestion_used.as_deref(), Some("bbr"));
}

#[test]
fn a_cookie_of_the_original_is_one() {
    for (name, capture) in CAPTURES {
        let text = capture.lines().next().unwrap().strip_prefix("client cookie ").unwrap();
        let mut bytes = [0; 37];
        bytes[..36].copy_from_slice(text.as_bytes());
        assert_eq!(Cookie::of_wire(bytes).text(), text, "{name}");
    }
}
