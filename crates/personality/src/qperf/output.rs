//! The lines that are printed, from plain values: those of the fork, which scripts read.

use std::net::SocketAddr;

use linerate_wire::qperf::Close;
pub use linerate_wire::qperf::Counts;

use super::options::{Options, Role};
use crate::c_format::render_digits;

/// A rate over the measured time: `1.635 Gbit/s`, or without a prefix `1635078192 bit/s`.
fn render_rate(bytes: u64, measured_ns: u64, is_raw: bool) -> String {
    let bps = bytes as f64 * 8.0 * 1e9 / measured_ns.max(1) as f64;
    if is_raw {
        return format!("{bps:.0} bit/s");
    }
    let (mut value, mut prefix) = (bps, "");
    for next in ["k", "M", "G"] {
        if value >= 1000.0 {
            (value, prefix) = (value / 1000.0, next);
        }
    }
    format!("{} {prefix}bit/s", render_digits(value, 4))
}

/// How an end reports.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Seconds between reports.
    pub interval_s: f64,
    /// Whether rates have no prefix.
    pub is_raw: bool,
}

impl Style {
    /// What the options ask for.
    pub fn of(options: &Options) -> Self {
        Self { interval_s: options.interval_s, is_raw: options.prints_raw }
    }

    /// The time that the report of this number, from 0, ends at: `0.3`.
    fn label(self, index: u32) -> String {
        render_digits(self.interval_s * (f64::from(index) + 1.0), 6)
    }
}

/// An interval that is over.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Its number, from 0.
    pub index: u32,
    /// How long it was.
    pub measured_ns: u64,
    /// What was counted in it.
    pub counts: Counts,
}

/// The first line of a client, of a server, or of a proxy with this process id.
pub fn render_start(options: &Options, process: u32) -> String {
    let (cc, iw) = (options.congestion.name(), options.window_packets);
    match &options.role {
        Role::Client(host) => {
            let (port, runtime_s) = (options.port, options.runtime_s);
            format!(
                "starting client with host {host}, port {port}, runtime {runtime_s}s, cc {cc}, iw {iw}\n"
            )
        }
        Role::Server => {
            let port = options.listen_port();
            format!("starting server with pid {process}, port {port}, cc {cc}, iw {iw}\n")
        }
        Role::Proxy(host) => {
            let (port, listen_port) = (options.port, options.listen_port());
            format!(
                "starting proxy with pid {process}, host {host}, port {port}, \
                 listen port {listen_port}, cc {cc}, iw {iw}\n"
            )
        }
    }
}

/// What `-g` says.
pub const OFFLOAD_LINE: &str = "using UDP GSO, requires kernel >= 4.18\n";

/// A client begins to connect.
pub fn render_connecting(to: SocketAddr) -> String {
    format!("establishing connection to {to}\n")
}

/// A client's connection stands after so long.
pub fn render_established(elapsed_ns: u64) -> String {
    format!("connection establishment time: {}ms\n", whole_ms(elapsed_ns))
}

/// A client's first byte came so long after it began to connect.
pub fn render_first_byte(elapsed_ns: u64) -> String {
    format!("time to first byte: {}ms\n", whole_ms(elapsed_ns))
}

/// An interval of a client.
pub fn render_received(style: Style, interval: &Interval) -> String {
    let (label, Counts { bytes, packets, .. }) = (style.label(interval.index), interval.counts);
    let rate = render_rate(bytes, interval.measured_ns, style.is_raw);
    format!("second {label}: {rate}, bytes received: {bytes}, packets received: {packets}\n")
}

/// All that a client received.
pub fn render_received_total(counts: Counts) -> String {
    let Counts { bytes, packets, .. } = counts;
    format!("total: bytes received: {bytes}, packets received: {packets}\n")
}

/// A client has come to a server, which gives the connection this number.
pub fn render_accepted(number: u64, from: SocketAddr) -> String {
    format!(
        "got new connection from {from}\n\
         new server binding {number}\n\
         binding {number} src connected to {from}\n"
    )
}

/// A server's connection stands after so long.
pub fn render_accepted_in(number: u64, elapsed_ns: u64) -> String {
    format!("connection {number} connection establishment time: {}ms\n", whole_ms(elapsed_ns))
}

/// A client has opened a stream.
pub fn render_stream_opened(number: u64, stream: u64) -> String {
    format!("binding {number} stream {stream} opened\n")
}

/// The request on a stream is complete.
pub fn render_requested(number: u64) -> String {
    format!("binding {number} request received, sending data\n")
}

/// An interval of a server's connection, at whose end the congestion window has so many bytes.
pub fn render_sent(style: Style, number: u64, interval: &Interval, window_bytes: u64) -> String {
    let (label, Counts { bytes, packets, lost_packets }) =
        (style.label(interval.index), interval.counts);
    let rate = render_rate(bytes, interval.measured_ns, style.is_raw);
    format!(
        "connection {number} second {label}: {rate}, send window: {window_bytes}, \
         bytes sent: {bytes}, packets sent: {packets}, packets lost: {lost_packets}\n"
    )
}

/// How a connection ended: by the remote end, or not.
fn render_close(close: &Close) -> String {
    match close {
        Close::Transport { code, frame, reason } => {
            format!(
                "closed by remote: transport close: code={code:#x}; frame={frame}; reason={reason}"
            )
        }
        Close::Application { code, reason } => {
            format!("closed by remote: application close: code={code:#x}; reason={reason}")
        }
        Close::Reset => "closed by remote: stateless reset".to_owned(),
        Close::Idle => "closed: idle timeout".to_owned(),
        Close::Stopped => "closed: the server was stopped".to_owned(),
        Close::Other(why) => format!("closed: {why}"),
    }
}

