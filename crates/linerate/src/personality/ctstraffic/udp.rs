//! A client or a server of media streams over UDP, from its options to its exit code.

use std::sync::Arc;
use std::time::Duration;

use linerate_engine::ctstraffic::{
    MediaClientPlan, MediaEvent, MediaRoute, MediaRun, MediaServerPlan, MediaStatus, MediaTimes,
    run_media_client, run_media_server,
};
use linerate_engine::event::Cancel;
use linerate_measure::dialect::SampleExtension;
use linerate_measure::dialect::ctstraffic::{EndTotals, Frames, Interval};
use linerate_measure::sample::Traffic;
use linerate_measure::{Direction, End, Kind, Rate, Role, Sample, Workload};
use linerate_personality::ctstraffic::addresses::local_port;
use linerate_personality::ctstraffic::options::Options;
use linerate_personality::ctstraffic::{Refusal, exit};
use linerate_wire::ctstraffic::media::receiver::FrameCounts;
use linerate_wire::ctstraffic::media::shape::StreamShape;

use super::files::Files;
use super::resolve::{Found, route_count, with_port};
use super::udp_printer::UdpPrinter;
use super::{Failure, RunEnd};
use crate::personality::run_document::RunRecord;
use crate::start_time::utc_now_ns;

/// Runs it.
pub(super) fn run(
    options: &Options,
    found: &Found,
    record: &mut RunRecord,
    cancel: &Cancel,
) -> Result<RunEnd, Failure> {
    let end = match options.is_server() {
        true => UdpEnd::Server(server_plan(options, found)?),
        false => UdpEnd::Client(client_plan(options, found)?),
    };
    let files = Files::open(options)?;
    let role = if options.is_server() { Role::Server } else { Role::Client };
    let mut printer = UdpPrinter::begin(options, files, found.run_addresses(options));
    record.start(utc_now_ns());
    let aborts = options.run.aborts_on_error;
    let mut samples = 0;
    let mut tell = |event: MediaEvent| {
        if cancel.requested() {
            printer.console.stop();
        }
        printer.tell(&event);
        if let MediaEvent::Status(status) = &event {
            record_status(record, status, role, &mut samples);
        }
        if aborts && matches!(&event, MediaEvent::Finished(end) if end.fault.is_some()) {
            std::process::abort();
        }
    };
    let run = match &end {
        UdpEnd::Server(plan) => run_media_server(plan, &mut tell, cancel),
        UdpEnd::Client(plan) => run_media_client(plan, &mut tell, cancel),
    }?;
    if cancel.requested() {
        printer.console.stop();
    }
    let failed = run.totals.network_errors.saturating_add(run.totals.protocol_errors);
    let exit_code = exit::exit_code(failed, is_finished(options, &run));
    printer.conclude(&run, exit_code);
    let totals = end_totals(&run, role);
    Ok(RunEnd { report: run.report, totals, exit_code })
}

/// Which end, and what it does.
enum UdpEnd {
    Server(MediaServerPlan),
    Client(MediaClientPlan),
}

/// Options that were read have a stream.
fn shape(options: &Options) -> Result<StreamShape, Refusal> {
    let shape = options.stream_shape().and_then(Result::ok);
    shape.ok_or_else(|| Refusal::new("-BitsPerSecond is required"))
}

fn server_plan(options: &Options, found: &Found) -> Result<MediaServerPlan, Refusal> {
    Ok(MediaServerPlan {
        listen: found.listen.clone(),
        shape: shape(options)?,
        limit: options.server_exit_limit(),
        max_rate_bps: options.own.max_rate_bps,
        max_address_rate_bps: options.own.max_address_rate_bps,
        spins: options.own.busy_poll,
        sockets: found.sockets(options),
        cpus: found.processors.clone(),
        times: times(options),
    })
}

