//! The flags of `proxy`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use linerate_measure::plan::LocalAddress;

use super::{IdentityArgs, values};

/// The flags of `proxy`.
#[derive(Args, Debug)]
#[command(
    before_help = "Examples:
  linerate proxy HOST:443                      QUIC to HOST, on port 5251
  linerate proxy HOST:443 --wait-for-svr       clients connect only if HOST does
  linerate proxy HOST:443 --buffer 64Ki        hold less for slow receivers",
    after_help = "A proxy ends its clients' encryption, and could read and change what they send.
Every flag, and how numbers are written: linerate proxy --help",
    after_long_help = super::UNITS
)]
pub struct ProxyArgs {
    /// Where connections go: HOST:PORT, such as [2001:db8::7]:443
    #[arg(value_name = "TARGET", value_parser = target)]
    pub target: (String, u16),
    /// Split TCP connections instead; what is encrypted inside stays so
    #[arg(long, conflicts_with_all = ["wait_for_svr", "alpn", "identity", "cert", "ca", "congestion", "iw", "window", "streams", "early_data"])]
    pub tcp: bool,
    /// The port to listen on; 0: any free one
    #[arg(long, short, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// The address to listen on [default: all, IPv4 and IPv6]
    #[arg(long, value_name = "ADDRESS", value_parser = values::address)]
    pub bind: Option<LocalAddress>,
    /// Most bytes that wait in the proxy, for each client and direction; 16Ki to 1Gi
    #[arg(long, short, value_name = "SIZE", default_value = "1Mi", value_parser = buffer, allow_hyphen_values = true)]
    pub buffer: u32,
    /// Most bytes that a peer may send before they are read, for each connection; 16Ki to 1Gi
    #[arg(long, value_name = "SIZE", default_value = "8Mi", value_parser = buffer, allow_hyphen_values = true, hide_short_help = true)]
    pub window: u32,
    /// Most streams of each kind that a peer may have open; 1 to 10000
    #[arg(long, value_name = "N", default_value = "128", value_parser = streams, allow_hyphen_values = true, hide_short_help = true)]
    pub streams: u32,
    /// Most clients at a time; further ones are refused
    #[arg(long, value_name = "N", default_value = "10000", value_parser = values::positive_count, allow_hyphen_values = true)]
    pub max_connections: u32,
    /// Most clients at a time from one address, or from one network (/64) of IPv6 [default: no limit]
    #[arg(long, value_name = "N", value_parser = values::positive_count, allow_hyphen_values = true, hide_short_help = true)]
    pub max_per_client: Option<u32>,
    /// Go on with a client's handshake only when the connection to the target stands
    #[arg(long)]
    pub wait_for_svr: bool,
    /// How long the handshake with the target may take
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::positive_duration, allow_hyphen_values = true)]
    pub connect_timeout: u64,
    /// The protocol that TLS names on both connections (ALPN), such as h3 [default: what the client offers]
    #[arg(long, value_name = "NAME")]
    pub alpn: Option<String>,
    /// Send a client's first data to the target before the handshake is done (0-RTT); an attacker can replay it
    #[arg(long, hide_short_help = true)]
    pub early_data: bool,
    /// The key and certificate that clients see.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// Authority (PEM) that must vouch for the target's certificate and name [default: any certificate]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// The congestion control of both connections
    #[arg(long, value_name = "NAME", default_value = "cubic", hide_short_help = true)]
    pub congestion: ProxyCongestionName,
    /// Packets of the first congestion window, of both connections; 1 to 1000 [default: 10]
    #[arg(long, value_name = "N", value_parser = first_window, allow_hyphen_values = true)]
    pub iw: Option<u32>,
    /// How many threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = values::positive_count, allow_hyphen_values = true, hide_short_help = true)]
    pub threads: Option<u32>,
    /// Print where the proxy listens and the summary only
    #[arg(long)]
    pub quiet: bool,
}

/// The port of `proxy`, unless told otherwise: the next one behind that of `serve`.
const DEFAULT_PORT: u16 = linerate_measure::plan::DEFAULT_PORT + 1;

/// A congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProxyCongestionName {
    /// RFC 9438.
    Cubic,
    /// NewReno.
    Reno,
    /// BBR, version 1.
    Bbr,
}

fn target(text: &str) -> Result<(String, u16), String> {
    let split = text.rsplit_once(':').and_then(|(host, port)| {
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_plain = !host.is_empty() && !host.contains([':', '[', ']']);
        Some((inner.or(is_plain.then_some(host))?.to_owned(), port))
    });
    split.ok_or_else(|| {
        format!("'{text}' is no target: give HOST:PORT, such as 192.0.2.7:443 or [2001:db8::7]:443")
    })
}

fn buffer(text: &str) -> Result<u32, String> {
    let bytes = values::size(text)?;
    let range = 16 << 10..=1 << 30;
    if range.contains(&bytes) {
        Ok(bytes)
    } else {
        Err(format!("{text} is out of range: give 16Ki to 1Gi"))
    }
}

fn within(text: &str, most: u32) -> Result<u32, String> {
    let count = values::positive_count(text)?;
    if count <= most { Ok(count) } else { Err(format!("{text} is out of range: give 1 to {most}")) }
}

fn streams(text: &str) -> Result<u32, String> {
    within(text, 10_000)
}

fn first_window(text: &str) -> Result<u32, String> {
    within(text, 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_host_and_a_port() {
        let host = |host: &str, port| Ok((host.to_owned(), port));
        assert_eq!(target("192.0.2.7:443"), host("192.0.2.7", 443));
        assert_eq!(target("name.example:1"), host("name.example", 1));
        assert_eq!(target("[2001:db8::7]:443"), host("2001:db8::7", 443));
        for wrong in
            ["", "host", "host:", "host:0", ":443", "host:65536", "2001:db8::7:443", "[a:4"]
        {
            assert!(target(wrong).is_err_and(|why| why.contains("HOST:PORT")), "{wrong}");
        }
    }
}
