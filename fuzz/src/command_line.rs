//! The command lines of other tools. Each function takes any bytes and panics only when the reader
//! of options is wrong.

use linerate_personality::colon_options::{
    ColonOptions, means, parse_leading, parse_quantity, parse_u32,
};
use linerate_personality::ctstraffic;
use linerate_personality::ctstraffic::command_line::CommandLine;
use linerate_personality::iperf3::command_line::{UsageError, parse_command_line};
use linerate_personality::iperf3::fault::render_failure;
use linerate_personality::iperf3::parameters::parameters;
use linerate_personality::iperf3::release::Release;
use linerate_personality::netperf;
use linerate_personality::qperf;
use linerate_wire::iperf3::parameters::limits;

/// iperf3's options, one word a line: what is accepted is within the limits of the wire, and what
/// isn't is told.
pub fn iperf3_options(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let words: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let options = match parse_command_line(&words, |_| true) {
        Ok(options) => options,
        Err(UsageError::Lexical(error)) => return assert!(!error.to_string().is_empty()),
        Err(UsageError::Parameter(failure)) => {
            assert!(!render_failure(&failure, Release::V3_12).is_empty());
            return assert!(!render_failure(&failure, Release::V3_21).is_empty());
        }
    };
    if options.wants_help || options.wants_version {
        return;
    }
    if options.host().is_none() {
        assert!(options.interval().is_none_or(|interval| !interval.is_zero()));
        return assert!(options.rate_limit().is_none_or(|(_, interval)| !interval.is_zero()));
    }
    let parameters = parameters(&options, Release::V3_21, |_| Some(1));
    assert!((1..=limits::PARALLEL).contains(&parameters.parallel));
    assert!(parameters.time_s <= limits::TIME_S && parameters.omit_s <= limits::OMIT_S);
    assert!(parameters.block_bytes <= limits::BLOCK_BYTES);
    assert!(parameters.burst_blocks <= limits::BURST_BLOCKS);
    assert!(parameters.window_bytes.is_none_or(|bytes| bytes <= limits::WINDOW_BYTES));
    assert!(parameters.mss_bytes.is_none_or(|bytes| bytes <= limits::MSS_BYTES));
}

/// The options of netperf and of netserver, one word a line: a command line is something to do, or is
/// told why not.
pub fn netperf_options(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Err(said) = netperf::command_line::parse_command_line("netperf", &words) {
        assert!(!said.stdout.is_empty() || !said.stderr.is_empty());
    }
    if let Err(said) = netperf::server_flags::parse_server_command_line("netserver", &words) {
        assert!(!said.is_empty());
    }
}

/// Options of the form `-name:value`: words are separated by line breaks.
pub fn colon_options(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let options = ColonOptions::new(&words);
    for name in ["up", "target", "?", ""] {
        let value = options.value(name);
        assert!(value.is_none_or(|value| !value.is_empty()));
        assert_eq!(options.value_of_first(&[name]), options.value_of_last(&[name]));
        let _ = options.flag(name);
        for text in value.iter().chain(&[text]) {
            let number = parse_leading(text);
            assert_eq!(
                u64::from(parse_u32(text)),
                u64::try_from(number).unwrap_or(0).min(u32::MAX.into())
            );
            let quantity = parse_quantity(text, 4);
            assert!(number > 0 || quantity.value == 0);
            let _ = means(text, "maxtput");
        }
    }
}

/// ctsTraffic's options, one word a line: what is accepted makes a plan within its limits, and what isn't
/// is told.
pub fn ctstraffic_options(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let options = match ctstraffic::command_line::parse_command_line(&words) {
        Err(refusal) => return assert!(refusal.render().starts_with([' ', 'I'])),
        Ok(CommandLine::Help(page)) => {
            return assert!(!ctstraffic::help::render_help(page).is_empty());
        }
        Ok(CommandLine::Run(options)) => options,
    };
    assert_eq!(options.hosts.listen.is_empty(), !options.hosts.targets.is_empty());
    assert_eq!(options.life().steps.len(), 3);
    if let Some(settings) = options.receiver_settings() {
        assert!((1..=1_000_000).contains(&settings.buffered_frames));
        assert!(settings.shape.frame_bytes >= 40 && settings.shape.frames > 0);
    }
    let addresses = ctstraffic::output::banner::RunAddresses::Server(&[]);
    let banner = ctstraffic::output::banner::render_banner(&options, addresses);
    assert!(banner.starts_with("  Configured Settings  \n"));
}

/// qperf's options, one word a line: what is accepted is within the limits of QUIC and of a clock, and what
/// isn't is told.
pub fn qperf_options(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let options = match qperf::command_line::parse_command_line("qperf", &words) {
        Err(said) => return assert!(!said.stdout.is_empty() || !said.stderr.is_empty()),
        Ok((options, _)) => options,
    };
    assert!((0.001..=86_400.0).contains(&options.interval_s));
    assert!(options.runtime_s > 0 && options.window_packets > 0);
    let qperf::options::Buffers { quic_bytes, udp_bytes, proxy_bytes } = options.buffers;
    assert!([quic_bytes, udp_bytes, proxy_bytes].iter().all(|bytes| (1..1 << 62).contains(bytes)));
    assert!(qperf::output::render_start(&options, 1).starts_with("starting "));
}
