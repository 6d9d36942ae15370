//! Tests made up by hand: events with fixed figures, for the printers.

use linerate::personality::iperf3::context::Context;
use linerate::personality::iperf3::plan::test_plan;
use linerate::personality::iperf3::read;
use linerate_engine::iperf3::{
    Control, DatagramFigures, Event, Interval, Report, Role, Start, Stream, StreamInterval,
    StreamReport, TcpExtremes, TcpFigures, Totals,
};
use linerate_personality::iperf3::release::Release;
use linerate_wire::iperf3::results::CpuPercent;
use linerate_wire::iperf3::{Cookie, Parameters, Protocol, stream_id};

/// One test as seen from one end.
pub(crate) struct Scene {
    pub(crate) context: Context,
    pub(crate) events: Vec<Event>,
}

/// The test that these client's words ask for, at one end, in a release's form. `server_words` are
/// the server's own.
pub(crate) fn scene(words: &str, role: Role, release: Release) -> Scene {
    let words: Vec<String> =
        format!("-c host.example {words}").split(' ').map(str::to_owned).collect();
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let options = read(&words).unwrap();
    let mut parameters = test_plan(&options, release, || None).unwrap().parameters;
    if parameters.block_bytes == 0 {
        parameters.block_bytes = if options.udp { 1448 } else { 131_072 };
    }
    let mut context = Context::new(&options, release, "Linux here 6.1 x86_64".to_owned());
    if role == Role::Server {
        context.host = None;
        context.title = None;
        context.extra_data = None;
    }
    let events = events(&parameters, role);
    Scene { context, events }
}

fn events(parameters: &Parameters, role: Role) -> Vec<Event> {
    let streams = streams(parameters, role);
    let mut events = vec![
        Event::Connected(Box::new(control(role))),
        Event::Started(Box::new(Start {
            role,
            parameters: parameters.clone(),
            streams: streams.clone(),
            send_buffer_bytes: 16_384,
            receive_buffer_bytes: 131_072,
            utc_ns: 1_795_223_579_500_000_000,
        })),
    ];
    let interval = |start_s: f64, end_s: f64, omitted: bool, last: bool| {
        let streams = streams.iter().map(|stream| stream_interval(stream, parameters)).collect();
        Event::Interval(Box::new(Interval { start_s, end_s, omitted, last, streams }))
    };
    if parameters.omit_s > 0 {
        events.push(interval(0.0, 1.000_5, true, false));
        events.push(Event::OmitEnded);
    }
    events.push(interval(0.0, 1.000_812, false, false));
    events.push(interval(1.000_812, 2.001_122, false, true));
    events.push(Event::Ended(Box::new(report(&streams, parameters, role))));
    events
}

fn control(role: Role) -> Control {
    let mut cookie = *b"lnbdljn6lwrd2ceujynlfbpzmdtdkrebvnkz\0";
    cookie[36] = 0;
    let (client, server) = ("192.0.2.1:41180", "192.0.2.2:5201");
    let (local, remote) = if role == Role::Client { (client, server) } else { (server, client) };
    Control {
        role,
        local: local.parse().unwrap(),
        remote: remote.parse().unwrap(),
        cookie: Cookie::of_wire(cookie),
        mss_bytes: Some(1448),
        keepalive: None,
        utc_ns: 1_795_223_579_486_000_000,
    }
}

fn streams(parameters: &Parameters, role: Role) -> Vec<Stream> {
    (0..parameters.total_streams())
        .map(|index| {
            let number = u32::try_from(index).unwrap();
            let client = format!("192.0.2.1:{}", 41_186 + 2 * number).parse().unwrap();
            let server = "192.0.2.2:5201".parse().unwrap();
            let is_client = role == Role::Client;
            Stream {
                id: stream_id(index),
                socket: 5 + 2 * number,
                sends: parameters.client_sends(index) == is_client,
                local: if is_client { client } else { server },
                remote: if is_client { server } else { client },
            }
        })
        .collect()
}

/// A stream's share: the first carries 131,072 bytes an interval, each later one as much more.
fn share(socket: u32) -> u64 {
    131_072 * u64::from((socket - 3) / 2)
}

fn datagrams(socket: u32, blocks: u64, received: bool) -> DatagramFigures {
    let packets = blocks * share(socket) / 1448;
    if !received {
        return DatagramFigures::sent(packets);
    }
    DatagramFigures {
        packets,
        lost: Some(i64::from(socket) - 5),
        out_of_order: u64::from(socket == 7),
        jitter_s: f64::from(socket) * 0.000_006_123,
    }
}

fn stream_interval(stream: &Stream, parameters: &Parameters) -> StreamInterval {
    let Stream { socket, sends, .. } = *stream;
    let udp = parameters.protocol == Protocol::Udp;
    let knows = sends && !udp;
    StreamInterval {
        id: stream.id,
        socket,
        sends,
        bytes: share(socket),
        retransmits: knows.then_some(u64::from(socket) - 5),
        tcp: knows.then_some(TcpFigures {
            snd_cwnd_bytes: 976_896,
            snd_wnd_bytes: 108_544,
            rtt_us: 40 + socket,
            rtt_var_us: 22,
            pmtu_bytes: 65_535,
            reorder: 0,
        }),
        datagrams: udp.then(|| datagrams(socket, 1, !sends)),
    }
}

fn totals(socket: u32, parameters: &Parameters, sender: bool) -> Totals {
    let udp = parameters.protocol == Protocol::Udp;
    Totals {
        bytes: 2 * share(socket),
        seconds: if sender { 2.001_122 } else { 2.001_208 },
        retransmits: (sender && !udp).then_some(2 * (u64::from(socket) - 5)),
        datagrams: udp.then(|| datagrams(socket, 2, !sender)),
    }
}

fn report(streams: &[Stream], parameters: &Parameters, role: Role) -> Report {
    let is_client = role == Role::Client;
    let tcp = parameters.protocol == Protocol::Tcp;
    let of = |stream: &Stream| StreamReport {
        id: stream.id,
        socket: stream.socket,
        sends: stream.sends,
        local: totals(stream.socket, parameters, stream.sends),
        remote: is_client.then(|| totals(stream.socket, parameters, !stream.sends)),
        tcp: (stream.sends && tcp).then_some(TcpExtremes {
            max_snd_cwnd_bytes: 976_896,
            max_snd_wnd_bytes: 108_544,
            max_rtt_us: 46,
            min_rtt_us: 45,
            mean_rtt_us: 45,
            reorder: 0,
        }),
    };
    let cpu = CpuPercent { total: 12.25, user: 2.125, system: 10.125 };
    Report {
        role,
        streams: streams.iter().map(of).collect(),
        cpu,
        remote_cpu: is_client.then_some(CpuPercent { total: 5.5, user: 0.5, system: 5.0 }),
        congestion: tcp.then(|| "cubic".to_owned()),
        remote_congestion: (is_client && tcp).then(|| "reno".to_owned()),
        server_output: None,
    }
}
