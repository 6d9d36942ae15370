//! Tests made up by hand: events with fixed figures, for the printers.

use linerate::personality::iperf3::context::Context;
use linerate::personality::iperf3::plan::test_plan;
use linerate::personality::iperf3::read;
use linerate_engine::iperf3::{Control, Event, Report, Role, Start, Stream};
use linerate_measure::dialect::iperf3::{
    CpuPercent, EndTotals, FlowInterval, FlowTotals, TcpExtremes,
};
use linerate_measure::dialect::{EndExtension, FlowExtension, FlowSampleExtension};
use linerate_measure::sample::{DatagramCounts, FlowSample, TcpStatus, Traffic};
use linerate_measure::{EndReport, FlowReport, Sample};
use linerate_personality::iperf3::release::Release;
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
        parameters.block_bytes = if options.load.udp { 1448 } else { 131_072 };
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
    let mut index = 0;
    let mut sample = |from_us: u64, to_us: u64, warm_up: bool| {
        index += 1;
        Event::Sample(Box::new(Sample {
            index: index - 1,
            from_ns: from_us * 1000,
            to_ns: to_us * 1000,
            warm_up,
            ..sample(&streams, parameters, role)
        }))
    };
    let mut from_us = 0;
    if parameters.omit_s > 0 {
        from_us = 1_000_500;
        events.push(sample(0, from_us, true));
        events.push(Event::OmitEnded);
    }
    events.push(sample(from_us, from_us + 1_000_812, false));
    events.push(sample(from_us + 1_000_812, from_us + 2_001_122, false));
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

/// Datagrams by the numbers, lost ones, those out of order, and the jitter.
fn datagrams(socket: u32, blocks: u64) -> (u64, i64, u64, f64) {
    let packets = blocks * share(socket) / 1448;
    (packets, i64::from(socket) - 5, u64::from(socket == 7), f64::from(socket) * 6123.0)
}

fn counts(out_of_order: u64) -> DatagramCounts {
    DatagramCounts { reordered: Some(out_of_order), ..DatagramCounts::default() }
}

fn sample(streams: &[Stream], parameters: &Parameters, role: Role) -> Sample {
    let flows = (0..).zip(streams).map(|(flow, stream)| flow_sample(flow, stream, parameters));
    let flows: Vec<FlowSample> = flows.collect();
    let sum = |bytes: fn(&FlowSample) -> Option<u64>| {
        let bytes = flows.iter().filter_map(bytes).reduce(|a, b| a + b);
        bytes.map(|bytes| Traffic { bytes, calls: None })
    };
    let (sent, received) = (sum(|flow| flow.sent_bytes), sum(|flow| flow.received_bytes));
    Sample { sent, received, flows, ..Sample::nothing(role) }
}

fn flow_sample(flow: u32, stream: &Stream, parameters: &Parameters) -> FlowSample {
    let Stream { socket, sends, .. } = *stream;
    let udp = parameters.protocol == Protocol::Udp;
    let knows = sends && !udp;
    let (packets, lost, out_of_order, jitter_ns) = datagrams(socket, 1);
    let received = udp && !sends;
    FlowSample {
        flow,
        sent_bytes: sends.then_some(share(socket)),
        received_bytes: (!sends).then_some(share(socket)),
        tcp: knows.then_some(TcpStatus {
            cwnd_segments: 954,
            mss_bytes: 1024,
            snd_wnd_bytes: Some(108_544),
            rtt_us: 40 + socket,
            rtt_var_us: 22,
            pmtu_bytes: 65_535,
            ..TcpStatus::default()
        }),
        datagrams: received.then(|| Box::new(counts(out_of_order))),
        jitter_ns: received.then_some(jitter_ns),
        extension: Some(FlowSampleExtension::Iperf3(FlowInterval {
            retransmits: knows.then_some(u64::from(socket) - 5),
            packets: udp.then_some(packets),
            lost: received.then_some(lost),
        })),
        ..FlowSample::default()
    }
}

/// What an end counted that sends on the stream or not.
fn flow_report(flow: u32, socket: u32, parameters: &Parameters, sends: bool) -> FlowReport {
    let udp = parameters.protocol == Protocol::Udp;
    let traffic = Traffic { bytes: 2 * share(socket), calls: None };
    let (packets, lost, out_of_order, jitter_ns) = datagrams(socket, 2);
    let received = udp && !sends;
    FlowReport {
        flow,
        sent: sends.then_some(traffic),
        received: (!sends).then_some(traffic),
        from_ns: Some(0),
        to_ns: Some(if sends { 2_001_122_000 } else { 2_001_208_000 }),
        retransmitted_segments: (sends && !udp).then_some(2 * (u64::from(socket) - 5)),
        datagrams: received.then(|| counts(out_of_order)),
        jitter_ns: received.then_some(jitter_ns),
        extension: udp.then_some(FlowExtension::Iperf3(FlowTotals {
            packets: Some(packets),
            lost: received.then_some(lost),
            extremes: None,
        })),
        ..FlowReport::default()
    }
}

fn report(streams: &[Stream], parameters: &Parameters, role: Role) -> Report {
    let tcp = parameters.protocol == Protocol::Tcp;
    let flows = |is_own: bool| -> Vec<FlowReport> {
        let flow = |(flow, stream): (u32, &Stream)| {
            flow_report(flow, stream.socket, parameters, stream.sends == is_own)
        };
        (0..).zip(streams).map(flow).collect()
    };
    let extremes = TcpExtremes {
        max_snd_cwnd_bytes: 976_896,
        max_snd_wnd_bytes: 108_544,
        max_rtt_us: 46,
        min_rtt_us: 45,
        mean_rtt_us: 45,
        reorder: 0,
    };
    let mut own = flows(true);
    for flow in own.iter_mut().filter(|flow| tcp && flow.sent.is_some()) {
        let totals = FlowTotals { extremes: Some(extremes), ..FlowTotals::default() };
        flow.extension = Some(FlowExtension::Iperf3(totals));
    }
    let end = |role, flows, [total, user, system]: [f64; 3], congestion: &str| EndReport {
        flows,
        extension: Some(EndExtension::Iperf3(EndTotals {
            cpu_percent: Some(CpuPercent { total, user, system }),
            congestion: tcp.then(|| congestion.to_owned()),
        })),
        ..EndReport::nothing(role)
    };
    Report {
        own: end(role, own, [12.25, 2.125, 10.125], "cubic"),
        peer: (role == Role::Client)
            .then(|| end(Role::Server, flows(false), [5.5, 0.5, 5.0], "reno")),
        server_output: None,
    }
}

/// What the other end said of the first stream.
fn first_remote(report: &mut Report) -> &mut FlowReport {
    &mut report.peer.as_mut().unwrap().flows[0]
}

/// It said nothing of lost datagrams.
pub(crate) fn with_unknown_loss(report: &mut Report) {
    let extension = &mut first_remote(report).extension;
    let Some(FlowExtension::Iperf3(totals)) = extension else { panic!("{extension:?}") };
    totals.lost = None;
}
