use super::*;

#[test]
fn a_distribution_is_the_originals() {
    let latencies_us: Vec<u32> =
        (0..3000).map(|i| if i % 50 == 0 { 500 + i * 3 } else { 60 + i * i % 40 }).collect();
    // What the original's histogram library wrote of the same values.
    let expected = include_str!("distribution.txt");
    assert_eq!(render_distribution(&latencies_us), expected);
}

#[test]
fn an_empty_distribution_has_no_rows_but_the_last() {
    let text = render_distribution(&[]);
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(!text.contains("NaN"), "{text}");
}