/// A server's connection is gone, and all that it sent.
pub fn render_closed(number: u64, close: &Close, total: Counts) -> String {
    let closed = render_binding_closed(number, close);
    closed + &render_connection_total(number, total) + &render_binding_removed(number)
}

/// A proxy's connection to the target stands.
pub fn render_target_connected(number: u64, target: &str) -> String {
    format!("binding {number} dst connected to {target}\n")
}

/// One connection of a proxy's pair has ended.
pub fn render_binding_closed(number: u64, close: &Close) -> String {
    format!("binding {number} {}\nbinding {number} closed\n", render_close(close))
}

/// All that a proxy's connection sent.
pub fn render_connection_total(number: u64, total: Counts) -> String {
    let Counts { bytes, packets, lost_packets } = total;
    format!(
        "connection {number} total: bytes sent: {bytes}, packets sent: {packets}, \
         packets lost: {lost_packets}\n"
    )
}

/// Both connections of a proxy's pair are gone.
pub fn render_binding_removed(number: u64) -> String {
    format!("binding {number} disconnected, cleaning up\nbinding {number} removed\n")
}

/// The peer gave a stream up, with this code of its application.
pub fn render_reset(code: u64) -> String {
    format!("received RESET_STREAM: {}\n", error_number(code))
}

/// The peer wants no more of a stream, likewise.
pub fn render_stopped(code: u64) -> String {
    format!("received STOP_SENDING: {}\n", error_number(code))
}

/// The number that quicly, the original's QUIC library, gives an application's error code.
fn error_number(code: u64) -> u64 {
    code.saturating_add(0x3_0000)
}

/// Whole milliseconds of a time.
fn whole_ms(ns: u64) -> u64 {
    ns / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { interval_s: 1.0, is_raw: false };

    fn interval(index: u32, measured_ns: u64, bytes: u64, packets: u64) -> Interval {
        let counts = Counts { bytes, packets, lost_packets: 0 };
        Interval { index, measured_ns, counts }
    }

    #[test]
    fn the_client_s_lines_are_those_of_the_published_run() {
        let first = interval(0, 1_000_018_000, 204_384_774, 163_046);
        assert_eq!(
            render_received(STYLE, &first),
            "second 1: 1.635 Gbit/s, bytes received: 204384774, packets received: 163046\n"
        );
        let counts = Counts { bytes: 1_942_165_199, packets: 1_551_734, lost_packets: 0 };
        assert_eq!(
            render_received_total(counts),
            "total: bytes received: 1942165199, packets received: 1551734\n"
        );
        assert_eq!(render_established(11_999_999), "connection establishment time: 11ms\n");
        assert_eq!(render_first_byte(13_000_000), "time to first byte: 13ms\n");
    }

    #[test]
    fn the_server_s_lines_are_those_of_the_published_run() {
        let first = interval(0, 1_000_900_000, 203_943_026, 162_694);
        assert_eq!(
            render_sent(STYLE, 0, &first, 207_055_230),
            "connection 0 second 1: 1.63 Gbit/s, send window: 207055230, \
             bytes sent: 203943026, packets sent: 162694, packets lost: 0\n"
        );
        let from = SocketAddr::from(([127, 0, 0, 1], 58_350));
        assert_eq!(
            render_accepted(0, from),
            "got new connection from 127.0.0.1:58350\nnew server binding 0\n\
             binding 0 src connected to 127.0.0.1:58350\n"
        );
        assert_eq!(
            render_accepted_in(0, 1_900_000),
            "connection 0 connection establishment time: 1ms\n"
        );
        let reason = "runtime_reached".to_owned();
        let close = Close::Transport { code: 0, frame: 0, reason };
        let total = Counts { bytes: 1_942_290_348, packets: 1_551_835, lost_packets: 0 };
        assert_eq!(
            render_closed(0, &close, total),
            "binding 0 closed by remote: transport close: code=0x0; frame=0; reason=runtime_reached\n\
             binding 0 closed\n\
             connection 0 total: bytes sent: 1942290348, packets sent: 1551835, packets lost: 0\n\
             binding 0 disconnected, cleaning up\nbinding 0 removed\n"
        );
    }

    #[test]
    fn rates_have_four_digits_and_no_exponent() {
        for (bytes, text) in [
            (0, "0 bit/s"),
            (1, "8 bit/s"),
            (124, "992 bit/s"),
            (125, "1 kbit/s"),
            (154_321, "1.235 Mbit/s"),
            (39_880, "319 kbit/s"),
            (124_999_999_999, "1000 Gbit/s"),
            (12_345_678_900_000, "98765 Gbit/s"),
        ] {
            assert_eq!(render_rate(bytes, 1_000_000_000, false), text);
        }
        assert_eq!(render_rate(39_881, 1_000_003_000, true), "319047 bit/s");
        assert_eq!(render_rate(1 << 50, 1, true).matches('e').count(), 0);
    }

    #[test]
    fn codes_of_streams_are_those_that_the_original_prints() {
        assert_eq!(render_reset(7), "received RESET_STREAM: 196615\n");
        assert_eq!(render_stopped(0), "received STOP_SENDING: 196608\n");
    }

    #[test]
    fn labels_count_whole_intervals() {
        let of = |interval_s, index| Style { interval_s, is_raw: false }.label(index);
        assert_eq!(of(0.1, 0), "0.1");
        assert_eq!(of(0.1, 2), "0.3");
        assert_eq!(of(0.1, 9), "1");
        assert_eq!(of(1.0, 9), "10");
        assert_eq!(of(0.25, 2), "0.75");
        assert_eq!(of(86_400.0, 99), "8640000");
    }
}
