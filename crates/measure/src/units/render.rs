//! Quantities as people read them: three significant digits and a prefix.

const SIZE_UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
const RATE_UNITS: [&str; 7] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Pbit/s", "Ebit/s"];
const DURATION_UNITS: [&str; 4] = ["ns", "µs", "ms", "s"];
const COUNT_UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// A size in bytes with a prefix of powers of 1000: `1448` is `1.45 kB`. Exact below 1000.
pub fn render_bytes(bytes: u64) -> String {
    render(bytes as f64, &SIZE_UNITS)
}

/// A rate in bits per second: `35_712_000_000.0` is `35.7 Gbit/s`. A whole number below 1000 is
/// exact.
pub fn render_rate(bps: f64) -> String {
    render(bps, &RATE_UNITS)
}

/// A duration in nanoseconds, in ns, µs, ms or s: `14_230` is `14.2 µs`. Exact below 1000 ns.
pub fn render_duration_ns(duration_ns: u64) -> String {
    render(duration_ns as f64, &DURATION_UNITS)
}

/// A number of things, or of things per second: `72_140.0` is `72.1k`. A whole number below 1000
/// is exact.
pub fn render_count(count: f64) -> String {
    render(count, &COUNT_UNITS).replace(' ', "")
}

/// `value` with three significant digits in the least unit that leaves it below 1000, each unit
/// being 1000 of the one before; in the last one whatever is left.
fn render(value: f64, units: &[&str]) -> String {
    let mut scaled = value;
    for (place, unit) in units.iter().enumerate() {
        let decimals = if place == 0 && scaled.fract() == 0.0 {
            0
        } else {
            // The bounds are where rounding would add a fourth digit.
            match scaled.abs() {
                ..9.995 => 2,
                ..99.95 => 1,
                _ => 0,
            }
        };
        if scaled.abs() < 999.5 || scaled.is_nan() || place + 1 == units.len() {
            return format!("{scaled:.decimals$} {unit}").trim_end().to_owned();
        }
        scaled /= 1000.0;
    }
    value.to_string()
}
