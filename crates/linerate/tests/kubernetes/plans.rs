//! Plans whose hosts are pods.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, Said};
use crate::quiet::free_port;
use crate::stand_in::{Balancer, Fate, Fault};

/// A plan with these hosts and this topology, and a short test whose server is at a free port.
fn plan(hosts: &str, topology: &str, port: u16, cells: &str) -> String {
    format!("[hosts]\n{hosts}\n[topology]\nport = {port}\n{topology}\n[[cells]]\n{cells}\n")
}

const SHORT: &str = "workload = \"stream\"\nprotocol = \"tcp\"\ntime = \"200ms\"\nrate = \"1M\"";

const TWO_NODES: &str = "w0 = { transport = \"kubernetes\", node = \"w0\" }\n\
                         w1 = { transport = \"kubernetes\", node = \"w1\" }";

/// Whether a run was measured; on a busy machine it may not be trustworthy.
fn assert_measured(said: &Said) -> serde_json::Value {
    assert!(matches!(said.code, Some(0 | 6)), "{:?}: {}", said.code, said.stdout);
    serde_json::from_str(&said.stdout).unwrap()
}

#[test]
fn pods_measure_against_each_other() {
    let cluster = Cluster::new(Fate::Runs);
    let said = cluster.measure(&plan(TWO_NODES, "kind = \"internode\"", free_port(), SHORT));
    assert_measured(&said);
    let requests = cluster.server.requests();
    let made = requests.iter().filter(|r| r.starts_with("POST ") && r.ends_with("/jobs")).count();
    assert_eq!(made, 2, "{requests:?}");
    assert!(!requests.iter().any(|request| request.contains("/services")), "{requests:?}");
    assert_eq!(cluster.server.objects(), BTreeMap::new());
}

#[test]
fn pods_of_one_node_measure_through_a_service() {
    let cluster = Cluster::new(Fate::Runs);
    let hosts = "w0 = { transport = \"kubernetes\", node = \"w0\", via = \"cluster-ip\" }";
    let said = cluster.measure(&plan(hosts, "kind = \"intranode\"", free_port(), SHORT));
    assert_measured(&said);
    let requests = cluster.server.requests();
    assert!(requests.iter().any(|r| r.starts_with("POST ") && r.ends_with("/services")));
    assert_eq!(cluster.server.objects(), BTreeMap::new());
}

#[test]
fn a_host_outside_reaches_pods_by_a_port_of_their_node() {
    let cluster = Cluster::new(Fate::Runs);
    let hosts = "w0 = { transport = \"kubernetes\" }\nhere = { transport = \"local\" }";
    let topology = "kind = \"ingress\"\noutside = \"here\"";
    let said = cluster.measure(&plan(hosts, topology, free_port(), SHORT));
    assert_measured(&said);
    let requests = cluster.server.requests();
    assert!(requests.iter().any(|r| r.starts_with("POST ") && r.ends_with("/services")));
    assert_eq!(cluster.server.objects(), BTreeMap::new());
}

fn balanced(start_timeout: &str) -> String {
    let hosts = format!(
        "w0 = {{ transport = \"kubernetes\", via = \"load-balancer\", start_timeout = \"{start_timeout}\" }}\n\
         here = {{ transport = \"local\" }}"
    );
    plan(&hosts, "kind = \"ingress\"\noutside = \"here\"", free_port(), SHORT)
}

#[test]
fn a_host_outside_reaches_pods_by_a_load_balancer() {
    let cluster = Cluster::new(Fate::Runs);
    cluster.server.balance(Balancer::Gives("ip", "127.0.0.1"));
    let said = cluster.measure(&balanced("120s"));
    assert_measured(&said);
    let requests = cluster.server.requests();
    // One Service, which is looked at until it has its address.
    let of_services = || requests.iter().filter(|request| request.contains("/services"));
    assert_eq!(of_services().filter(|r| r.starts_with("POST ")).count(), 1, "{requests:?}");
    assert!(of_services().any(|request| request.starts_with("GET ")), "{requests:?}");
    assert_eq!(cluster.server.objects(), BTreeMap::new());
}

#[test]
fn a_load_balancer_that_gives_no_address_ends_the_cell_with_its_sentence() {
    let cluster = Cluster::new(Fate::Runs);
    cluster.server.balance(Balancer::Refuses);
    cluster.server.run_at_once();
    let said = cluster.measure(&balanced("1s"));
    assert!(!matches!(said.code, Some(0) | None), "{:?}", said.code);
    let all = format!("{}{}", said.stdout, said.stderr);
    assert!(all.contains("SyncLoadBalancerFailed: no address is left in the pool"), "{all}");
    assert_eq!(cluster.server.objects(), BTreeMap::new());
}

#[test]
fn pods_reach_a_host_outside_by_its_address() {
    let cluster = Cluster::new(Fate::Runs);
    let hosts = "w0 = { transport = \"kubernetes\" }\n\
                 here = { transport = \"local\", data_address = \"127.0.0.1\" }";
    let topology = "kind = \"egress\"\noutside = \"here\"";
    let said = cluster.measure(&plan(hosts, topology, free_port(), SHORT));
    assert_measured(&said);
    assert_eq!(cluster.server.objects(), BTreeMap::new());
}

