//! What a client asks for: the first JSON message.

use serde_json::{Map, Value};

use super::code::Code;
use super::json::Fields;

/// The longest parameters that a server reads, as releases from 3.18 on do.
pub const PARAMETERS_LIMIT_BYTES: usize = 8192;

/// Limits of single parameters, as the newest release has them, but for the streams.
pub mod limits {
    /// Streams of one direction: as many as Linux lets a process have descriptors unless its `fs.nr_open` says
    /// otherwise, and no more where that allows them. A process usually may have fewer; the ends check that. The
    /// original's clients ask for 128 at most.
    pub const PARALLEL: u32 = 1 << 20;
    /// Length of a test, seconds.
    pub const TIME_S: u32 = 86_400;
    /// Time that is left out at the beginning, seconds.
    pub const OMIT_S: u32 = 600;
    /// Bytes of a block over TCP.
    pub const BLOCK_BYTES: u32 = 1 << 20;
    /// Bytes of a datagram.
    pub const DATAGRAM_BYTES: std::ops::RangeInclusive<u32> = 16..=65_507;
    /// Blocks that are sent at once.
    pub const BURST_BLOCKS: u32 = 1000;
    /// A socket buffer, bytes.
    pub const WINDOW_BYTES: u32 = 512 << 20;
    /// A segment, bytes.
    pub const MSS_BYTES: u32 = 32_767;
    /// Texts that are only passed on, bytes.
    pub const TEXT_BYTES: usize = 4096;
}

/// What carries the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP, which linerate doesn't speak.
    Sctp,
}

/// Segmentation offload of UDP, as 3.21 asks for it. Only the batching changes, never the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Whether senders let the kernel cut datagrams.
    pub gso: bool,
    /// Bytes of one datagram; 0: the block size.
    pub gso_datagram_bytes: u32,
    /// Bytes handed over at once.
    pub gso_buffer_bytes: u32,
    /// Whether receivers take datagrams in one piece.
    pub gro: bool,
    /// Bytes taken at once.
    pub gro_buffer_bytes: u32,
}

impl Default for Offload {
    fn default() -> Self {
        Self {
            gso: false,
            gso_datagram_bytes: 0,
            gso_buffer_bytes: 65_507,
            gro: false,
            gro_buffer_bytes: 65_507,
        }
    }
}

/// What a client asks for. Options that weren't given are `None`, or 0 where the wire says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// `-u`, `--sctp`.
    pub protocol: Protocol,
    /// `-O`, seconds.
    pub omit_s: u32,
    /// The second number of `-A`.
    pub server_affinity: Option<u32>,
    /// `-t`, seconds; 0: the test ends by bytes or blocks, or when a signal ends it.
    pub time_s: u32,
    /// `-n`; 0: none.
    pub num_bytes: u64,
    /// `-k`; 0: none.
    pub block_count: u64,
    /// `-M`.
    pub mss_bytes: Option<u32>,
    /// `-N`.
    pub no_delay: bool,
    /// `-P`.
    pub parallel: u32,
    /// `-R`.
    pub reverse: bool,
    /// `--bidir`.
    pub bidirectional: bool,
    /// `-m`.
    pub mptcp: bool,
    /// `-w`.
    pub window_bytes: Option<u32>,
    /// `-l`. At a client that hasn't connected yet 0 stands for the protocol's default.
    pub block_bytes: u32,
    /// `-b`, bit/s for each stream; 0: unlimited.
    pub bandwidth_bps: u64,
    /// `--fq-rate`, bit/s for each stream; 0: unlimited.
    pub fq_rate_bps: u64,
    /// `--pacing-timer`, microseconds.
    pub pacing_timer_us: u32,
    /// The second part of `-b`; 0: none given.
    pub burst_blocks: u32,
    /// `-S`, `--dscp`: the whole byte.
    pub tos: u8,
    /// `-L`.
    pub flow_label: Option<u32>,
    /// `-T`.
    pub title: Option<String>,
    /// `--extra-data`.
    pub extra_data: Option<String>,
    /// `-C`.
    pub congestion: Option<String>,
    /// `--get-server-output`.
    pub get_server_output: bool,
    /// `--udp-counters-64bit`.
    pub wide_counters: bool,
    /// `--repeating-payload`.
    pub repeating_payload: bool,
    /// `-Z`.
    pub zero_copy: bool,
    /// `--dont-fragment`.
    pub dont_fragment: bool,
    /// The client's encrypted credentials.
    pub auth_token: Option<String>,
    /// `--skip-rx-copy`.
    pub skip_rx_copy: bool,
    /// `--gsro`.
    pub offload: Offload,
    /// The release that speaks.
    pub client_version: String,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            protocol: Protocol::Tcp,
            omit_s: 0,
            server_affinity: None,
            time_s: 10,
            num_bytes: 0,
            block_count: 0,
            mss_bytes: None,
            no_delay: false,
            parallel: 1,
            reverse: false,
            bidirectional: false,
            mptcp: false,
            window_bytes: None,
            block_bytes: 0,
            bandwidth_bps: 0,
            fq_rate_bps: 0,
            pacing_timer_us: 1000,
            burst_blocks: 0,
            tos: 0,
            flow_label: None,
            title: None,
            extra_data: None,
            congestion: None,
            get_server_output: false,
            wide_counters: false,
            repeating_payload: false,
            zero_copy: false,
            dont_fragment: false,
            auth_token: None,
            skip_rx_copy: false,
            offload: Offload::default(),
            client_version: "3.21".to_owned(),
        }
    }
}

