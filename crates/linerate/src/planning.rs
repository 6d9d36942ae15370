//! From what was typed to what it means: flags to plans, one for each size.

mod hunt;
mod loaded;

pub use hunt::{goal_from_args, plan_of_one_trial, trial_plan};
pub use loaded::{PhasePlans, plans_from_loaded};

use std::collections::BTreeMap;

use linerate_engine::client_threads;
use linerate_engine::error::Error;
use linerate_measure::plan::{
    ConnectTransfer, DEFAULT_PORT, Family, HostPort, Local, LocalAddress, TransferPattern,
};
use linerate_measure::steady::LEAST_INTERVALS;
use linerate_measure::{
    Arrivals, Cipher, Closing, Direction, End, Handshake, Kind, Media, Plan, QuicOptions,
    QuicVersion, Rate, Schedule, SocketOptions, TlsOptions, Transport, Variant, Workload,
};

use crate::args::{
    ActiveFlows, ArrivalsName, CipherName, ClosingName, ConnectArgs, ConnectRateArgs,
    HandshakeName, LifeArgs, LoadArgs, MediaArgs, Omit, OutputArgs, PatternName, QuicVersionName,
    RrArgs, StreamArgs, VariantArgs,
};
use crate::key_log::key_log_of_environment;
use crate::start_time::{StartAt, utc_now_ns};

/// The length of a sample where no flag says another.
const INTERVAL_NS: u64 = 1_000_000_000;
/// The least where a warm-up is looked for: a shorter one holds too few bursts to tell rates apart.
const LEAST_INTERVAL_NS: u64 = 20_000_000;
/// Of more flows than this not all have a request on its way at a time, unless a flag says so.
const MANY_FLOWS: u32 = 1000;
/// Those that a thread has active then: enough that it never waits, and few enough that what the kernel holds for them
/// stays in the processor's caches.
const ACTIVE_FLOWS_PER_THREAD: u32 = 100;

/// The plans of a `stream` command, one for each size, in the order of the sizes.
///
/// # Errors
/// `Plan` where flags contradict each other or a number is outside its limits; `Host` where
/// `--cpu numa:` names an interface that isn't there.
pub fn plans_from_stream(args: &StreamArgs) -> Result<Vec<Plan>, Error> {
    if args.explain {
        check_explained(args)?;
    }
    let asked = &args.direction;
    let direction = match (asked.down, asked.both || asked.duplex) {
        (true, _) => Direction::Down,
        (_, true) => Direction::Both,
        _ => Direction::Up,
    };
    let mut workload = Workload::stream(direction, transport_of(&args.load));
    apply_load(&mut workload, &args.load);
    workload.payload.verify = args.verify;
    workload.payload.duplex = asked.duplex;
    workload.quic.unidirectional = args.unidirectional;
    let VariantArgs { zero_copy, splice, discard } = args.variant;
    workload.payload.variant = Variant { zero_copy, splice, discard };
    if let Some(bytes) = args.bytes {
        workload.end = End::Bytes { bytes };
    }
    workload.rate = match (args.rate.rate, args.rate.rate_per_flow) {
        (Some(bps), _) => Some(Rate::AllFlows { bps }),
        (None, Some(bps)) => Some(Rate::EachFlow { bps }),
        (None, None) => None,
    };
    let finds_warm_up = finds_warm_up(&args.load, &workload)?;
    let mut plan = plan_from_args(&args.host, &args.connect, &args.output, workload)?;
    plan.local.finds_warm_up = finds_warm_up;
    for_each_size(&plan, &args.size, |kind, size| {
        if let Kind::Stream { send_bytes, .. } = kind {
            *send_bytes = size;
        }
    })
}

/// Refuses what no further run explains.
fn check_explained(args: &StreamArgs) -> Result<(), Error> {
    let (load, direction) = (&args.load, &args.direction);
    let asked = [
        (
            load.udp,
            "--explain is for TCP and TLS, whose senders count what they send again: leave out --udp",
        ),
        (
            load.quic,
            "--explain is for TCP and TLS, whose senders count what they send again: leave out --quic",
        ),
        (
            load.repeat.repeat.is_some(),
            "--explain makes further runs after one, and --repeat makes several: leave out one of them",
        ),
        (
            load.repeat.precision.is_some(),
            "--explain makes further runs after one, and --precision makes several: leave out one of them",
        ),
        (
            direction.both || direction.duplex,
            "--explain explains one direction, and the other would load the path beside it: give --up or --down in \
             the place of --both or --duplex",
        ),
        (
            args.size.len() > 1,
            "--explain explains one run, and each --size is another: give one --size",
        ),
    ];
    match asked.into_iter().find(|(is_asked, _)| *is_asked) {
        Some((_, sentence)) => Err(contradiction(sentence)),
        None => Ok(()),
    }
}