#[test]
fn why_pods_do_not_run_ends_the_run() {
    for (fate, part) in [
        (Fate::Unschedulable, "0/2 nodes are available: 2 Insufficient cpu"),
        (Fate::NoImage, "ErrImagePull: registry/x:1: not found"),
    ] {
        let cluster = Cluster::new(fate);
        let said = cluster.measure(&plan(TWO_NODES, "kind = \"internode\"", 30_001, SHORT));
        assert!(!matches!(said.code, Some(0) | None), "{:?}", said.code);
        let all = format!("{}{}", said.stdout, said.stderr);
        assert!(all.contains(part), "{all}");
        assert_eq!(cluster.server.objects(), BTreeMap::new());
    }
    let cluster = Cluster::new(Fate::Runs);
    let sentence = "jobs.batch is forbidden: User u cannot create resource jobs";
    cluster.server.fail("POST /apis/batch", Fault::Status(403, sentence, ""));
    let said = cluster.measure(&plan(TWO_NODES, "kind = \"internode\"", 30_001, SHORT));
    let all = format!("{}{}", said.stdout, said.stderr);
    assert!(all.contains(sentence), "{all}");
}

/// A plan of many cells, and the lines of its records up to the end of the first cell.
fn until_a_cell_has_ended(
    cluster: &Cluster,
) -> (std::process::Child, impl Iterator<Item = String>) {
    let cells = "workload = \"stream\"\ntime = \"200ms\"\nrate = [\"1M\", \"2M\", \"3M\", \"4M\"]";
    let schedule = "[schedule]\nsamples = 200\n";
    let text = plan(TWO_NODES, "kind = \"internode\"", free_port(), cells);
    let mut child = cluster.begin(&format!("{schedule}{text}"));
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut lines = output.lines().map_while(Result::ok);
    let ended = lines.find(|line| line.contains("\"cell_ended\""));
    assert!(ended.is_some());
    (child, lines)
}

#[test]
fn a_node_that_is_cut_off_leaves_what_was_measured() {
    let cluster = Cluster::new(Fate::Runs);
    let (mut child, lines) = until_a_cell_has_ended(&cluster);
    cluster.server.cut_off();
    let rest: Vec<String> = lines.collect();
    let code = child.wait().unwrap().code();
    assert!(!matches!(code, Some(0) | None), "{code:?}");
    let all = rest.join("\n");
    assert!(all.contains("the pod is on node w0"), "{all}");
    assert_eq!(cluster.server.objects(), BTreeMap::new());
}

#[test]
fn what_a_killed_controller_leaves_can_be_cleaned() {
    let cluster = Cluster::new(Fate::Runs);
    let (mut child, _lines) = until_a_cell_has_ended(&cluster);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(cluster.server.objects().len(), 2);
    let run =
        cluster.server.objects().values().next().unwrap()["metadata"]["labels"]["linerate/run"]
            .as_str()
            .unwrap()
            .to_owned();
    let said = cluster.run(&["kubernetes", "clean", "--run", &run, "--dry-run"]);
    assert_eq!(said.stdout.matches("Job").count(), 2, "{}", said.stdout);
    assert_eq!(cluster.server.objects().len(), 2);
    assert_eq!(cluster.run(&["kubernetes", "clean", "--run", &run]).code, Some(0));
    assert_eq!(cluster.server.objects(), BTreeMap::new());
    // The agents have ended with their attach: their ports are free for others.
    let until = Instant::now() + Duration::from_secs(60);
    while cluster.server.running() > 0 {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_run_file_of_crucible_has_its_engines_in_pods() {
    let cluster = Cluster::new(Fate::Runs);
    // The server of number N listens at 30000 + 2 N. Below 32768 the system hands no port out by itself.
    let is_free =
        |id: &u32| std::net::TcpListener::bind(("127.0.0.1", 30_000 + 2 * *id as u16)).is_ok();
    let first = 1 + std::process::id() % 1_000;
    let id = (first..first + 300).find(is_free).unwrap();
    let file = serde_json::json!({
        "benchmarks": [{ "name": "iperf", "ids": id, "mv-params": { "sets": [{ "params": [
            { "arg": "time", "vals": ["1"] },
            { "arg": "bitrate", "vals": ["1M"] },
        ] }] } }],
        "endpoints": [{
            "type": "kube",
            "host": "bastion",
            "user": "core",
            "via": "cluster-ip",
            "engines": { "client": id, "server": id },
            "disable-tools": { "all": true },
            "config": [{ "targets": "default", "settings": {
                "nodeSelector": { "kubernetes.io/hostname": "w0" } } }],
        }],
    });
    let path = cluster.write("run.json", &file.to_string());
    let said = cluster.run(&["crucible", "run", "--from-file", path.to_str().unwrap()]);
    assert!(matches!(said.code, Some(0 | 6)), "{:?}: {}", said.code, said.stdout);
    assert!(said.stderr.contains("host has no effect"), "{}", said.stderr);
    let requests = cluster.server.requests();
    let made = requests.iter().filter(|r| r.starts_with("POST ") && r.ends_with("/jobs")).count();
    assert_eq!(made, 2, "{requests:?}");
    assert!(requests.iter().any(|r| r.starts_with("POST ") && r.ends_with("/services")));
    assert_eq!(cluster.server.objects(), BTreeMap::new());
}
