//! What the flags come to: a plan for the engine and what is to be shown of its result.

use std::path::PathBuf;

use linerate_engine::netperf::{
    ControlPlan, EndPlan, Pacing, TestEnd, TestKind, TestOptions, TestPlan, TestTransport,
};
use linerate_measure::plan::Family;
use linerate_personality::netperf::options::{
    ControlOptions, DataHost, Direction, Dirt, EndOptions, IterationBounds, Options, Repeat, Shown,
    SocketOptions,
};
use linerate_personality::netperf::unit::Unit;

use super::confidence::{Demand, Schedule};
use super::figures::Subject;
use super::selection::{Selection, parse_selection};

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// A test.
    Test(Box<Request>),
    /// The segment size of a connection (TCP_MSS).
    SegmentSize(Box<Request>),
    /// A UUID: the one that was told, else a fresh one.
    Uuid(Option<String>),
    /// The rate of this machine's processors; with the verbosity.
    LocalCpu(u32),
    /// The rate of the server's, likewise.
    RemoteCpu(u32),
}

/// A test, and how it is shown.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) title: String,
    pub(super) table: Table,
    pub(super) plan: TestPlan,
    pub(super) schedule: Schedule,
    pub(super) unit: Unit,
    pub(super) shown: Shown,
    pub(super) selection: Option<Selection>,
    pub(super) names: Names,
    pub(super) server_cpu: Option<u32>,
    /// Whether there is no netserver.
    pub(super) alone: bool,
    /// The whole command line, as a selector shows it; none until the test begins.
    pub(super) command_line: String,
}

impl Request {
    pub(super) fn subject(&self) -> Subject {
        let TestPlan { kind, transport, local: EndPlan { cpu_count, .. }, .. } = self.plan;
        Subject { kind, transport, unit: self.unit, cpus: cpu_count }
    }
}

/// Names of the data connection's ends as they were typed.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) local: Option<String>,
    pub(super) remote: String,
    /// Whether the remote name is the data connection's own.
    pub(super) names_data_host: bool,
    /// The leading bits of each address that aren't random.
    pub(super) local_bits: Option<u32>,
    pub(super) remote_bits: Option<u32>,
    pub(super) family: Option<Family>,
}

/// The table that shows a test's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// TCP_STREAM, TCP_MAERTS, TCP_SENDFILE.
    Stream,
    /// TCP_RR, UDP_RR.
    RequestResponse,
    /// TCP_CRR, TCP_CC.
    Connections,
    /// UDP_STREAM.
    UdpStream,
    /// OMNI: selected figures.
    Omni,
}

struct Named {
    name: &'static str,
    title: &'static str,
    kind: TestKind,
    transport: TestTransport,
    table: Table,
}

/// The tests that have a table of their own.
const TESTS: [Named; 8] = [
    named("TCP_STREAM", "MIGRATED TCP STREAM TEST", TestKind::Send, Table::Stream),
    named("TCP_MAERTS", "MIGRATED TCP MAERTS TEST", TestKind::Receive, Table::Stream),
    named("TCP_SENDFILE", "TCP SENDFILE TEST", TestKind::SendFile, Table::Stream),
    named(
        "TCP_RR",
        "MIGRATED TCP REQUEST/RESPONSE TEST",
        TestKind::RequestResponse,
        Table::RequestResponse,
    ),
    named(
        "TCP_CRR",
        "MIGRATED TCP Connect/Request/Response TEST",
        TestKind::ConnectRequestResponse,
        Table::Connections,
    ),
    named("TCP_CC", "TCP Connect/Close TEST", TestKind::Connect, Table::Connections),
    over_udp("UDP_STREAM", "MIGRATED UDP STREAM TEST", TestKind::Send, Table::UdpStream),
    over_udp(
        "UDP_RR",
        "MIGRATED UDP REQUEST/RESPONSE TEST",
        TestKind::RequestResponse,
        Table::RequestResponse,
    ),
];

const fn named(name: &'static str, title: &'static str, kind: TestKind, table: Table) -> Named {
    Named { name, title, kind, transport: TestTransport::Tcp, table }
}

