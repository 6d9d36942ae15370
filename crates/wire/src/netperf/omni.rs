//! The test that every kind of test has become: code 97, answered by 98.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::message::{Form, Message, code};
use super::test::{Cpu, Dirt, Family, Length, Part, Request, Results, Rings, Setup, Transport};

/// What a server answers a request with that makes no sense, or that it doesn't do: an error of
/// errno(3) with Linux's numbers.
pub mod refusal {
    /// Permission denied.
    pub const EACCES: i32 = 13;
    /// Invalid argument.
    pub const EINVAL: i32 = 22;
    /// Message too long.
    pub const EMSGSIZE: i32 = 90;
    /// Protocol not supported.
    pub const EPROTONOSUPPORT: i32 = 93;
    /// Operation not supported.
    pub const EOPNOTSUPP: i32 = 95;
    /// Address family not supported.
    pub const EAFNOSUPPORT: i32 = 97;
}

/// The most payload of a UDP datagram over IPv4: 65,535 less 20 (RFC 791) and 8 (RFC 768).
pub const DATAGRAM_MAX_BYTES: u32 = 65_507;
/// The longest name of a congestion control, without the zero.
const CONGESTION_BYTES: usize = 16;
const FILL_FILE_BYTES: usize = 32;
const CONGESTION_AT: usize = 276;

mod flag {
    pub(super) const NO_DELAY: u32 = 0x1;
    pub(super) const CONNECTIONS: u32 = 0x4;
    pub(super) const CPU: u32 = 0x8;
    pub(super) const ROUTED: u32 = 0x20;
    pub(super) const FAST_OPEN: u32 = 0x800;
    pub(super) const PACKET_INFO: u32 = 0x2000;
    pub(super) const CONNECTED: u32 = 0x4000;
    pub(super) const DEFER_ACCEPT: u32 = 0x8000;
    pub(super) const DONT_FRAGMENT: u32 = 0x1_0000;
    pub(super) const KEEP_ALIVE: u32 = 0x8000_0000;
}

const STREAM: u32 = 1;
const DATAGRAM: u32 = 2;
const TCP: u32 = 6;
const UDP: u32 = 17;

/// An absent number, and -1 for it.
pub(super) fn word(number: Option<u32>) -> u32 {
    number.unwrap_or(u32::MAX)
}

/// A socket buffer's size, of which 0 is one; -1: absent.
pub(super) fn buffer(number: i32) -> Result<Option<u32>, i32> {
    match number {
        -1 => Ok(None),
        0.. => Ok(Some(number.unsigned_abs())),
        _ => Err(refusal::EINVAL),
    }
}

/// A size that may be absent: 0 or -1.
pub(super) fn size(number: i32) -> Result<Option<u32>, i32> {
    match number {
        -1 | 0 => Ok(None),
        1.. => Ok(Some(number.unsigned_abs())),
        _ => Err(refusal::EINVAL),
    }
}

pub(super) fn port(number: u32) -> Result<u16, i32> {
    u16::try_from(number).map_err(|_| refusal::EINVAL)
}

/// A size of requests or responses.
pub(super) fn unit(number: i32, transport: Transport) -> Result<u32, i32> {
    match u32::try_from(number) {
        Ok(0) | Err(_) => Err(refusal::EINVAL),
        Ok(bytes) if transport == Transport::Udp && bytes > DATAGRAM_MAX_BYTES => {
            Err(refusal::EMSGSIZE)
        }
        Ok(bytes) => Ok(bytes),
    }
}

pub(super) fn family(number: u32) -> Result<Family, i32> {
    match number {
        4 => Ok(Family::V4),
        6 => Ok(Family::V6),
        0 => Ok(Family::Any),
        _ => Err(refusal::EAFNOSUPPORT),
    }
}

pub(super) fn family_number(family: Family) -> u32 {
    match family {
        Family::V4 => 4,
        Family::V6 => 6,
        Family::Any => 0,
    }
}

