use super::*;
use crate::crucible::parameter::EngineRole;

fn setting(arg: &str, val: &str, role: EngineRole) -> Setting {
    Setting { arg: arg.to_owned(), val: val.to_owned(), role, id: None, ids: None }
}

fn client(settings: &[(&str, &str)]) -> Result<EngineParameters, String> {
    let settings: Vec<Setting> =
        settings.iter().map(|(arg, val)| setting(arg, val, EngineRole::Client)).collect();
    read_options(&settings, EngineRole::Client, 3, Reading::Strict)
}

fn line(settings: &[(&str, &str)]) -> String {
    let words = client(settings).unwrap().client_words(3);
    let text = |word: &Word| match word {
        Word::Text(text) => text.clone(),
        Word::Address => "HOST".to_owned(),
    };
    words.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn client_words_stand_in_the_originals_order() {
    assert_eq!(line(&[]), "--format k -c HOST -p 30006 -t 10");
    assert_eq!(
        line(&[
            ("bitrate", "5G"),
            ("time", "60"),
            ("protocol", "udp"),
            ("length", "16K"),
            ("omit", "2"),
            ("passthru", "-P4,--bidir"),
            ("ipv", "6"),
        ]),
        "--format k -c HOST -p 30006 --udp --length 16K --omit 2 -P4 --bidir -t 60 --bitrate 5G -6"
    );
    assert_eq!(line(&[("remotehost", "10.0.0.9")]), "--format k -c 10.0.0.9 -p 30006 -t 10");
    assert_eq!(line(&[("passthru", "-t60,-i2")]), "--format k -c HOST -p 30006 -t60 -i2");
    assert_eq!(line(&[("passthru", "--time=60")]), "--format k -c HOST -p 30006 --time=60");
}

#[test]
fn server_words_have_passthru_and_ip_version() {
    let settings = [
        setting("ipv", "6", EngineRole::All),
        setting("passthru", "-V", EngineRole::Server),
        setting("time", "60", EngineRole::Client),
    ];
    let options = read_options(&settings, EngineRole::Server, 12, Reading::Strict).unwrap();
    assert_eq!(options.server_words(12).join(" "), "-s --format k -p 30024 -V -6");
}

#[test]
fn id_and_ids_choose_engines_and_later_ones_count() {
    let mut settings = vec![
        setting("time", "1", EngineRole::All),
        setting("time", "2", EngineRole::Client),
        setting("time", "3", EngineRole::Client),
    ];
    settings[1].id = Some("2".to_owned());
    settings[2].ids = Some(vec!["3".to_owned(), "5-7".to_owned()]);
    let time =
        |role, engine| read_options(&settings, role, engine, Reading::Strict).unwrap().time_s;
    let found: Vec<u64> = (1..=8).map(|engine| time(EngineRole::Client, engine)).collect();
    assert_eq!(found, [1, 2, 3, 1, 3, 3, 3, 1]);
    assert_eq!(time(EngineRole::Server, 2), 1);
}

#[test]
fn interface_name_may_depend_on_the_engine() {
    let ifname = |val: &str| client(&[("ifname", val)]).map(|options| options.ifname.unwrap());
    assert_eq!(ifname("eth0").unwrap(), "eth0");
    assert_eq!(ifname(r#"net%id:{"1":"a","3":"b"}%x"#).unwrap(), "netbx");
    for wrong in [r#"%id:{"1":"a"}%"#, "%id:{", "%id:x%"] {
        assert!(ifname(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn expected_time_counts_steps_of_a_hunt() {
    let expected = |settings: &[(&str, &str)]| client(settings).unwrap().expected_s();
    assert_eq!(expected(&[("time", "60"), ("omit", "2")]), 62);
    assert_eq!(expected(&[("passthru", "-t60,-i2")]), 60);
    assert_eq!(expected(&[("passthru", "--time,30")]), 30);
    let udp = ("protocol", "udp");
    assert_eq!(expected(&[udp, ("bitrate-range", "50M-400M")]), 90);
    assert_eq!(expected(&[udp, ("bitrate-range", "1M-2M")]), 0);
}

#[test]
fn wrong_values_are_refused() {
    let refused = [
        ("time", "10abc"),
        ("time", "999999"),
        ("omit", "601"),
        ("bitrate-range", "400M-50M"),
        ("bitrate-range", "50M-1G"),
        ("bitrate-range", "50M"),
        ("bitrate-range", "M-1M"),
        ("max-loss-pct", "x"),
        ("other", "1"),
        ("bitrate-range", "99999999999M-1M"),
    ];
    for (arg, val) in refused {
        let why = client(&[("protocol", "udp"), (arg, val)]).unwrap_err();
        assert!(why.contains(arg), "{why}");
    }
    assert!(client(&[("bitrate-range", "1M-9M")]).unwrap_err().contains("protocol udp"));
    let settings = [
        setting("protocol", "udp", EngineRole::Client),
        setting("time", "10abc", EngineRole::Client),
        setting("bitrate-range", "50M-1G", EngineRole::Client),
    ];
    assert!(read_options(&settings, EngineRole::Client, 1, Reading::Compat).is_err());
    let settings =
        [&settings[..2], &[setting("bitrate-range", "50M-400G", EngineRole::Client)]].concat();
    let options = read_options(&settings, EngineRole::Client, 1, Reading::Compat).unwrap();
    assert_eq!(
        (options.time_s, options.range),
        (10, Some(Range { low: 50, high: 400, unit: 'M' }))
    );
}

#[test]
fn rules_are_readable_and_bound_at_both_ends() {
    let strict = requirements(Reading::Strict).unwrap();
    let compat = requirements(Reading::Compat).unwrap();
    let both = [
        ("time", "10"),
        ("length", "16K"),
        ("bitrate", "5G"),
        ("bitrate", "0"),
        ("protocol", "udp"),
        ("max-loss-pct", "0.01"),
        ("max-loss-pct", "0"),
        ("cpu-pin", "cpu-numa"),
        ("passthru", "-P,4"),
        ("bitrate-range", "1M-2M"),
        ("ifname", "default-route"),
    ];
    for (arg, val) in both {
        assert_eq!(strict.prepare(arg, val, Reading::Strict).as_deref(), Ok(val), "{arg}");
        assert_eq!(compat.prepare(arg, val, Reading::Compat).as_deref(), Ok(val), "{arg}");
    }
    for (arg, val) in [("time", "10abc"), ("bitrate", "!!"), ("length", "16Kx")] {
        assert!(strict.prepare(arg, val, Reading::Strict).is_err(), "{arg}");
        assert_eq!(compat.prepare(arg, val, Reading::Compat).as_deref(), Ok(val), "{arg}");
    }
    assert!(strict.prepare("cpu-pin", "4,5,6,7", Reading::Strict).is_err());
}

#[test]
fn processors_are_the_last_two_of_the_node() {
    let node = [0, 2, 4, 6];
    assert_eq!(choose_cpus(CpuPin::Numa, EngineRole::Client, &node), node);
    assert_eq!(choose_cpus(CpuPin::CpuNuma, EngineRole::Client, &node), [6]);
    assert_eq!(choose_cpus(CpuPin::CpuNuma, EngineRole::Server, &node), [4]);
    assert!(choose_cpus(CpuPin::CpuNuma, EngineRole::Server, &[3]).is_empty());
}

#[test]
fn addresses_and_interfaces_are_found_in_what_ip_prints() {
    let addresses = r#"[{"ifname":"eth0","addr_info":[{"family":"inet6","local":"fe80::1"},
        {"family":"inet","local":"10.0.0.1"},{"family":"inet","local":"10.0.0.2"}]}]"#;
    assert_eq!(find_address(addresses, false).as_deref(), Some("10.0.0.1"));
    assert_eq!(find_address(addresses, true).as_deref(), Some("fe80::1"));
    let routes = r#"[{"dst":"10.0.0.0/8","dev":"a"},{"dst":"default","dev":"b"}]"#;
    assert_eq!(find_interface(routes, true).as_deref(), Some("b"));
    assert_eq!(find_interface(routes, false).as_deref(), Some("a"));
    for wrong in ["", "[]", "{}", "[{}]", "[1]"] {
        assert_eq!((find_address(wrong, true), find_interface(wrong, true)), (None, None));
    }
}

#[test]
fn listener_is_found_in_the_kernels_table() {
    let table = "  sl  local_address rem_address   st\n   0: 0100007F:7532 00000000:0000 0A 00000000\n\
                    1: 0100007F:7534 0100007F:C001 01 00000000\n";
    assert!(listens(table, 30_002));
    assert!(!listens(table, 30_004) && !listens(table, 1) && !listens("", 30_002));
}
