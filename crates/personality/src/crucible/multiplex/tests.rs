//! The specification's examples, and iterations against an independent reading of the rules.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::fault::Kind;
use super::super::mv_params::{parse_mv_params, read_mv_params};
use super::super::parameter::render_iterations;
use super::super::quirk::Reading;
use super::super::requirements::{Requirements, parse_requirements};
use super::multiplex;

/// Iterations as lists of `arg=val`, with `/role` where it isn't the client.
fn expand(matrix: &Value, requirements: &Value, reading: Reading) -> Result<Vec<String>, Kind> {
    let matrix = parse_mv_params(&matrix.to_string()).map_err(|fault| fault.kind)?;
    let requirements = match requirements {
        Value::Null => Requirements::default(),
        some => parse_requirements(&some.to_string()).map_err(|fault| fault.kind)?,
    };
    let iterations = multiplex(&matrix, &requirements, reading).map_err(|fault| fault.kind)?;
    let text = |iteration: &Vec<super::Setting>| {
        let settings = iteration.iter().map(|setting| match setting.role.word() {
            "client" => format!("{}={}", setting.arg, setting.val),
            role => format!("{}={}/{role}", setting.arg, setting.val),
        });
        settings.collect::<Vec<_>>().join(" ")
    };
    Ok(iterations.iter().map(text).collect())
}

/// Expands in both ways, which must agree: the example needs no quirk.
fn expand_alike(matrix: &Value, requirements: &Value) -> Vec<String> {
    let strict = expand(matrix, requirements, Reading::Strict).unwrap();
    assert_eq!(strict, expand(matrix, requirements, Reading::Compat).unwrap());
    strict
}

fn seed() -> Value {
    json!({
        "global-options": [{"name": "common", "params": [
            {"arg": "time", "vals": ["10"]},
            {"arg": "protocol", "vals": ["tcp", "udp"]},
            {"arg": "ifname", "vals": ["eth0"], "role": "server"},
        ]}],
        "sets": [
            {"include": "common", "params": [
                {"arg": "length", "vals": ["16K"]}, {"arg": "bitrate", "vals": ["5G"]}]},
            {"include": "common", "params": [
                {"arg": "length", "vals": ["16K"]}, {"arg": "bitrate", "vals": ["5G"]},
                {"arg": "passthru", "vals": ["--reverse"]}]},
            {"include": ["common"], "params": [
                {"arg": "protocol", "vals": ["udp"]},
                {"arg": "bitrate-range", "vals": ["50M-400M"]}, {"arg": "length", "vals": ["64"]}]},
        ]
    })
}

#[test]
fn seed_document_has_five_iterations_and_replaces_protocol_in_place() {
    assert_eq!(
        expand_alike(&seed(), &Value::Null),
        [
            "time=10 protocol=tcp ifname=eth0/server length=16K bitrate=5G",
            "time=10 protocol=udp ifname=eth0/server length=16K bitrate=5G",
            "time=10 protocol=tcp ifname=eth0/server length=16K bitrate=5G passthru=--reverse",
            "time=10 protocol=udp ifname=eth0/server length=16K bitrate=5G passthru=--reverse",
            "time=10 protocol=udp ifname=eth0/server bitrate-range=50M-400M length=64",
        ]
    );
}

#[test]
fn first_include_beats_the_second_and_includes_beat_the_preset() {
    let matrix = json!({
        "global-options": [
            {"name": "a", "params": [{"arg": "x", "vals": ["a"]}, {"arg": "y", "vals": ["a"]}]},
            {"name": "b", "params": [{"arg": "x", "vals": ["b"]}, {"arg": "z", "vals": ["b"]}]},
        ],
        "sets": [{"include": ["a", "b"], "include-preset": "p",
                  "params": [{"arg": "y", "vals": ["own"]}]}],
    });
    let requirements = json!({"validations": {}, "presets": {"p": [
        {"arg": "z", "vals": ["p"]}, {"arg": "w", "vals": ["p"]}]}});
    assert_eq!(expand_alike(&matrix, &requirements), ["x=a y=own z=b w=p"]);
}

#[test]
fn set_with_include_may_lack_params() {
    let matrix = json!({
        "global-options": [{"name": "a", "params": [{"arg": "x", "vals": ["1", "2"]}]}],
        "sets": [{"include": "a"}],
    });
    assert_eq!(expand_alike(&matrix, &Value::Null), ["x=1", "x=2"]);
}

