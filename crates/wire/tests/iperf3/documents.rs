//! Parameters and results as JSON.

use linerate_wire::iperf3::parameters::Offload;
use linerate_wire::iperf3::results::{CpuPercent, ServerOutput};
use linerate_wire::iperf3::{Code, Parameters, Protocol, Results, StreamResult};
use proptest::prelude::*;

prop_compose! {
    fn switches()(
        no_delay: bool, reverse: bool, mptcp: bool, get_server_output: bool, wide_counters: bool,
        repeating_payload: bool, zero_copy: bool, dont_fragment: bool, skip_rx_copy: bool,
    ) -> Parameters {
        Parameters {
            no_delay, reverse, mptcp, get_server_output, wide_counters, repeating_payload,
            zero_copy, dont_fragment, skip_rx_copy,
            ..Parameters::default()
        }
    }
}

prop_compose! {
    fn parameters()(
        switches in switches(),
        udp: bool,
        (omit_s, time_s, parallel) in (0_u32..=600, 0_u32..=86_400, 1_u32..=1 << 20),
        (num_bytes, block_count) in (0..u64::MAX / 2, 0..u64::MAX / 2),
        (mss_bytes, window_bytes) in (prop::option::of(1_u32..=32_767), prop::option::of(1_u32..1 << 29)),
        block_bytes in 16_u32..=65_507,
        (bandwidth_bps, fq_rate_bps) in (0..u64::MAX / 2, 0..u64::MAX / 2),
        (pacing_timer_us, burst_blocks, tos) in (1_u32..1_000_000, 0_u32..=1000, any::<u8>()),
        (flow_label, server_affinity) in (prop::option::of(0_u32..1 << 20), prop::option::of(0_u32..1024)),
        title in prop::option::of("\\PC{0,40}"),
        congestion in prop::option::of("[a-z]{1,15}"),
        auth_token in prop::option::of("[A-Za-z0-9+/=]{1,400}"),
        gso: bool,
    ) -> Parameters {
        let offload = Offload { gso: udp && gso, gro: udp && !gso, ..Offload::default() };
        Parameters {
            protocol: if udp { Protocol::Udp } else { Protocol::Tcp },
            omit_s, time_s, parallel, num_bytes, block_count, mss_bytes, window_bytes, block_bytes,
            bandwidth_bps, fq_rate_bps, pacing_timer_us, burst_blocks, tos, flow_label,
            server_affinity, title, congestion, auth_token, offload,
            ..switches
        }
    }
}

proptest! {
    #[test]
    fn parameters_come_back(parameters in parameters()) {
        prop_assert_eq!(Parameters::parse(parameters.render().as_bytes()), Ok(parameters));
    }

    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        let object = text.contains('\u{7b}');
        prop_assert!(Parameters::parse(text.as_bytes()).is_err() || object);
        prop_assert!(Results::parse(text.as_bytes(), 1).is_err());
    }

    #[test]
    fn results_come_back(
        ids in prop::collection::btree_set(0_u32..1000, 0..20),
        (bytes, packets, resent) in (0..u64::MAX / 2, 0..u64::MAX / 2, prop::option::of(0..1_u64 << 40)),
        // Numbers that decimal digits tell exactly.
        (jitter_s, end_s) in (0_u16..640, 0_u32..90_000 * 64)
            .prop_map(|(jitter, end)| (f64::from(jitter) / 64.0, f64::from(end) / 64.0)),
        errors in -5_i64..1 << 40,
        as_json: bool,
    ) {
        let stream = |id| StreamResult {
            id, bytes, omitted_bytes: resent, retransmits: resent, jitter_s, errors, omitted_errors: Some(errors / 2),
            packets, omitted_packets: Some(packets / 2), start_time_s: Some(0.0),
            end_time_s: Some(end_s),
        };
        let results = Results {
            cpu_percent: CpuPercent { total: jitter_s, user: end_s, system: 0.0 },
            sender_has_retransmits: -1,
            congestion_used: as_json.then(|| "bbr".to_owned()),
            server_output: Some(match as_json {
                true => ServerOutput::Json("{\"start\":[1, \"two\"],\"end\":{}}".to_owned()),
                false => ServerOutput::Text("a\n\"b\"".to_owned()),
            }),
            streams: ids.into_iter().map(stream).collect(),
        };
        prop_assert_eq!(Results::parse(results.render().as_bytes(), 20), Ok(results));
    }
}

