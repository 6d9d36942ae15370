//! Bits that flip, and the record of them.

use linerate_measure::link::Corruption;
use linerate_measure::link::report::Flip;

use super::fate::{failures_before_success, uniform};
use super::packet::{Protocol, Segment};
use linerate_measure::random::next_word;

/// Flips that are recorded one by one; more are counted.
const RECORDED_MAX: usize = 10_000;
/// Bytes of a payload that a record shows.
const SHOWN_BYTES: usize = 32;
/// TCP connections whose start is remembered.
const CONNECTIONS: usize = 1024;

/// Flips bits in the packets of one direction.
#[derive(Debug)]
pub(super) struct Corrupter {
    seed: u64,
    parse_headers: bool,
    packets: u64,
    bits: u64,
    flips: Vec<Flip>,
    connections: Vec<Connection>,
    next_connection: usize,
}

/// Where a TCP connection's numbers start.
#[derive(Debug)]
struct Connection {
    source_port: u16,
    destination_port: u16,
    first_sequence: u32,
}

/// The bytes of a packet in which bits may flip.
struct Range {
    from: usize,
    end: usize,
    segment: Option<Segment>,
}

impl Corrupter {
    pub(super) fn new(seed: u64, parse_headers: bool) -> Self {
        // Apart from the seeds of the other chances, which come of the seed in single steps.
        let seed = next_word(&mut { !seed });
        let (flips, connections) = (Vec::new(), Vec::new());
        Self { seed, parse_headers, packets: 0, bits: 0, flips, connections, next_connection: 0 }
    }

    /// Flips what chance says in the packet of this number. The number alone decides, whatever
    /// happened to other packets.
    pub(super) fn handle_packet(
        &mut self,
        number: u64,
        packet: &mut [u8],
        corruption: Option<Corruption>,
    ) {
        let Some(corruption) = corruption else {
            if self.parse_headers {
                self.note_connection(packet);
            }
            return;
        };
        let segment = if self.parse_headers { Segment::parse(packet) } else { None };
        if let Some(segment) = &segment {
            self.note_start(segment, packet);
        }
        if packet.len() < corruption.least_packet_bytes as usize {
            return;
        }
        let range = match segment {
            Some(segment) if corruption.repair_checksums => {
                Range { from: segment.payload_at, end: segment.end, segment: Some(segment) }
            }
            // Without ports and a checksum there is nothing that could be repaired.
            None if corruption.repair_checksums && self.parse_headers => return,
            segment => Range { from: 0, end: packet.len(), segment },
        };
        let mut state = self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        next_word(&mut state);
        let before = self.bits;
        if let Some(rate) = corruption.bit_error_rate.filter(|rate| *rate > 0.0) {
            let bits = (range.end - range.from) as u64 * 8;
            let mut place = failures_before_success(&mut state, rate);
            while place < bits {
                self.flip(number, packet, &range, place, corruption.repair_checksums);
                let further = failures_before_success(&mut state, rate);
                place = place.saturating_add(1).saturating_add(further);
            }
        }
        if let Some(share) = corruption.packets
            && uniform(&mut state) < share
            && range.end > range.from
        {
            let bits = (range.end - range.from) as u64 * 8;
            let place = (uniform(&mut state) * bits as f64) as u64;
            self.flip(number, packet, &range, place.min(bits - 1), corruption.repair_checksums);
        }
        self.packets += u64::from(self.bits > before);
    }

    /// Packets with a flipped bit, and flipped bits.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.packets, self.bits)
    }

    /// The record.
    pub(super) fn into_flips(self) -> Vec<Flip> {
        self.flips
    }

    fn flip(&mut self, number: u64, packet: &mut [u8], range: &Range, place: u64, repair: bool) {
        let (at, bit) = (range.from + (place / 8) as usize, (place % 8) as u8);
        self.bits += 1;
        if self.flips.len() < RECORDED_MAX {
            self.flips.push(self.record(number, packet, range.segment.as_ref(), at, bit));
        }
        match &range.segment {
            Some(segment) if repair => segment.flip_repaired(packet, at, bit),
            _ => {
                if let Some(byte) = packet.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
        }
    }

    fn record(
        &self,
        number: u64,
        packet: &[u8],
        segment: Option<&Segment>,
        at: usize,
        bit: u8,
    ) -> Flip {
        let in_payload = segment.filter(|segment| (segment.payload_at..segment.end).contains(&at));
        let payload_offset = in_payload.map(|segment| (at - segment.payload_at) as u32);
        let start = segment.and_then(|segment| packet.get(segment.payload_at..segment.end));
        let shown = start.map(|payload| {
            payload.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect()
        });
        Flip {
            packet: number,
            packet_offset_bytes: at as u32,
            bit,
            protocol: segment.map(|segment| match segment.protocol {
                Protocol::Tcp => "tcp".to_owned(),
                Protocol::Udp => "udp".to_owned(),
            }),
            source_port: segment.map(|segment| segment.source_port),
            destination_port: segment.map(|segment| segment.destination_port),
            payload_offset_bytes: payload_offset,
            stream_offset_bytes: segment.zip(payload_offset).and_then(|(segment, offset)| {
                let (sequence, _) = segment.sequence(packet)?;
                let first = self.connection(segment)?.first_sequence;
                Some(sequence.wrapping_sub(first).wrapping_add(offset))
            }),
            payload_start: shown,
        }
    }

    fn connection(&self, segment: &Segment) -> Option<&Connection> {
        self.connections.iter().find(|connection| {
            connection.source_port == segment.source_port
                && connection.destination_port == segment.destination_port
        })
    }

    /// A connection that starts before corruption begins will be known when it does.
    fn note_connection(&mut self, packet: &[u8]) {
        // The shortest packets alone are looked at: a start carries no data.
        if packet.len() <= 128
            && let Some(segment) = Segment::parse(packet)
        {
            self.note_start(&segment, packet);
        }
    }

    fn note_start(&mut self, segment: &Segment, packet: &[u8]) {
        let Some((sequence, true)) = segment.sequence(packet) else { return };
        let (source_port, destination_port) = (segment.source_port, segment.destination_port);
        // The start itself takes one number (RFC 9293, section 3.4).
        let first_sequence = sequence.wrapping_add(1);
        let connection = Connection { source_port, destination_port, first_sequence };
        let known = self.connections.iter().position(|known| {
            known.source_port == source_port && known.destination_port == destination_port
        });
        match known {
            Some(place) => self.connections[place] = connection,
            None if self.connections.len() < CONNECTIONS => self.connections.push(connection),
            None => {
                self.connections[self.next_connection] = connection;
                self.next_connection = (self.next_connection + 1) % CONNECTIONS;
            }
        }
    }
}
