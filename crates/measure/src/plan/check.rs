//! Whether a plan makes sense: every number against its limit, every pair against contradiction.

use std::ops::RangeInclusive;

use super::{
    Direction, End, Family, Kind, Plan, PlanError, Rate, SocketOptions, Transport, Variant,
    Workload, limits,
};
use crate::units::{quoted, render_duration_ns, render_rate};

/// Bytes of the header that every datagram of a stream starts with: the least payload.
pub const DATAGRAM_HEADER_BYTES: u32 = 24;

/// Bytes of the header that every datagram of a request or response starts with: the least size.
pub const RR_HEADER_BYTES: u32 = 16;

mod fields;
mod media;
mod quic;
mod requests;
mod tls;

type Checked = Result<(), PlanError>;

impl Workload {
    /// Checks every number against its limit (see [`limits`]) and every choice against the others.
    ///
    /// # Errors
    ///
    /// The first thing that makes no sense, with its value and the way out.
    pub fn check(&self) -> Checked {
        self.check_flows()?;
        self.check_sizes()?;
        self.check_times()?;
        self.check_end()?;
        self.check_rate()?;
        media::check(self)?;
        self.check_requests()?;
        self.check_socket()?;
        self.check_quic()?;
        self.check_tls()?;
        self.check_contradictions()
    }

    fn check_flows(&self) -> Checked {
        within("number of flows", self.flows, &limits::FLOWS, in_digits)?;
        let Some(threads) = self.threading.threads else {
            return Ok(());
        };
        within("number of threads", threads, &limits::THREADS, in_digits)?;
        let flows = self.opened_flows();
        refuse_if(threads > flows, "number of threads", || {
            format!("{threads} threads for {flows} flows: ask for at most as many threads as flows")
        })
    }

    fn check_sizes(&self) -> Checked {
        let connects = matches!(self.kind, Kind::Connect { .. });
        let datagrams = self.has_datagrams() && !connects;
        let (sizes, header_bytes) = match self.kind {
            Kind::Stream { send_bytes, media: Some(_), .. } => {
                return within(
                    "datagram size",
                    send_bytes,
                    &limits::MEDIA_DATAGRAM_BYTES,
                    in_bytes,
                );
            }
            Kind::Stream { send_bytes, .. } => {
                let name = if datagrams { "datagram size" } else { "size of a send" };
                (vec![(name, send_bytes)], DATAGRAM_HEADER_BYTES)
            }
            Kind::Rr { request_bytes, response_bytes, .. }
            | Kind::Connect { request_bytes, response_bytes, .. } => {
                let sizes =
                    vec![("request size", request_bytes), ("response size", response_bytes)];
                (sizes, RR_HEADER_BYTES)
            }
        };
        let range = if datagrams {
            u64::from(header_bytes)..=limits::DATAGRAM_MAX_BYTES
        } else {
            limits::MESSAGE_BYTES
        };
        sizes.into_iter().try_for_each(|(name, bytes)| within(name, bytes, &range, in_bytes))
    }

    fn check_times(&self) -> Checked {
        if let End::Time { duration_ns } = self.end {
            within("measured time", duration_ns, &limits::DURATION_NS, render_duration_ns)?;
        }
        within("warm-up", self.omit_ns, &limits::OMIT_NS, render_duration_ns)?;
        within("interval", self.interval_ns, &limits::INTERVAL_NS, render_duration_ns)?;
        if let Kind::Rr { timeout_ns, .. } | Kind::Connect { timeout_ns, .. } = self.kind {
            within("time-out", timeout_ns, &limits::TIMEOUT_NS, render_duration_ns)?;
        }
        Ok(())
    }

