use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::super::{Arrivals, ConnectTransfer, Direction, Local, Payload, Schedule};
use super::*;
use crate::Media;
use crate::step::Size;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn stream(transport: Transport) -> Workload {
    Workload::stream(Direction::Up, transport)
}

fn plan() -> Plan {
    Plan {
        schema: Plan::SCHEMA.into(),
        host: "example.net".into(),
        port: 5250,
        family: None,
        workload: stream(Transport::Tcp),
        local: Local::default(),
        exclusive: false,
        start_at_utc_ns: None,
        title: None,
        tags: Default::default(),
    }
}

/// The error of `start` after `change`, which must name all of `words`.
fn assert_refused(mut start: Workload, change: impl FnOnce(&mut Workload), words: &[&str]) {
    assert_eq!(start.check(), Ok(()));
    change(&mut start);
    let error = start.check().expect_err("the change makes no sense").to_string();
    for word in words {
        assert!(error.contains(word), "{word:?} isn't in {error:?}");
    }
}

#[test]
fn the_defaults_make_sense() {
    for transport in [Transport::Tcp, Transport::Tls, Transport::Udp] {
        for direction in [Direction::Up, Direction::Down, Direction::Both] {
            assert_eq!(Workload::stream(direction, transport).check(), Ok(()));
        }
        assert_eq!(Workload::rr(transport).check(), Ok(()));
    }
    assert_eq!(plan().check(), Ok(()));
}

#[test]
fn numbers_out_of_range() {
    let tcp = || stream(Transport::Tcp);
    assert_refused(tcp(), |w| w.flows = 0, &["flows 0 is", "1 to 1000000"]);
    assert_refused(tcp(), |w| w.flows = 1_000_001, &["1000001"]);
    assert_refused(tcp(), |w| w.threading.threads = Some(0), &["threads 0 is", "1 to 1024"]);
    assert_refused(tcp(), |w| w.threading.threads = Some(2), &["2 threads for 1 flows"]);
    assert_refused(tcp(), |w| w.omit_ns = 86_400_000_000_000, &["warm-up 86400 s"]);
    assert_refused(tcp(), |w| w.interval_ns = 9_999_999, &["interval", "10.0 ms to 3600 s"]);
    assert_refused(tcp(), |w| w.end = End::Time { duration_ns: 0 }, &["measured time 0 ns"]);
    assert_refused(tcp(), |w| w.end = End::Bytes { bytes: 0 }, &["0 bytes for 1 flows"]);
    assert_refused(tcp(), |w| w.end = End::Count { count: 0 }, &["0 sends for 1 flows"]);
    let slow = Rate::AllFlows { bps: 999 };
    assert_refused(tcp(), |w| w.rate = Some(slow), &["999 bit/s", "1.00 kbit/s to 10.0 Tbit/s"]);
    assert_refused(
        Workload { flows: 5000, ..tcp() },
        |w| w.rate = Some(Rate::AllFlows { bps: 4000 }),
        &["4000 bit/s for 5000 flows"],
    );
}

#[test]
fn sizes_out_of_range() {
    let sized = |w: &mut Workload, size: u32| {
        w.kind = match w.kind {
            Kind::Stream { direction, .. } => {
                Kind::Stream { direction, send_bytes: size, media: None }
            }
            Kind::Rr { timeout_ns, .. } => Kind::Rr {
                request_bytes: size,
                response_bytes: size,
                timeout_ns,
                outstanding: None,
                active_flows: None,
                schedule: None,
            },
            Kind::Connect { .. } => unreachable!("sizes of rr and connect are checked alike"),
        }
    };
    let most = 16 * 1024 * 1024;
    for (workload, least, most) in [
        (stream(Transport::Tcp), 1, most),
        (stream(Transport::Tls), 1, most),
        (stream(Transport::Udp), DATAGRAM_HEADER_BYTES, 65_507),
        (Workload::rr(Transport::Tcp), 1, most),
        (Workload::rr(Transport::Udp), RR_HEADER_BYTES, 65_507),
    ] {
        let mut fitting = workload.clone();
        for size in [least, most] {
            sized(&mut fitting, size);
            assert_eq!(fitting.check(), Ok(()));
        }
        assert_refused(workload.clone(), |w| sized(w, least - 1), &["size", "out of range"]);
        assert_refused(workload, |w| sized(w, most + 1), &["size", "out of range"]);
    }
    let no_time = Kind::Rr {
        request_bytes: 1,
        response_bytes: 1,
        timeout_ns: 0,
        outstanding: None,
        active_flows: None,
        schedule: None,
    };
    assert_refused(Workload::rr(Transport::Tcp), |w| w.kind = no_time, &["time-out 0 ns"]);
}

