//! Client against server: every test, in both forms of messages, cut at every byte.

use linerate_wire::netperf::client::{Client, ClientEvent};
use linerate_wire::netperf::fault::Fault;
use linerate_wire::netperf::message::{Form, Message, UNKNOWN_REQUEST, code};
use linerate_wire::netperf::server::{Server, ServerEvent};
use linerate_wire::netperf::test::{Cpu, Dirt, Length, Part, Request, Results, Setup, Transport};
use linerate_wire::{Machine, Now};

const SECOND_NS: u64 = 1_000_000_000;
const PARTS: [(Part, Transport); 7] = [
    (Part::Receive, Transport::Tcp),
    (Part::Send, Transport::Tcp),
    (Part::Answer, Transport::Tcp),
    (Part::AnswerOnce, Transport::Tcp),
    (Part::Accept, Transport::Tcp),
    (Part::Receive, Transport::Udp),
    (Part::Answer, Transport::Udp),
];

/// Both ends and the time.
struct Pair {
    client: Client,
    server: Server,
    now_ns: u64,
    /// Bytes that arrive at once.
    piece: usize,
}

impl Pair {
    fn new(form: Form, said: Option<&str>, expected: Option<&str>, piece: usize) -> Self {
        let client = Client::new(form, said);
        Self { client, server: Server::new(expected, 0), now_ns: 1, piece }
    }

    /// Lets everything that was said arrive.
    fn exchange(&mut self) {
        while let Some(bytes) = self.client.poll_message() {
            for piece in bytes.chunks(self.piece) {
                self.server.handle_bytes(Now::at(self.now_ns), piece);
            }
        }
        // A server tells short messages by the silence behind them.
        self.now_ns += SECOND_NS / 2;
        self.server.handle_timeout(Now::at(self.now_ns));
        while let Some(bytes) = self.server.poll_message() {
            for piece in bytes.chunks(self.piece) {
                self.client.handle_bytes(Now::at(self.now_ns), piece);
            }
        }
    }

    /// A test as far as its data.
    fn answer_at_once(&mut self, request: &Request) {
        self.client.request(0, request, None).unwrap();
        self.exchange();
        assert!(self.server.poll_event().is_some());
        self.server.set_up(&Setup { data_port: 5, ..Setup::default() });
        self.exchange();
    }

    /// One whole test; what each end has heard.
    fn test(&mut self, request: &Request, setup: &Setup, results: &Results) -> (Request, Results) {
        self.client.request(self.now_ns, request, Some(1)).unwrap();
        self.exchange();
        let asked = match self.server.poll_event() {
            Some(ServerEvent::Test { request, cpu: Some(1), .. }) => *request,
            other => panic!("{other:?}"),
        };
        self.server.set_up(setup);
        self.exchange();
        match self.client.poll_event() {
            Some(ClientEvent::Setup(told)) => assert_eq!(told.data_port, setup.data_port),
            other => panic!("{other:?}"),
        }
        self.server.finish(self.now_ns, results);
        self.exchange();
        match self.client.poll_event() {
            Some(ClientEvent::Results(told)) => (asked, told),
            other => panic!("{other:?}"),
        }
    }
}

fn some_request(part: Part, transport: Transport) -> Request {
    Request {
        length: Length::Seconds(3),
        request_bytes: if part == Part::Answer || part == Part::AnswerOnce { 100 } else { 1 },
        no_delay: transport == Transport::Tcp,
        port: 4242,
        ..Request::new(part, transport)
    }
}

fn some_results() -> Results {
    Results {
        bytes_received: 1 << 20,
        receive_calls: 7,
        bytes_sent: 1 << 21,
        send_calls: 9,
        transactions: 11,
        elapsed_s: Some(1.5),
        ..Results::default()
    }
}

#[test]
fn every_test_arrives_whole_whatever_the_cuts() {
    let setup = Setup { data_port: 999, ..Setup::default() };
    for form in [Form::Long, Form::Short] {
        for piece in [1, 7, 255, 256, 257, 656, 1000] {
            let mut pair = Pair::new(form, None, None, piece);
            // All of them over one connection.
            for (part, transport) in PARTS {
                let request = some_request(part, transport);
                let (asked, told) = pair.test(&request, &setup, &some_results());
                assert_eq!((asked.part, asked.transport), (part, transport));
                assert_eq!((asked.length, asked.port), (request.length, 4242));
                assert_eq!(asked.request_bytes, request.request_bytes, "{part:?}");
                assert_eq!(told.elapsed_s, Some(1.5), "{form:?} {part:?}");
            }
        }
    }
}

