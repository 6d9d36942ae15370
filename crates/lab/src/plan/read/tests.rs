use linerate_measure::hunt::{Goal, Limits, Method, RateUnit};
use linerate_measure::matrix::Iteration;
use linerate_measure::{Direction, Transport, Workload};

use super::*;
use crate::plan::{Fault, HUNT, Known, Pair, Point, Prepared, Ready, Search, TaskSpec, Word, Work};

/// Workloads of the tests: `flood` and `ask`, whose `rate` is a number of M up to 100.
struct Stand;

impl Workloads for Stand {
    fn names(&self) -> Vec<String> {
        ["flood", "ask"].map(str::to_owned).to_vec()
    }

    fn parameters(&self, _: &str) -> Vec<String> {
        ["protocol", "rate", "time", "flow_count", "server.cpu"].map(str::to_owned).to_vec()
    }

    fn prepare(&self, workload: &str, iteration: &Iteration) -> Result<Prepared, Fault> {
        let rate = iteration.value("rate").unwrap_or("1M");
        let number = rate.strip_suffix('M').and_then(|number| number.parse().ok());
        if number.is_none_or(|number: u32| number > 100) {
            let (parameter, why) =
                (Some("rate".to_owned()), format!("is {rate}: write 1M to 100M"));
            return Err(Fault { parameter, why });
        }
        let words: Vec<Word> = vec![workload.into(), Known::Address.into(), Known::Port.into()];
        let task = TaskSpec::new(words, Ready::AtOnce);
        Ok(Prepared {
            search: (workload == HUNT).then(|| Box::new(search(&task))),
            work: Work { server: task.clone(), client: task },
            expected_ns: 10_000_000_000,
            longest_ns: None,
            figures: ["goodput_bps", "loss_ratio"].map(str::to_owned).to_vec(),
            needs_port: workload == "ask",
        })
    }
}

fn search(task: &TaskSpec) -> Search {
    let goal = Goal {
        method: Method::Sequential,
        unit: RateUnit::BitsPerSecond,
        low: 1,
        high: 9,
        step: 1,
        per_item: 1,
        limits: Limits::default(),
        trial_ns: 1,
    };
    let workload = Workload::stream(Direction::Up, Transport::Udp);
    Search { goal, workload, trial: task.clone() }
}

#[test]
fn hunts_of_several_pairs_are_searched_in_lockstep() {
    let text = "[[hunt]]\nrate = \"1M\"\n[[cells]]\nworkload = \"flood\"";
    let searches = |plan: &Plan| -> Vec<bool> {
        plan.points.iter().map(|point| point.search.is_some()).collect()
    };
    assert_eq!(searches(&toml(text).unwrap()), [false, false]);
    let two = toml(&format!("[topology]\nscale_up = 2\n{text}")).unwrap();
    assert_eq!((two.pairs.len(), searches(&two)), (2, vec![false, true]));
    let frozen = serde_json::to_string(&two).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&frozen).unwrap(), two);
}

fn toml(text: &str) -> Result<Plan, PlanError> {
    read_plan(text, Notation::Toml, &Stand)
}

const WHOLE: &str = r#"
schema = "linerate.matrix/1"
title = "two hosts"
tags = { mtu = 1500, lab = "b" }
[hosts]
b = { transport = "ssh", address = "me@10.0.0.2", sudo = true, ssh_options = ["-p", "2222"] }
a = { transport = "netns", namespace = "left", data_address = "10.1.0.1" }
[topology]
kind = "internode"
hosts = ["b", "a"]
scale_up = 2
[schedule]
samples = 5
order = "iteration"
seed = 7
max_failures = 3
budget = "2h"
on_host_loss = "continue"
confidence = 0.95
[collect]
hz = 2
sources = ["cpu", "net"]
[[cells]]
workload = "flood"
protocol = ["tcp", "udp"]
rate = ["1M", "5M"]
flow-count = 1
server = { cpu = "0" }
exclude = [{ protocol = "udp", rate = "5M" }]
thresholds = ["goodput_bps >= 0.95 * rate", "loss_ratio <= 0.1% abort"]
[[cells]]
workload = "ask"
"#;

