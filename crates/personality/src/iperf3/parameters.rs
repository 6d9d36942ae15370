//! What a client asks its server for, as its options say it.

use std::path::Path;

use linerate_wire::iperf3::parameters::Offload;
use linerate_wire::iperf3::{Parameters, Protocol};

use super::options::{Direction, Options};
use super::release::Release;

/// What UDP streams send unless told otherwise, bit/s.
const UDP_RATE_BPS: u64 = 1 << 20;

/// What a client asks for. `file_bytes` tells the size of a file, None where it can't be told.
pub fn parameters(
    options: &Options,
    release: Release,
    file_bytes: impl FnOnce(&Path) -> Option<u64>,
) -> Parameters {
    let num_bytes = options.load.bytes.unwrap_or(0).max(size_to_send(options, file_bytes));
    let block_count = options.load.blocks.unwrap_or(0);
    let time_s = if num_bytes > 0 || block_count > 0 { 0 } else { 10 };
    let bandwidth_bps = if options.load.udp { UDP_RATE_BPS } else { 0 };
    Parameters {
        protocol: if options.load.udp { Protocol::Udp } else { Protocol::Tcp },
        omit_s: options.load.omit_s,
        server_affinity: options.process.server_affinity,
        time_s: options.load.time_s.unwrap_or(time_s),
        num_bytes,
        block_count,
        mss_bytes: options.socket.mss_bytes.map(u32::from),
        no_delay: options.socket.no_delay,
        parallel: options.streams(),
        reverse: options.load.direction == Direction::Down,
        bidirectional: options.load.direction == Direction::Both,
        mptcp: options.socket.mptcp,
        window_bytes: options.socket.window_bytes,
        block_bytes: options.load.length_bytes.unwrap_or(0),
        bandwidth_bps: options.load.bitrate_bps.unwrap_or(bandwidth_bps),
        fq_rate_bps: options.load.fq_rate_bps.unwrap_or(0),
        pacing_timer_us: options.load.pacing_timer_us.unwrap_or(1000),
        burst_blocks: options.load.burst.unwrap_or(0),
        tos: options.socket.tos,
        flow_label: options.socket.flow_label,
        title: options.output.title.clone(),
        extra_data: options.payload.extra_data.clone(),
        congestion: options.socket.congestion.clone(),
        get_server_output: options.output.server_output,
        wide_counters: options.payload.counters_64bit,
        repeating_payload: options.payload.repeating_payload,
        zero_copy: options.socket.zero_copy,
        dont_fragment: options.socket.dont_fragment,
        auth_token: None,
        skip_rx_copy: options.socket.skip_rx_copy,
        offload: Offload {
            gso: options.socket.gsro,
            gro: options.socket.gsro,
            ..Offload::default()
        },
        client_version: release.number().to_owned(),
    }
}

/// A file that is sent is the end of its test, unless another end was given.
fn size_to_send(options: &Options, file_bytes: impl FnOnce(&Path) -> Option<u64>) -> u64 {
    let has_end =
        [options.load.bytes, options.load.blocks].iter().flatten().any(|count| *count > 0);
    if has_end || options.load.time_s.is_some() || options.load.direction != Direction::Up {
        return 0;
    }
    options.payload.file.as_deref().and_then(file_bytes).unwrap_or(0)
}