const fn over_udp(name: &'static str, title: &'static str, kind: TestKind, table: Table) -> Named {
    Named { name, title, kind, transport: TestTransport::Udp, table }
}

/// Why there is nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No test has this name.
    UnknownTest(String),
    /// No interval of confidence has this level.
    UnknownLevel,
    /// The file that names the figures can't be read; with the error of errno(3).
    SelectionFile { path: String, errno: i32 },
    /// A sentence.
    Sentence(String),
}

impl From<String> for Refusal {
    fn from(sentence: String) -> Self {
        Self::Sentence(sentence)
    }
}

/// The control connection as it was asked for.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) plan: ControlPlan,
    /// Its local address or name as it was typed.
    pub(super) local: Option<String>,
    /// Whether the host was named, rather than localhost by default.
    pub(super) names_host: bool,
    /// The family that was asked for, as messages tell it.
    pub(super) told_family: Option<Family>,
    /// Whether there is none.
    pub(super) alone: bool,
}

/// Makes sense of what was typed; the control connection is apart from the work.
pub(super) fn plan_work(typed: Options) -> Result<(Control, Work), Refusal> {
    let control = control_of(&typed);
    if typed.control.alone && typed.test == "REM_CPU" {
        let sentence = "REM_CPU asks the server, and with -N there is no control connection: leave one \
             of them out";
        return Err(Refusal::Sentence(sentence.to_owned()));
    }
    let work = match typed.test.as_str() {
        "UUID" => Work::Uuid(typed.shown.uuid),
        "LOC_CPU" => Work::LocalCpu(typed.shown.verbosity),
        "REM_CPU" => Work::RemoteCpu(typed.shown.verbosity),
        "TCP_MSS" => Work::SegmentSize(Box::new(segment_size_request(typed)?)),
        _ => Work::Test(Box::new(request(typed)?)),
    };
    Ok((control, work))
}

fn control_of(typed: &Options) -> Control {
    // The original's own end is 0.0.0.0 then, so that localhost is never ::1.
    let names_nothing = !typed.control.names_host && typed.shown.local_host.is_none();
    let family = typed.family.or(names_nothing.then_some(Family::Ipv4));
    Control {
        plan: control_plan(&typed.control, family),
        local: typed.shown.local_host.clone(),
        names_host: typed.control.names_host,
        told_family: typed.family,
        alone: typed.control.alone,
    }
}

fn request(typed: Options) -> Result<Request, Refusal> {
    let (title, kind, transport, table) = if typed.test == "OMNI" {
        let (kind, transport) = omni_kind(&typed)?;
        (format!("OMNI {} TEST", super::selector::direction(kind)), kind, transport, Table::Omni)
    } else {
        let found = TESTS.iter().find(|test| test.name == typed.test);
        let test = found.ok_or_else(|| Refusal::UnknownTest(typed.test.clone()))?;
        (test.title.to_owned(), test.kind, test.transport, test.table)
    };
    assemble(typed, title, kind, transport, table)
}

/// One transaction of a byte: enough to have a connection, of which the segment size is asked.
fn segment_size_request(mut typed: Options) -> Result<Request, Refusal> {
    typed.length = -1;
    let title = "TCP MSS TEST".to_owned();
    let (kind, transport) = (TestKind::RequestResponse, TestTransport::Tcp);
    assemble(typed, title, kind, transport, Table::Stream)
}

