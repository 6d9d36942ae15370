//! The original's words, replayed to each of our ends.

use linerate_wire::netperf::classic::Classic;
use linerate_wire::netperf::client::{Client, ClientEvent};
use linerate_wire::netperf::message::{Form, Message, code};
use linerate_wire::netperf::omni;
use linerate_wire::netperf::server::{Server, ServerEvent};
use linerate_wire::netperf::test::{
    Cpu, Family, Length, Part, Request, Results, Rings, Setup, Transport,
};
use linerate_wire::{Machine, Now};

use crate::captured::{captured, request_of};

/// What the original's client asked for.
fn request(name: &str) -> Request {
    let mut server = Server::new(None, 0);
    server.handle_bytes(Now::at(1), &request_of(name));
    match server.poll_event() {
        Some(ServerEvent::Test { request, cpu: None, .. }) => *request,
        other => panic!("{name}: {other:?}"),
    }
}

/// What our client makes of the original server's answer and results.
fn answers(name: &str) -> (Setup, Results) {
    let asked = request(name);
    let mut client = Client::new(Form::Long, None);
    client.request(0, &asked, None).unwrap();
    let mut events = Vec::new();
    for (from_client, bytes) in captured(name) {
        if !from_client {
            client.handle_bytes(Now::at(1), &bytes);
            events.extend(std::iter::from_fn(|| client.poll_event()));
        }
    }
    match <[ClientEvent; 2]>::try_from(events) {
        Ok([ClientEvent::Setup(setup), ClientEvent::Results(results)]) => (setup, results),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn the_original_asks_for_what_its_user_did() {
    let tests = [
        ("tcp_stream", Part::Receive, Transport::Tcp, Length::Seconds(1)),
        ("tcp_stream_bytes", Part::Receive, Transport::Tcp, Length::Units(1_000_000)),
        ("tcp_maerts", Part::Send, Transport::Tcp, Length::Seconds(1)),
        ("tcp_rr", Part::Answer, Transport::Tcp, Length::Seconds(1)),
        ("tcp_rr_trans", Part::Answer, Transport::Tcp, Length::Units(1_000)),
        ("tcp_crr", Part::AnswerOnce, Transport::Tcp, Length::Seconds(1)),
        ("tcp_cc", Part::Accept, Transport::Tcp, Length::Seconds(1)),
        ("udp_stream", Part::Receive, Transport::Udp, Length::Seconds(1)),
        ("udp_rr", Part::Answer, Transport::Udp, Length::Seconds(1)),
    ];
    for (name, part, transport, length) in tests {
        let asked = request(name);
        let got = (asked.part, asked.transport, asked.length, asked.family);
        assert_eq!(got, (part, transport, length, Family::V4), "{name}");
    }
    let named = request("udp_rr_netperf_ip");
    let here = Some("127.0.0.1".parse().unwrap());
    assert_eq!((named.address, named.client_address), (here, here));
    assert_eq!(named.client_port, 45_986);
    assert!(request("tcp_stream_cpu").cpu && !request("tcp_stream").cpu);
    assert_eq!(request("error_port").port, 22);
}

#[test]
fn a_request_of_ours_is_the_originals_byte_for_byte() {
    for name in ["tcp_stream", "tcp_maerts", "tcp_rr", "tcp_rr_trans", "tcp_crr", "udp_stream"] {
        let ours = omni::encode_request(Form::Long, &request(name), None);
        assert_eq!(ours.into_bytes(), request_of(name), "{name}");
    }
    let ours = Classic::Cc.encode_request(Form::Long, &request("tcp_cc"), None);
    assert_eq!(ours.into_bytes(), request_of("tcp_cc"));
}

#[test]
fn a_classic_request_says_how_the_buffers_of_its_direction_lie() {
    let rings = Rings {
        send_alignment: 16,
        send_offset: 1,
        receive_alignment: 32,
        receive_offset: 2,
        ..Rings::default()
    };
    for (part, transport, index, words) in [
        (Part::Receive, Transport::Tcp, 3, [32, 2].as_slice()),
        (Part::Send, Transport::Tcp, 3, &[16, 1]),
        (Part::Receive, Transport::Udp, 3, &[32, 2]),
        (Part::Answer, Transport::Tcp, 2, &[32, 2, 16, 1]),
    ] {
        let request = Request { rings, ..Request::new(part, transport) };
        let classic = Classic::for_request(&request).unwrap();
        let message = classic.encode_request(Form::Short, &request, None);
        let said = (index..index + words.len()).map(|index| message.u32_at(8 + 4 * index));
        assert_eq!(said.collect::<Vec<_>>(), words, "{part:?} {transport:?}");
    }
}

#[test]
fn a_set_up_answer_of_ours_is_the_originals_byte_for_byte() {
    for name in ["tcp_stream", "tcp_rr", "tcp_crr", "udp_stream", "udp_rr", "tcp_stream_cpu"] {
        let (setup, _) = answers(name);
        let theirs = captured(name).into_iter().find(|(client, _)| !client).unwrap().1;
        assert_eq!(omni::encode_setup(Form::Long, &setup).into_bytes(), theirs, "{name}");
    }
}

#[test]
fn the_originals_figures_are_read() {
    let (setup, results) = answers("tcp_stream");
    assert_eq!((setup.data_port, setup.receive_bytes), (35_451, 131_072));
    assert_eq!((results.bytes_received, results.receive_calls), (404_321_280, 12_499));
    assert!((results.elapsed_s.unwrap() - 1.00542).abs() < 1e-4);
    let (_, results) = answers("tcp_rr");
    assert_eq!((results.transactions, results.bytes_sent), (0x932d, 0x932d));
    assert_eq!(results.congestion.as_deref(), Some("bbr"));
}

#[test]
fn the_originals_classic_figures_are_read() {
    // A server that answers a classic test, as its words came.
    let mut theirs = captured("tcp_cc").into_iter().filter(|(client, _)| !client);
    let mut client = Client::new(Form::Short, None);
    client.request(0, &request("tcp_cc"), None).unwrap();
    // Classic answers are far shorter than either form.
    let mut next = || theirs.next().unwrap().1.get(..256).unwrap().to_vec();
    client.handle_bytes(Now::at(1), &next());
    match client.poll_event() {
        Some(ClientEvent::Setup(setup)) => assert_eq!(setup.data_port, 33_939),
        other => panic!("{other:?}"),
    }
    client.handle_bytes(Now::at(1), &next());
    match client.poll_event() {
        Some(ClientEvent::Results(results)) => {
            assert_eq!((results.transactions, results.bytes_received), (13_955, 27_910));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn classic_results_know_no_shares_of_the_use() {
    for name in ["tcp_cc", "udp_rr"] {
        let request = Request { cpu: true, ..request(name) };
        let classic = Classic::for_request(&request).unwrap();
        let told = Cpu { util: 12.5, method: 8, ..Cpu::default() };
        let results = Results { cpu: Some(told), cpus: 2, ..Results::default() };
        let message = classic.encode_results(Form::Short, &results);
        let read = classic.decode_results(&message, true).cpu.unwrap();
        assert_eq!((read.util, read.method, read.peak_cpu), (12.5, 8, -1));
        let shares = [read.user, read.system, read.iowait, read.irq, read.softirq, read.peak];
        assert_eq!(shares, [Cpu::UNKNOWN; 6]);
        assert_eq!(classic.decode_results(&message, false).cpu, None);
    }
}

#[test]
fn options_that_classic_requests_cannot_carry_are_refused() {
    let plain = Request::new(Part::Receive, Transport::Tcp);
    let refused = [
        (Request { congestion: Some("bbr".to_owned()), ..plain.clone() }, "its congestion control"),
        (Request { priority: Some(6), ..plain.clone() }, "the priority of its packets"),
        (Request { service: Some(8), ..plain.clone() }, "its type of service"),
        (Request { fill_file: Some("x".to_owned()), ..plain.clone() }, "a file to send from"),
        (Request::new(Part::Send, Transport::Udp), "in which the server sends datagrams"),
    ];
    for (request, why) in refused {
        let mut client = Client::new(Form::Short, None);
        let told = client.request(0, &request, None).unwrap_err();
        assert!(told.contains(why), "{told}");
        assert_eq!(client.request(0, &plain, None), Ok(()));
    }
}

#[test]
fn figures_of_processors_count_only_where_they_were_asked_for() {
    // What stands in their place otherwise is left over from other messages.
    assert_eq!(answers("tcp_stream").1.cpu, None);
    let cpu = answers("tcp_stream_cpu").1.cpu.unwrap();
    assert!(cpu.util > 0.0 && cpu.util <= 100.0, "{cpu:?}");
    assert_eq!(cpu.method, 8);
}

#[test]
fn the_originals_passphrase_is_understood() {
    let messages: Vec<_> =
        captured("passphrase").into_iter().filter(|(client, _)| *client).collect();
    for (known, admitted) in [(Some("sesame"), true), (None, true), (Some("sesam"), false)] {
        let mut server = Server::new(known, 0);
        for (_, bytes) in &messages {
            server.handle_bytes(Now::at(1), bytes);
        }
        let event = server.poll_event();
        assert_eq!(matches!(event, Some(ServerEvent::Test { .. })), admitted, "{known:?}");
        assert!(server.poll_message().is_none(), "a passphrase is not answered");
    }
    let mut client = Client::new(Form::Long, Some("sesame"));
    assert_eq!(client.poll_message(), messages.first().map(|(_, bytes)| bytes.clone()));
}

#[test]
fn a_refusal_has_the_code_of_an_answer() {
    let mut server = Server::new(None, 0);
    server.handle_bytes(Now::at(1), &request_of("tcp_rr"));
    assert!(server.poll_event().is_some());
    server.refuse(1, 98);
    let refusal = server.poll_message().unwrap();
    let expected = Message::new(Form::Long, code::OMNI + 1, 98);
    assert_eq!(refusal, expected.into_bytes());
}
