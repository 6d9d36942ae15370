//! One direction of a link as a state machine: packets are offered at a time and are due at another.
//! No I/O, no clock, and no allocation but for packets beyond those it has held before.
//!
//! A packet waits in the queue until the ones before it are sent at the rate; then chance decides
//! whether it is lost, spoiled or doubled; then it is in flight until it is due.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use linerate_measure::link::report::{Counters, Flip};
use linerate_measure::link::{Amount, Direction, limits};

use super::corruption::Corrupter;
use super::fate::{Chance, Fate};
use super::packet::mark_congestion;
use linerate_system::clock::SECOND_NS;

/// A packet and where it belongs.
#[derive(Debug, Default)]
pub(super) struct Packet {
    /// The buffer; the packet is its first `length` bytes.
    pub(super) bytes: Vec<u8>,
    /// Length of the packet.
    pub(super) length: usize,
    /// The caller's mark.
    pub(super) tag: u32,
}

impl Packet {
    /// The packet's bytes.
    pub(super) fn content(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A packet whose time has come.
#[derive(Debug)]
pub(super) struct Due {
    /// The packet.
    pub(super) packet: Packet,
    /// When it was due.
    pub(super) due_ns: u64,
}

/// One direction.
#[derive(Debug)]
pub(super) struct Path {
    direction: Direction,
    buffer_bytes: usize,
    chance: Chance,
    corrupter: Corrupter,
    /// The first is being sent, the others wait.
    queue: VecDeque<Queued>,
    /// Bytes that wait.
    waiting_bytes: u64,
    /// When the first of the queue will have been sent, and the part of a nanosecond left over, in
    /// units of 1/rate.
    sent_ns: u64,
    left_over: u64,
    flight: BinaryHeap<Flying>,
    flight_bytes: u64,
    last_due_ns: u64,
    next_serial: u64,
    /// One more than the greatest number delivered.
    delivered_below: u64,
    spare: Vec<Vec<u8>>,
    counters: Counters,
}

#[derive(Debug)]
struct Queued {
    packet: Packet,
    number: u64,
    fate: Fate,
}

#[derive(Debug)]
struct Flying {
    due_ns: u64,
    /// Of two that are due at one time the first that left the queue is first.
    serial: u64,
    number: u64,
    packet: Packet,
}

impl Path {
    /// A path for packets of up to `buffer_bytes`; `parse_headers` where they are IP packets.
    pub(super) fn new(
        direction: Direction,
        seed: u64,
        buffer_bytes: usize,
        parse_headers: bool,
    ) -> Self {
        Self {
            direction,
            buffer_bytes,
            chance: Chance::new(seed),
            corrupter: Corrupter::new(seed, parse_headers),
            queue: VecDeque::new(),
            waiting_bytes: 0,
            sent_ns: 0,
            left_over: 0,
            flight: BinaryHeap::new(),
            flight_bytes: 0,
            last_due_ns: 0,
            next_serial: 0,
            delivered_below: 0,
            spare: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// From now on other values; what is being sent or in flight goes on as before.
    pub(super) fn change(&mut self, now_ns: u64, direction: Direction) {
        self.advance(now_ns);
        self.left_over = 0;
        self.direction = direction;
    }

    /// A buffer for a packet to offer.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_else(|| vec![0; self.buffer_bytes])
    }

    /// Takes a buffer back.
    pub(super) fn recycle(&mut self, bytes: Vec<u8>) {
        self.spare.push(bytes);
    }

    /// The rate of now.
    pub(super) fn rate_bps(&self) -> Option<u64> {
        self.direction.rate_bps
    }

    /// Whether so many bytes more would be dropped now.
    pub(super) fn is_full(&mut self, now_ns: u64, bytes: u64) -> bool {
        self.advance(now_ns);
        self.flight_bytes + self.waiting_bytes + bytes > limits::FLIGHT_BYTES
            || self.overflows(bytes)
    }

    /// A packet comes in.
    pub(super) fn offer(&mut self, now_ns: u64, mut packet: Packet) {
        let number = self.counters.offered;
        self.counters.offered += 1;
        self.counters.offered_bytes += packet.length as u64;
        self.advance(now_ns);
        let fate = self.chance.next_fate(&self.direction);
        if self.direction.rate_bps.is_none() && self.queue.is_empty() {
            self.launch(Queued { packet, number, fate }, now_ns);
            return;
        }
        if self.overflows(packet.length as u64) {
            self.counters.lost_in_queue += 1;
            self.recycle(packet.bytes);
            return;
        }
        let marked = match self.direction.mark_at {
            Some(Amount::Packets(packets)) => self.waiting_packets() >= packets,
            Some(Amount::Bytes(bytes)) => self.waiting_bytes >= bytes,
            None => false,
        };
        if marked && mark_congestion(&mut packet.bytes[..packet.length]) {
            self.counters.marked += 1;
        }
        let length = packet.length;
        self.queue.push_back(Queued { packet, number, fate });
        if self.queue.len() == 1 {
            self.left_over = 0;
            self.send_first(now_ns);
        } else {
            self.waiting_bytes += length as u64;
        }
    }

    /// When something happens next without a packet coming in.
    pub(super) fn next_time(&self) -> Option<u64> {
        let sent_ns = (!self.queue.is_empty()).then_some(self.sent_ns);
        let due_ns = self.flight.peek().map(|flying| flying.due_ns);
        match (sent_ns, due_ns) {
            (Some(sent_ns), Some(due_ns)) => Some(sent_ns.min(due_ns)),
            (one, other) => one.or(other),
        }
    }

    /// The next packet that is due by now.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<Due> {
        self.advance(now_ns);
        if self.flight.peek()?.due_ns > now_ns {
            return None;
        }
        let Flying { due_ns, number, packet, .. } = self.flight.pop()?;
        self.flight_bytes -= packet.length as u64;
        self.counters.delivered += 1;
        self.counters.delivered_bytes += packet.length as u64;
        if number + 1 < self.delivered_below {
            self.counters.reordered += 1;
        }
        self.delivered_below = self.delivered_below.max(number + 1);
        Some(Due { packet, due_ns })
    }

    /// A packet that was due couldn't be delivered.
    pub(super) fn record_undeliverable(&mut self, length: usize) {
        self.counters.undeliverable += 1;
        self.counters.delivered -= 1;
        self.counters.delivered_bytes -= length as u64;
    }

    /// What happened so far.
    pub(super) fn counters(&self) -> Counters {
        let in_flight = (self.queue.len() + self.flight.len()) as u64;
        let (corrupted, flipped_bits) = self.corrupter.counts();
        Counters { in_flight, corrupted, flipped_bits, ..self.counters }
    }

    /// The bits that flipped.
    pub(super) fn into_flips(self) -> Vec<Flip> {
        self.corrupter.into_flips()
    }

    fn waiting_packets(&self) -> u64 {
        (self.queue.len() as u64).saturating_sub(1)
    }

    /// Whether so many bytes more don't fit the queue. The packet that is being sent isn't in it.
    fn overflows(&self, bytes: u64) -> bool {
        !self.queue.is_empty()
            && match self.direction.queue {
                Some(Amount::Packets(packets)) => self.waiting_packets() >= packets,
                Some(Amount::Bytes(most)) => self.waiting_bytes + bytes > most,
                None => false,
            }
    }

    /// Lets go of what has been sent by now.
    fn advance(&mut self, now_ns: u64) {
        while self.sent_ns <= now_ns
            && let Some(sent) = self.queue.pop_front()
        {
            let sent_ns = self.sent_ns;
            if let Some(next) = self.queue.front() {
                self.waiting_bytes -= next.packet.length as u64;
                self.send_first(sent_ns);
            }
            self.launch(sent, sent_ns);
        }
    }

    /// Begins to send the first of the queue.
    fn send_first(&mut self, from_ns: u64) {
        let Some(first) = self.queue.front() else { return };
        self.sent_ns = match self.direction.rate_bps {
            Some(rate_bps) => {
                let parts = first.packet.length as u64 * 8 * SECOND_NS + self.left_over;
                self.left_over = parts % rate_bps;
                from_ns + parts / rate_bps
            }
            None => from_ns,
        };
    }

    /// A packet leaves the queue.
    fn launch(&mut self, queued: Queued, now_ns: u64) {
        let Queued { mut packet, number, fate } = queued;
        if fate.lost {
            self.counters.lost_at_random += 1;
            self.recycle(packet.bytes);
            return;
        }
        if self.flight_bytes + packet.length as u64 > limits::FLIGHT_BYTES {
            self.counters.lost_in_emulator += 1;
            self.recycle(packet.bytes);
            return;
        }
        let content = &mut packet.bytes[..packet.length];
        self.corrupter.handle_packet(number, content, self.direction.corrupt);
        let mut due_ns = now_ns + fate.delay_ns;
        let may_overtake = self.direction.jitter.is_some_and(|jitter| jitter.may_reorder);
        if !may_overtake {
            due_ns = due_ns.max(self.last_due_ns);
        }
        match fate.held_ns {
            Some(held_ns) => due_ns += held_ns,
            None => self.last_due_ns = due_ns,
        }
        if fate.duplicated {
            self.counters.duplicated += 1;
            let mut bytes = self.buffer();
            bytes[..packet.length].copy_from_slice(packet.content());
            let copy = Packet { bytes, length: packet.length, tag: packet.tag };
            self.fly(packet, number, due_ns);
            self.fly(copy, number, due_ns);
        } else {
            self.fly(packet, number, due_ns);
        }
    }

    fn fly(&mut self, packet: Packet, number: u64, due_ns: u64) {
        self.flight_bytes += packet.length as u64;
        self.flight.push(Flying { due_ns, serial: self.next_serial, number, packet });
        self.next_serial += 1;
    }
}

/// The greatest is the first that is due: the heap gives the greatest.
impl Ord for Flying {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due_ns, other.serial).cmp(&(self.due_ns, self.serial))
    }
}

impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Flying {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Flying {}

#[cfg(test)]
mod tests;