/// A request as a message; `cpu` is the processor that the server shall run on.
pub fn encode_request(form: Form, request: &Request, cpu: Option<u32>) -> Message {
    let mut message = Message::new(form, code::OMNI, word(cpu).cast_signed());
    let Rings { send_alignment, send_offset, send_width, .. } = request.rings;
    let Rings { receive_alignment, receive_offset, receive_width, .. } = request.rings;
    let transactions = request.part == Part::Answer || request.part == Part::AnswerOnce;
    let unit = |bytes: u32| if transactions { bytes } else { u32::MAX };
    let (socket_type, protocol) = match request.transport {
        Transport::Tcp => (STREAM, TCP),
        Transport::Udp => (DATAGRAM, UDP),
    };
    let (burst, interval_us) = request.pacing.unwrap_or((0, 0));
    let avoid = u32::from(request.no_copy);
    #[rustfmt::skip]
    message.put_words(8, &[
        word(request.send_buffer_bytes), word(request.send_bytes),
        send_alignment, send_offset, send_width, unit(request.request_bytes),
        word(request.receive_buffer_bytes), word(request.receive_bytes),
        receive_alignment, receive_offset, receive_width, unit(request.response_bytes),
        flags(request), request.cpu_rate.to_bits(), request.length.number().cast_unsigned(),
        avoid, 0,
        word(request.dirt.send_bytes), word(request.dirt.receive_bytes), word(request.dirt.clean_bytes),
        request.port.into(), family_number(request.family), socket_type, protocol,
        direction(request.part), request.client_port.into(), burst, interval_us,
    ]);
    message.put(120, &encode_address(request.client_address));
    message.put(136, &encode_address(request.address));
    message.put_words(152, &[word(request.priority), word(request.service.map(u32::from))]);
    message.put_text(160, CONGESTION_BYTES, request.congestion.as_deref().unwrap_or_default());
    message.put_text(176, FILL_FILE_BYTES, request.fill_file.as_deref().unwrap_or_default());
    message
}

fn flags(request: &Request) -> u32 {
    let pairs = [
        (request.no_delay, flag::NO_DELAY),
        (request.part.connects(), flag::CONNECTIONS),
        (request.cpu, flag::CPU),
        (request.routed, flag::ROUTED),
        (request.fast_open, flag::FAST_OPEN),
        (request.packet_info, flag::PACKET_INFO),
        (request.connected, flag::CONNECTED),
        (request.defer_accept, flag::DEFER_ACCEPT),
        (request.dont_fragment, flag::DONT_FRAGMENT),
        (request.keep_alive, flag::KEEP_ALIVE),
    ];
    pairs.iter().filter(|(set, _)| *set).fold(0, |flags, (_, bit)| flags | bit)
}

fn direction(part: Part) -> u32 {
    match part {
        Part::Send => 2,
        Part::Receive => 4,
        Part::Answer | Part::AnswerOnce => 6,
        Part::Accept => 0,
    }
}

