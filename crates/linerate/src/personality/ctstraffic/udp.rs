//! A client or a server of media streams over UDP, from its options to its exit code.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use linerate_engine::ctstraffic::{
    MediaClientPlan, MediaEvent, MediaRoute, MediaRun, MediaServerPlan, MediaSockets,
    run_media_client, run_media_server,
};
use linerate_engine::error::Error;
use linerate_engine::event::Cancel;
use linerate_measure::dialect::ctstraffic::EndTotals;
use linerate_measure::{Direction, End, EndReport, Kind, Rate, Role, Workload};
use linerate_personality::ctstraffic::addresses::{ClientAddresses, local_port};
use linerate_personality::ctstraffic::options::Options;
use linerate_personality::ctstraffic::output::banner::RunAddresses;
use linerate_personality::ctstraffic::{Refusal, exit};
use linerate_wire::ctstraffic::media::shape::StreamShape;

use super::files::Files;
use super::resolve::{client_addresses, device, listening};
use super::udp_printer::UdpPrinter;
use super::{not_started, record};

/// Runs it; its exit code.
pub(super) fn run(options: &Options, words: &[String], cancel: &Cancel) -> Result<u8, Refusal> {
    // Options that were read have a stream.
    let shape = options.stream_shape().and_then(Result::ok);
    let shape = shape.ok_or_else(|| Refusal::new("-BitsPerSecond is required"))?;
    let end = match options.is_server() {
        true => UdpEnd::Server(server_plan(options, shape)?),
        false => client_plan(options, client_addresses(&options.hosts)?)?,
    };
    let files = Files::open(options)?;
    let mut record = match record::begin(options, workload(options, &shape), words, cancel) {
        Ok(record) => record,
        Err(sentence) => return Ok(not_started(&sentence)),
    };
    let mut printer = UdpPrinter::begin(options, files, end.addresses());
    record::start(&mut record);
    let aborts = options.run.aborts_on_error;
    let mut tell = |event: MediaEvent| {
        if cancel.requested() {
            printer.console.stop();
        }
        printer.tell(&event);
        if aborts && matches!(&event, MediaEvent::Finished(end) if end.fault.is_some()) {
            std::process::abort();
        }
    };
    let run = match end.run(&mut tell, cancel) {
        Ok(run) => run,
        Err(error) => {
            record::fail(record, exit::NOT_STARTED, &error.to_string());
            return Ok(not_started(&error.to_string()));
        }
    };
    if cancel.requested() {
        printer.console.stop();
    }
    pause(options, &printer, cancel);
    let failed = run.totals.network_errors.saturating_add(run.totals.protocol_errors);
    let code = exit::exit_code(failed, is_finished(options, &run));
    printer.conclude(&run, code);
    let role = if options.is_server() { Role::Server } else { Role::Client };
    let report = EndReport { elapsed_ns: run.elapsed_ns, ..EndReport::nothing(role) };
    record::finish(record, report, end_totals(&run, role), code, cancel);
    Ok(code)
}

/// Which end, and what it does.
enum UdpEnd {
    Server(MediaServerPlan),
    Client { plan: MediaClientPlan, targets: Vec<SocketAddr>, binds: Vec<IpAddr> },
}

impl UdpEnd {
    fn addresses(&self) -> RunAddresses<'_> {
        match self {
            Self::Server(plan) => RunAddresses::Server(&plan.listen),
            Self::Client { targets, binds, .. } => RunAddresses::Client { targets, binds },
        }
    }

    fn run(&self, tell: &mut dyn FnMut(MediaEvent), cancel: &Cancel) -> Result<MediaRun, Error> {
        match self {
            Self::Server(plan) => run_media_server(plan, tell, cancel),
            Self::Client { plan, .. } => run_media_client(plan, tell, cancel),
        }
    }
}

fn server_plan(options: &Options, shape: StreamShape) -> Result<MediaServerPlan, Refusal> {
    Ok(MediaServerPlan {
        listen: listening(&options.hosts, options.port())?,
        shape,
        limit: options.server_exit_limit(),
        max_rate_bps: options.own.max_rate_bps,
        max_address_rate_bps: options.own.max_address_rate_bps,
        sockets: sockets(options)?,
        status_ns: status_ns(options),
        time_limit: time_limit(options),
    })
}

