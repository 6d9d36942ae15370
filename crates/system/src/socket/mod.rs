//! The system calls that no safe library offers, and the options of sockets.
//!
//! This is the only folder with `unsafe` in it. Plain sends, receives and polling go through
//! `rustix`, which is safe.

#![allow(unsafe_code, reason = "system calls without a safe wrapper; nowhere else")]

mod batch;
mod descriptors_at_start;
mod discard;
mod driver_counters;
mod drops;
mod error_queue;
mod first_window;
mod handed;
mod heap;
mod interface;
mod lending;
mod open;
mod option;
mod packet;
mod queues;
mod real_time;
mod steering;
mod table;
mod tcp_info;
mod tun;
mod usage;

pub use batch::{MOST_TRAINS, ReceivedTrain, receive_batch, receive_trains, send_batch};
pub use descriptors_at_start::stdout_was_closed;
pub use discard::discard;
pub use driver_counters::DriverCounters;
pub use drops::{send_buffer_ratio, socket_drops};
pub use error_queue::{only_passing_errors, take_path_errors, tell_refusals};
pub use first_window::FirstWindow;
pub use handed::{HandedSockets, inherited_file};
pub use heap::give_back_freed_memory;
pub use interface::local_socket_address;
pub use lending::{enable_lending, take_returned};
pub use open::{
    Addresses, Binding, EVERYWHERE_V4, EVERYWHERE_V6, accept_stream, begin_connecting, bind_beside,
    bind_datagram, bind_source, configure_asked, configure_stream, connect_datagram,
    connect_stream, dial_stream, enlarge_datagram_buffers, everywhere, flow_datagram,
    force_datagram_buffers, granted, is_short_of_descriptors, listen, listen_at, open_stream,
    or_over_v4, plain, segment_bytes, try_binding, try_port, unbound_listener,
};
pub use option::{
    accept_fast_open, enable_receive_offload, is_multipath, lease_flow_label, retry_steadily,
    set_debug, set_defer_accept, set_fast_open, set_pacing_rate, set_send_segment,
    set_unfragmented, set_unrouted,
};
pub use packet::{
    LONGEST_TRAIN_BYTES, Outgoing, enable_packet_facts, forbid_fragments, receive_packets,
    route_mtu_bytes, send_packets,
};
pub use queues::{Interface, Queues, own_queue};
pub use real_time::RealTime;
pub use steering::share_packets;
pub use table::own_table;
pub use tcp_info::{
    TcpCounts, TcpFigures, tcp_bytes, tcp_counts, tcp_figures, tcp_is_retransmitting,
    tcp_last_heard, tcp_movement, tcp_queues, tcp_retransmissions, tcp_status,
    tcp_unacknowledged_bytes,
};
pub use tun::open_tun;
pub use usage::{ThreadUsage, thread_cpu_since, thread_usage};
