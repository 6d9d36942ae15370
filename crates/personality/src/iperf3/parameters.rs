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
    let num_bytes = options.bytes.unwrap_or(0).max(size_to_send(options, file_bytes));
    let block_count = options.blocks.unwrap_or(0);
    let time_s = if num_bytes > 0 || block_count > 0 { 0 } else { 10 };
    let bandwidth_bps = if options.udp { UDP_RATE_BPS } else { 0 };
    Parameters {
        protocol: if options.udp { Protocol::Udp } else { Protocol::Tcp },
        omit_s: options.omit_s,
        server_affinity: options.server_affinity,
        time_s: options.time_s.unwrap_or(time_s),
        num_bytes,
        block_count,
        mss_bytes: options.mss_bytes.map(u32::from),
        no_delay: options.no_delay,
        parallel: options.streams(),
        reverse: options.direction == Direction::Down,
        bidirectional: options.direction == Direction::Both,
        mptcp: options.mptcp,
        window_bytes: options.window_bytes,
        block_bytes: options.length_bytes.unwrap_or(0),
        bandwidth_bps: options.bitrate_bps.unwrap_or(bandwidth_bps),
        fq_rate_bps: options.fq_rate_bps.unwrap_or(0),
        pacing_timer_us: options.pacing_timer_us.unwrap_or(1000),
        burst_blocks: options.burst.unwrap_or(0),
        tos: options.tos,
        flow_label: options.flow_label,
        title: options.title.clone(),
        extra_data: options.extra_data.clone(),
        congestion: options.congestion.clone(),
        get_server_output: options.server_output,
        wide_counters: options.counters_64bit,
        repeating_payload: options.repeating_payload,
        zero_copy: options.zero_copy,
        dont_fragment: options.dont_fragment,
        auth_token: None,
        skip_rx_copy: options.skip_rx_copy,
        offload: Offload { gso: options.gsro, gro: options.gsro, ..Offload::default() },
        client_version: release.number().to_owned(),
    }
}

/// A file that is sent is the end of its test, unless another end was given.
fn size_to_send(options: &Options, file_bytes: impl FnOnce(&Path) -> Option<u64>) -> u64 {
    let has_end = [options.bytes, options.blocks].iter().flatten().any(|count| *count > 0);
    if has_end || options.time_s.is_some() || options.direction != Direction::Up {
        return 0;
    }
    options.file.as_deref().and_then(file_bytes).unwrap_or(0)
}