#[test]
fn socket_options_out_of_range() {
    let tcp = || stream(Transport::Tcp);
    assert_refused(tcp(), |w| w.socket.dscp = Some(64), &["DSCP 64", "0 to 63"]);
    assert_refused(tcp(), |w| w.socket.mss_bytes = Some(87), &["MSS 87 bytes", "88"]);
    assert_refused(tcp(), |w| w.socket.window_bytes = Some(0), &["window 0 bytes"]);
    assert_refused(tcp(), |w| w.socket.window_bytes = Some(1 << 31), &["2147483648", "2147483647"]);
    for name in ["", "Cubic", "a/b", "abcdefghijklmnop", "bbr\n"] {
        let set = |w: &mut Workload| w.socket.congestion = Some(name.into());
        assert_refused(tcp(), set, &["congestion control", "cubic"]);
    }
}

#[test]
fn contradictions() {
    let rr = || Workload::rr(Transport::Tcp);
    let (tcp, udp) = (|| stream(Transport::Tcp), || stream(Transport::Udp));
    let rate = Rate::EachFlow { bps: 1_000_000 };
    assert_refused(rr(), |w| w.rate = Some(rate), &["rate", "leave the rate out"]);
    assert_refused(rr(), |w| w.payload.verify = true, &["verification", "verify a stream"]);
    assert_refused(rr(), |w| w.end = End::Bytes { bytes: 9 }, &["9 bytes", "transactions"]);
    assert_refused(tcp(), |w| w.socket.no_offload = true, &["offload", "UDP"]);
    assert_refused(udp(), |w| w.socket.congestion = Some("bbr".into()), &["congestion", "UDP"]);
    assert_refused(udp(), |w| w.socket.mss_bytes = Some(1400), &["MSS", "UDP"]);
    assert_refused(udp(), |w| w.socket.no_delay = true, &["no delay", "UDP"]);
    let bare =
        Kind::Stream { direction: Direction::Up, send_bytes: DATAGRAM_HEADER_BYTES, media: None };
    assert_refused(Workload { kind: bare, ..udp() }, |w| w.payload.verify = true, &["header"]);
}

#[test]
fn media_streams_that_make_no_sense() {
    let media = || Workload::media(Direction::Down);
    assert_eq!(media().check(), Ok(()));
    let set = |change: fn(&mut u32, &mut Media)| {
        move |w: &mut Workload| {
            if let Kind::Stream { send_bytes, media: Some(media), .. } = &mut w.kind {
                change(send_bytes, media);
            }
        }
    };
    assert_refused(media(), |w| w.transport = Transport::Tcp, &["other than UDP", "ask for UDP"]);
    assert_refused(media(), |w| w.rate = None, &["without a rate"]);
    assert_refused(media(), |w| w.end = End::Count { count: 9 }, &["give a time"]);
    assert_refused(media(), set(|_, m| m.frames_per_s = 0), &["frame rate 0", "1 to 10000"]);
    assert_refused(media(), set(|_, m| m.buffer_depth_ns = 0), &["buffer depth 0 ns"]);
    assert_refused(media(), set(|bytes, _| *bytes = 47), &["datagram size 47", "48"]);
    assert_refused(media(), |w| w.rate = Some(Rate::EachFlow { bps: 11_000 }), &["frame 22 bytes"]);
    assert_refused(media(), |w| w.flows = 1_000_000, &["buffered frames 74000000"]);
    let large = Rate::EachFlow { bps: 10_000_000_000 };
    assert_refused(media(), |w| (w.rate, w.flows) = (Some(large), 1_000), &["buffered datagrams"]);
}

/// An exchange or connections with this schedule.
fn scheduled(mut workload: Workload, per_s: f64) -> Workload {
    match &mut workload.kind {
        Kind::Rr { schedule, .. } | Kind::Connect { schedule, .. } => {
            *schedule = Some(Schedule { per_s, arrivals: Arrivals::Even });
        }
        Kind::Stream { .. } => unreachable!("a stream has no schedule"),
    }
    workload
}