#[test]
fn a_whole_plan_is_frozen() {
    let plan = toml(WHOLE).unwrap();
    let points: Vec<String> = plan.points.iter().map(Point::describe).collect();
    let rest = "flow_count=1 server.cpu=0";
    assert_eq!(
        points,
        [
            format!("flood protocol=tcp rate=1M {rest}"),
            format!("flood protocol=tcp rate=5M {rest}"),
            format!("flood protocol=udp rate=1M {rest}"),
            "ask".to_owned(),
        ]
    );
    let pair = |number, port| Pair {
        number,
        client: "b".into(),
        server: "a".into(),
        address: "10.1.0.1".into(),
        port,
    };
    assert_eq!(plan.pairs, [pair(1, 20_000), pair(2, 20_001)]);
    assert_eq!(plan.schedule.samples, 5);
    assert_eq!(plan.schedule.budget_ns, Some(7_200_000_000_000));
    assert!(plan.schedule.with_confidence);
    assert_eq!(plan.tags.get("mtu").map(String::as_str), Some("1500"));
    assert_eq!(plan.round_ns(), 40_000_000_000);
    // What is frozen reads back.
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

#[test]
fn json_and_toml_give_one_plan() {
    let json = r#"{"cells":[{"workload":"flood","rate":["1M","2M"],"protocol":["tcp","udp"]}]}"#;
    let written =
        "[[cells]]\nworkload = \"flood\"\nrate = [\"1M\", \"2M\"]\nprotocol = [\"tcp\", \"udp\"]\n";
    let plan = toml(written).unwrap();
    assert_eq!(read_plan(json, Notation::Json, &Stand).unwrap(), plan);
    // The order of the axes is the order in which they were written.
    let points: Vec<String> = plan.points.iter().map(Point::describe).collect();
    assert_eq!(points[1], "flood rate=1M protocol=udp");
    assert_eq!(plan.pairs[0].address, "127.0.0.1");
    assert_eq!(plan.pairs[0].port, 0);
}

/// Faults in a part of a plan, and how the sentence about each begins.
fn assert_faults(before: &str, faults: &[(&str, &str)]) {
    for (text, sentence) in faults {
        let error = toml(&format!("{before}\n{text}")).unwrap_err().to_string();
        assert!(error.starts_with(sentence), "{text}\n  gives    {error}\n  expected {sentence}");
    }
}

#[test]
fn faults_of_the_top_are_named() {
    assert_faults(
        "",
        &[
            ("schema = \"linerate.matrix/2\"", "schema is linerate.matrix/2: this program reads"),
            ("shedule = 1\n[[cells]]\nworkload = \"ask\"", "shedule is unknown: write schedule"),
            ("tags = { a = [1] }\n[[cells]]\nworkload = \"ask\"", "tags.a is a list or a table"),
            ("title = [1]", "title is a list or a table: give one value"),
            ("title =", "the plan can't be read: "),
            ("title = 1\ntitle = 2", "the plan can't be read: "),
            ("", "cells has nothing to measure"),
            ("cells = []\nhunt = []", "cells has nothing to measure"),
        ],
    );
    let twice = r#"{"title":"a","title":"b"}"#;
    let error = read_plan(twice, Notation::Json, &Stand).unwrap_err().to_string();
    assert!(error.starts_with("the plan can't be read: title is given twice"), "{error}");
    let long = " ".repeat(TEXT_BYTES_MAX + 1);
    assert!(toml(&long).unwrap_err().to_string().starts_with("the plan is longer than"));
}

#[test]
fn hunts_are_points_behind_the_cells() {
    let plan = toml(
        "[[hunt]]\nrate = [\"1M\", \"2M\"]\nthresholds = [\"goodput_bps >= 1\"]\n\
         [[hunt]]\nprotocol = \"quic\"\n[[cells]]\nworkload = \"flood\"",
    );
    let plan = plan.unwrap();
    let points: Vec<String> = plan.points.iter().map(Point::describe).collect();
    assert_eq!(points, ["flood", "hunt rate=1M", "hunt rate=2M", "hunt protocol=quic"]);
    assert_eq!(plan.points[1].thresholds.len(), 1);
    assert!(toml("[hunt]\nrate = \"1M\"").is_ok(), "a hunt alone is a plan");
}

#[test]
fn faults_of_hunts_are_named() {
    assert_faults(
        "",
        &[
            ("[[hunt]]\nworkload = \"flood\"", "hunt[0].workload has no place in [[hunt]]"),
            ("[[cells]]\nworkload = \"hunt\"", "cells[0].workload is hunt: write [[hunt]]"),
            ("[[hunt]]\n[[hunt]]\nrate = \"200M\"", "hunt[1].rate is 200M: write 1M to 100M"),
            ("[[hunt]]\nrat = \"1M\"", "hunt[0].rat is no parameter of hunt: write rate"),
            ("hunt = [1]", "hunt[0] is no table"),
            (
                "[[hunt]]\nthresholds = [\"latency_p99_ns < 1ms\"]",
                "hunt[0].thresholds: threshold \"latency_p99_ns < 1ms\": hunt with these",
            ),
        ],
    );
}

#[test]
fn faults_of_hosts_are_named() {
    assert_faults(
        "[hosts]",
        &[
            ("a = 1", "hosts.a is no table"),
            ("a = {}", "hosts.a.transport is missing"),
            ("a = { transport = \"shh\" }", "hosts.a.transport is shh: write ssh"),
            ("a = { transport = \"ssh\" }", "hosts.a.address is missing"),
            (
                "a = { transport = \"ssh\", address = \"-oProxyCommand=x\" }",
                "hosts.a.address is \"-o",
            ),
            (
                "a = { transport = \"ssh\", address = \"h\", sudo = 1 }",
                "hosts.a.sudo is 1: give true",
            ),
            ("a = { transport = \"ssh\", adress = \"h\" }", "hosts.a.address is missing"),
            ("a = { transport = \"netns\" }", "hosts.a.namespace is missing"),
            ("a = { transport = \"local\", adress = \"h\" }", "hosts.a.adress is unknown"),
            (
                "a = { transport = \"kubernetes\", via = \"bridge\" }",
                "hosts.a.via is bridge: there are pod, cluster-ip, node-port",
            ),
            (
                "a = { transport = \"kubernetes\", start_timeout = \"2h\" }",
                "hosts.a.start_timeout is 2h: write a time up to 1h",
            ),
            ("\"a b\" = { transport = \"local\" }", "hosts.a b is no name"),
            (
                "a = { transport = \"local\" }\nb = { transport = \"local\" }",
                "hosts.b is the same machine as hosts.a (local)",
            ),
            (
                "a = { transport = \"ssh\", address = \"h\" }\nb = { transport = \"ssh\", address = \"h\" }",
                "hosts.b is the same machine as hosts.a (ssh h)",
            ),
        ],
    );
}

#[test]
fn faults_of_the_topology_are_named() {
    let before = "[hosts]\na = { transport = \"ssh\", address = \"ha\" }\n\
                  b = { transport = \"ssh\", address = \"hb\" }\n\
                  c = { transport = \"netns\", namespace = \"c\" }\n[topology]";
    assert_faults(
        before,
        &[
            ("kind = \"internodes\"", "topology.kind is internodes: write internode"),
            ("hosts = [\"d\"]", "topology.hosts names d, which is no host: "),
            ("hosts = [\"a\", \"a\"]", "topology.hosts has a twice"),
            ("kind = \"internode\"\nscale_out = 2", "topology: topology internode needs 4 hosts"),
            ("scale_up = 0", "topology.scale_up is 0: give a whole number from 1"),
            ("scale_up = 1.5", "topology.scale_up is 1.5"),
            ("kind = \"ingress\"", "topology.outside is missing"),
            ("kind = \"pairs\"", "topology.pairs is missing"),
            ("pairs = []", "topology.pairs is empty"),
            ("pairs = [[\"a\"]]", "topology.pairs[0] is no pair"),
            ("pairs = [[\"a\", \"x\"]]", "topology.pairs[0] names x, which is no host"),
            (
                "pairs = [[\"a\", \"b\"]]\nmesh = [\"a\", \"b\"]",
                "topology.pairs is given beside mesh",
            ),
            (
                "kind = \"mesh\"\npairs = [[\"a\", \"b\"]]",
                "topology.kind is mesh, and topology has pairs",
            ),
            ("incast = { to = \"a\", from = [\"a\"] }", "topology.incast.from has a"),
            (
                "kind = \"interhost\"\nhosts = [\"a\", \"b\"]\ndirection = \"up\"",
                "topology.direction is up",
            ),
            (
                "pairs = [[\"a\", \"c\"]]",
                "hosts.c.data_address is missing, and the client on a needs it",
            ),
            (
                "pairs = [{ client = \"a\", server = \"b\", port = 80 }, { client = \"b\", server = \"b\", port = 80 }]\n\
                 [[cells]]\nworkload = \"flood\"",
                "topology.pairs collide: pairs 1 and 2 both have their server on b at port 80",
            ),
            ("port = 70000", "topology.port is 70000"),
            (
                "port = 65535\nscale_up = 2\n[[cells]]\nworkload = \"flood\"",
                "topology.port is 65535, and pair 2 would have port 65536",
            ),
            ("speed = 1", "topology.speed is unknown"),
        ],
    );
}

#[test]
fn faults_of_schedule_and_collection_are_named() {
    let cells = "\n[[cells]]\nworkload = \"flood\"";
    let budget = format!("budget = \"9s\"{cells}");
    let many = format!("samples = 10000{cells}\nrate = [{}]", rates(100));
    assert_faults(
        "[schedule]",
        &[
            ("samples = 0", "schedule.samples is 0: give a whole number from 1 to 10000"),
            ("order = \"interleave\"", "schedule.order is interleave: write interleaved"),
            ("seed = -1", "schedule.seed is -1"),
            ("max_failures = 0", "schedule.max_failures is 0"),
            ("budget = \"2 hours\"", "schedule.budget is no time"),
            (&budget, "schedule.budget is 9.00 s, and one sample of each point takes 10.0 s"),
            ("on_host_loss = \"wait\"", "schedule.on_host_loss is wait: write stop or continue"),
            ("confidence = 0.9", "schedule.confidence is 0.9: write 0.95"),
            ("retries = 1", "schedule.retries is unknown"),
        ],
    );
    assert!(toml(&format!("[schedule]\n{many}")).is_ok());
    assert_faults(
        "[collect]",
        &[
            ("hz = \"x\"", "collect.hz is x"),
            ("hz = 100", "collect"),
            ("sources = [\"cpus\"]", "collect.sources has cpus: write cpu"),
            ("rate = 1", "collect.rate is unknown"),
        ],
    );
}

fn rates(count: u32) -> String {
    (1..=count).map(|rate| format!("\"{rate}M\"")).collect::<Vec<_>>().join(", ")
}

#[test]
fn faults_of_cells_are_named() {
    assert_faults(
        "[[cells]]\nworkload = \"ask\"\n[[cells]]",
        &[
            ("rate = \"1M\"", "cells[1].workload is missing: write one of flood, ask"),
            ("workload = \"floods\"", "cells[1].workload is floods: write flood"),
            (
                "workload = [\"flood\", \"ask\"]",
                "cells[1].workload is a list: write [[cells]] once",
            ),
        ],
    );
    assert_faults(
        "[[cells]]\nworkload = \"flood\"",
        &[
            ("rates = \"1M\"", "cells[0].rates is no parameter of flood: write rate"),
            ("server.rate = 1", "cells[0].server.rate is no parameter of flood"),
            ("rate = [\"1M\", \"200M\"]", "cells[0].rate is 200M: write 1M to 100M"),
            ("rate = []", "cells[0]: rate has no value"),
            ("rate = [\"1M\", \"1M\"]", "cells[0]: rate has the value 1M twice"),
            ("rate = [[1]]", "cells[0].rate has a list or a table as a value"),
            ("rate = { a = 1 }", "cells[0].rate has a list or a table as a value"),
            ("rate = nan", "the plan can't be read: "),
            (
                "rate = [\"1M\", \"2M\"]\nprotocol = \"tcp\"\nzip = [\"rate\", \"protocol\"]",
                "cells[0]: zip: rate has 2 values",
            ),
            ("zip = [[\"speed\"]]", "cells[0]: zip names speed, which is no axis here"),
            ("zip = 1", "cells[0].zip is no list"),
            (
                "rate = \"1M\"\nexclude = [{ rate = \"2M\" }]",
                "cells[0]: exclude: rate never has the value 2M",
            ),
            ("exclude = [1]", "cells[0].exclude is no list of tables"),
            (
                "thresholds = [\"goodput >= 1\"]",
                "cells[0].thresholds: threshold \"goodput >= 1\": flood with these parameters has no goodput: write goodput_bps",
            ),
            (
                "thresholds = [\"goodput_bps >= rate\"]",
                "cells[0].thresholds: threshold \"goodput_bps >= rate\": there is no axis rate",
            ),
            (
                "protocol = \"udp\"\nthresholds = [\"goodput_bps >= protocol\"]",
                "cells[0].thresholds: threshold \"goodput_bps >= protocol\": protocol is \"udp\"",
            ),
            (
                "thresholds = [\"goodput_bps\"]",
                "cells[0].thresholds: threshold \"goodput_bps\": there is no comparison",
            ),
        ],
    );
}

#[test]
fn the_schema_has_every_field_that_is_read() {
    let schema = crate::plan::schema();
    let names = |pointer: &str| -> Vec<String> {
        schema.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    for (text, pointer) in [
        ("zzz = 1\n[[cells]]\nworkload = \"flood\"", "/properties"),
        ("[topology]\nzzz = 1\n[[cells]]\nworkload = \"flood\"", "/properties/topology/properties"),
        ("[schedule]\nzzz = 1\n[[cells]]\nworkload = \"flood\"", "/properties/schedule/properties"),
        ("[collect]\nzzz = 1\n[[cells]]\nworkload = \"flood\"", "/properties/collect/properties"),
    ] {
        let error = toml(text).unwrap_err().to_string();
        let known = error.split("there are ").nth(1).unwrap().split(", ");
        let schema = names(pointer);
        for name in known {
            assert!(schema.contains(&name.to_owned()), "{pointer} lacks {name}");
        }
    }
}

#[test]
fn each_end_of_a_pair_in_a_cluster_has_a_pod() {
    let text = r#"
        [hosts]
        w0 = { transport = "kubernetes", namespace = "perf", node = "w0", node_cpus = 8 }
        [hosts.w1]
        transport = "kubernetes"
        namespace = "perf"
        node = "w1"
        via = "cluster-ip"
        annotations = { "a/b" = "true" }
        tolerations = [{ key = "k", value = "1", tolerationSeconds = 60 }]
        [topology]
        kind = "internode"
        scale_up = 2
        [[cells]]
        workload = "flood"
    "#;
    let plan = toml(text).unwrap();
    let names: Vec<&str> = plan.hosts.keys().map(String::as_str).collect();
    assert_eq!(names, ["w0-client-1", "w0-client-2", "w1-server-1", "w1-server-2"]);
    assert!(plan.pairs.iter().all(|pair| pair.address.is_empty() && pair.port != 0));
    let pods = plan.pods();
    assert_eq!(pods[0].2.pod["resources"]["requests"]["cpu"], "4000m");
    assert_eq!(pods[2].2.via, Some(crate::plan::Via::ClusterIp));
    assert_eq!(pods[2].2.pod["annotations"]["a/b"], "true");
    let toleration = &pods[2].2.pod["tolerations"][0];
    assert_eq!(toleration["value"], "1");
    assert_eq!(toleration["tolerationSeconds"], 60);
    assert_eq!(Plan::SCHEMA, plan.schema);
    let written = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&written).unwrap(), plan);
}