#[test]
fn role_and_id_make_parameters_differ() {
    let matrix = json!({"sets": [{"params": [
        {"arg": "x", "vals": ["1"]}, {"arg": "x", "vals": ["2"], "role": "server"},
        {"arg": "x", "vals": ["3"], "id": "1"}, {"arg": "x", "vals": ["4"], "id": "2"}]}]});
    assert_eq!(expand_alike(&matrix, &Value::Null), ["x=3 x=2/server x=4"]);
}

#[test]
fn disabled_sets_and_parameters_are_left_out() {
    let matrix = json!({"sets": [
        {"enabled": "no", "params": [{"arg": "x", "vals": ["1"]}]},
        {"enabled": "yes", "params": [
            {"arg": "x", "vals": ["2"], "enabled": "no"}, {"arg": "y", "vals": ["3"]}]}]});
    assert_eq!(expand_alike(&matrix, &Value::Null), ["y=3"]);
}

#[test]
fn defaults_are_for_empty_sets_and_no_sets_is_one_empty_set() {
    let requirements = json!({"validations": {}, "presets": {
        "defaults": [{"arg": "x", "vals": ["1", "2"]}],
        "essentials": [{"arg": "e", "vals": ["9"]}]}});
    assert_eq!(expand_alike(&json!({}), &requirements), ["x=1 e=9", "x=2 e=9"]);
    let matrix = json!({"sets": [{"params": []}, {"params": [{"arg": "y", "vals": ["3"]}]}]});
    assert_eq!(expand_alike(&matrix, &requirements), ["x=1 e=9", "x=2 e=9", "y=3 e=9"]);
    let empty = expand(&json!({"sets": []}), &Value::Null, Reading::Strict);
    assert_eq!(empty, Err(Kind::EmptySet));
}

fn essentials() -> Value {
    json!({"validations": {}, "presets": {"essentials": [
        {"arg": "bs", "vals": ["1K"]}, {"arg": "duration", "vals": ["60"]}]}})
}

/// Needs the quirk `essentials-used-up`.
#[test]
fn compat_gives_a_replacing_essential_to_the_first_set_only() {
    let bs = json!({"params": [{"arg": "bs", "vals": ["4K"]}]});
    let rw = json!({"params": [{"arg": "rw", "vals": ["write"]}]});
    let forth = json!({"sets": [bs, rw]});
    let back = json!({"sets": [rw, bs]});
    let expand = |matrix, reading| expand(matrix, &essentials(), reading).unwrap();
    assert_eq!(expand(&forth, Reading::Compat), ["bs=1K duration=60", "rw=write duration=60"]);
    assert_eq!(expand(&back, Reading::Compat), ["rw=write bs=1K duration=60", "bs=1K duration=60"]);
    assert_eq!(
        expand(&forth, Reading::Strict),
        ["bs=1K duration=60", "rw=write bs=1K duration=60"]
    );
}

#[test]
fn essential_replaces_without_a_look_at_the_role() {
    let matrix = json!({"sets": [{"params": [
        {"arg": "a", "vals": ["1"]}, {"arg": "bs", "vals": ["4K"], "role": "server"}]}]});
    assert_eq!(expand_alike(&matrix, &essentials()), ["a=1 bs=1K duration=60"]);
}

#[test]
fn values_are_validated_converted_and_transformed() {
    let requirements = json!({
        "validations": {
            "size": {"args": ["bs"], "vals": ["^[1-9][0-9]*[BKM]?$", "^[1-9][0-9]*-[1-9][0-9]*$"],
                "convert": "K", "transform": {"search": "^([1-9][0-9]*).$", "replace": "\\1KiB"}},
            "plain": {"args": ["n"], "vals": "^16K$", "convert": ""},
        },
        "units": {"size": {"K": {"": "1/1024", "B": "1/1024", "K": "1", "M": "1024"}},
                  "plain": {"": {"K": "1024"}}},
    });
    let one = |arg: &str, val: &str, reading| {
        expand(
            &json!({"sets": [{"params": [{"arg": arg, "vals": [val]}]}]}),
            &requirements,
            reading,
        )
    };
    let both = |arg: &str, val: &str| {
        let strict = one(arg, val, Reading::Strict).unwrap();
        assert_eq!(Ok(&strict), one(arg, val, Reading::Compat).as_ref());
        strict
    };
    assert_eq!(both("bs", "2048B"), ["bs=2KiB"]);
    assert_eq!(both("bs", "1M"), ["bs=1024KiB"]);
    assert_eq!(both("bs", "3000"), ["bs=2.9296875K"]);
    assert_eq!(both("bs", "1024-2048"), ["bs=1K-2K"]);
    assert_eq!(both("n", "16K"), ["n=16384"]);
    assert_eq!(one("bs", "x", Reading::Compat), Err(Kind::Value));
    assert_eq!(one("other", "1", Reading::Compat), Err(Kind::Value));
}

