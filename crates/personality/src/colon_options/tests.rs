use super::*;

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn an_option_has_any_first_character_and_any_case() {
    let words = words("-Up:1 /DOWN:2 xrun:3 --port:4 -port=5 -port 6 -port: é:7 -é:8");
    let options = ColonOptions::new(&words);
    assert_eq!(options.value("up"), Some("1"));
    assert_eq!(options.value("down"), Some("2"));
    assert_eq!(options.value("run"), Some("3"));
    assert_eq!(
        options.value("port"),
        None,
        "two dashes, a space, '=' and an empty value are not it"
    );
    assert_eq!(options.value(""), Some("7"));
}

#[test]
fn the_first_of_a_name_wins() {
    let words = words("-up:1 -up:2 -x:a:b");
    let options = ColonOptions::new(&words);
    assert_eq!(options.value("up"), Some("1"));
    assert_eq!(options.value("x"), Some("a:b"));
    assert_eq!(options.value_of_first(&["no", "x", "up"]), Some("a:b"));
    assert_eq!(options.value_of_last(&["up", "x", "no"]), Some("a:b"));
}

#[test]
fn a_flag_stands_alone() {
    let words = words("-trimOUT -help:1 ?");
    let options = ColonOptions::new(&words);
    assert!(options.flag("trimout"));
    assert!(!options.flag("help"));
    assert!(!options.flag("?"), "a word's first character is not looked at");
}

#[test]
fn units_are_the_originals() {
    let quantity = |text| {
        let Quantity { value, is_time } = parse_quantity(text, 4);
        (value, is_time)
    };
    for (text, meaning) in [
        ("12", (12, false)),
        ("12s", (12_000_000, true)),
        ("12S", (12_000_000, true)),
        ("3ms", (3000, true)),
        ("3us", (3, true)),
        ("2m", (120_000_000, true)),
        ("5gb", (5_000_000_000, false)),
        ("5GB", (5_000_000_000, false)),
        ("5mb", (5_000_000, false)),
        ("5kb", (5000, false)),
        ("7b", (7, false)),
        ("2cpu", (8, false)),
        ("1h", (1, false)),
        ("10k", (10, false)),
        ("1.5s", (1_000_000, true)),
        ("junk", (0, false)),
        ("s", (0, false)),
        ("-5", (0, false)),
        ("5é", (5, false)),
        ("99999999999999999999gb", (u64::MAX, false)),
    ] {
        assert_eq!(quantity(text), meaning, "{text}");
    }
}

#[test]
fn numbers_are_read_as_c_reads_them() {
    assert_eq!(parse_leading(" +12x"), 12);
    assert_eq!(parse_leading("-12"), -12);
    assert_eq!(parse_leading("x"), 0);
    assert_eq!((parse_u8("256"), parse_u8("-1"), parse_u16("65537")), (0, 255, 1));
    assert_eq!((parse_u32("4294967296"), parse_u32("-1")), (u32::MAX, 0));
}

#[test]
fn an_enumerated_value_is_known_by_its_start() {
    assert!(means("MAXTPUTxyz", "maxtput"));
    assert!(!means("max", "maxtput"));
    assert!(!means("é", "x"));
}