fn assemble(
    typed: Options,
    title: String,
    kind: TestKind,
    transport: TestTransport,
    table: Table,
) -> Result<Request, Refusal> {
    let mut plan = test_plan(&typed, kind, transport)?;
    plan.busy_poll = typed.requests.busy_poll;
    let cpu = typed.local.cpu.measured || typed.remote.cpu.measured;
    let selection = match (&typed.shown.selected, table) {
        (None, Table::Omni) => Some(Selection::usual(kind, cpu)),
        (None, _) => None,
        (Some(selected), _) => Some(parse_selection(selected, kind, cpu)?),
    };
    plan.times_calls = typed.shown.statistics
        || typed.shown.verbosity > 1
        || selection.as_ref().is_some_and(Selection::has_latencies);
    let name = |host: &Option<DataHost>| host.as_ref().map(|host| host.name.clone());
    // Data that goes to another address than control does may leave from another one, too.
    let control_local = typed.shown.local_host.clone().filter(|_| typed.data.host.is_none());
    let names = Names {
        local: name(&typed.data.local).or(control_local),
        remote: name(&typed.data.host).unwrap_or_else(|| typed.control.host.clone()),
        names_data_host: typed.data.host.is_some(),
        local_bits: typed.data.local.as_ref().and_then(|host| host.fixed_bits),
        remote_bits: typed.data.host.as_ref().and_then(|host| host.fixed_bits),
        family: typed.data.family.or(typed.family),
    };
    Ok(Request {
        title,
        table,
        plan,
        schedule: schedule(&typed.repeat)?,
        unit: unit(typed.shown.unit, kind),
        selection,
        names,
        server_cpu: typed.control.server_cpu,
        alone: typed.control.alone,
        command_line: String::new(),
        shown: typed.shown,
    })
}

fn omni_kind(typed: &Options) -> Result<(TestKind, TestTransport), Refusal> {
    let omni = &typed.omni;
    let Direction { sends, receives } = omni.told.unwrap_or(omni.implied);
    let kind = match (omni.connects, sends, receives) {
        (true, true, true) => TestKind::ConnectRequestResponse,
        (true, false, false) => TestKind::Connect,
        (true, ..) => {
            let sentence = "-c makes a connection for each transaction (-d rr, -r), or empty \
                 connections, and excludes bulk in one direction (-d, -m, -M): leave one of them out";
            return Err(Refusal::Sentence(sentence.to_owned()));
        }
        (false, true, true) => TestKind::RequestResponse,
        (false, false, true) => TestKind::Receive,
        (false, _, false) => TestKind::Send,
    };
    let transport = if omni.udp == Some(true) { TestTransport::Udp } else { TestTransport::Tcp };
    Ok((kind, transport))
}

/// Transactions are counted unless bytes are asked for; bytes have no unit of transactions.
fn unit(told: Option<Unit>, kind: TestKind) -> Unit {
    match told {
        // Nothing goes over its connections: in bytes its result would always be 0.
        _ if kind == TestKind::Connect => Unit::Transactions,
        None if kind.has_transactions() => Unit::Transactions,
        Some(Unit::Transactions) if !kind.has_transactions() => Unit::Mbits,
        told => told.unwrap_or(Unit::Mbits),
    }
}

fn test_plan(
    typed: &Options,
    kind: TestKind,
    transport: TestTransport,
) -> Result<TestPlan, Refusal> {
    let plain = TestPlan::new(kind, transport);
    let options = test_options(&typed.socket, plain.options.routed, transport);
    let mut remote = end_plan(&typed.remote)?;
    let request_bytes = typed.requests.request_bytes.unwrap_or(1);
    let mut response_bytes = typed.requests.response_bytes.unwrap_or(1);
    if typed.control.alone && remote.port == 0 {
        remote.port = service_port(kind);
        if kind.has_transactions() {
            // An echo is as long as its request.
            response_bytes = request_bytes;
        }
    }
    Ok(TestPlan {
        family: typed.data.family.or(typed.family),
        end: end(typed.length)?,
        request_bytes,
        response_bytes,
        burst: typed.requests.burst,
        local: end_plan(&typed.local)?,
        remote,
        interval_ns: typed.shown.interim_s.map(|seconds| (seconds * 1e9) as u64),
        wait_s: typed.wait_s,
        source_ports: typed.requests.source_ports,
        timeout_ns: typed.requests.timeout_ns,
        file: (kind == TestKind::SendFile).then(|| typed.file.clone().map(PathBuf::from)).flatten(),
        options,
        ..plain
    })
}

/// The port of the discard, chargen or echo service (RFC 863, RFC 864, RFC 862).
fn service_port(kind: TestKind) -> u16 {
    match kind {
        TestKind::Send | TestKind::SendFile => 9,
        TestKind::Receive => 19,
        _ => 7,
    }
}