fn client_plan(options: &Options, found: &Found) -> Result<MediaClientPlan, Refusal> {
    let receiver = options.receiver_settings();
    let receiver = receiver.ok_or_else(|| Refusal::new("-FrameRate is required"))?;
    let (addresses, port) = (found.addresses.clone(), options.port());
    let local_ports = options.hosts.local_ports;
    let routes = route_count(&addresses, local_ports);
    let route = move |number| {
        let (bind, target) = addresses.pair_or_unspecified(number);
        let local = local_ports.map_or(0, |ports| local_port(ports, number));
        MediaRoute {
            server: with_port(target, port),
            local: Some(with_port(bind, local))
                .filter(|local| !local.ip().is_unspecified() || local.port() > 0),
        }
    };
    Ok(MediaClientPlan {
        route: Arc::new(route),
        routes,
        streams: options.connections(),
        total: options.total_connections(),
        receiver,
        verifies_data: options.verifies_data(),
        tells_jitter: options.output.jitter_file.is_some(),
        sockets: found.sockets(options),
        cpus: found.processors.clone(),
        times: times(options),
    })
}

fn status_ns(options: &Options) -> u64 {
    u64::from(options.status_update_ms()) * 1_000_000
}

fn times(options: &Options) -> MediaTimes {
    let milliseconds = |time: Option<u32>| time.map(|ms| Duration::from_millis(ms.into()));
    MediaTimes {
        status_ns: status_ns(options),
        time_limit: milliseconds(options.run.time_limit_ms),
        pause_at_end: milliseconds(options.run.pause_at_end_ms),
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
pub(super) fn workload(options: &Options) -> Result<Workload, Refusal> {
    let shape = shape(options)?;
    let mut workload = Workload::media(Direction::Down);
    let bps = 8 * u64::from(shape.frame_bytes) * u64::from(shape.frame_rate);
    workload.rate = Some(Rate::EachFlow { bps });
    workload.flows = options.connections();
    let length_s = u64::from(options.stream.length_s.unwrap_or_default());
    workload.end = End::Time { duration_ns: length_s.saturating_mul(1_000_000_000) };
    workload.interval_ns = status_ns(options);
    workload.payload.verify = options.verifies_data();
    if let Kind::Stream { send_bytes, media: Some(media), .. } = &mut workload.kind {
        *send_bytes = shape.datagram_bytes;
        media.frames_per_s = shape.frame_rate;
        media.buffer_depth_ns = u64::from(options.depth_s()) * 1_000_000_000;
    }
    Ok(workload)
}

/// Records what a row of status says, but for the first one, which has no time.
fn record_status(record: &mut RunRecord, status: &MediaStatus, role: Role, samples: &mut u32) {
    if status.slice_ns == 0 {
        return;
    }
    let traffic = Some(Traffic { bytes: status.counts.bits / 8, calls: None });
    let interval = Interval {
        open: status.streams,
        completed: status.totals.completed,
        network_errors: status.totals.network_errors,
        data_errors: status.totals.protocol_errors,
        frames: Some(frames(&status.counts)),
    };
    let sample = Sample {
        index: *samples,
        from_ns: status.at_ns.saturating_sub(status.slice_ns),
        to_ns: status.at_ns,
        utc_ns: utc_now_ns(),
        sent: traffic.filter(|_| role == Role::Server),
        received: traffic.filter(|_| role == Role::Client),
        extension: Some(SampleExtension::Ctstraffic(interval)),
        ..Sample::nothing(role)
    };
    record.record_sample(&sample);
    *samples += 1;
}

fn frames(counts: &FrameCounts) -> Frames {
    let FrameCounts { completed, dropped, repeated, errors, .. } = *counts;
    Frames { completed, dropped, repeated, errors }
}

fn end_totals(run: &MediaRun, role: Role) -> EndTotals {
    let bytes = run.totals.counts.bits / 8;
    EndTotals {
        completed: run.totals.completed,
        network_errors: run.totals.network_errors,
        data_errors: run.totals.protocol_errors,
        sent_bytes: if role == Role::Server { bytes } else { 0 },
        received_bytes: if role == Role::Client { bytes } else { 0 },
        frames: Some(frames(&run.totals.counts)),
        socket_drops: Some(run.totals.socket_drops).filter(|_| role == Role::Client),
        queue_drops: Some(run.totals.queue_drops).filter(|_| role == Role::Server),
        acknowledged_bytes: None,
    }
}
