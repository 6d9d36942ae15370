//! Streams of datagrams: their greeting, their header, and what a receiver finds out.

/// What a client says first on each stream.
pub const GREETING: [u8; 4] = *b"9876";
/// What a server answers.
pub const ANSWER: [u8; 4] = *b"6789";
/// What clients of 3.11 and before say first.
pub const OLD_GREETING: [u8; 4] = 123_456_789_u32.to_le_bytes();
/// What servers of 3.11 and before answer.
pub const OLD_ANSWER: [u8; 4] = 987_654_321_u32.to_le_bytes();

/// What a greeting is answered with: in the words of the client's release.
pub fn answer_to(greeting: [u8; 4]) -> [u8; 4] {
    if greeting == OLD_GREETING { OLD_ANSWER } else { ANSWER }
}

/// Whether a datagram is a server's answer to the greeting.
pub fn is_answer(datagram: &[u8]) -> bool {
    Word::of(datagram).is_some_and(|said| said.word == ANSWER || said.word == OLD_ANSWER)
}

/// What a greeting is said again with, at a time of the stream's clock, in a test of datagrams with so many bytes. An
/// original takes any for one; where it was only slow, and has heard the first, it takes this for data: with the number 0,
/// so that it is out of order and nothing is lost. From 3.16 on it reads until it has a whole datagram's bytes, so
/// that a shorter one would cost it the next.
pub fn greeting_again(now_ns: u64, block_bytes: usize) -> Vec<u8> {
    let mut datagram = vec![0; block_bytes.max(HEADER_BYTES)];
    Header { sent_ns: now_ns, number: 0 }.encode(true, &mut datagram);
    datagram
}

/// What an answer is said again with: an original knows it by its first bytes, or takes it for data as it does a greeting.
pub fn answer_again(answer: [u8; 4], block_bytes: usize) -> Vec<u8> {
    let mut datagram = vec![0; block_bytes.max(HEADER_BYTES)];
    datagram[..4].copy_from_slice(&answer);
    datagram
}

/// What a datagram says that greets or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The greeting, or the answer; of a greeting said again anything.
    pub word: [u8; 4],
    /// Whether it is said again.
    pub is_again: bool,
}

impl Word {
    /// Reads a datagram, or the beginning of one with its header at least; `None` of data.
    pub fn of(datagram: &[u8]) -> Option<Self> {
        let word = *datagram.first_chunk()?;
        if datagram.len() == 4 {
            return Some(Self { word, is_again: false });
        }
        // A number of 32 bits makes one of 64 that isn't 0, whatever follows it.
        let header = Header::decode(true, datagram)?;
        (header.number == 0).then_some(Self { word, is_again: true })
    }
}

/// The shortest datagram of a stream.
pub const HEADER_BYTES: usize = 16;

/// What stands at the front of each datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// When it was sent, on the sender's clock. The wire has microseconds.
    pub sent_ns: u64,
    /// Its number; a stream's first has 1.
    pub number: u64,
}

impl Header {
    /// Writes the header with a number of 32 bits, or of 64 where `wide`. A datagram that is too
    /// short for it stays as it is.
    #[inline]
    pub fn encode(&self, wide: bool, datagram: &mut [u8]) {
        let Some(bytes) = datagram.first_chunk_mut::<HEADER_BYTES>() else { return };
        // The wire's clock may wrap: only differences matter.
        let seconds = (self.sent_ns / 1_000_000_000) as u32;
        let micros = (self.sent_ns % 1_000_000_000 / 1000) as u32;
        bytes[0..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4..8].copy_from_slice(&micros.to_be_bytes());
        if wide {
            bytes[8..16].copy_from_slice(&self.number.to_be_bytes());
        } else {
            bytes[8..12].copy_from_slice(&(self.number as u32).to_be_bytes());
        }
    }