impl Parameters {
    /// All streams, those of both directions.
    pub fn total_streams(&self) -> usize {
        self.parallel as usize * if self.bidirectional { 2 } else { 1 }
    }

    /// Whether the client sends on the stream that was opened as this one, from 0 on.
    pub fn client_sends(&self, index: usize) -> bool {
        if self.bidirectional { index < self.parallel as usize } else { !self.reverse }
    }

    /// The JSON text.
    pub fn render(&self) -> String {
        let mut fields = Map::new();
        self.render_test(&mut fields);
        self.render_sockets(&mut fields);
        self.render_extras(&mut fields);
        Value::Object(fields).to_string()
    }

    fn render_test(&self, fields: &mut Map<String, Value>) {
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        };
        put(fields, protocol, true);
        put(fields, "omit", self.omit_s);
        put_some(fields, "server_affinity", self.server_affinity);
        put(fields, "time", self.time_s);
        put(fields, "num", self.num_bytes);
        put(fields, "blockcount", self.block_count);
        put_some(fields, "MSS", self.mss_bytes);
        put_if(fields, "nodelay", self.no_delay);
        put(fields, "parallel", self.parallel);
        put_if(fields, "reverse", self.reverse);
        put_if(fields, "bidirectional", self.bidirectional);
        put_if(fields, "mptcp", self.mptcp);
    }

    fn render_sockets(&self, fields: &mut Map<String, Value>) {
        let given = |number: u64| (number > 0).then_some(number);
        put_some(fields, "window", self.window_bytes);
        put_some(fields, "len", given(self.block_bytes.into()));
        put_some(fields, "bandwidth", given(self.bandwidth_bps));
        put_some(fields, "fqrate", given(self.fq_rate_bps));
        put_some(fields, "pacing_timer", given(self.pacing_timer_us.into()));
        put_some(fields, "burst", given(self.burst_blocks.into()));
        put_some(fields, "TOS", given(self.tos.into()));
        put_some(fields, "flowlabel", self.flow_label);
    }

    fn render_extras(&self, fields: &mut Map<String, Value>) {
        let one = |on: bool| on.then_some(1);
        put_some(fields, "title", self.title.as_deref());
        put_some(fields, "extra_data", self.extra_data.as_deref());
        put_some(fields, "congestion", self.congestion.as_deref());
        put_some(fields, "get_server_output", one(self.get_server_output));
        put_some(fields, "udp_counters_64bit", one(self.wide_counters));
        put_some(fields, "repeating_payload", one(self.repeating_payload));
        put_some(fields, "zerocopy", one(self.zero_copy));
        put_some(fields, "dont_fragment", one(self.dont_fragment));
        put_some(fields, "authtoken", self.auth_token.as_deref());
        put_some(fields, "skip_rx_copy", one(self.skip_rx_copy));
        if self.protocol == Protocol::Udp {
            let offload = &self.offload;
            put(fields, "gso", u8::from(offload.gso));
            put(fields, "gso_dg_size", offload.gso_datagram_bytes);
            put(fields, "gso_bf_size", offload.gso_buffer_bytes);
            put(fields, "gro", u8::from(offload.gro));
            put(fields, "gro_bf_size", offload.gro_buffer_bytes);
        }
        put(fields, "client_version", self.client_version.as_str());
    }

    /// Reads what a client sent. Fields that no release knows are passed over; each number is checked
    /// against its limit.
    ///
    /// # Errors
    ///
    /// The code to refuse with.
    pub fn parse(text: &[u8]) -> Result<Self, Code> {
        let value: Value = serde_json::from_slice(text).map_err(|_| Code::RECEIVE_PARAMETERS)?;
        let fields = Fields(value.as_object().ok_or(Code::RECEIVE_PARAMETERS)?);
        let protocol = match fields {
            _ if fields.is_on("udp") => Protocol::Udp,
            _ if fields.is_on("sctp") => Protocol::Sctp,
            _ => Protocol::Tcp,
        };
        let text = |name| fields.text(name, limits::TEXT_BYTES);
        let mut parameters = Self {
            protocol,
            num_bytes: count(&fields, "num", u64::MAX, Code::END_CONDITIONS)?.unwrap_or(0),
            block_count: count(&fields, "blockcount", u64::MAX, Code::END_CONDITIONS)?.unwrap_or(0),
            bandwidth_bps: count(&fields, "bandwidth", u64::MAX, Code::TOTAL_RATE)?.unwrap_or(0),
            fq_rate_bps: count(&fields, "fqrate", u64::MAX, Code::TOTAL_RATE)?.unwrap_or(0),
            no_delay: fields.is_on("nodelay"),
            reverse: fields.is_on("reverse"),
            bidirectional: fields.is_on("bidirectional"),
            mptcp: fields.is_on("mptcp"),
            title: text("title"),
            extra_data: text("extra_data"),
            congestion: text("congestion"),
            auth_token: text("authtoken"),
            get_server_output: fields.is_on("get_server_output"),
            wide_counters: fields.is_on("udp_counters_64bit"),
            repeating_payload: fields.is_on("repeating_payload"),
            zero_copy: fields.is_on("zerocopy"),
            dont_fragment: fields.is_on("dont_fragment"),
            skip_rx_copy: fields.is_on("skip_rx_copy"),
            client_version: text("client_version").unwrap_or_default(),
            ..Self::default()
        };
        parameters.parse_numbers(&fields)?;
        if protocol == Protocol::Udp {
            parameters.parse_offload(&fields)?;
        }
        parameters.check()?;
        Ok(parameters)
    }

    fn parse_numbers(&mut self, fields: &Fields<'_>) -> Result<(), Code> {
        use limits as most;
        let blocks = if self.protocol == Protocol::Udp {
            (*most::DATAGRAM_BYTES.end(), Code::UDP_BLOCK_SIZE, 1460)
        } else {
            (most::BLOCK_BYTES, Code::BLOCK_SIZE, 128 << 10)
        };
        self.omit_s = number(fields, "omit", most::OMIT_S, Code::OMIT)?.unwrap_or(0);
        self.time_s = number(fields, "time", most::TIME_S, Code::DURATION)?.unwrap_or(0);
        self.parallel = number(fields, "parallel", most::PARALLEL, Code::NUM_STREAMS)?.unwrap_or(1);
        self.mss_bytes = number(fields, "MSS", most::MSS_BYTES, Code::MSS)?.filter(|n| *n > 0);
        self.window_bytes =
            number(fields, "window", most::WINDOW_BYTES, Code::BUFFER_SIZE)?.filter(|n| *n > 0);
        self.block_bytes =
            number(fields, "len", blocks.0, blocks.1)?.filter(|n| *n > 0).unwrap_or(blocks.2);
        // More than a second has no use, and is cut to a second.
        let timer_us = count(fields, "pacing_timer", u64::MAX, Code::RECEIVE_PARAMETERS)?;
        self.pacing_timer_us =
            timer_us.filter(|us| *us > 0).map_or(1000, |us| us.min(1_000_000) as u32);
        self.burst_blocks = number(fields, "burst", most::BURST_BLOCKS, Code::BURST)?.unwrap_or(0);
        let tos = number(fields, "TOS", 255, Code::TOS)?.unwrap_or(0);
        self.tos = u8::try_from(tos).map_err(|_| Code::TOS)?;
        self.flow_label = number(fields, "flowlabel", 0xf_ffff, Code::SET_FLOW_LABEL)?;
        // A processor that this machine doesn't have is refused where it is asked for.
        self.server_affinity =
            number(fields, "server_affinity", 1023, Code::AFFINITY).ok().flatten();
        Ok(())
    }

    fn parse_offload(&mut self, fields: &Fields<'_>) -> Result<(), Code> {
        let bytes = |name| number(fields, name, 1 << 20, Code::UDP_BLOCK_SIZE);
        let usual = Offload::default();
        self.offload = Offload {
            gso: fields.is_on("gso"),
            gso_datagram_bytes: bytes("gso_dg_size")?.unwrap_or(0),
            gso_buffer_bytes: bytes("gso_bf_size")?.unwrap_or(usual.gso_buffer_bytes),
            gro: fields.is_on("gro"),
            gro_buffer_bytes: bytes("gro_bf_size")?.unwrap_or(usual.gro_buffer_bytes),
        };
        Ok(())
    }

    /// What can be told of the parameters as a whole.
    fn check(&self) -> Result<(), Code> {
        match self.protocol {
            Protocol::Sctp => Err(Code::NO_SCTP),
            _ if self.parallel == 0 => Err(Code::NUM_STREAMS),
            Protocol::Udp if !limits::DATAGRAM_BYTES.contains(&self.block_bytes) => {
                Err(Code::UDP_BLOCK_SIZE)
            }
            _ if self.reverse && self.bidirectional => Err(Code::REVERSE_BIDIRECTIONAL),
            _ => Ok(()),
        }
    }
}

fn put(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    fields.insert(name.to_owned(), value.into());
}

fn put_some(fields: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        put(fields, name, value);
    }
}

fn put_if(fields: &mut Map<String, Value>, name: &str, on: bool) {
    if on {
        put(fields, name, true);
    }
}

/// A count that is there; refused where it isn't one, or is beyond its limit.
fn count(fields: &Fields<'_>, name: &str, most: u64, refusal: Code) -> Result<Option<u64>, Code> {
    if !fields.0.contains_key(name) {
        return Ok(None);
    }
    fields.count(name).filter(|count| *count <= most).map(Some).ok_or(refusal)
}

fn number(fields: &Fields<'_>, name: &str, most: u32, refusal: Code) -> Result<Option<u32>, Code> {
    let count = count(fields, name, most.into(), refusal)?;
    Ok(count.and_then(|count| u32::try_from(count).ok()))
}