#[test]
fn a_socket_buffer_of_0_arrives_and_an_absent_one_does_not() {
    for form in [Form::Long, Form::Short] {
        for (part, transport) in PARTS {
            for buffer_bytes in [Some(0), None] {
                let request = Request {
                    send_buffer_bytes: buffer_bytes,
                    receive_buffer_bytes: buffer_bytes,
                    ..some_request(part, transport)
                };
                let setup = Setup { data_port: 9, ..Setup::default() };
                let mut pair = Pair::new(form, None, None, usize::MAX);
                let (heard, _) = pair.test(&request, &setup, &some_results());
                let buffers = (heard.send_buffer_bytes, heard.receive_buffer_bytes);
                // Short messages of UDP_STREAM have no send buffer.
                let sends =
                    form == Form::Long || (part, transport) != (Part::Receive, Transport::Udp);
                let expected = (buffer_bytes.filter(|_| sends), buffer_bytes);
                assert_eq!(buffers, expected, "{form:?} {part:?} {transport:?}");
            }
        }
    }
}

#[test]
fn the_whole_of_an_omni_test_arrives() {
    let request = Request {
        send_bytes: Some(1000),
        receive_bytes: Some(2000),
        send_buffer_bytes: Some(3000),
        receive_buffer_bytes: Some(4000),
        response_bytes: 200,
        address: Some("fe80::1:2:3".parse().unwrap()),
        client_address: Some("2001:db8::7".parse().unwrap()),
        family: linerate_wire::netperf::test::Family::V6,
        client_port: 77,
        pacing: Some((5, 1000)),
        cpu: true,
        cpu_rate: 2.5,
        routed: false,
        keep_alive: true,
        defer_accept: true,
        dont_fragment: true,
        packet_info: true,
        connected: true,
        no_copy: true,
        priority: Some(3),
        service: Some(0xb8),
        congestion: Some("reno".to_owned()),
        fill_file: Some("file".to_owned()),
        fast_open: true,
        dirt: Dirt { send_bytes: Some(1), receive_bytes: Some(2), clean_bytes: Some(3) },
        ..some_request(Part::Answer, Transport::Tcp)
    };
    let results = Results {
        bytes_received: (5 << 32) + 17,
        bytes_sent: u64::MAX,
        failed_sends: 4,
        cpu: Some(Cpu { util: 12.5, peak_cpu: 1, peak: 99.0, method: 8, ..Cpu::default() }),
        cpus: 2,
        retransmits: 6,
        congestion: Some("reno".to_owned()),
        receive_buffer_bytes: 5,
        send_buffer_bytes: 6,
        ..some_results()
    };
    let setup = Setup { data_port: 1, cpu: true, ..Setup::default() };
    let mut pair = Pair::new(Form::Long, None, None, 656);
    assert_eq!(pair.test(&request, &setup, &results), (request, results));
}

#[test]
fn a_passphrase_opens_the_door_in_both_forms() {
    let setup = Setup { data_port: 999, ..Setup::default() };
    let request = some_request(Part::Receive, Transport::Tcp);
    for form in [Form::Long, Form::Short] {
        let mut pair = Pair::new(form, Some("open"), Some("open"), 100);
        pair.test(&request, &setup, &some_results());
        for said in [None, Some("opem"), Some("opened"), Some("")] {
            let mut pair = Pair::new(form, said, Some("open"), 100);
            pair.client.request(1, &request, None).unwrap();
            pair.exchange();
            assert_eq!(pair.server.poll_event(), Some(ServerEvent::Failed(Fault::Passphrase)));
            assert_eq!(pair.server.poll_message(), None);
        }
    }
}

#[test]
fn a_client_asks_what_processors_are_worth() {
    let mut pair = Pair::new(Form::Long, None, None, 656);
    pair.client.calibrate(1);
    pair.exchange();
    assert_eq!(pair.server.poll_event(), Some(ServerEvent::Calibration));
    pair.server.calibrate(2, 100.0, 8);
    pair.exchange();
    let told = ClientEvent::Calibration { rate: 100.0, cpus: 8 };
    assert_eq!(pair.client.poll_event(), Some(told));
}

#[test]
fn a_refusal_names_its_number_and_leaves_the_server_ready() {
    let request = some_request(Part::Receive, Transport::Tcp);
    let mut pair = Pair::new(Form::Long, None, None, 656);
    pair.client.request(1, &request, None).unwrap();
    pair.exchange();
    assert!(pair.server.poll_event().is_some());
    pair.server.refuse(2, 98);
    pair.exchange();
    let fault = Fault::Remote { number: 98 };
    assert_eq!(pair.client.poll_event(), Some(ClientEvent::Failed(fault)));
    pair.client = Client::new(Form::Long, None);
    pair.test(&request, &Setup { data_port: 5, ..Setup::default() }, &some_results());
}

