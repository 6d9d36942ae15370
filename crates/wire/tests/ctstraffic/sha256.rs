//! SHA-256 (FIPS 180-4), to compare long data with digests of the original's.

/// The first 32 bits of the fractional part of a root of each of the first 64 primes.
fn root_bits(root: impl Fn(f64) -> f64) -> Vec<u32> {
    let primes = (2_u32..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    // A cube root in 53 bits has its 32 fractional bits exactly: the integer part is at most 6.
    primes.take(64).map(|prime| (root(prime.into()).fract() * 2_f64.powi(32)) as u32).collect()
}

/// The digest as hexadecimal digits.
pub(crate) fn sha256(message: &[u8]) -> String {
    let constants = root_bits(f64::cbrt);
    let mut state: Vec<u32> = root_bits(f64::sqrt).into_iter().take(8).collect();
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - message.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let length_at = padded.len() - 8;
    padded[length_at..].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        compress(&mut state, block, &constants);
    }
    state.iter().map(|word| format!("{word:08x}")).collect()
}

fn compress(state: &mut [u32], block: &[u8], constants: &[u32]) {
    let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let mut schedule: Vec<u32> = block.chunks(4).map(word).collect();
    for at in 16..64 {
        let (a, b) = (schedule[at - 15], schedule[at - 2]);
        let small0 = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
        let small1 = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
        let sum = schedule[at - 16].wrapping_add(small0).wrapping_add(schedule[at - 7]);
        schedule.push(sum.wrapping_add(small1));
    }
    let mut v: [u32; 8] = state.try_into().unwrap();
    for (constant, scheduled) in constants.iter().zip(schedule) {
        let [a, b, c, d, e, f, g, h] = v;
        let large1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = h.wrapping_add(large1).wrapping_add(choice);
        let t1 = t1.wrapping_add(*constant).wrapping_add(scheduled);
        let large0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let t2 = large0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        v = [t1.wrapping_add(t2), a, b, c, d.wrapping_add(t1), e, f, g];
    }
    for (word, v) in state.iter_mut().zip(v) {
        *word = word.wrapping_add(v);
    }
}

#[test]
fn the_digest_is_that_of_the_standard() {
    assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(
        sha256(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    );
}
