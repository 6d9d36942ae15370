//! From a plan to what the server is asked for, and to this end's part.

use linerate_measure::step::Movement;
use linerate_wire::netperf::omni::DATAGRAM_MAX_BYTES;
use linerate_wire::netperf::test::{Family, Length, Part, Request, Rings, Transport};

use super::data::{DataPlan, Granted, ring};
use super::filling::told;
use super::job::{Job, Task};
use super::lives::life_at_client;
use super::plan::{EndPlan, TestEnd, TestKind, TestPlan, TestTransport};
use crate::buffers::Buffers;
use crate::clock::SECOND_NS;
use crate::error::Error;

/// The longest name of a congestion control (TCP_CA_NAME_MAX, 16 with the closing zero).
const CONGESTION_BYTES: usize = 15;
const FILL_FILE_BYTES: usize = 31;
/// Sizes go over the wire as signed words.
const MOST: u32 = i32::MAX as u32;
/// Requests on their way at once beyond the first.
const MOST_BURST: u32 = 65_535;

/// What the server is asked for.
pub(super) fn request(plan: &TestPlan, v6: bool) -> Result<Request, Error> {
    check(plan)?;
    let transport = transport(plan);
    let part = match plan.kind {
        TestKind::Send | TestKind::SendFile => Part::Receive,
        TestKind::Receive => Part::Send,
        TestKind::RequestResponse => Part::Answer,
        TestKind::ConnectRequestResponse => Part::AnswerOnce,
        TestKind::Connect => Part::Accept,
    };
    let ring = |end: &EndPlan| Rings {
        send_alignment: end.send_alignment.unwrap_or(8),
        send_offset: end.send_offset.unwrap_or(0),
        send_width: end.send_width.unwrap_or(0),
        receive_alignment: end.receive_alignment.unwrap_or(8),
        receive_offset: end.receive_offset.unwrap_or(0),
        receive_width: end.receive_width.unwrap_or(0),
    };
    let (remote, options) = (&plan.remote, &plan.options);
    Ok(Request {
        family: if v6 { Family::V6 } else { Family::V4 },
        length: match plan.end {
            TestEnd::Seconds(seconds) => Length::Seconds(seconds),
            TestEnd::Units(units) => Length::Units(units),
            TestEnd::Interrupt => Length::Open,
        },
        request_bytes: plan.request_bytes,
        response_bytes: plan.response_bytes,
        send_bytes: remote.send_bytes,
        receive_bytes: remote.receive_bytes,
        send_buffer_bytes: remote.send_buffer_bytes,
        receive_buffer_bytes: remote.receive_buffer_bytes,
        rings: ring(remote),
        port: remote.port,
        address: remote.address,
        client_address: plan.local.address,
        pacing: remote.pacing.map(|pacing| (pacing.burst, pacing.interval_us)),
        no_delay: options.no_delay,
        cpu: remote.cpu,
        cpu_rate: remote.cpu_rate.unwrap_or(0.0),
        routed: options.routed,
        keep_alive: options.keep_alive,
        defer_accept: options.defer_accept,
        dont_fragment: options.dont_fragment,
        packet_info: options.packet_info,
        connected: remote.connected,
        no_copy: options.no_copy,
        priority: remote.priority,
        service: remote.service,
        congestion: remote.congestion.clone(),
        fast_open: options.fast_open,
        fill_file: remote.fill_file.clone(),
        dirt: told(remote),
        ..Request::new(part, transport)
    })
}

fn transport(plan: &TestPlan) -> Transport {
    match plan.transport {
        TestTransport::Tcp => Transport::Tcp,
        TestTransport::Udp => Transport::Udp,
    }
}

fn check(plan: &TestPlan) -> Result<(), Error> {
    let refused = |why: String| Err(Error::Plan(why));
    let udp = plan.transport == TestTransport::Udp;
    if udp && plan.kind.connects() {
        return refused("connections can't be measured over UDP: choose TCP".to_owned());
    }
    if udp && plan.kind == TestKind::SendFile {
        return refused("a file can't be sent by sendfile over UDP: choose TCP".to_owned());
    }
    if udp && plan.kind == TestKind::Receive && plan.local.address.is_none() {
        return refused(
            "a server sends datagrams to the address that it is given: name this end's with -L \
             behind the --"
                .to_owned(),
        );
    }
    if plan.busy_poll && plan.kind != TestKind::RequestResponse {
        return refused(
            "--busy-poll is for requests and responses over one connection (TCP_RR, UDP_RR): leave \
             it out of other tests"
                .to_owned(),
        );
    }
    let units = matches!(plan.kind, TestKind::RequestResponse | TestKind::ConnectRequestResponse);
    for (what, bytes) in [("request", plan.request_bytes), ("response", plan.response_bytes)] {
        let most = if udp { DATAGRAM_MAX_BYTES } else { MOST };
        if units && !(1..=most).contains(&bytes) {
            return refused(format!(
                "a {what} has 1 to {most} bytes, not {bytes}: give another size with -r"
            ));
        }
    }
    check_sizes(plan, udp)
}