#[test]
fn old_questions_are_answered_and_unknown_ones_refused() {
    let mut server = Server::new(None, 0);
    let mut ask = |asked: i32| {
        server.handle_bytes(Now::at(1), &Message::new(Form::Long, asked, -1).into_bytes());
        let answer = server.poll_message().unwrap();
        let head: [u8; 8] = *answer.first_chunk().unwrap();
        (u64::from_be_bytes(head) >> 32, u64::from_be_bytes(head) as u32, answer)
    };
    assert_eq!(ask(code::DEBUG_ON).0, 3);
    let (number, error, answer) = ask(code::SYSINFO);
    assert_eq!((number, error), (601, 0));
    assert!(answer.get(8..).unwrap().starts_with(b",Deprecated,Deprecated"));
    for unknown in [4, 22, 500, 99, i32::MAX] {
        let (number, error, _) = ask(unknown);
        assert_eq!((number, error as i32), (0, UNKNOWN_REQUEST), "{unknown}");
    }
}

#[test]
fn silence_ends_the_conversation_at_either_end() {
    let mut server = Server::new(None, 0);
    server.handle_bytes(Now::at(SECOND_NS), &[0; 100]);
    let due_ns = server.next_time().unwrap();
    assert!(due_ns <= 20 * SECOND_NS);
    server.handle_timeout(Now::at(due_ns));
    assert!(matches!(server.poll_event(), Some(ServerEvent::Failed(Fault::Silent { .. }))));
    let mut client = Client::new(Form::Long, None);
    client.request(0, &some_request(Part::Receive, Transport::Tcp), None).unwrap();
    client.handle_timeout(Now::at(client.next_time().unwrap()));
    assert!(matches!(client.poll_event(), Some(ClientEvent::Failed(Fault::Silent { .. }))));
}

#[test]
fn a_message_that_comes_byte_by_byte_has_no_longer_than_another() {
    let mut server = Server::new(None, 0);
    let mut now_ns = 0;
    let fails = (0..656).any(|_| {
        now_ns += SECOND_NS;
        server.handle_bytes(Now::at(now_ns), &[0]);
        server.handle_timeout(Now::at(now_ns));
        matches!(server.poll_event(), Some(ServerEvent::Failed(Fault::Silent { .. })))
    });
    assert!(fails && now_ns < 30 * SECOND_NS, "{now_ns}");
}

#[test]
fn results_are_awaited_until_the_servers_own_timer_can_have_ended() {
    // The server counts from the data, or from its answer where none reaches it.
    for (begun_s, over_s, knows, due_s) in
        [(1, 4, true, 24), (1, 4, false, 28), (30, 33, true, 53), (30, 33, false, 57)]
    {
        let mut pair = Pair::new(Form::Long, None, None, 656);
        pair.answer_at_once(&some_request(Part::AnswerOnce, Transport::Tcp));
        pair.client.handle_data_begun(begun_s * SECOND_NS);
        assert_eq!(pair.client.next_time(), None, "while data goes, nobody is late");
        pair.client.handle_data_over(over_s * SECOND_NS, knows);
        assert_eq!(pair.client.next_time(), Some(due_s * SECOND_NS), "{begun_s} {knows}");
    }
}

#[test]
fn results_that_come_early_are_heard_once_and_an_end_behind_them_is_no_failure() {
    let mut pair = Pair::new(Form::Long, None, None, 656);
    pair.answer_at_once(&some_request(Part::Receive, Transport::Udp));
    assert!(matches!(pair.client.poll_event(), Some(ClientEvent::Setup(_))));
    assert!(pair.client.awaits_results());
    pair.server.finish(pair.now_ns, &some_results());
    pair.exchange();
    assert!(!pair.client.awaits_results());
    assert!(matches!(pair.client.poll_event(), Some(ClientEvent::Results(_))));
    pair.client.handle_end(Now::at(0));
    assert!(pair.client.is_over());
    assert_eq!((pair.client.poll_event(), pair.client.next_time()), (None, None));
}

#[test]
fn an_end_in_the_middle_is_told_from_one_at_the_end() {
    let mut server = Server::new(None, 0);
    server.handle_end(Now::at(0));
    assert_eq!(server.poll_event(), Some(ServerEvent::Ended));
    let mut server = Server::new(None, 0);
    server.handle_bytes(Now::at(1), &[0; 10]);
    server.handle_end(Now::at(0));
    assert!(matches!(server.poll_event(), Some(ServerEvent::Failed(Fault::Closed { .. }))));
    let mut pair = Pair::new(Form::Long, None, None, 656);
    pair.client.request(0, &some_request(Part::Send, Transport::Tcp), None).unwrap();
    pair.exchange();
    assert!(pair.server.is_busy());
    assert!(matches!(pair.server.poll_event(), Some(ServerEvent::Test { .. })));
    pair.server.handle_end(Now::at(0));
    assert!(matches!(pair.server.poll_event(), Some(ServerEvent::Failed(Fault::Closed { .. }))));
}