fn client_plan(options: &Options, addresses: ClientAddresses) -> Result<UdpEnd, Refusal> {
    let receiver = options.receiver_settings();
    let receiver = receiver.ok_or_else(|| Refusal::new("-FrameRate is required"))?;
    let fallback = addresses.pair(0).ok_or_else(|| Refusal::new("-target"))?;
    let port = options.port();
    let targets = addresses.targets.iter().map(|target| SocketAddr::new(*target, port)).collect();
    let (binds, local_ports) = (addresses.binds.clone(), options.hosts.local_ports);
    let route = move |number| {
        let (bind, target) = addresses.pair(number).unwrap_or(fallback);
        let local = local_ports.map_or(0, |ports| local_port(ports, number));
        MediaRoute {
            server: SocketAddr::new(target, port),
            local: Some(SocketAddr::new(bind, local))
                .filter(|local| !bind.is_unspecified() || local.port() > 0),
        }
    };
    let plan = MediaClientPlan {
        route: Arc::new(route),
        streams: options.connections(),
        total: options.total_connections(),
        receiver,
        verifies_data: options.verifies_data(),
        tells_jitter: options.output.jitter_file.is_some(),
        sockets: sockets(options)?,
        status_ns: status_ns(options),
        time_limit: time_limit(options),
    };
    Ok(UdpEnd::Client { plan, targets, binds })
}

fn sockets(options: &Options) -> Result<MediaSockets, Refusal> {
    Ok(MediaSockets {
        receive_buffer_bytes: options.receive_buffer_bytes(),
        send_buffer_bytes: options.sockets.send_buffer_bytes,
        dscp: options.sockets.dscp,
        device: device(&options.hosts)?,
    })
}

fn status_ns(options: &Options) -> u64 {
    u64::from(options.status_update_ms()) * 1_000_000
}

fn time_limit(options: &Options) -> Option<Duration> {
    options.run.time_limit_ms.map(|ms| Duration::from_millis(ms.into()))
}

/// Waits as asked before the summary.
fn pause(options: &Options, printer: &UdpPrinter<'_>, cancel: &Cancel) {
    let Some(ms) = options.run.pause_at_end_ms.filter(|_| !cancel.requested()) else { return };
    printer.console.tell_pause();
    for _ in (0..ms).step_by(10).take_while(|_| !cancel.requested()) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether all streams ended that were asked for; at least one was completed, where no number was.
fn is_finished(options: &Options, run: &MediaRun) -> bool {
    let limit = options.server_exit_limit();
    match if options.is_server() { limit } else { options.total_connections() } {
        Some(count) => run.totals.ended() >= count,
        None => run.totals.completed > 0,
    }
}

/// The nearest native workload.
fn workload(options: &Options, shape: &StreamShape) -> Workload {
    let mut workload = Workload::media(Direction::Down);
    let bps = 8 * u64::from(shape.frame_bytes) * u64::from(shape.frame_rate);
    workload.rate = Some(Rate::EachFlow { bps });
    workload.flows = options.connections();
    let length_s = u64::from(options.stream.length_s.unwrap_or_default());
    workload.end = End::Time { duration_ns: length_s.saturating_mul(1_000_000_000) };
    workload.interval_ns = status_ns(options);
    workload.verify = options.verifies_data();
    if let Kind::Stream { send_bytes, media: Some(media), .. } = &mut workload.kind {
        *send_bytes = shape.datagram_bytes;
        media.frames_per_s = shape.frame_rate;
        media.buffer_depth_ns = u64::from(options.depth_s()) * 1_000_000_000;
    }
    workload
}

fn end_totals(run: &MediaRun, role: Role) -> EndTotals {
    let bytes = run.totals.counts.bits / 8;
    EndTotals {
        completed: run.totals.completed,
        network_errors: run.totals.network_errors,
        data_errors: run.totals.protocol_errors,
        sent_bytes: if role == Role::Server { bytes } else { 0 },
        received_bytes: if role == Role::Client { bytes } else { 0 },
    }
}
