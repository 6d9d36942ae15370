//! What can be written, what it means, and what is refused.

use super::*;

fn parse(text: &str) -> Result<Link, LinkError> {
    Link::parse(text, |name| Err(format!("no file {name}")))
}

#[test]
fn a_description_means_what_it_says() {
    let link = parse(
        "
        name = 'all'
        seed = 9
        mtu = 9000
        [to_right]
        delay = '20ms'
        jitter = '2ms'
        distribution = 'normal'
        loss = '1%'
        losses_in_a_row_max = 3
        burst_loss = { enter = 0.01, leave = '25%', loss_bad = 0.9 }
        reorder = { share = '2%', by = '5ms' }
        duplicate = 0.5
        corrupt = { bit_error_rate = 1e-6, repair_checksums = true, least_packet = 1000 }
        rate = '20Mbit/s'
        queue = '25 packets'
        mark_at = '10 packets'
        ",
    )
    .unwrap();
    assert_eq!((link.seed, link.mtu_bytes, link.to_left), (9, 9000, Direction::default()));
    let jitter =
        Jitter { width_ns: 2_000_000, distribution: Distribution::Normal, may_reorder: false };
    let expected = Direction {
        delay_ns: 20_000_000,
        jitter: Some(jitter),
        loss: 0.01,
        losses_in_a_row_max: Some(3),
        burst_loss: Some(BurstLoss { enter: 0.01, leave: 0.25, loss_good: 0.0, loss_bad: 0.9 }),
        reorder: Some(Reorder { share: 0.02, by_ns: 5_000_000 }),
        duplicate: 0.5,
        corrupt: Some(Corruption {
            bit_error_rate: Some(1e-6),
            packets: None,
            repair_checksums: true,
            least_packet_bytes: 1000,
        }),
        rate_bps: Some(20_000_000),
        queue: Some(Amount::Packets(25)),
        mark_at: Some(Amount::Packets(10)),
    };
    assert_eq!(link.to_right, expected);
}

#[test]
fn changes_build_upon_each_other_in_order_of_time_and_may_stand_in_a_file() {
    let text = "
        changes_from = 'more.toml'
        [both]
        delay = '5ms'
        rate = '1Mbit/s'
        [[change]]
        at = '3s'
        to_left = { off = ['rate'] }
    ";
    let more = "[[change]]\nat = '1s'\nboth.delay = '7ms'";
    let link = Link::parse(text, |name| {
        assert_eq!(name, "more.toml");
        Ok(more.to_owned())
    })
    .unwrap();
    let times: Vec<u64> = link.changes.iter().map(|change| change.at_ns).collect();
    assert_eq!(times, [1_000_000_000, 3_000_000_000]);
    assert_eq!(link.changes[0].to_right.as_ref().unwrap().rate_bps, Some(1_000_000));
    assert_eq!(link.changes[1].to_right, None);
    let last = link.changes[1].to_left.as_ref().unwrap();
    assert_eq!((last.delay_ns, last.rate_bps, last.queue), (7_000_000, None, None));
    assert!(parse(text).unwrap_err().to_string().contains("no file more.toml"));
}

#[test]
fn invalid_link_is_refused_with_the_fields_name() {
    for (text, sentence) in [
        ("x = 1", "unknown field `x`"),
        ("[both]\nspeed = 1", "unknown field `speed`"),
        ("both.delay = '5'\nto_left.delay = '5'", "either [both]"),
        ("both.delay = '61s'", "to_right.delay: 61.0 s is out of range"),
        ("both.delay = '-1s'", "both.delay: \"-1s\" is negative"),
        ("both.jitter = '1ms'", "to_right.jitter: 1.00 ms is more than the delay of 0 ns"),
        ("both.distribution = 'normal'", "there is no jitter"),
        ("both.distribution = 'even'", "unknown variant `even`"),
        ("both.loss = '101%'", "both.loss: \"101%\" is no share"),
        ("both.loss = nan", "finite"),
        ("both.losses_in_a_row_max = 3", "there is no loss"),
        ("both.burst_loss = { enter = 0.1, leave = 0 }", "never leave the bad state"),
        ("both.reorder = { share = 0.1, by = '0s' }", "reorder.by: 0 ns is out of range"),
        ("both.corrupt = {}", "either bit_error_rate or packets"),
        ("both.corrupt = { packets = 0.1, bit_error_rate = 0.1 }", "either bit_error_rate"),
        ("both.queue = '5 packets'", "nothing ever waits without a rate"),
        ("both.mark_at = '5 packets'", "nothing ever waits without a rate"),
        ("both.rate = '1bit/s'", "rate: 1 bit/s is out of range"),
        ("both.rate = '1M'\nboth.queue = 0", "queue: 0 B is out of range"),
        ("both.rate = '1M'\nboth.queue = '5 packs'", "a number of packets"),
        (
            "[both]\nrate = '1M'\nqueue = '5 packets'\nmark_at = '5 packets'",
            "nothing would ever be marked",
        ),
        ("[both]\nrate = '1T'\ndelay = '1s'", "more in flight"),
        ("mtu = 1000", "mtu: 1000 B is out of range: 1280 B to 65535 B"),
        ("[[change]]\nat = '1s'", "changes nothing"),
        ("[[change]]\nat = '0s'\nboth.delay = '1s'", "change.at: 0 ns is out of range"),
        (
            "[[change]]\nat = '1s'\nboth.delay = '1s'\n[[change]]\nat = '1s'\nto_left.loss = 1",
            "two changes of one direction at one time",
        ),
        ("[[change]]\nat = '1s'\nboth.queue = '1kB'", "change at 1.00 s: to_right.queue"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(sentence), "{text}: {error}");
    }
}

#[test]
fn every_profile_makes_sense() {
    for Profile { name, .. } in PROFILES {
        let link = profile(name).unwrap();
        assert_eq!(link.name.as_deref(), Some(name));
        // Its document reads back.
        let text = serde_json::to_string(&link).unwrap();
        assert_eq!(serde_json::from_str::<Link>(&text).unwrap(), link);
    }
    let geo = profile("geo").unwrap();
    assert_eq!(geo.to_right.delay_ns + geo.to_left.delay_ns, 580_000_000);
    assert_eq!(geo.to_left.rate_bps, Some(20_000_000));
}

#[test]
fn long_texts_are_refused() {
    let text = " ".repeat(limits::TEXT_BYTES + 1);
    assert!(parse(&text).unwrap_err().to_string().contains("longer than"));
}