fn control_plan(control: &ControlOptions, family: Option<Family>) -> ControlPlan {
    ControlPlan {
        host: control.host.clone(),
        port: control.port,
        family,
        local_port: control.local_port,
        passphrase: control.passphrase.clone(),
        server_cpu: control.server_cpu,
        ..ControlPlan::default()
    }
}

/// `routed`: whether packets may be routed where nothing is said of it.
fn test_options(socket: &SocketOptions, routed: bool, transport: TestTransport) -> TestOptions {
    TestOptions {
        no_delay: socket.no_delay,
        cork: socket.cork,
        defer_accept: socket.defer_accept,
        keep_alive: socket.keep_alive,
        routed: socket.routed.unwrap_or(routed),
        dont_fragment: socket.dont_fragment,
        fast_open: socket.fast_open,
        debug: socket.debug,
        no_copy: socket.no_copy,
        packet_info: socket.packet_info,
        mss_bytes: socket.mss_bytes,
        most_bytes_per_s: socket.most_bytes_per_s,
        // A connection goes to one host; the original sets the option on it all the same.
        multicast_ttl: socket.multicast_ttl.filter(|_| transport == TestTransport::Udp),
    }
}

fn end_plan(end: &EndOptions) -> Result<EndPlan, Refusal> {
    Ok(EndPlan {
        send_bytes: end.message_bytes.send,
        receive_bytes: end.message_bytes.receive,
        send_buffer_bytes: end.buffer_bytes.send,
        receive_buffer_bytes: end.buffer_bytes.receive,
        address: None,
        port: end.port,
        pacing: pacing(end.burst, end.interval_us)?,
        congestion: end.congestion.clone(),
        priority: end.priority,
        service: end.service,
        cpu: end.cpu.measured,
        cpu_count: end.cpu.count,
        cpu_rate: end.cpu.rate,
        bind_cpu: end.cpu.bound,
        connected: end.connected,
        send_alignment: end.alignment.send,
        receive_alignment: end.alignment.receive,
        send_offset: end.offset.send,
        receive_offset: end.offset.receive,
        send_width: end.width.send,
        receive_width: end.width.receive,
        fill_file: end.fill_file.clone(),
        dirt: end.dirt.map(|Dirt { dirty_bytes, clean_bytes }| linerate_engine::netperf::Dirt {
            dirty_bytes,
            clean_bytes,
        }),
    })
}

/// Sends come at a pace where `-b` is given and not 0; an interval is a millisecond unless `-w` says
/// otherwise.
fn pacing(burst: Option<u32>, interval_us: Option<u32>) -> Result<Option<Pacing>, Refusal> {
    let interval_us = interval_us.unwrap_or(1000);
    let pacing = burst.filter(|burst| *burst > 0).map(|burst| Pacing { burst, interval_us });
    if pacing.is_some() && interval_us == 0 {
        return Err(Refusal::Sentence(
            "-b needs an interval: give -w 1u or more, or leave out -b".to_owned(),
        ));
    }
    Ok(pacing)
}

fn end(length: i64) -> Result<TestEnd, Refusal> {
    let too_long = || Refusal::Sentence(format!("-l {length}: at most 2147483647 either way"));
    let size = i32::try_from(length.unsigned_abs()).map_err(|_| too_long())?.unsigned_abs();
    Ok(match length {
        0 => TestEnd::Interrupt,
        1.. => TestEnd::Seconds(size),
        _ => TestEnd::Units(size),
    })
}

fn schedule(repeat: &Repeat) -> Result<Schedule, Refusal> {
    let Some(IterationBounds { most, least }) = repeat.iterations else {
        return Ok(Schedule { least: 1, most: 1, demand: None });
    };
    let level_percent = repeat.level_percent.unwrap_or(99);
    if !matches!(level_percent, 95 | 99) {
        return Err(Refusal::UnknownLevel);
    }
    let width_percent = repeat.width_percent.unwrap_or(5.0);
    if width_percent <= 0.0 {
        return Err(Refusal::Sentence("-I: a width must be more than 0 percent".to_owned()));
    }
    let width = width_percent / 100.0;
    let demand = Demand { level_percent, width, result_only: repeat.result_only };
    Ok(Schedule { least, most, demand: Some(demand) })
}