#[test]
fn every_number_has_its_limit() {
    let refused = |fields: &str, code: Code| {
        let text = format!("{{\"tcp\":true,\"time\":1,{fields}}}");
        assert_eq!(Parameters::parse(text.as_bytes()), Err(code), "{text}");
    };
    refused("\"parallel\":1048577", Code::NUM_STREAMS);
    refused("\"parallel\":0", Code::NUM_STREAMS);
    refused("\"parallel\":-1", Code::NUM_STREAMS);
    refused("\"parallel\":1e300", Code::NUM_STREAMS);
    refused("\"parallel\":\"8\"", Code::NUM_STREAMS);
    refused("\"time\":86401", Code::DURATION);
    refused("\"omit\":601", Code::OMIT);
    refused("\"len\":1048577", Code::BLOCK_SIZE);
    refused("\"udp\":true,\"len\":15", Code::UDP_BLOCK_SIZE);
    refused("\"udp\":true,\"len\":65508", Code::UDP_BLOCK_SIZE);
    refused("\"window\":536870913", Code::BUFFER_SIZE);
    refused("\"MSS\":40000", Code::MSS);
    refused("\"burst\":1001", Code::BURST);
    refused("\"TOS\":256", Code::TOS);
    refused("\"num\":-1", Code::END_CONDITIONS);
    refused("\"bandwidth\":-5", Code::TOTAL_RATE);
    refused("\"reverse\":true,\"bidirectional\":true", Code::REVERSE_BIDIRECTIONAL);
    refused("\"sctp\":true", Code::NO_SCTP);
    for text in ["", "[]", "3", "{\"tcp\":true", "nothing"] {
        assert_eq!(Parameters::parse(text.as_bytes()), Err(Code::RECEIVE_PARAMETERS), "{text}");
    }
}

#[test]
fn a_pacing_timer_is_a_second_at_most() {
    let timer_us = |us: &str| {
        let text = format!("{{\"tcp\":true,\"time\":1{us}}}");
        Parameters::parse(text.as_bytes()).map(|parameters| parameters.pacing_timer_us)
    };
    for (us, taken) in [("", 1000), (",\"pacing_timer\":0", 1000), (",\"pacing_timer\":7", 7)] {
        assert_eq!(timer_us(us), Ok(taken));
    }
    for us in ["1000001", "5000000000", "9223372036854775808"] {
        assert_eq!(timer_us(&format!(",\"pacing_timer\":{us}")), Ok(1_000_000), "{us}");
    }
    assert_eq!(timer_us(",\"pacing_timer\":-5"), Err(Code::RECEIVE_PARAMETERS));
}

#[test]
fn results_without_what_every_release_tells_are_none() {
    let whole = crate::pair::results(1, 3).render();
    assert!(Results::parse(whole.as_bytes(), 1).is_ok());
    for name in ["cpu_util_total", "sender_has_retransmits", "streams", "id", "bytes", "jitter"] {
        let without = whole.replace(&format!("\"{name}\""), "\"other\"");
        assert_eq!(Results::parse(without.as_bytes(), 1), Err(Code::RECEIVE_RESULTS), "{name}");
    }
    // What newer releases alone tell may be missing.
    let older = whole.replace("omitted_errors", "x").replace("start_time", "y");
    let stream = Results::parse(older.as_bytes(), 1).unwrap().streams[0];
    assert_eq!((stream.omitted_packets, stream.seconds()), (None, None));
}

#[test]
fn a_receiver_goes_by_the_senders_end_of_the_omitted_time_where_both_tell() {
    let counted =
        |bytes, omitted_bytes| StreamResult { bytes, omitted_bytes, ..StreamResult::default() };
    let sender = counted(700, Some(100));
    assert_eq!(counted(750, Some(50)).received_of(&sender), 700);
    assert_eq!(counted(750, None).received_of(&sender), 750);
    assert_eq!(counted(750, Some(50)).received_of(&counted(700, None)), 750);
    assert_eq!(counted(u64::MAX, Some(50)).received_of(&sender), u64::MAX - 100);
    assert_eq!(counted(5, Some(5)).received_of(&sender), 0);
}

#[test]
fn of_fields_with_one_name_the_last_counts_and_unknown_ones_are_read_over() {
    let (whole, first) = (crate::pair::results(1, 3), "\"streams\":[{},7],\"cpu_util_user\":[1],");
    let text = whole.render().replacen('{', &format!("{{{first}\"x\":[{{\"id\":[]}},null],"), 1);
    assert_eq!(Results::parse(text.as_bytes(), 1), Ok(whole.clone()));
    let text = whole.render().replace("\"bytes\"", "\"bytes\":[8],\"\\u0062ytes\":1.0,\"bytes\"");
    assert_eq!(Results::parse(text.as_bytes(), 1), Ok(whole.clone()));
    // What stands last is none.
    let text = whole.render().replacen("\"bytes\"", "\"bytes\":8,\"bytes\":{},\"of_old\"", 1);
    assert_eq!(Results::parse(text.as_bytes(), 1), Err(Code::RECEIVE_RESULTS));
    for rest in ["x", "{}", "\0", "\u{a0}"] {
        let text = whole.render() + rest;
        assert_eq!(Results::parse(text.as_bytes(), 1), Err(Code::RECEIVE_RESULTS), "{rest}");
    }
    let mut text = whole.render().replacen('{', "{\"x\":\"?\",", 1).into_bytes();
    *text.iter_mut().find(|byte| **byte == b'?').unwrap() = 0xff;
    assert_eq!(Results::parse(&text, 1), Err(Code::RECEIVE_RESULTS));
}

#[test]
fn streams_are_found_by_their_numbers_in_whatever_order_they_are_told() {
    let mut told = crate::pair::results(20_000, 3);
    told.streams.reverse();
    let read = Results::parse(told.render().as_bytes(), 20_000).unwrap();
    assert!(read.streams.is_sorted_by_key(|stream| stream.id));
    for stream in told.streams.iter().step_by(97) {
        assert_eq!(read.stream(stream.id), Some(stream));
    }
    assert_eq!((read.stream(2), read.stream(20_002)), (None, None));
}
