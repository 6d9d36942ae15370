//! Numbers that look like chance and come again with their seed.

/// The next 64 bits after a state, which moves on: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
pub fn next_word(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A number of the standard normal distribution (Box and Muller), for simulations.
#[cfg(test)]
pub(crate) fn next_normal(state: &mut u64) -> f64 {
    let mut unit = || (next_word(state) >> 11) as f64 / (1_u64 << 53) as f64;
    let (radius, angle) = (unit().max(1e-300), unit());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