/// The plans of a `media` command, one for each size, in the order of the sizes.
///
/// # Errors
/// As [`plans_from_stream`].
pub fn plans_from_media(args: &MediaArgs) -> Result<Vec<Plan>, Error> {
    if args.load.tcp || args.load.tls || args.load.quic {
        return Err(contradiction("media streams go over UDP: leave out --tcp, --tls and --quic"));
    }
    let mut workload = Workload::media(match (args.down, args.both) {
        (true, _) => Direction::Down,
        (_, true) => Direction::Both,
        _ => Direction::Up,
    });
    apply_load(&mut workload, &args.load);
    workload.payload.verify = args.verify;
    workload.rate = Some(Rate::EachFlow { bps: args.rate });
    if let Kind::Stream { media, .. } = &mut workload.kind {
        *media = Some(Media { frames_per_s: args.fps, buffer_depth_ns: args.buffer_depth });
    }
    let finds_warm_up = finds_warm_up(&args.load, &workload)?;
    let mut plan = plan_from_args(&args.host, &args.connect, &args.output, workload)?;
    plan.local.finds_warm_up = finds_warm_up;
    for_each_size(&plan, &args.size, |kind, size| {
        if let Kind::Stream { send_bytes, .. } = kind {
            *send_bytes = size;
        }
    })
}

/// The plans of an `rr` command, one for each size, in the order of the sizes.
///
/// # Errors
/// As [`plans_from_stream`].
pub fn plans_from_rr(args: &RrArgs) -> Result<Vec<Plan>, Error> {
    let mut workload = Workload::rr(transport_of(&args.load));
    apply_load(&mut workload, &args.load);
    let limit = active_flows_of(args, &workload, &cpus_of(&args.connect)?);
    if let Kind::Rr {
        request_bytes,
        response_bytes,
        timeout_ns,
        outstanding,
        active_flows,
        schedule,
    } = &mut workload.kind
    {
        *request_bytes = args.request.unwrap_or(*request_bytes);
        *response_bytes = args.response.unwrap_or(*response_bytes);
        *timeout_ns = args.timeout.unwrap_or(*timeout_ns);
        *outstanding = args.outstanding;
        *active_flows = limit;
        *schedule = schedule_of(args.rate, args.arrivals);
    }
    if args.timeout.is_some() && !workload.has_datagrams() {
        return Err(contradiction(
            "--timeout needs --udp or --datagram: TCP, TLS and the streams of QUIC lose no responses",
        ));
    }
    let finds_warm_up = finds_warm_up(&args.load, &workload)?;
    let mut plan = plan_from_args(&args.host, &args.connect, &args.output, workload)?;
    plan.local.finds_warm_up = finds_warm_up;
    for_each_size(&plan, &args.size, |kind, size| {
        if let Kind::Rr { request_bytes, response_bytes, .. } = kind {
            (*request_bytes, *response_bytes) = (size, size);
        }
    })
}

/// The plan of a `connect` command.
///
/// # Errors
/// As [`plans_from_stream`].
pub fn plans_from_connect(args: &ConnectRateArgs) -> Result<Vec<Plan>, Error> {
    let mut workload = Workload::connect(transport_of(&args.load));
    apply_load(&mut workload, &args.load);
    workload.kind = Kind::Connect {
        request_bytes: args.life.request,
        response_bytes: args.life.response,
        timeout_ns: args.timeout,
        close: match args.close {
            ClosingName::Fin => Closing::Fin,
            ClosingName::Rst => Closing::Rst,
            ClosingName::Server => Closing::Server,
        },
        transfer: transfer_of(&args.life),
        hold_ns: args.life.hold.unwrap_or(0),
        schedule: schedule_of(args.rate, args.arrivals),
    };
    workload.payload.verify = args.life.verify;
    workload.tls.handshake = match args.handshake {
        Some(HandshakeName::Resumed) => Handshake::Resumed,
        Some(HandshakeName::Early) => Handshake::Early,
        Some(HandshakeName::Full) | None => Handshake::Full,
    };
    let finds_warm_up = finds_warm_up(&args.load, &workload)?;
    let mut plan = plan_from_args(&args.host, &args.connect, &args.output, workload)?;
    plan.local.finds_warm_up = finds_warm_up;
    plan.local.source_ports = args.source_ports;
    check(&plan)?;
    Ok(vec![plan])
}

