//! The patterns that published scripts read qperf's lines by, written here once more without the code that prints.

/// `^second (\d+(?:\.\d+)?): (\d+(?:\.\d+)?) ([a-zA-Z]?)bit/s, bytes received: (\d+), packets received: (\d+)$`: the
/// time, the rate, its prefix, bytes and packets.
pub(crate) fn read_client(line: &str) -> Option<(f64, f64, String, u64, u64)> {
    let (second, rest) = line.strip_prefix("second ")?.split_once(": ")?;
    let (rate, rest) = rest.split_once(' ')?;
    let (prefix, rest) = rest.split_once("bit/s, bytes received: ")?;
    let (bytes, packets) = rest.split_once(", packets received: ")?;
    let is_prefix = prefix.len() <= 1 && prefix.chars().all(|c| c.is_ascii_alphabetic());
    is_prefix.then_some(())?;
    Some((number(second)?, number(rate)?, prefix.to_owned(), whole(bytes)?, whole(packets)?))
}

/// `^connection \d+ second (\d+(?:\.\d+)?):.*send window: (\d+).*packets sent: (\d+).*packets lost: (\d+)$`
pub(crate) fn read_server(line: &str) -> Option<(f64, u64, u64, u64)> {
    let (connection, rest) = line.strip_prefix("connection ")?.split_once(" second ")?;
    whole(connection)?;
    let (second, rest) = rest.split_once(':')?;
    let digits = |text: &str| whole(text.split(|c: char| !c.is_ascii_digit()).next()?);
    let (_, window) = rest.rsplit_once("send window: ")?;
    let (_, sent) = rest.rsplit_once("packets sent: ")?;
    let (_, lost) = rest.rsplit_once("packets lost: ")?;
    Some((number(second)?, digits(window)?, digits(sent)?, whole(lost)?))
}

/// Of a line that begins so, what is behind the colon without its last two characters, as a number.
pub(crate) fn read_time(line: &str, beginning: &str) -> Option<f64> {
    let text = line.strip_prefix(beginning)?;
    text.get(..text.len().checked_sub(2)?)?.trim().parse().ok()
}

/// `\d+(?:\.\d+)?`
fn number(text: &str) -> Option<f64> {
    let (whole_part, fraction) = text.split_once('.').unwrap_or((text, "0"));
    whole(whole_part).and(whole(fraction))?;
    text.parse().ok()
}

fn whole(text: &str) -> Option<u64> {
    let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| text.parse().ok()).flatten()
}

#[test]
fn the_patterns_read_the_published_lines_and_no_others() {
    let line = "second 1: 1.635 Gbit/s, bytes received: 204384774, packets received: 163046";
    assert_eq!(read_client(line), Some((1.0, 1.635, "G".to_owned(), 204_384_774, 163_046)));
    let raw = "second 0.1: 319047 bit/s, bytes received: 3988, packets received: 4";
    assert_eq!(read_client(raw), Some((0.1, 319_047.0, String::new(), 3_988, 4)));
    assert_eq!(read_client(&line.replace("1.635", "1.6e3")), None);
    let line = "connection 0 second 1: 1.63 Gbit/s, send window: 207055230, bytes sent: 203943026, \
                packets sent: 162694, packets lost: 0";
    assert_eq!(read_server(line), Some((1.0, 207_055_230, 162_694, 0)));
}