    /// Each flow must have something to do, or its silence would look like a failure.
    fn check_end(&self) -> Checked {
        let is_rr = self.has_transactions();
        let (amount, what) = match self.end {
            End::Time { .. } => return Ok(()),
            End::Bytes { bytes } => {
                refuse_if(is_rr, "end", || {
                    format!(
                        "{bytes} bytes can't end requests and responses: give a time or a number of \
                         transactions"
                    )
                })?;
                (bytes, "bytes")
            }
            End::Count { count } if is_rr => (count, "transactions"),
            End::Count { count } => (count, "sends"),
        };
        refuse_if(self.omit_ns > 0, "warm-up", || {
            format!(
                "a warm-up of {} needs a load that ends by time, and this load ends after {amount} \
                 {what}: leave one of them out",
                render_duration_ns(self.omit_ns)
            )
        })?;
        let flows = self.flows;
        refuse_if(amount < u64::from(flows), "end", || {
            format!(
                "{amount} {what} for {flows} flows in a direction: ask for at least one for each \
                 flow, or for fewer flows"
            )
        })
    }

    fn check_rate(&self) -> Checked {
        let Some(rate) = self.rate else {
            return Ok(());
        };
        let (Rate::AllFlows { bps } | Rate::EachFlow { bps }) = rate;
        let in_bits = |bps: u64| render_rate(bps as f64);
        within("rate", bps, &limits::RATE_BPS, in_bits)?;
        let flows = self.flows;
        let starved = matches!(rate, Rate::AllFlows { .. }) && bps < u64::from(flows);
        refuse_if(starved, "rate", || {
            format!("{bps} bit/s for {flows} flows is less than 1 bit/s each: ask for fewer flows")
        })
    }

    fn check_socket(&self) -> Checked {
        let SocketOptions { congestion, window_bytes, mss_bytes, dscp, .. } = &self.socket;
        if let Some(dscp) = *dscp {
            within("DSCP", dscp, &limits::DSCP, in_digits)?;
        }
        if let Some(mss_bytes) = *mss_bytes {
            within("MSS", mss_bytes, &limits::MSS_BYTES, in_bytes)?;
        }
        if let Some(window_bytes) = *window_bytes {
            within("window", window_bytes, &limits::WINDOW_BYTES, in_bytes)?;
        }
        let Some(name) = congestion else {
            return Ok(());
        };
        let known_letters = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'_');
        let plausible =
            limits::CONGESTION_LETTERS.contains(&name.len()) && name.bytes().all(known_letters);
        refuse_if(!plausible, "congestion control", || {
            format!(
                "{} isn't the name of a congestion control: give a name such as cubic, reno or bbr \
                 (1 to 15 of a-z, 0-9 and _)",
                quoted(name)
            )
        })
    }

    fn carries_only_headers(&self) -> bool {
        self.unit_bytes().is_some_and(|bytes| bytes <= DATAGRAM_HEADER_BYTES)
    }

    fn check_contradictions(&self) -> Checked {
        refuse_first(&self.contradictions_of_load())?;
        refuse_first(&self.contradictions_of_duplex())?;
        refuse_first(&self.contradictions_of_socket())
    }

    fn contradictions_of_load(&self) -> [Contradiction; 9] {
        let has_transactions = self.has_transactions();
        let connects = matches!(self.kind, Kind::Connect { .. });
        let udp = self.transport == Transport::Udp;
        let variant = self.payload.variant;
        [
            (
                has_transactions && self.rate.is_some(),
                "rate",
                "a rate in bits per second with requests and responses: leave the rate out and give a \
                 schedule of requests per second, or measure a stream",
            ),
            (
                has_transactions && self.payload.verify && self.transfer().is_none(),
                "verification",
                "verification with requests and responses: leave it out, or verify a stream or transfers of \
                 connections",
            ),
            (
                connects && udp,
                "transport",
                "connections over UDP, which has no connections: leave it out, or use TCP or TLS",
            ),
            (
                connects && self.threading.busy_poll,
                "busy polling",
                "busy polling with connections that come and go: leave it out, or measure rr",
            ),
            (
                self.has_datagrams() && self.payload.verify && self.carries_only_headers(),
                "verification",
                "datagrams that hold only their header have no bytes to verify: make the datagrams \
                 larger, or leave verification out",
            ),
            (
                variant != Variant::default()
                    && (has_transactions || self.transport != Transport::Tcp),
                "variant",
                "zero copy, splice or discard without a stream over TCP: leave them out, or measure \
                 a TCP stream",
            ),
            (
                variant.zero_copy && variant.splice,
                "variant",
                "a sender can't use both zero copy and splice: leave one of them out",
            ),
            (
                variant.discard && variant.splice,
                "variant",
                "a receiver can't use both discard and splice: leave one of them out",
            ),
            (
                self.payload.verify && (variant.discard || variant.splice),
                "verification",
                "verification with discard or splice, where the receiver doesn't read the bytes: leave \
                 one of them out",
            ),
        ]
    }

    fn contradictions_of_duplex(&self) -> [Contradiction; 3] {
        let variant = self.payload.variant;
        [
            (
                self.payload.duplex && self.direction() != Some(Direction::Both),
                "duplex",
                "duplex without a stream in both directions: leave it out, or ask for both directions",
            ),
            (
                self.payload.duplex && self.has_datagrams(),
                "duplex",
                "duplex needs connections, and datagrams have none: leave it out, or use TCP, TLS or \
                 streams of QUIC",
            ),
            (
                self.payload.duplex && (variant != Variant::default() || self.quic.unidirectional),
                "duplex",
                "duplex with zero copy, splice, discard or streams of one direction: leave one of them out",
            ),
        ]
    }

    fn contradictions_of_socket(&self) -> [Contradiction; 4] {
        let udp = self.transport == Transport::Udp;
        let socket = &self.socket;
        [
            (
                !udp && self.transport != Transport::Quic && socket.no_offload,
                "no offload",
                "no offload with a transport other than UDP and QUIC: leave it out, or use UDP or QUIC",
            ),
            (
                udp && socket.congestion.is_some(),
                "congestion control",
                "UDP has no congestion control: leave it out, or use TCP, TLS or QUIC",
            ),
            (
                udp && socket.mss_bytes.is_some(),
                "MSS",
                "UDP has no MSS: set the size of a datagram instead, or use TCP or TLS",
            ),
            (
                udp && socket.no_delay,
                "no delay",
                "no delay has no effect with UDP, which never delays data: leave it out, or use TCP or TLS",
            ),
        ]
    }
}