fn transfer_of(args: &LifeArgs) -> Option<ConnectTransfer> {
    Some(ConnectTransfer {
        bytes: args.transfer?,
        pattern: match args.pattern {
            PatternName::Push => TransferPattern::Push,
            PatternName::Pull => TransferPattern::Pull,
            PatternName::Pushpull => TransferPattern::PushPull,
            PatternName::Duplex => TransferPattern::Duplex,
        },
        push_bytes: args.push_bytes,
        pull_bytes: args.pull_bytes,
        buffer_bytes: args.buffer,
        seed: args.seed,
    })
}

/// A plan of a workload against a host, as yet unchecked.
///
/// # Errors
/// As [`plans_from_stream`].
pub fn plan_from_args(
    host: &HostPort,
    connect: &ConnectArgs,
    output: &OutputArgs,
    workload: Workload,
) -> Result<Plan, Error> {
    let has_keys = workload.has_keys();
    let key_log = || key_log_of_environment().filter(|_| has_keys);
    Ok(Plan {
        schema: Plan::SCHEMA.to_owned(),
        host: host.host.clone(),
        port: port_of(host, connect)?,
        family: family_of(host, connect)?,
        workload,
        local: Local {
            cpus: cpus_of(connect)?,
            binds: connect.bind.as_ref().map_or(Vec::new(), |all| all.addresses().to_vec()),
            bind_device: connect.bind_device.clone(),
            source_ports: None,
            key_log: connect.keylog.clone().or_else(key_log),
            qlog: connect.qlog.clone(),
            finds_warm_up: false,
        },
        exclusive: connect.exclusive,
        start_at_utc_ns: future_start(
            connect.start_at.and_then(StartAt::at_ns),
            "--start-at",
            utc_now_ns(),
        )?,
        title: output.title.clone(),
        tags: tags_of(output)?,
    })
}

/// The processors that the load's threads are pinned to; none: the system places them.
fn cpus_of(connect: &ConnectArgs) -> Result<Vec<u32>, Error> {
    connect.cpu.as_ref().map_or(Ok(Vec::new()), |cpus| cpus.resolve())
}

fn schedule_of(per_s: Option<f64>, arrivals: Option<ArrivalsName>) -> Option<Schedule> {
    let arrivals = match arrivals {
        Some(ArrivalsName::Poisson) => Arrivals::Poisson,
        Some(ArrivalsName::Even) | None => Arrivals::Even,
    };
    per_s.map(|per_s| Schedule { per_s, arrivals })
}

/// How many flows may have a request on its way; `None`: all. Of very many, each would wait for all the others.
fn active_flows_of(args: &RrArgs, workload: &Workload, cpus: &[u32]) -> Option<u32> {
    match args.active {
        Some(ActiveFlows::All) => None,
        Some(ActiveFlows::Most(most)) => Some(most),
        None => {
            let takes_turns = matches!(workload.transport, Transport::Tcp | Transport::Tls)
                && args.rate.is_none()
                && args.outstanding.is_none_or(|outstanding| outstanding == 1);
            // A load that takes more threads than there may be says so when it begins.
            let threads = || client_threads(workload, cpus).ok();
            let most = (takes_turns && workload.flows > MANY_FLOWS).then(threads).flatten()?;
            Some(most.saturating_mul(ACTIVE_FLOWS_PER_THREAD)).filter(|most| workload.flows > *most)
        }
    }
}

fn transport_of(load: &LoadArgs) -> Transport {
    match (load.tls, load.udp, load.quic) {
        (true, _, _) => Transport::Tls,
        (_, true, _) => Transport::Udp,
        (_, _, true) => Transport::Quic,
        _ => Transport::Tcp,
    }
}

fn apply_load(workload: &mut Workload, load: &LoadArgs) {
    if let Some(duration_ns) = load.time {
        workload.end = End::Time { duration_ns };
    }
    if let Some(count) = load.count {
        workload.end = End::Count { count };
    }
    workload.flows = load.flows;
    workload.threading.threads = load.threads;
    (workload.omit_ns, workload.interval_ns) = warm_up_and_interval(load, workload.end);
    workload.threading.busy_poll = load.busy_poll;
    workload.socket = SocketOptions {
        no_delay: load.no_delay,
        congestion: load.congestion.clone(),
        window_bytes: load.window,
        mss_bytes: load.mss,
        dscp: load.dscp,
        no_offload: load.no_offload,
    };
    workload.quic = QuicOptions {
        streams: load.streams.unwrap_or(1),
        initial_window_bytes: load.initial_window,
        stream_window_bytes: load.stream_window,
        connection_window_bytes: load.connection_window,
        mtu_bytes: load.mtu,
        no_ecn: load.no_ecn,
        ack_packets: load.ack_packets,
        version: match load.quic_version {
            Some(QuicVersionName::Draft29) => QuicVersion::Draft29,
            Some(QuicVersionName::V1) | None => QuicVersion::V1,
        },
        pacing: load.pacing.unwrap_or_default(),
        idle_ns: load.idle_timeout,
        ack_delay_ns: load.ack_delay,
        ack_reordering: load.ack_reordering,
        mtu_most_bytes: load.mtu_limit,
        ..QuicOptions::default()
    };
    workload.tls = TlsOptions {
        cipher: load.cipher.map(|cipher| match cipher {
            CipherName::Aes128 => Cipher::Aes128,
            CipherName::Aes256 => Cipher::Aes256,
            CipherName::Chacha20 => Cipher::Chacha20,
        }),
        alpn: load.alpn.clone(),
        ..TlsOptions::default()
    };
    if load.datagram {
        workload.use_quic_datagrams();
    }
}