fn check_sizes(plan: &TestPlan, udp: bool) -> Result<(), Error> {
    let refused = |why: String| Err(Error::Plan(why));
    if udp && plan.local.send_bytes.is_some_and(|bytes| bytes > DATAGRAM_MAX_BYTES) {
        return refused(format!(
            "a datagram carries at most {DATAGRAM_MAX_BYTES} bytes: give a smaller size with -m"
        ));
    }
    for end in [&plan.local, &plan.remote] {
        let sizes =
            [end.send_bytes, end.receive_bytes, end.send_buffer_bytes, end.receive_buffer_bytes];
        if let Some(bytes) = sizes.into_iter().flatten().find(|bytes| *bytes > MOST) {
            return refused(format!("{bytes} bytes are more than a message can carry ({MOST})"));
        }
        let too_long = |name: &Option<String>, most| name.as_ref().is_some_and(|n| n.len() > most);
        if too_long(&end.congestion, CONGESTION_BYTES) {
            return refused(format!(
                "a congestion control's name has at most {CONGESTION_BYTES} letters: check -K"
            ));
        }
        if std::ptr::eq(end, &plan.remote) && too_long(&end.fill_file, FILL_FILE_BYTES) {
            return refused(format!(
                "a fill file's name at the server has at most {FILL_FILE_BYTES} letters: check -F"
            ));
        }
    }
    if plan.burst > MOST_BURST {
        return refused(format!("at most {MOST_BURST} more requests can be outstanding: check -b"));
    }
    let number = match plan.end {
        TestEnd::Seconds(number) | TestEnd::Units(number) => number,
        TestEnd::Interrupt => 1,
    };
    if number == 0 || number > MOST {
        return refused(format!("a test's length is 1 to {MOST}, not {number}: check -l"));
    }
    Ok(())
}

/// This end's part.
pub(super) fn job(
    plan: &TestPlan,
    request: &Request,
    granted: &Granted,
    buffers: Buffers,
    has_server: bool,
) -> Job {
    let transport = request.transport;
    let task = match plan.kind {
        TestKind::Send | TestKind::SendFile => Task::Send,
        TestKind::Receive => Task::Receive,
        TestKind::RequestResponse => Task::Ask,
        TestKind::ConnectRequestResponse | TestKind::Connect => Task::Connections,
    };
    let default_timeout_ns = Some(SECOND_NS).filter(|_| request.transport == Transport::Udp);
    Job {
        transport,
        task,
        length: request.length,
        request_bytes: plan.request_bytes,
        response_bytes: plan.response_bytes,
        unit_bytes: match task {
            Task::Receive => {
                plan.local.receive_bytes.unwrap_or_else(|| granted.receive_unit_bytes(transport))
            }
            _ => plan.local.send_bytes.unwrap_or_else(|| granted.send_unit_bytes(transport)),
        },
        pacing: plan.local.pacing.map(|pacing| (pacing.burst, pacing.interval_us)),
        outstanding: plan.burst.saturating_add(1),
        timeout_ns: plan.timeout_ns.or(default_timeout_ns),
        buffers,
        send_width: match task {
            Task::Send => {
                let bytes = plan.local.send_bytes.unwrap_or(granted.send_unit_bytes(transport));
                let asked = plan.local.send_width.unwrap_or(0);
                ring(asked, granted.send_buffer_bytes, bytes).cast_unsigned()
            }
            _ => plan.local.send_width.unwrap_or(1),
        },
        movement: match plan.kind {
            TestKind::SendFile => Movement::Splice,
            TestKind::Receive if plan.options.no_copy && request.transport == Transport::Tcp => {
                Movement::Splice
            }
            _ => Movement::Copy,
        },
        interval_ns: plan.interval_ns.unwrap_or(u64::MAX),
        says_end: true,
        times_calls: plan.times_calls && matches!(task, Task::Send | Task::Receive),
        busy_poll: plan.busy_poll,
        life: life_at_client(plan, has_server),
    }
}

/// The options of this end's data socket.
pub(super) fn data_plan(plan: &TestPlan) -> DataPlan {
    let (local, options) = (&plan.local, &plan.options);
    DataPlan {
        send_buffer_bytes: local.send_buffer_bytes,
        receive_buffer_bytes: local.receive_buffer_bytes,
        no_delay: options.no_delay,
        cork: options.cork,
        keep_alive: options.keep_alive,
        unrouted: !options.routed,
        dont_fragment: options.dont_fragment,
        defer_accept: false,
        // Only a send opens a connection this way.
        fast_open: options.fast_open
            && plan.transport == TestTransport::Tcp
            && !matches!(plan.kind, TestKind::Receive | TestKind::Connect),
        answers_fast_open: false,
        debug: options.debug,
        congestion: local.congestion.clone().filter(|_| plan.transport == TestTransport::Tcp),
        priority: local.priority,
        service: local.service,
        mss_bytes: options.mss_bytes.filter(|_| plan.transport == TestTransport::Tcp),
        most_bytes_per_s: options.most_bytes_per_s,
        multicast_ttl: options.multicast_ttl,
    }
}

/// Has datagrams be what a server of before 2.6 takes.
pub(super) fn fit_old_server(request: &mut Request, job: &mut Job) -> Result<(), Error> {
    job.says_end = job.task != Task::Ask;
    let told = Some(job.unit_bytes).filter(|_| job.task == Task::Send);
    if let Some(bytes) = request.receive_bytes.filter(|bytes| Some(*bytes) != told) {
        return Err(Error::Plan(format!(
            "netperf before 2.6 stops at the first datagram of another size than it receives ({bytes} \
             bytes): leave out -M"
        )));
    }
    if request.part == Part::Receive && matches!(request.length, Length::Units(_)) {
        return Err(Error::Plan(
            "netperf before 2.6 ends UDP_STREAM by its timer alone: give -l a number of seconds"
                .to_owned(),
        ));
    }
    request.receive_bytes = told;
    Ok(())
}