    /// Reads the header; `None` where the datagram is too short for one.
    #[inline]
    pub fn decode(wide: bool, datagram: &[u8]) -> Option<Self> {
        let bytes = datagram.first_chunk::<HEADER_BYTES>()?;
        let [s0, s1, s2, s3, m0, m1, m2, m3, n0, n1, n2, n3, n4, n5, n6, n7] = *bytes;
        let seconds = u64::from(u32::from_be_bytes([s0, s1, s2, s3]));
        let micros = u64::from(u32::from_be_bytes([m0, m1, m2, m3]));
        let number = if wide {
            u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7])
        } else {
            u64::from(u32::from_be_bytes([n0, n1, n2, n3]))
        };
        Some(Self { sent_ns: seconds * 1_000_000_000 + micros * 1000, number })
    }
}

/// What the receiver of a stream finds out, in the original's arithmetic.
///
/// With the highest number so far `h`, a datagram with number `s >= h + 1` makes those in between
/// lost, and any other is out of order and, if one is lost, the one that was. Jitter is RFC 3550's:
/// a sixteenth of the way towards each difference between two transit times.
///
/// Numbers of 32 bits go on modulo 2^32: each stands for the whole number nearest to `h`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// The highest number so far: what the sender has sent at least.
    pub highest: u64,
    /// Datagrams that are missing.
    pub lost: u64,
    /// Datagrams that came late.
    pub out_of_order: u64,
    jitter_ns: f64,
    last_transit_ns: Option<i64>,
    /// The highest number, and datagrams that were missing, when the omitted time ended.
    omitted: Option<(u64, u64)>,
    /// Whether the wire's numbers have 32 bits.
    narrow: bool,
}

impl Arrivals {
    /// The arrivals of a stream whose numbers have 64 bits where `wide`, else 32.
    pub fn new(wide: bool) -> Self {
        Self { narrow: !wide, ..Self::default() }
    }

    /// The whole number that the wire's `number` stands for. One that lies before the first is ahead of all.
    #[inline]
    fn whole(&self, number: u64) -> u64 {
        if !self.narrow {
            return number;
        }
        let ahead = (number as u32).wrapping_sub(self.highest as u32).cast_signed();
        self.highest.checked_add_signed(ahead.into()).unwrap_or(number)
    }

    /// Whether a datagram with the wire's `number` is data: a greeting that is said again has the number 0.
    #[inline]
    pub fn is_data(&self, number: u64) -> bool {
        number != 0 || self.whole(number) != 0
    }

    /// A datagram came at a time on this end's clock.
    #[inline]
    pub fn record(&mut self, header: Header, now_ns: u64) {
        let header = Header { number: self.whole(header.number), ..header };
        if header.number > self.highest {
            // The number is the peer's word, and may be anything.
            self.lost = self.lost.saturating_add(header.number - self.highest - 1);
            self.highest = header.number;
        } else {
            self.out_of_order += 1;
            // The original takes each for one that was missing. One of the omitted time isn't missing in what counts, and
            // of copies there may be any number.
            let less = self.lost.saturating_sub(1);
            match self.omitted {
                None => self.lost = less,
                Some((highest, lost)) if header.number > highest => self.lost = less.max(lost),
                Some(_) => {}
            }
        }
        let transit_ns = now_ns.wrapping_sub(header.sent_ns) as i64;
        if let Some(last_ns) = self.last_transit_ns.replace(transit_ns) {
            let difference_ns = transit_ns.wrapping_sub(last_ns).unsigned_abs() as f64;
            self.jitter_ns += (difference_ns - self.jitter_ns) / 16.0;
        }
    }

    /// Jitter, seconds.
    pub fn jitter_s(&self) -> f64 {
        self.jitter_ns / 1e9
    }

    /// The omitted time is over: jitter begins anew, and what was missing so far stays so.
    pub fn end_omitted(&mut self) {
        self.omitted = Some((self.highest, self.lost));
        self.jitter_ns = 0.0;
        self.last_transit_ns = None;
    }
}