/// Needs the quirk `prefix-value`.
#[test]
fn compat_takes_values_that_match_by_their_beginning() {
    let requirements = json!({"validations": {
        "whole": {"args": ["time", "length"], "vals": "[1-9][0-9]*"},
        "bitrate": {"args": ["bitrate"], "vals": "[0-9]*[GMK]*"}}});
    let one = |arg: &str, val: &str, reading| {
        expand(
            &json!({"sets": [{"params": [{"arg": arg, "vals": [val]}]}]}),
            &requirements,
            reading,
        )
    };
    for (arg, val) in [("time", "10abc"), ("bitrate", "!!")] {
        assert_eq!(one(arg, val, Reading::Strict), Err(Kind::Value), "{arg}");
        assert_eq!(one(arg, val, Reading::Compat), Ok(vec![format!("{arg}={val}")]));
    }
    assert_eq!(one("length", "16K", Reading::Strict), Ok(vec!["length=16K".to_owned()]));
    assert_eq!(one("time", "x10", Reading::Compat), Err(Kind::Value));
}

/// Needs the quirks `unknown-include`, `unknown-preset` and `include-without-groups`.
#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    let own = json!([{"arg": "x", "vals": ["1"]}]);
    let groups = json!([{"name": "a", "params": [{"arg": "y", "vals": ["1"]}]}]);
    let include = json!({"global-options": groups, "sets": [{"include": "b", "params": own}]});
    let preset = json!({"sets": [{"include-preset": "p", "params": own}]});
    let without = json!({"sets": [{"include": "b", "params": own}]});
    for matrix in [&include, &preset, &without] {
        let read = read_mv_params(matrix).unwrap();
        let fault = multiplex(&read, &Requirements::default(), Reading::Strict).unwrap_err();
        assert_eq!(fault.kind, Kind::Input);
        assert!(fault.text.contains("--compat"), "{fault}");
    }
    for matrix in [&include, &preset] {
        assert_eq!(expand(matrix, &Value::Null, Reading::Compat), Ok(vec!["x=1".to_owned()]));
    }
    assert_eq!(expand(&without, &Value::Null, Reading::Compat), Err(Kind::Input));
}

/// Needs the quirk `ids-not-compared`.
#[test]
fn ids_make_parameters_differ() {
    let matrix = json!({"sets": [{"params": [
        {"arg": "x", "vals": ["1"], "ids": ["1-2"]}, {"arg": "x", "vals": ["2"], "ids": ["3"]}]}]});
    let expand = |reading| expand(&matrix, &Value::Null, reading).unwrap();
    assert_eq!(expand(Reading::Strict), ["x=1 x=2"]);
    assert_eq!(expand(Reading::Compat), ["x=2"]);
}

/// Needs the quirk `empty-iteration`.
#[test]
fn set_whose_defaults_are_disabled_is_refused() {
    let requirements = json!({"validations": {}, "presets": {
        "defaults": [{"arg": "x", "vals": ["1"], "enabled": "no"}]}});
    let expand = |reading| expand(&json!({}), &requirements, reading);
    assert_eq!(expand(Reading::Strict), Err(Kind::EmptySet));
    assert_eq!(expand(Reading::Compat), Ok(vec![String::new()]));
}