#[test]
fn active_flows_that_make_no_sense() {
    let active = |number: u32| {
        let mut workload = Workload { flows: 9, ..Workload::rr(Transport::Tcp) };
        if let Kind::Rr { active_flows, .. } = &mut workload.kind {
            *active_flows = Some(number);
        }
        workload
    };
    for number in [1, 9] {
        assert_eq!((active(number).check(), active(number).active_flows()), (Ok(()), Some(number)));
    }
    for number in [0, 10] {
        let words = [&*number.to_string(), "active flows", "1 to 9"];
        assert_refused(active(1), |w| *w = active(number), &words);
    }
    assert_refused(active(2), |w| w.threading.threads = Some(3), &["3 threads for 2 active flows"]);
    assert_refused(active(2), |w| w.transport = Transport::Quic, &["needs TCP or TLS"]);
    assert_refused(active(2), |w| *w = scheduled(w.clone(), 10.0), &["a schedule decides"]);
    assert_eq!(Workload::rr(Transport::Tcp).active_flows(), None);
}

#[test]
fn schedules_and_outstanding_requests_out_of_range() {
    for start in [Workload::rr(Transport::Udp), Workload::connect(Transport::Tls)] {
        for per_s in [0.001, 1.5, 1e9] {
            assert_eq!(scheduled(start.clone(), per_s).check(), Ok(()), "{per_s}");
        }
        for per_s in [0.0, -1.0, 0.0009, 1.1e9, f64::NAN, f64::INFINITY] {
            let words = ["per second is out of range", "0.001 to 1000000000"];
            assert_refused(start.clone(), |w| *w = scheduled(w.clone(), per_s), &words);
        }
    }
    let outstanding = |number: u32| {
        move |w: &mut Workload| {
            if let Kind::Rr { outstanding, .. } = &mut w.kind {
                *outstanding = Some(number);
            }
        }
    };
    let rr = || Workload::rr(Transport::Tcp);
    for number in [1, 65_536] {
        let mut fitting = rr();
        outstanding(number)(&mut fitting);
        assert_eq!((fitting.check(), fitting.outstanding()), (Ok(()), number));
    }
    for number in [0, 65_537] {
        let words = [&*number.to_string(), "outstanding", "1 to 65536"];
        assert_refused(rr(), outstanding(number), &words);
    }
    assert_eq!(rr().outstanding(), 1);
    assert_eq!(scheduled(rr(), 10.0).outstanding(), 65_536);
}

#[test]
fn variants_go_with_tcp_streams_only() {
    let zero_copy = Variant { zero_copy: true, ..Variant::default() };
    let splice = Variant { splice: true, ..Variant::default() };
    let discard = Variant { discard: true, ..Variant::default() };
    for variant in [zero_copy, splice, discard, Variant { discard: true, ..zero_copy }] {
        let payload = Payload { variant, ..Payload::default() };
        assert_eq!(Workload { payload, ..stream(Transport::Tcp) }.check(), Ok(()));
        for start in [
            stream(Transport::Udp),
            stream(Transport::Tls),
            Workload::rr(Transport::Tcp),
            Workload::connect(Transport::Tcp),
        ] {
            assert_refused(
                start,
                |w| w.payload.variant = variant,
                &["zero copy, splice or discard"],
            );
        }
    }
    let tcp = || stream(Transport::Tcp);
    let both = Variant { splice: true, ..zero_copy };
    assert_refused(tcp(), |w| w.payload.variant = both, &["both zero copy and splice", "sender"]);
    let both = Variant { splice: true, ..discard };
    assert_refused(tcp(), |w| w.payload.variant = both, &["both discard and splice", "receiver"]);
    for variant in [splice, discard] {
        let unread = |w: &mut Workload| (w.payload.verify, w.payload.variant) = (true, variant);
        assert_refused(tcp(), unread, &["verification", "doesn't read"]);
    }
    let payload = Payload { verify: true, variant: zero_copy, duplex: false };
    assert_eq!(Workload { payload, ..tcp() }.check(), Ok(()));
}

#[test]
fn duplex_goes_with_streams_of_both_directions_over_connections() {
    let both = |transport| {
        let mut workload = Workload::stream(Direction::Both, transport);
        workload.payload.duplex = true;
        workload
    };
    for transport in [Transport::Tcp, Transport::Tls, Transport::Quic] {
        both(transport).check().unwrap();
    }
    let up = Workload::stream(Direction::Up, Transport::Tcp);
    assert_refused(up, |w| w.payload.duplex = true, &["duplex", "both"]);
    assert_refused(
        Workload::rr(Transport::Tcp),
        |w| w.payload.duplex = true,
        &["duplex", "stream"],
    );
    let udp = Workload::stream(Direction::Both, Transport::Udp);
    assert_refused(udp, |w| w.payload.duplex = true, &["duplex", "datagrams"]);
    assert_refused(both(Transport::Quic), Workload::use_quic_datagrams, &["duplex", "datagrams"]);
    assert_refused(both(Transport::Quic), |w| w.quic.unidirectional = true, &["one direction"]);
    assert_refused(both(Transport::Tcp), |w| w.payload.variant.zero_copy = true, &["zero copy"]);
    assert_refused(
        both(Transport::Tcp),
        |w| w.threading.threads = Some(2),
        &["2 threads for 1 flows"],
    );
}

