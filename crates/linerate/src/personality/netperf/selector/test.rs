//! Selectors of the test, its result and its sizes.

use super::value::{
    count_or_unmeasured, direction, fixed, integer, message_bytes, protocol, socket_type, text,
};
use super::{EndRow, Rows, WholeRow, of_end, row};

/// In the order of `all`.
pub(super) const TEST: &[Rows] = &[Rows::Whole(RESULT), Rows::Ends(SIZES), Rows::Whole(MESSAGES)];

const RESULT: &[WholeRow] = &[
    row("SOCKET_TYPE", "Socket|Type", |o| text(socket_type(o))),
    row("PROTOCOL", "Protocol", |o| text(protocol(o))),
    row("DIRECTION", "Direction", |o| text(direction(o.request.plan.kind))),
    row("ELAPSED_TIME", "Elapsed|Time|(sec)", |o| fixed::<2>(o.figures.elapsed_s)),
    row("THROUGHPUT", "Throughput", |o| fixed::<2>(o.figures.throughput)),
    row("THROUGHPUT_UNITS", "Throughput|Units", |o| text(&format!("{}/s", o.figures.unit.name()))),
    row("LSS_SIZE_REQ", "Local|Send Socket|Size|Requested", |o| {
        count_or_unmeasured(o.figures.last.local().settings().send_buffer.asked)
    }),
    row("LSS_SIZE", "Local|Send Socket|Size|Initial", |o| {
        count_or_unmeasured(o.figures.last.local().settings().send_buffer.at_start)
    }),
    row("LSS_SIZE_END", "Local|Send Socket|Size|Final", |o| {
        count_or_unmeasured(o.figures.last.local().settings().send_buffer.at_end)
    }),
    row("LSR_SIZE_REQ", "Local|Recv Socket|Size|Requested", |o| {
        count_or_unmeasured(o.figures.last.local().settings().receive_buffer.asked)
    }),
    row("LSR_SIZE", "Local|Recv Socket|Size|Initial", |o| {
        count_or_unmeasured(o.figures.last.local().settings().receive_buffer.at_start)
    }),
    row("LSR_SIZE_END", "Local|Recv Socket|Size|Final", |o| {
        count_or_unmeasured(o.figures.last.local().settings().receive_buffer.at_end)
    }),
    row("RSS_SIZE_REQ", "Remote|Send Socket|Size|Requested", |o| {
        count_or_unmeasured(o.figures.last.remote().settings().send_buffer.asked)
    }),
    row("RSS_SIZE", "Remote|Send Socket|Size|Initial", |o| {
        count_or_unmeasured(o.figures.last.remote().settings().send_buffer.at_start)
    }),
    row("RSS_SIZE_END", "Remote|Send Socket|Size|Final", |o| {
        count_or_unmeasured(o.figures.last.remote().settings().send_buffer.at_end)
    }),
    row("RSR_SIZE_REQ", "Remote|Recv Socket|Size|Requested", |o| {
        count_or_unmeasured(o.figures.last.remote().settings().receive_buffer.asked)
    }),
    row("RSR_SIZE", "Remote|Recv Socket|Size|Initial", |o| {
        count_or_unmeasured(o.figures.last.remote().settings().receive_buffer.at_start)
    }),
    row("RSR_SIZE_END", "Remote|Recv Socket|Size|Final", |o| {
        count_or_unmeasured(o.figures.last.remote().settings().receive_buffer.at_end)
    }),
];

const SIZES: &[EndRow] = &[
    of_end("SEND_SIZE", "Send|Size", |e| integer(e.send_size())),
    of_end("RECV_SIZE", "Recv|Size", |e| integer(e.receive_size())),
];

const MESSAGES: &[WholeRow] = &[
    row("REQUEST_SIZE", "Request|Size|Bytes", |o| message_bytes(o, o.request.plan.request_bytes)),
    row("RESPONSE_SIZE", "Response|Size|Bytes", |o| {
        message_bytes(o, o.request.plan.response_bytes)
    }),
];