#[test]
fn iterations_are_printed_as_the_original_prints_them() {
    let matrix = json!({"sets": [{"params": [
        {"arg": "a", "vals": ["ä\"\u{1F600}"], "id": "2"},
        {"arg": "b", "vals": ["1"], "role": "all", "ids": ["1", "2-3"]}]}]});
    let read = read_mv_params(&matrix).unwrap();
    let iterations = multiplex(&read, &Requirements::default(), Reading::Strict).unwrap();
    let expected = r#"[
    [
        {
            "arg": "a",
            "id": "2",
            "role": "client",
            "val": "\u00e4\"\ud83d\ude00"
        },
        {
            "arg": "b",
            "ids": [
                "1",
                "2-3"
            ],
            "role": "all",
            "val": "1"
        }
    ]
]"#;
    assert_eq!(render_iterations(&iterations), expected);
    assert_eq!(render_iterations(&[]), "[]");
}

#[test]
fn wrong_documents_are_refused_with_their_place() {
    let refused = [
        (json!([]), "the matrix"),
        (json!({"other": 1}), "unknown key \"other\""),
        (json!({"schema": {"version": "2020"}}), "schema.version"),
        (json!({"sets": [{"params": [{"arg": "x", "vals": [10]}]}]}), "sets[0].params[0].vals[0]"),
        (json!({"sets": [{"params": [{"arg": "x", "vals": []}]}]}), "vals is empty"),
        (json!({"sets": [{"params": [{"arg": "x", "val": "1"}]}]}), "unknown key \"val\""),
        (json!({"sets": [{"params": [{"arg": "", "vals": ["1"]}]}]}), "arg is empty"),
        (json!({"sets": [{"params": [{"arg": "x", "vals": ["1", "1"]}]}]}), "twice"),
        (json!({"sets": [{}, {}]}), "sets[1] stands there twice"),
        (json!({"sets": [{"include": []}]}), "sets[0].include is empty"),
        (json!({"sets": [{"enabled": "No"}]}), "one of yes, no"),
        (json!({"sets": [{"params": [{"arg": "x", "vals": ["1"], "id": "01"}]}]}), "id is"),
        (json!({"sets": [{"params": [{"arg": "x", "vals": ["1"], "ids": ["1,2"]}]}]}), "ids[0]"),
        (json!({"global-options": [{"name": "a", "params": []}]}), "params is empty"),
    ];
    for (matrix, part) in refused {
        let fault = parse_mv_params(&matrix.to_string()).unwrap_err();
        assert_eq!(fault.kind, Kind::Input);
        assert!(fault.text.contains(part), "{fault}");
    }
    assert_eq!(parse_mv_params("{").unwrap_err().kind, Kind::Unreadable);
    assert_eq!(parse_requirements("{").unwrap_err().kind, Kind::UnreadableRequirements);
    let rules = json!({"validations": {"g": {"args": ["x"]}}}).to_string();
    assert_eq!(parse_requirements(&rules).unwrap_err().kind, Kind::Requirements);
}

#[test]
fn matrix_with_too_many_iterations_is_refused() {
    let vals: Vec<String> = (0..1000).map(|val| val.to_string()).collect();
    let params: Vec<Value> = ["a", "b", "c", "d", "e", "f", "g"]
        .iter()
        .map(|arg| json!({"arg": arg, "vals": vals}))
        .collect();
    let matrix = json!({"sets": [{"params": params}]});
    assert_eq!(expand(&matrix, &Value::Null, Reading::Strict), Err(Kind::Input));
}

/// A parameter of a random matrix, as indices into short lists of names.
type Drawn = (usize, usize, Vec<u8>, bool);

const ARGS: [&str; 4] = ["a", "b", "c", "d"];
const ROLES: [&str; 3] = ["client", "server", "all"];

fn drawn() -> impl Strategy<Value = Drawn> {
    let vals = proptest::collection::btree_set(0_u8..5, 1..4)
        .prop_map(|vals| vals.into_iter().collect::<Vec<_>>());
    (0..ARGS.len(), 0..ROLES.len(), vals, proptest::bool::weighted(0.8))
}

fn drawn_list() -> impl Strategy<Value = Vec<Drawn>> {
    proptest::collection::vec(drawn(), 1..4).prop_map(|mut list| {
        let mut seen = Vec::new();
        list.retain(|param| {
            let is_new = !seen.contains(param);
            seen.push(param.clone());
            is_new
        });
        list
    })
}