/// What a message asks for.
///
/// # Errors
///
/// The error to answer with, see [`refusal`].
pub fn decode_request(message: &Message) -> Result<Request, i32> {
    let flags = message.u32_at(56);
    let set = |bit: u32| flags & bit != 0;
    let transport = match (message.u32_at(96), message.u32_at(100)) {
        (STREAM, TCP | 0) => Transport::Tcp,
        (DATAGRAM, UDP | 0) => Transport::Udp,
        _ => return Err(refusal::EPROTONOSUPPORT),
    };
    let part = match (message.u32_at(104), set(flag::CONNECTIONS)) {
        (2, false) => Part::Send,
        (4, false) => Part::Receive,
        (6, false) => Part::Answer,
        (6, true) => Part::AnswerOnce,
        (0, true) => Part::Accept,
        _ => return Err(refusal::EOPNOTSUPP),
    };
    if transport == Transport::Udp && part.connects() {
        return Err(refusal::EOPNOTSUPP);
    }
    let asks = matches!(part, Part::Answer | Part::AnswerOnce);
    let unit_at = |at| if asks { unit(message.i32_at(at), transport) } else { Ok(1) };
    let family = family(message.u32_at(92))?;
    let pacing = Some((message.u32_at(112), message.u32_at(116)));
    Ok(Request {
        part,
        transport,
        family,
        length: Length::of(message.i32_at(64)),
        request_bytes: unit_at(28)?,
        response_bytes: unit_at(52)?,
        send_bytes: size(message.i32_at(12))?,
        receive_bytes: size(message.i32_at(36))?,
        send_buffer_bytes: buffer(message.i32_at(8))?,
        receive_buffer_bytes: buffer(message.i32_at(32))?,
        rings: decode_rings(message),
        port: port(message.u32_at(88))?,
        address: decode_address(message, 136, family),
        client_port: port(message.u32_at(108))?,
        client_address: decode_address(message, 120, family),
        pacing: pacing.filter(|(burst, interval_us)| *burst > 0 && *interval_us > 0),
        no_delay: set(flag::NO_DELAY),
        cpu: set(flag::CPU),
        cpu_rate: message.f32_at(60).unwrap_or(0.0),
        routed: set(flag::ROUTED),
        keep_alive: set(flag::KEEP_ALIVE),
        defer_accept: set(flag::DEFER_ACCEPT),
        dont_fragment: set(flag::DONT_FRAGMENT),
        fast_open: set(flag::FAST_OPEN),
        packet_info: set(flag::PACKET_INFO),
        connected: set(flag::CONNECTED),
        no_copy: message.u32_at(68) != 0,
        priority: u32::try_from(message.i32_at(152)).ok(),
        service: u8::try_from(message.i32_at(156)).ok(),
        congestion: message.text_at(160, CONGESTION_BYTES - 1),
        fill_file: message.text_at(176, FILL_FILE_BYTES - 1),
        dirt: Dirt {
            send_bytes: u32::try_from(message.i32_at(76)).ok(),
            receive_bytes: u32::try_from(message.i32_at(80)).ok(),
            clean_bytes: u32::try_from(message.i32_at(84)).ok(),
        },
    })
}

fn decode_rings(message: &Message) -> Rings {
    Rings {
        send_alignment: message.u32_at(16),
        send_offset: message.u32_at(20),
        send_width: message.u32_at(24),
        receive_alignment: message.u32_at(40),
        receive_offset: message.u32_at(44),
        receive_width: message.u32_at(48),
    }
}

/// An IPv6 address goes as four numbers of the sender's order: those of a little-endian machine,
/// which all are, come with the bytes of each group the other way round.
fn encode_address(address: Option<IpAddr>) -> [u8; 16] {
    let mut bytes = [0; 16];
    match address {
        None => {}
        Some(IpAddr::V4(v4)) => {
            bytes.iter_mut().zip(v4.octets()).for_each(|(place, byte)| *place = byte);
        }
        Some(IpAddr::V6(v6)) => {
            bytes = v6.octets();
            bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
        }
    }
    bytes
}

fn decode_address(message: &Message, offset: usize, family: Family) -> Option<IpAddr> {
    let words = [0, 4, 8, 12].map(|at| message.u32_at(offset + at));
    let [first, second, third, fourth] = words;
    if words == [0; 4] {
        return None;
    }
    Some(match family {
        Family::V6 => {
            let swapped = [first, second, third, fourth].map(u32::swap_bytes);
            let number = swapped.iter().fold(0_u128, |sum, word| sum << 32 | u128::from(*word));
            IpAddr::V6(Ipv6Addr::from_bits(number))
        }
        Family::V4 | Family::Any => IpAddr::V4(Ipv4Addr::from_bits(first)),
    })
}

/// A set-up answer as a message.
pub fn encode_setup(form: Form, setup: &Setup) -> Message {
    let mut message = Message::new(form, code::OMNI + 1, 0);
    let flags = u32::from(setup.no_delay) * flag::NO_DELAY + u32::from(setup.cpu) * flag::CPU;
    let (burst, interval_us) = setup.pacing;
    #[rustfmt::skip]
    message.put_words(8, &[
        setup.receive_buffer_bytes.cast_unsigned(), setup.receive_bytes.cast_unsigned(),
        setup.receive_width.cast_unsigned(), setup.send_buffer_bytes.cast_unsigned(),
        setup.send_bytes.cast_unsigned(), setup.send_width.cast_unsigned(),
        flags, setup.cpu_rate.to_bits(), 0, 0, 0, setup.data_port.into(), burst, interval_us, 0, 0,
        setup.priority.cast_unsigned(), setup.service.cast_unsigned(),
    ]);
    message
}