impl Plan {
    /// Checks the plan itself, then its workload.
    ///
    /// # Errors
    ///
    /// The first thing that makes no sense, with its value and the way out.
    pub fn check(&self) -> Checked {
        refuse_if(self.schema != Self::SCHEMA, "schema", || {
            format!("a plan of format {}: write {:?}", quoted(&self.schema), Self::SCHEMA)
        })?;
        let host_fits = limits::HOST_BYTES.contains(&self.host.len())
            && !self.host.contains(|letter: char| letter.is_whitespace() || letter.is_control());
        refuse_if(!host_fits, "host", || {
            format!("{} isn't a host: give a name or an address", quoted(&self.host))
        })?;
        within("port", self.port, &limits::PORT, in_digits)?;
        self.check_local()?;
        self.check_remarks()?;
        self.workload.check()
    }

    fn check_local(&self) -> Checked {
        let cpus = self.local.cpus.len();
        refuse_if(cpus > limits::CPUS, "processors", || {
            format!("a list of {cpus} processors: give at most {}", limits::CPUS)
        })?;
        if let Some(device) = &self.local.bind_device {
            let plausible = limits::DEVICE_BYTES.contains(&device.len())
                && !device.contains(|letter: char| letter == '/' || letter.is_whitespace());
            refuse_if(!plausible, "network device", || {
                format!("{} isn't a network device: give one such as eth0", quoted(device))
            })?;
        }
        self.check_key_log()?;
        self.check_qlog()?;
        self.check_source_ports()?;
        self.check_binds()
    }

