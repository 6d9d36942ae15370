//! Pseudorandom numbers from a seed that is printed and can be given back.

use std::ops::Range;
use std::time::SystemTime;

/// A stream of pseudorandom numbers: SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(u64);

impl Random {
    /// Begins with the seed in `LINERATE_SEED`, or with the time; says which.
    pub(crate) fn draw(what: &str) -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let seed = std::env::var("LINERATE_SEED").map_or(now, |seed| seed.parse().unwrap());
        eprintln!("{what}: LINERATE_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of the range, which must not be empty.
    pub(crate) fn within(&mut self, range: Range<usize>) -> usize {
        range.start + (self.number() % range.len() as u64) as usize
    }

    pub(crate) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.within(0..all.len())]
    }

    /// Changes the bytes in a few places: flips, cuts, doubles, inserts, sets to what is at a limit.
    pub(crate) fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.within(1..5) {
            if bytes.is_empty() {
                bytes.push(self.number() as u8);
            }
            let at = self.within(0..bytes.len());
            let to = self.within(at..bytes.len()) + 1;
            match self.within(0..8) {
                0 => bytes[at] ^= 1 << self.within(0..8),
                1 => bytes[at] = self.number() as u8,
                2 => bytes.truncate(at),
                3 => drop(bytes.drain(at..to)),
                4 => {
                    let part = bytes[at..to].to_vec();
                    bytes.splice(at..at, part);
                }
                5 => {
                    let number = *self.one_of(&[0, 1, u32::MAX, 1 << 31, 262_144, 262_145]);
                    bytes.splice(at..to.min(at + 4), number.to_be_bytes());
                }
                6 => bytes[at..to].fill(*self.one_of(&[0, 0xff, b'"', b'[', b'{', b'9'])),
                _ => {
                    let digits = self.one_of(&["-1", "0", "18446744073709551615", "1e999", "null"]);
                    bytes.splice(at..at, digits.bytes());
                }
            }
        }
        bytes.truncate(60_000);
    }
}

#[test]
fn a_seed_repeats_its_random_numbers() {
    let draw = || {
        let mut random = Random(7);
        let mut bytes = b"{\"kind\":\"ping\",\"sent_ns\":12}".to_vec();
        (0..1000).for_each(|_| random.mutate(&mut bytes));
        (bytes, random.number())
    };
    assert_eq!(draw(), draw());
    // The first numbers of the published generator from the state 0.
    let mut published = Random(0);
    assert_eq!(published.number(), 0xe220_a839_7b1d_cdaf);
    assert_eq!(published.number(), 0x6e78_9e6a_a1b9_65f4);
}
