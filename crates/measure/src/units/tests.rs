use proptest::prelude::*;

use super::*;

#[test]
fn sizes() {
    for (text, bytes) in [
        ("0", 0),
        ("1500", 1500),
        ("1500B", 1500),
        ("64k", 64_000),
        ("64K", 64_000),
        ("64kB", 64_000),
        ("64Ki", 65_536),
        ("64KiB", 65_536),
        ("1.5Mi", 1_572_864),
        ("2 GB", 2_000_000_000),
        ("0.001k", 1),
        ("1.500k", 1500),
        ("16Ti", 16 << 40),
        ("18446744073709551615", u64::MAX),
        ("0018", 18),
    ] {
        assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
    }
}

#[test]
fn rates() {
    for (text, bps) in [
        ("10G", 10_000_000_000),
        ("2.5Gbit/s", 2_500_000_000),
        ("100Mbps", 100_000_000),
        ("1bit/s", 1),
        ("1Kibit/s", 1024),
        ("35.7 Gbit/s", 35_700_000_000),
    ] {
        assert_eq!(parse_rate(text), Ok(bps), "{text}");
    }
}

#[test]
fn durations() {
    for (text, ns) in [
        ("10", 10_000_000_000),
        ("0.5", 500_000_000),
        ("500ms", 500_000_000),
        ("10s", 10_000_000_000),
        ("1h", 3_600_000_000_000),
        ("1.5m", 90_000_000_000),
        ("2min", 120_000_000_000),
        ("3us", 3_000),
        ("3µs", 3_000),
        ("7ns", 7),
        ("0.000000001", 1),
    ] {
        assert_eq!(parse_duration(text), Ok(ns), "{text}");
    }
}

#[test]
fn counts() {
    assert_eq!(parse_count("10k"), Ok(10_000));
    assert_eq!(parse_count("1Mi"), Ok(1 << 20));
    assert!(parse_count("10B").is_err());
}

#[test]
fn anything_else_is_refused() {
    let too_long = "9".repeat(1000);
    for text in [
        "",
        " ",
        "-1",
        "+1",
        "1.5",
        "1.",
        ".5",
        "1e3",
        "1,5",
        "0x10",
        "64kb",
        "64 ",
        " 64",
        "64  k",
        "64kk",
        "64k64",
        "NaN",
        "inf",
        "1.0000000001k",
        "16777216Ti",
        "18446744073709551616",
        "１",
        "64BB",
        "1µs",
        &too_long,
    ] {
        assert!(parse_bytes(text).is_err(), "{text}");
    }
    for text in ["1.5ns", "1M", "1d", "10 000", "6000000h", "1ms1us"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
    for text in ["1Gbit", "1GB/s", "1bits", "0.5", "1gbit/s"] {
        assert!(parse_rate(text).is_err(), "{text}");
    }
}

#[test]
fn twenty_digits_after_the_point_at_most() {
    assert_eq!(parse_bytes(&format!("0.5{}Ei", "0".repeat(100))), Ok(1 << 59));
    let all_nines = |digits| parse_bytes(&format!("0.{}Ei", "9".repeat(digits))).unwrap_err();
    assert!(all_nines(20).to_string().contains("is not a whole number of bytes"));
    assert!(all_nines(21).to_string().contains("has more than 20 digits after its point"));
    assert!(parse_bytes("0666666666666.666666666666666666666666PiB").is_err());
}

#[test]
fn an_error_shows_value_fault_and_grammar_in_one_sentence() {
    let text = |text| parse_bytes(text).unwrap_err().to_string();
    assert_eq!(
        text("1.5"),
        "\"1.5\" is not a whole number of bytes: write a size such as 1500, 64k (64,000 bytes), \
         64Ki (65,536 bytes) or 1.5MiB, with k M G T P E (powers of 1000) or Ki Mi Gi Ti Pi Ei (powers of 1024)"
    );
    assert!(text("64x").starts_with("\"64x\" ends with \"x\", which is no suffix here: write"));
    assert!(text("-1").starts_with("\"-1\" is negative: "));
    assert!(text("99999999T").contains("is more than 18446744073709551615 bytes"));
    // Neither length nor control characters get through to a terminal.
    let hostile = text(&"\u{1b}[2J".repeat(1000));
    assert!(hostile.len() < 500 && !hostile.contains('\u{1b}'), "{hostile}");
}

#[test]
fn rendered_for_people() {
    assert_eq!(render_bytes(0), "0 B");
    assert_eq!(render_bytes(999), "999 B");
    assert_eq!(render_bytes(1448), "1.45 kB");
    assert_eq!(render_bytes(999_499), "999 kB");
    assert_eq!(render_bytes(999_500), "1.00 MB");
    assert_eq!(render_bytes(u64::MAX), "18.4 EB");
    assert_eq!(render_rate(35_712_000_000.0), "35.7 Gbit/s");
    assert_eq!(render_rate(9_996_000.0), "10.0 Mbit/s");
    assert_eq!(render_rate(0.25), "0.25 bit/s");
    assert_eq!(render_rate(f64::NAN), "NaN bit/s");
    assert_eq!(render_duration_ns(14_230), "14.2 µs");
    assert_eq!(render_duration_ns(10_000_000_000), "10.0 s");
    assert_eq!(render_duration_ns(3_600_000_000_000), "3600 s");
    assert_eq!(render_count(72_140.0), "72.1k");
    assert_eq!(render_count(12.0), "12");
}

/// The value that `parse` reads and `render` writes, three digits and a power of ten.
fn three_digits() -> impl Strategy<Value = u64> {
    (0..1000_u64, 0..5_u32).prop_map(|(digits, thousands)| digits * 1000_u64.pow(thousands))
}

proptest! {
    #[test]
    fn exact_values_survive_a_round_trip(value in three_digits()) {
        prop_assert_eq!(parse_bytes(&render_bytes(value)), Ok(value));
        prop_assert_eq!(parse_rate(&render_rate(value as f64)), Ok(value));
        prop_assert_eq!(parse_duration(&render_duration_ns(value)), Ok(value));
        prop_assert_eq!(parse_count(&render_count(value as f64)), Ok(value));
    }

    #[test]
    fn rounded_values_are_off_by_half_a_percent_at_most(value in 1..1_000_000_000_000_000_u64) {
        let read = parse_bytes(&render_bytes(value)).unwrap();
        prop_assert!(read.abs_diff(value) as f64 <= value as f64 * 0.005);
    }

    #[test]
    fn plain_digits_are_themselves(value: u64) {
        prop_assert_eq!(parse_bytes(&value.to_string()), Ok(value));
        prop_assert_eq!(parse_count(&value.to_string()), Ok(value));
        prop_assert_eq!(parse_rate(&value.to_string()), Ok(value));
    }

    #[test]
    fn a_fraction_means_what_it_says(whole in 0..1_000_000_u64, thousandths in 0..1000_u64) {
        let expected = whole * 1000 + thousandths;
        prop_assert_eq!(parse_bytes(&format!("{whole}.{thousandths:03}k")), Ok(expected));
        prop_assert_eq!(parse_duration(&format!("{whole}.{thousandths:03}us")), Ok(expected));
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = (parse_bytes(&text), parse_rate(&text), parse_duration(&text), parse_count(&text));
    }

    #[test]
    fn no_likely_text_panics(text in "[0-9.]{0,30} ?[kKMGTmnuhisB]{0,3}(bit/s|bps)?") {
        let _ = (parse_bytes(&text), parse_rate(&text), parse_duration(&text), parse_count(&text));
    }
}