    fn check_key_log(&self) -> Checked {
        refuse_if(self.local.key_log.is_some() && !self.workload.has_keys(), "key log", || {
            "a load without TLS or QUIC has no keys to log: leave it out, or use TLS or QUIC"
                .to_owned()
        })
    }

    fn check_source_ports(&self) -> Checked {
        let Some((first, last)) = self.local.source_ports else {
            return Ok(());
        };
        let field = "source port";
        refuse_if(self.workload.transport == Transport::Quic, field, || {
            format!(
                "source ports {first}-{last} with QUIC, whose connections share a port: leave them \
                 out, or use TCP or TLS"
            )
        })?;
        within(field, first, &limits::PORT, in_digits)?;
        refuse_if(last < first, field, || {
            format!("source ports {first}-{last}: give the lower port first")
        })?;
        refuse_if(!matches!(self.workload.kind, Kind::Connect { .. }), field, || {
            format!(
                "source ports {first}-{last} without connections that come and go: leave them \
                 out, or measure connect"
            )
        })
    }

    fn check_binds(&self) -> Checked {
        let binds = &self.local.binds;
        let field = "local addresses";
        refuse_if(binds.len() > limits::BINDS, field, || {
            format!("a list of {} local addresses: give at most {}", binds.len(), limits::BINDS)
        })?;
        let Some(first) = binds.first() else {
            return Ok(());
        };
        if let Some(other) = binds.iter().find(|bind| bind.is_ipv4() != first.is_ipv4()) {
            return refuse_if(true, field, || {
                format!("{first} and {other} as local addresses: give addresses of one family")
            });
        }
        let Some(family) = self.family else {
            return Ok(());
        };
        refuse_if(first.is_ipv4() != (family == Family::Ipv4), field, || {
            format!(
                "{first} as local address and {family:?} as family: give an address of that family, \
                 or leave the family out"
            )
        })
    }

    fn check_remarks(&self) -> Checked {
        let most = limits::REMARK_BYTES;
        let title_bytes = self.title.as_ref().map_or(0, String::len);
        refuse_if(title_bytes > most, "title", || {
            format!("a title of {title_bytes} bytes: give at most {most}")
        })?;
        let tags = self.tags.len();
        let field = "tags";
        refuse_if(tags > limits::TAGS, field, || {
            format!("{tags} tags: give at most {}", limits::TAGS)
        })?;
        self.tags.iter().try_for_each(|(key, value)| {
            refuse_if(key.is_empty(), field, || "a tag without a key: give key=value".to_owned())?;
            refuse_if(key.len().max(value.len()) > most, field, || {
                format!("the tag {} is too long: give at most {most} bytes", quoted(key))
            })
        })
    }
}

fn within(
    name: &'static str,
    value: impl Into<u64>,
    range: &RangeInclusive<u64>,
    show: impl Fn(u64) -> String,
) -> Checked {
    let value = value.into();
    if range.contains(&value) {
        return Ok(());
    }
    let [value, least, most] = [value, *range.start(), *range.end()].map(show);
    let text = format!("{name} {value} is out of range: ask for {least} to {most}");
    Err(PlanError { text, field: Some(name) })
}

/// Whether two settings exclude each other, the field to change, and the error text.
type Contradiction = (bool, &'static str, &'static str);

fn refuse_first(contradictions: &[Contradiction]) -> Checked {
    contradictions
        .iter()
        .try_for_each(|(wrong, field, text)| refuse_if(*wrong, field, || (*text).to_owned()))
}

fn refuse_if(wrong: bool, field: &'static str, text: impl FnOnce() -> String) -> Checked {
    if wrong { Err(PlanError { text: text(), field: Some(field) }) } else { Ok(()) }
}

fn in_digits(number: u64) -> String {
    number.to_string()
}

fn in_bytes(bytes: u64) -> String {
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests;