/// The length of the warm-up and of a sample, nanoseconds.
fn warm_up_and_interval(load: &LoadArgs, end: End) -> (u64, u64) {
    match (load.omit, end) {
        (Omit::Time(omit_ns), _) => (omit_ns, load.interval.unwrap_or(INTERVAL_NS)),
        (Omit::Auto, End::Time { duration_ns }) => {
            (0, load.interval.unwrap_or((duration_ns / 100).max(LEAST_INTERVAL_NS)))
        }
        (Omit::Auto, End::Bytes { .. } | End::Count { .. }) => (0, INTERVAL_NS),
    }
}

/// Whether a warm-up is looked for when all is over, which takes [`LEAST_INTERVALS`] intervals.
fn finds_warm_up(load: &LoadArgs, workload: &Workload) -> Result<bool, Error> {
    if load.omit != Omit::Auto {
        return Ok(false);
    }
    match workload.end {
        End::Time { duration_ns }
            if duration_ns / workload.interval_ns.max(1) >= LEAST_INTERVALS as u64 =>
        {
            Ok(true)
        }
        End::Time { .. } => Err(contradiction(&format!(
            "--omit auto takes {LEAST_INTERVALS} intervals: give a longer --time or a shorter --interval"
        ))),
        End::Bytes { .. } | End::Count { .. } => Err(contradiction(
            "--omit auto takes a --time: how long a load by --bytes or --count lasts is not known before",
        )),
    }
}

/// Checks a plan; an error begins with the flag to change.
fn check(plan: &Plan) -> Result<(), Error> {
    plan.check().map_err(|error| {
        let flag = error.field.and_then(|field| flag_of(field, &plan.workload));
        Error::Plan(flag.map_or(String::new(), |flag| format!("{flag}: ")) + &error.text)
    })
}

/// The flag that sets a field of a plan.
fn flag_of(field: &str, workload: &Workload) -> Option<&'static str> {
    let connects = matches!(workload.kind, Kind::Connect { .. });
    Some(match field {
        "number of flows" | "number of flows over QUIC" | "connections at once" => "--flows",
        "number of threads" => "--threads",
        "number of active flows" => "--active",
        "datagram size" | "size of a send" => "--size",
        "request size" if connects => "--request",
        "response size" if connects => "--response",
        "request size" => "--request or --size",
        "response size" => "--response or --size",
        "measured time" => "--time",
        "warm-up" => "--omit",
        "interval" => "--interval",
        "time-out" => "--timeout",
        "rate" if workload.frames().is_some() => "--rate",
        "frame rate" => "--fps",
        "buffer depth" | "number of buffered frames" | "number of buffered datagrams" => {
            "--buffer-depth"
        }
        "size of a frame" => "--rate or --fps",
        "rate" if matches!(workload.rate, Some(Rate::EachFlow { .. })) => "--rate-per-flow",
        "rate" | "requests per second" => "--rate",
        "end" => match workload.end {
            End::Time { .. } => "--time",
            End::Bytes { .. } => "--bytes",
            End::Count { .. } => "--count",
        },
        "transport" => "--udp",
        "verification" => "--verify",
        "duplex" => "--duplex",
        "busy polling" => "--busy-poll",
        "no offload" => "--no-offload",
        "no delay" => "--no-delay",
        "congestion control" => "--congestion",
        "DSCP" => "--dscp",
        "MSS" => "--mss",
        "window" => "--window",
        "bytes of a transfer" => "--transfer",
        "buffer of a transfer" => "--buffer",
        "bytes of a push" => "--push-bytes",
        "bytes of a pull" => "--pull-bytes",
        "time of holding" => "--hold",
        "port" => "--port",
        "local addresses" => "--bind",
        "network device" => "--bind-device",
        "processors" => "--cpu",
        "title" => "--title",
        "tags" => "--tag",
        "close" => "--close",
        "variant" if workload.payload.variant.zero_copy => "--zero-copy",
        "variant" if workload.payload.variant.splice => "--splice",
        "variant" => "--discard",
        "source port" => "--source-ports",
        "outstanding requests" => "--outstanding",
        _ => return flag_of_keys(field),
    })
}