/// What a set-up answer says. Flags other than the two that mean something may be left over from
/// an earlier test.
///
/// # Errors
///
/// When its port is none.
pub fn decode_setup(message: &Message) -> Result<Setup, String> {
    let flags = message.u32_at(32);
    let number = message.u32_at(52);
    let data_port = u16::try_from(number).ok().filter(|port| *port > 0);
    Ok(Setup {
        data_port: data_port.ok_or_else(|| format!("{number} as the port of its data"))?,
        receive_buffer_bytes: message.i32_at(8),
        receive_bytes: message.i32_at(12),
        receive_width: message.i32_at(16),
        send_buffer_bytes: message.i32_at(20),
        send_bytes: message.i32_at(24),
        send_width: message.i32_at(28),
        no_delay: flags & flag::NO_DELAY != 0,
        cpu: flags & flag::CPU != 0,
        cpu_rate: message.f32_at(36).unwrap_or(0.0),
        pacing: (message.u32_at(56), message.u32_at(60)),
        priority: message.i32_at(72),
        service: message.i32_at(76),
    })
}

/// Results as a message.
pub fn encode_results(form: Form, results: &Results) -> Message {
    let mut message = Message::new(form, code::OMNI + 2, 0);
    let halves = |number: u64| [(number >> 32) as u32, number as u32];
    let [received_high, received_low] = halves(results.bytes_received);
    let [sent_high, sent_low] = halves(results.bytes_sent);
    #[rustfmt::skip]
    message.put_words(8, &[
        received_high, received_low, results.receive_calls,
        results.receive_buffer_bytes.cast_unsigned(),
        sent_high, sent_low, results.send_calls, results.send_buffer_bytes.cast_unsigned(),
        results.failed_sends, results.transactions,
        results.elapsed_s.unwrap_or(0.0).to_bits(),
    ]);
    if let Some(cpu) = &results.cpu {
        let shares = [cpu.util, cpu.user, cpu.system, cpu.iowait, cpu.irq, cpu.softirq];
        message.put_words(52, &shares.map(f32::to_bits));
        let peak = [cpu.peak_cpu.cast_unsigned(), cpu.peak.to_bits()];
        message.put_words(80, &[cpu.method]);
        message.put_words(88, &peak);
    }
    message.put_words(84, &[results.cpus]);
    message.put_words(112, &[results.retransmits.cast_unsigned()]);
    let congestion = results.congestion.as_deref().unwrap_or_default();
    message.put_text(CONGESTION_AT, CONGESTION_BYTES, congestion);
    message
}

/// What results say. Figures of the processors hold only where the set-up announced them.
pub fn decode_results(message: &Message, cpu: bool) -> Results {
    Results {
        bytes_received: message.u64_at(8),
        receive_calls: message.u32_at(16),
        receive_buffer_bytes: message.i32_at(20),
        bytes_sent: message.u64_at(24),
        send_calls: message.u32_at(32),
        send_buffer_bytes: message.i32_at(36),
        failed_sends: message.u32_at(40),
        transactions: message.u32_at(44),
        elapsed_s: message.f32_at(48),
        cpu: cpu.then(|| decode_cpu(message)).flatten(),
        cpus: message.u32_at(84),
        retransmits: message.i32_at(112),
        congestion: message.text_at(CONGESTION_AT, CONGESTION_BYTES - 1),
    }
}

fn decode_cpu(message: &Message) -> Option<Cpu> {
    let share = |offset| message.f32_at(offset).unwrap_or(Cpu::UNKNOWN);
    Some(Cpu {
        util: message.f32_at(52)?,
        user: share(56),
        system: share(60),
        iowait: share(64),
        irq: share(68),
        softirq: share(72),
        method: message.u32_at(80),
        peak_cpu: message.i32_at(88),
        peak: share(92),
    })
}