#[test]
fn connections_that_make_no_sense() {
    let connect = || Workload::connect(Transport::Tcp);
    let datagrams = Kind::Connect {
        request_bytes: 16,
        response_bytes: 16,
        timeout_ns: 1_000_000,
        close: Default::default(),
        transfer: None,
        hold_ns: 0,
        schedule: None,
    };
    let over_udp = |w: &mut Workload| (w.kind, w.transport) = (datagrams, Transport::Udp);
    assert_refused(connect(), over_udp, &["connections over UDP", "TCP or TLS"]);
    assert_refused(connect(), |w| w.threading.busy_poll = true, &["busy polling"]);
    assert_refused(connect(), |w| w.payload.verify = true, &["verification"]);
    assert_refused(connect(), |w| w.end = End::Bytes { bytes: 9 }, &["9 bytes", "transactions"]);
    let rate = Some(Rate::EachFlow { bps: 1_000_000 });
    assert_refused(connect(), |w| w.rate = rate, &["rate in bits"]);
}

/// A load of connections that carry this, each then held for so long.
fn transferring(bytes: Size, hold: u64) -> Workload {
    let mut workload = Workload::connect(Transport::Tcp);
    if let Kind::Connect { transfer, hold_ns, .. } = &mut workload.kind {
        (*transfer, *hold_ns) = (Some(ConnectTransfer::new(bytes)), hold);
    }
    workload
}

fn of_transfer(workload: &mut Workload) -> &mut ConnectTransfer {
    match &mut workload.kind {
        Kind::Connect { transfer: Some(transfer), .. } => transfer,
        _ => unreachable!("these carry a transfer"),
    }
}

#[test]
fn transfers_of_connections_that_make_no_sense() {
    let fixed = || transferring(Size::Fixed(1000), 0);
    assert_eq!(fixed().check(), Ok(()));
    let payload = Payload { verify: true, ..Payload::default() };
    assert_eq!(Workload { payload, ..fixed() }.check(), Ok(()));
    let range = |low_bytes, high_bytes| Size::Range { low_bytes, high_bytes };
    assert_eq!(transferring(range(1, 1_000_000_000_000_000), 1).check(), Ok(()));
    for bytes in [Size::Fixed(0), range(0, 5), range(9, 1_000_000_000_000_001)] {
        assert_refused(fixed(), |w| of_transfer(w).bytes = bytes, &["bytes of a transfer"]);
    }
    assert_refused(fixed(), |w| of_transfer(w).bytes = range(9, 8), &["9 to 8", "lower"]);
    let buffer = Some(Size::Fixed(17 << 20));
    assert_refused(fixed(), |w| of_transfer(w).buffer_bytes = buffer, &["buffer of a transfer"]);
    assert_refused(fixed(), |w| of_transfer(w).push_bytes = 0, &["bytes of a push"]);
    assert_refused(fixed(), |w| of_transfer(w).pull_bytes = 0, &["bytes of a pull"]);
    let held = || transferring(Size::Fixed(1), 5);
    let by_server = |w: &mut Workload| {
        if let Kind::Connect { close, .. } = &mut w.kind {
            *close = crate::Closing::Server;
        }
    };
    assert_refused(held(), by_server, &["--hold", "--close server"]);
    let day_ns = 86_400_000_000_000;
    let too_long = |w: &mut Workload| {
        if let Kind::Connect { hold_ns, .. } = &mut w.kind {
            *hold_ns = day_ns + 1;
        }
    };
    assert_refused(held(), too_long, &["time of holding"]);
}

#[test]
fn source_ports_that_make_no_sense() {
    let refused = |workload: Workload, ports: (u16, u16), words: &str| {
        let mut plan = Plan { workload, ..plan() };
        plan.local.source_ports = Some(ports);
        let error = plan.check().expect_err("the ports make no sense").to_string();
        assert!(error.contains(words), "{words:?} isn't in {error:?}");
    };
    let connect = || Workload::connect(Transport::Tcp);
    refused(connect(), (0, 9), "source port 0");
    refused(connect(), (9, 8), "source ports 9-8");
    refused(Workload::rr(Transport::Tcp), (8, 9), "measure connect");
    for ports in [(1, 65_535), (9, 9)] {
        let mut plan = Plan { workload: connect(), ..plan() };
        plan.local.source_ports = Some(ports);
        assert_eq!(plan.check(), Ok(()));
    }
}