/// The flag that sets a field of QUIC or TLS.
fn flag_of_keys(field: &str) -> Option<&'static str> {
    Some(match field {
        "ALPN" => "--alpn",
        "cipher" => "--cipher",
        "no ECN" => "--no-ecn",
        "QUIC version" => "--quic-version",
        "handshake" => "--handshake",
        "datagrams" => "--datagram",
        "streams of one direction" => "--unidirectional",
        "streams of a connection" => "--streams",
        "initial window" => "--initial-window",
        "window of a stream" => "--stream-window",
        "window of a connection" | "windows of all connections" => "--connection-window",
        "QUIC packet" => "--mtu",
        "longest QUIC packet" => "--mtu-limit",
        "packets without acknowledgement" => "--ack-packets",
        "packets out of order" => "--ack-reordering",
        "idle time-out" => "--idle-timeout",
        "delay of acknowledgements" => "--ack-delay",
        "rate of packets" => "--pacing",
        "qlog" => "--qlog",
        "key log" => "--keylog",
        _ => return None,
    })
}

fn for_each_size(
    plan: &Plan,
    sizes: &[u32],
    set: impl Fn(&mut Kind, u32),
) -> Result<Vec<Plan>, Error> {
    if sizes.len() > 1 && plan.start_at_utc_ns.is_some() {
        return Err(contradiction(
            "--start-at is one time, and each --size is a run of its own: give one --size",
        ));
    }
    let mut plans = vec![plan.clone(); sizes.len().max(1)];
    for (plan, size) in plans.iter_mut().zip(sizes) {
        set(&mut plan.workload.kind, *size);
    }
    plans.iter().try_for_each(check)?;
    Ok(plans)
}

fn port_of(host: &HostPort, connect: &ConnectArgs) -> Result<u16, Error> {
    match (host.port, connect.port) {
        (Some(one), Some(other)) if one != other => Err(contradiction(&format!(
            "two ports: {one} after the host and {other} after --port; give one"
        ))),
        (Some(port), _) | (None, Some(port)) => Ok(port),
        (None, None) => Ok(DEFAULT_PORT),
    }
}

fn family_of(host: &HostPort, connect: &ConnectArgs) -> Result<Option<Family>, Error> {
    let asked = match (connect.ipv4, connect.ipv6) {
        (true, _) => Some(Family::Ipv4),
        (_, true) => Some(Family::Ipv6),
        _ => None,
    };
    let family = |bind: &LocalAddress| if bind.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 };
    let bound = connect.bind.as_ref().and_then(|all| all.addresses().first()).map(family);
    let clash = |one: Option<Family>, other: Option<Family>| matches!((one, other), (Some(one), Some(other)) if one != other);
    if clash(asked, host.family()) {
        return Err(contradiction(&format!(
            "{} is an address of the other family: leave out -4 or -6, or give a name",
            host.host
        )));
    }
    if clash(bound, asked.or(host.family())) {
        return Err(contradiction(
            "--bind is an address of the other family than the server's address: give an address of \
             that family",
        ));
    }
    Ok(asked.or(bound))
}

/// The start that `name` gives, which may not have passed by this machine's clock.
pub(crate) fn future_start(
    start_ns: Option<i64>,
    name: &str,
    now_ns: i64,
) -> Result<Option<i64>, Error> {
    match start_ns {
        Some(start_ns) if start_ns <= now_ns => Err(contradiction(&format!(
            "{name} is {} in the past by this machine's clock: give a later time",
            linerate_measure::units::render_duration_ns(now_ns.abs_diff(start_ns))
        ))),
        start_ns => Ok(start_ns),
    }
}

pub(crate) fn tags_of(output: &OutputArgs) -> Result<BTreeMap<String, String>, Error> {
    let mut tags = BTreeMap::new();
    for (key, value) in &output.tags {
        if tags.insert(key.clone(), value.clone()).is_some() {
            return Err(contradiction(&format!("--tag {key} is given twice: a key has one value")));
        }
    }
    Ok(tags)
}

fn contradiction(text: &str) -> Error {
    Error::Plan(text.to_owned())
}

#[cfg(test)]
mod tests;