fn document((arg, role, vals, is_enabled): &Drawn) -> Value {
    let vals: Vec<String> = vals.iter().map(u8::to_string).collect();
    let enabled = if *is_enabled { "yes" } else { "no" };
    json!({"arg": ARGS[*arg], "role": ROLES[*role], "vals": vals, "enabled": enabled})
}

/// The rules read anew, with positions in a table of (argument, role): each layer writes where it may.
fn independent(layers: &[(bool, &Vec<Drawn>)]) -> Vec<String> {
    let mut order: Vec<(usize, usize)> = Vec::new();
    let mut table: std::collections::HashMap<(usize, usize), Vec<u8>> = Default::default();
    for (overwrites, layer) in layers {
        for (arg, role, vals, _) in layer.iter().filter(|(_, _, _, is_enabled)| *is_enabled) {
            let key = (*arg, *role);
            if !order.contains(&key) {
                order.push(key);
                table.insert(key, vals.clone());
            } else if *overwrites {
                table.insert(key, vals.clone());
            }
        }
    }
    let mut lines = vec![Vec::new()];
    for key in &order {
        let word = |val: &u8| match ROLES[key.1] {
            "client" => format!("{}={val}", ARGS[key.0]),
            role => format!("{}={val}/{role}", ARGS[key.0]),
        };
        lines = lines
            .iter()
            .flat_map(|line: &Vec<String>| {
                table[key].iter().map(move |val| [line.clone(), vec![word(val)]].concat())
            })
            .collect();
    }
    lines.iter().map(|line| line.join(" ")).collect()
}

proptest! {
    #[test]
    fn iterations_are_those_of_an_independent_reading(
        first in drawn_list(), second in drawn_list(), preset in drawn_list(), own in drawn_list(),
        includes in proptest::collection::vec(any::<bool>(), 0..3), takes_preset in any::<bool>(),
    ) {
        let documents = |list: &Vec<Drawn>| list.iter().map(document).collect::<Vec<_>>();
        let mut names: Vec<&str> = includes.iter().map(|first| if *first { "one" } else { "two" }).collect();
        names.dedup();
        prop_assume!(names.len() < 3);
        let mut set = json!({"params": documents(&own)});
        if !names.is_empty() {
            set["include"] = json!(names);
        }
        if takes_preset {
            set["include-preset"] = json!("p");
        }
        let matrix = json!({"global-options": [
            {"name": "one", "params": documents(&first)}, {"name": "two", "params": documents(&second)}],
            "sets": [set]});
        let requirements = json!({"validations": {}, "presets": {"p": documents(&preset)}});
        let mut layers: Vec<(bool, &Vec<Drawn>)> =
            names.iter().map(|name| (false, if *name == "one" { &first } else { &second })).collect();
        if takes_preset {
            layers.push((false, &preset));
        }
        layers.push((true, &own));
        let expected = independent(&layers);
        match expand(&matrix, &requirements, Reading::Strict) {
            Ok(iterations) => prop_assert_eq!(iterations, expected),
            Err(kind) => {
                prop_assert_eq!(kind, Kind::EmptySet);
                prop_assert_eq!(expected, vec![String::new()]);
            }
        }
    }

    #[test]
    fn units_are_those_of_an_independent_reading(number in 1_u64..1_000_000, unit in 0_usize..4) {
        let (unit, shift) = [("B", 0_u32), ("K", 10), ("M", 20), ("G", 30)][unit];
        let requirements = json!({
            "validations": {"s": {"args": ["x"], "vals": "^[0-9]+[BKMG]$", "convert": "M"}},
            "units": {"s": {"M": {
                "B": "1/1024/1024", "K": "1/1024", "M": "1", "G": "1024"}}}});
        let val = format!("{number}{unit}");
        let matrix = json!({"sets": [{"params": [{"arg": "x", "vals": [val]}]}]});
        let found = expand(&matrix, &requirements, Reading::Strict).unwrap();
        let bytes = u128::from(number) << shift;
        let text = found[0].strip_prefix("x=").unwrap().strip_suffix('M').unwrap();
        // Division by a power of two is exact.
        prop_assert_eq!(text.parse::<f64>().unwrap() * 1_048_576.0, bytes as f64);
        prop_assert_eq!(text.contains(['.', 'e']), bytes % 1_048_576 != 0);
    }
}