#[test]
fn plans_that_make_no_sense() {
    let refused = |change: fn(&mut Plan), words: &str| {
        let mut plan = plan();
        change(&mut plan);
        let error = plan.check().expect_err("the change makes no sense").to_string();
        assert!(error.contains(words), "{words:?} isn't in {error:?}");
    };
    refused(|p| p.schema = "linerate.plan/2".into(), "linerate.plan/2");
    refused(|p| p.host = String::new(), "isn't a host");
    refused(|p| p.host = "a b".into(), "isn't a host");
    refused(|p| p.host = "x".repeat(254), "isn't a host");
    refused(|p| p.port = 0, "port 0");
    refused(|p| p.local.bind_device = Some("a/b".into()), "network device");
    refused(|p| p.local.cpus = vec![0; 5000], "5000 processors");
    refused(|p| p.title = Some("x".repeat(2000)), "2000 bytes");
    refused(|p| p.tags = [(String::new(), "v".into())].into(), "without a key");
    refused(|p| p.workload.flows = 0, "flows 0");
    refused(
        |p| {
            p.family = Some(Family::Ipv6);
            p.local.binds = vec![LOOPBACK.into()];
        },
        "127.0.0.1",
    );
    refused(|p| p.local.binds = vec![LOOPBACK.into(); 257], "257 local addresses");
    refused(
        |p| p.local.binds = vec![LOOPBACK.into(), IpAddr::from(Ipv6Addr::LOCALHOST).into()],
        "one family",
    );
}

#[test]
fn directions_of_flows() {
    let both = Workload { flows: 3, ..Workload::stream(Direction::Both, Transport::Tcp) };
    assert_eq!(both.total_flows(), 6);
    assert_eq!(both.flow_direction(2), Direction::Up);
    assert_eq!(both.flow_direction(3), Direction::Down);
    let down = Workload { flows: 3, ..Workload::stream(Direction::Down, Transport::Tcp) };
    assert_eq!((down.total_flows(), down.flow_direction(0)), (3, Direction::Down));
    assert_eq!(Workload::rr(Transport::Udp).flow_direction(0), Direction::Up);
}

#[test]
fn rates_of_flows() {
    let mut workload = Workload { flows: 3, ..stream(Transport::Tcp) };
    assert_eq!(workload.rate_per_flow_bps(), None);
    workload.rate = Some(Rate::AllFlows { bps: 10_000 });
    assert_eq!(workload.rate_per_flow_bps(), Some(3_333));
    workload.rate = Some(Rate::EachFlow { bps: 10_000 });
    assert_eq!(workload.rate_per_flow_bps(), Some(10_000));
}

proptest! {
    #[test]
    fn shares_are_even_and_add_up(total: u64, flows in 1..500_u32, both: bool) {
        let direction = if both { Direction::Both } else { Direction::Up };
        let workload = Workload { flows, ..Workload::stream(direction, Transport::Tcp) };
        let shares: Vec<u64> = (0..flows).map(|flow| workload.shares(total, flow)).collect();
        prop_assert_eq!(shares.iter().sum::<u64>(), total);
        prop_assert!(shares.is_sorted_by(|a, b| a >= b && a - b <= 1));
        prop_assert!(shares[0] - shares[shares.len() - 1] <= 1);
        if both {
            prop_assert_eq!(workload.shares(total, flows), shares[0]);
        }
    }

    #[test]
    fn no_numbers_panic(
        numbers: [u64; 5],
        small: [u32; 6],
        name: String,
        udp: bool,
    ) {
        let transport = if udp { Transport::Udp } else { Transport::Tls };
        let mut workload = stream(transport);
        workload.kind = Kind::Stream { direction: Direction::Both, send_bytes: small[0], media: None };
        workload.flows = small[1];
        workload.threading.threads = Some(small[2]);
        workload.end = End::Bytes { bytes: numbers[0] };
        workload.rate = Some(Rate::AllFlows { bps: numbers[1] });
        workload.omit_ns = numbers[2];
        workload.interval_ns = numbers[3];
        workload.socket.mss_bytes = Some(small[3]);
        workload.socket.window_bytes = Some(small[4]);
        workload.socket.congestion = Some(name);
        let _ = workload.check();
        let _ = (workload.total_flows(), workload.rate_per_flow_bps());
        let _ = (workload.shares(numbers[4], small[5]), workload.flow_direction(small[5]));
    }
}
