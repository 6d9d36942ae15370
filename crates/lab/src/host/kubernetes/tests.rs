//! Pods against an API server that the tests play.

mod objects;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::stand_in::{Balancer, Container, Fate, Fault, StandIn};
use super::stand_in_tls::Tls;
use super::*;
use crate::agent::{AgentProcess, ChildEventKind, Collectors, Moment, Readings, StartTask, hello};
use crate::collect::Request;
use crate::host::{HostEventKind, OpenOptions, Session};

/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

struct NoCollectors;

impl Collectors for NoCollectors {
    fn begin(&mut self, _request: Option<Request>, _now: Moment) {}

    fn poll_timeout(&self) -> Option<u64> {
        None
    }

    fn collect(&mut self, _now: Moment) -> Vec<Readings> {
        Vec::new()
    }
}

/// An agent in a thread, in place of a container.
fn agent() -> Container {
    let (input, stdin) = io::pipe().unwrap();
    let (stdout, output) = io::pipe().unwrap();
    thread::spawn(move || {
        let file = |pipe: OwnedFd| File::from(pipe);
        let process = AgentProcess::new(
            hello("1.0", &"0".repeat(64)),
            PathBuf::from("/nonexistent"),
            file(input.into()),
            file(output.into()),
        );
        process.run(&mut NoCollectors, &AtomicBool::new(false)).unwrap();
    });
    (Box::new(stdin), Box::new(stdout))
}

fn stand_in(fate: Fate) -> StandIn {
    StandIn::new(fate, "v5.channel.k8s.io", Box::new(agent))
}

fn opening(run: &str, number: &str) -> Opening {
    Opening { run: run.to_owned(), number: number.to_owned() }
}

/// A kubeconfig in a directory of its own.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config"), text).unwrap();
        Self { folder }
    }

    fn host(&self) -> KubernetesHost {
        KubernetesHost {
            kubeconfig: Some(self.folder.path().join("config").to_string_lossy().into_owned()),
            image: Some("registry/linerate:1".to_owned()),
            ..KubernetesHost::default()
        }
    }

    fn pods(&self, wanted: &[(&str, &str)]) -> Vec<NamedHost> {
        let wanted: Vec<WantedPod> = wanted
            .iter()
            .map(|(name, role)| WantedPod {
                name: (*name).to_owned(),
                role: (*role).to_owned(),
                host: self.host(),
                ports: vec![5201],
            })
            .collect();
        pods_of(&opening("0123abcd-run", "first"), &wanted, 600).unwrap()
    }
}

/// Waits until a host is open, or the error that it is lost with.
fn opened(session: &Session) -> Result<(), HostError> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match session.next_event(Duration::from_secs(1)).map(|event| event.kind) {
            Some(HostEventKind::Opened { .. }) => return Ok(()),
            Some(HostEventKind::Lost { error, .. }) => return Err(error),
            _ => {}
        }
    }
    panic!("nothing happened");
}

/// The error of one pod, and what was asked.
fn lost(server: &StandIn) -> HostError {
    let files = Files::new(&server.kubeconfig());
    let hosts = files.pods(&[("a", "client")]);
    let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    let error = opened(&session).unwrap_err();
    drop(session);
    drop(hosts);
    assert_eq!(server.objects(), BTreeMap::new(), "{:?}", server.requests());
    error
}

/// The way to a server at port 5201, once it is there.
fn reached(host: &NamedHost, client: &HostDescription) -> Result<(String, u16), HostError> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match host.host.reach(5201, client)? {
            Way::At(address, port) => return Ok((address, port)),
            Way::AsPlanned => panic!("a pod's address is not in the plan"),
            Way::Awaited(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
    panic!("the way does not come");
}

#[test]
fn pods_are_made_attached_to_and_removed() {
    for protocol in ["v5.channel.k8s.io", "v4.channel.k8s.io"] {
        let server = StandIn::new(Fate::Runs, protocol, Box::new(agent));
        let files = Files::new(&server.kubeconfig());
        let hosts = files.pods(&[("a", "client"), ("b", "server"), ("c", "server")]);
        let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
        for _ in 0..3 {
            opened(&session).unwrap();
        }
        let jobs = server.objects();
        let job = &jobs["/apis/batch/v1/namespaces/perf/jobs/linerate-0123abcdrun-first-server-1"];
        assert_eq!(job["spec"]["completions"], 2);
        assert_eq!(
            hosts[2].host.describe().address,
            "perf/linerate-0123abcdrun-first-server-1-1-abcde"
        );
        for host in 0..3 {
            session.close(host);
        }
        let mut closed = 0;
        let until = Instant::now() + PATIENCE;
        while closed < 3 && Instant::now() < until {
            let event = session.next_event(Duration::from_secs(1));
            closed += usize::from(event.is_some_and(|e| matches!(e.kind, HostEventKind::Closed)));
        }
        assert_eq!(closed, 3);
        drop(session);
        drop(hosts);
        assert_eq!(server.objects(), BTreeMap::new());
    }
}

#[test]
fn a_session_that_is_dropped_removes_pods_that_run() {
    let server = stand_in(Fate::Runs);
    let files = Files::new(&server.kubeconfig());
    let hosts = files.pods(&[("a", "client")]);
    let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    opened(&session).unwrap();
    drop(session);
    drop(hosts);
    assert_eq!(server.objects(), BTreeMap::new());
    let until = Instant::now() + PATIENCE;
    while server.running() > 0 {
        assert!(Instant::now() < until);
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_pod_whose_node_is_cut_off_is_lost_with_its_nodes_name() {
    let server = stand_in(Fate::Runs);
    let files = Files::new(&server.kubeconfig());
    let hosts = files.pods(&[("a", "client")]);
    let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    opened(&session).unwrap();
    server.cut_off();
    let error = opened(&session).unwrap_err();
    assert!(matches!(error.kind, HostErrorKind::Channel(_)), "{error}");
    assert!(error.said.contains("the pod is on node w0"), "{error}");
}

#[test]
fn a_server_is_reached_by_its_pod_inside_and_by_its_node_outside() {
    let server = stand_in(Fate::Runs);
    let files = Files::new(&server.kubeconfig());
    let hosts = files.pods(&[("a", "server")]);
    let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    opened(&session).unwrap();
    let inside = HostDescription { transport: "kubernetes", address: "perf/x".to_owned() };
    let outside = HostDescription { transport: "ssh", address: "h".to_owned() };
    let at = |port| ("127.0.0.1".to_owned(), port);
    assert_eq!(session.reach(0, 5201, 0).unwrap(), Way::At("127.0.0.1".to_owned(), 5201));
    assert_eq!(reached(&hosts[0], &inside).unwrap(), at(5201));
    assert_eq!(reached(&hosts[0], &outside).unwrap(), at(31_001));
    assert_eq!(reached(&hosts[0], &outside).unwrap(), at(31_001));
    let name = "/api/v1/namespaces/perf/services/linerate-0123abcdrun-first-server-0-0-5201";
    let service = &server.objects()[name];
    assert_eq!(service["spec"]["externalTrafficPolicy"], "Local");
    let owner = &service["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], "uid-of-linerate-0123abcdrun-first-server-0");
    drop(session);
    drop(hosts);
    assert_eq!(server.objects(), BTreeMap::new());
}

#[test]
fn other_ways_to_a_server_follow_the_plan() {
    let server = stand_in(Fate::Runs);
    let files = Files::new(&server.kubeconfig());
    for (via, expected) in [
        (Via::ClusterIp, ("127.0.0.1", 5201)),
        (Via::LoadBalancer, ("192.0.2.9", 5201)),
        (Via::HostPort, ("127.0.0.1", 5201)),
        (Via::Pod, ("127.0.0.1", 5201)),
    ] {
        let host = KubernetesHost { via: Some(via), ..files.host() };
        let wanted = WantedPod { name: "a".into(), role: "server".into(), host, ports: vec![5201] };
        let hosts = pods_of(&opening("run", "first"), &[wanted], 600).unwrap();
        let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
        opened(&session).unwrap();
        let client = HostDescription { transport: "local", address: String::new() };
        let (address, port) = reached(&hosts[0], &client).unwrap();
        assert_eq!((address.as_str(), port), expected, "{via:?}");
        if via == Via::HostPort {
            let job = &server.objects()["/apis/batch/v1/namespaces/perf/jobs/linerate-run-first-server-0"];
            let port = &job["spec"]["template"]["spec"]["containers"][0]["ports"][1];
            assert_eq!((&port["hostPort"], &port["protocol"]), (&json!(5201), &json!("UDP")));
        }
    }
}

/// What a client outside reaches through a load balancer.
fn balanced(balancer: Balancer, start_timeout_s: u32) -> Result<(String, u16), HostError> {
    let server = stand_in(Fate::Runs);
    server.balance(balancer);
    // The limit is that of the pod's start, too.
    server.run_at_once();
    let files = Files::new(&server.kubeconfig());
    let via = Some(Via::LoadBalancer);
    let host = KubernetesHost { via, start_timeout_s: Some(start_timeout_s), ..files.host() };
    let wanted = WantedPod { name: "a".into(), role: "server".into(), host, ports: vec![5201] };
    let hosts = pods_of(&opening("run", "first"), &[wanted], 600).unwrap();
    let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    opened(&session).unwrap();
    let client = HostDescription { transport: "local", address: String::new() };
    let reached = reached(&hosts[0], &client);
    let made = server.objects();
    let name = "/api/v1/namespaces/perf/services/linerate-run-first-server-0-0-5201";
    assert_eq!(made[name]["spec"]["type"], "LoadBalancer");
    drop(session);
    drop(hosts);
    assert_eq!(server.objects(), BTreeMap::new(), "{:?}", server.requests());
    reached
}

#[test]
fn a_load_balancers_address_is_awaited_and_its_service_removed() {
    for (kind, word) in [("ip", "192.0.2.7"), ("hostname", "lb.example")] {
        let reached = balanced(Balancer::Gives(kind, word), 60);
        assert_eq!(reached.unwrap(), (word.to_owned(), 5201));
    }
}

#[test]
fn a_load_balancer_that_gives_no_address_has_a_limit_and_a_sentence() {
    for (balancer, part) in [
        (Balancer::Silent, "the cluster tells nothing about it"),
        (Balancer::Refuses, "SyncLoadBalancerFailed: no address is left in the pool"),
    ] {
        let error = balanced(balancer, 1).unwrap_err();
        assert_eq!(error.kind, HostErrorKind::Cluster(Trouble::NoAddress), "{error}");
        assert!(error.said.contains(part), "{error}");
        assert!(error.to_string().contains("node-port"), "{error}");
    }
}

#[test]
fn why_a_pod_does_not_run_is_the_clusters_sentence() {
    let fates = [
        (
            Fate::Unschedulable,
            Trouble::Unschedulable,
            "0/2 nodes are available: 2 Insufficient cpu",
        ),
        (Fate::NoImage, Trouble::Image, "ErrImagePull: registry/x:1: not found"),
        (
            Fate::NotMounted,
            Trouble::NotStarted,
            "ContainerCreating; FailedMount: configmap \"files\" not found",
        ),
        (Fate::NotMade, Trouble::NotAdmitted, "exceeded quota: compute"),
        (Fate::Fails, Trouble::Ended, "has ended: StartError (exit code 128)"),
    ];
    // Some are waited for.
    thread::scope(|scope| {
        for (fate, trouble, part) in fates {
            scope.spawn(move || {
                let error = lost(&stand_in(fate));
                assert_eq!(error.kind, HostErrorKind::Cluster(trouble), "{error}");
                assert!(error.said.contains(part), "{error}");
                assert!(error.to_string().starts_with(trouble.sentence()), "{error}");
            });
        }
    });
}

#[test]
fn a_verb_that_is_missing_is_named() {
    let sentence = "jobs.batch is forbidden: User \"u\" cannot create resource \"jobs\"";
    let server = stand_in(Fate::Runs);
    server.fail("POST /apis/batch", Fault::Status(403, sentence, ""));
    let error = lost(&server);
    assert_eq!(error.kind, HostErrorKind::Cluster(Trouble::Forbidden));
    assert_eq!(error.said, sentence);
    assert!(error.to_string().contains("linerate kubernetes manifest"), "{error}");

    let quota = "jobs.batch \"j\" is forbidden: exceeded quota: jobs, used: 2, limited: 2";
    let server = stand_in(Fate::Runs);
    server.fail("POST /apis/batch", Fault::Status(403, quota, ""));
    let error = lost(&server);
    assert_eq!(error.kind, HostErrorKind::Cluster(Trouble::NotAdmitted));
    assert!(!error.to_string().contains("linerate kubernetes manifest"), "{error}");

    let server = stand_in(Fate::Runs);
    let sentence = "pods \"p\" is forbidden: User \"u\" cannot create resource \"pods/attach\"";
    for _ in 0..2 {
        server.fail("/attach?", Fault::Status(403, sentence, ""));
    }
    let error = lost(&server);
    assert_eq!(error.kind, HostErrorKind::Cluster(Trouble::Forbidden));
    assert_eq!(error.said, sentence);
}

#[test]
fn what_passes_is_tried_again() {
    let server = stand_in(Fate::Runs);
    server.fail("POST /apis/batch", Fault::Status(429, "too many", "Retry-After: 1\r\n"));
    server.fail("POST /apis/batch", Fault::Status(503, "not ready", ""));
    server.fail("GET /api/v1/namespaces/perf/pods", Fault::Cut);
    server.fail("GET /api/v1/namespaces/perf/pods", Fault::Slow(Duration::from_secs(1)));
    server.fail("watch=true", Fault::Status(410, "too old resource version", ""));
    server.fail("watch=true", Fault::Gone);
    server.fail("watch=true", Fault::HalfAnEvent);
    server.fail("/attach?", Fault::Cut);
    server.fail("/attach?", Fault::Status(500, "container not found", ""));
    let files = Files::new(&server.kubeconfig());
    let hosts = files.pods(&[("a", "client")]);
    let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    opened(&session).unwrap();
    let count = |part: &str| server.requests().iter().filter(|r| r.contains(part)).count();
    assert_eq!(count("POST /apis/batch"), 3);
    assert!(count("watch=true") >= 4, "{:?}", server.requests());
    assert!(count("/attach?") >= 3);
}

#[test]
fn an_answer_that_was_lost_does_not_make_a_second_job() {
    let server = stand_in(Fate::Runs);
    let files = Files::new(&server.kubeconfig());
    let config = find(Some(&files.folder.path().join("config")), None).unwrap();
    let client = Client::new(config);
    let job = |run: &str| json!({ "metadata": { "name": "j", "labels": { "linerate/run": run } } });
    let path = "/apis/batch/v1/namespaces/perf/jobs";
    client.create(path, &job("one")).unwrap();
    assert_eq!(client.create(path, &job("one")).unwrap()["metadata"]["uid"], "uid-of-j");
    let error = client.create(path, &job("two")).unwrap_err();
    assert!(error.said.contains("already exists"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let server = stand_in(Fate::Runs);
    let text = server.kubeconfig().replace(&server.address.to_string(), "127.0.0.1:9");
    let files = Files::new(&text);
    let hosts = files.pods(&[("a", "client")]);
    let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    let error = opened(&session).unwrap_err();
    assert_eq!(error.kind, HostErrorKind::Cluster(Trouble::Unreachable), "{error}");
}

#[test]
fn a_pod_that_is_late_says_how_far_it_is() {
    let server = stand_in(Fate::NeverStarts);
    let files = Files::new(&server.kubeconfig());
    let host = KubernetesHost { start_timeout_s: Some(1), ..files.host() };
    let wanted = WantedPod { name: "a".into(), role: "client".into(), host, ports: Vec::new() };
    let hosts = pods_of(&opening("run", "first"), &[wanted], 600).unwrap();
    let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    let error = opened(&session).unwrap_err();
    assert_eq!(error.kind, HostErrorKind::Cluster(Trouble::Late));
    let expected = "ContainerCreating; FailedMount: configmap \"files\" not found";
    assert!(error.said.contains(expected), "{error}");
}

/// A large image takes minutes, so that is no failure.
#[test]
fn an_image_that_is_pulled_for_long_is_told_while_the_pod_is_awaited() {
    let server = stand_in(Fate::Pulled);
    let files = Files::new(&server.kubeconfig());
    let hosts = files.pods(&[("a", "client")]);
    let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    let until = Instant::now() + PATIENCE;
    let said = loop {
        assert!(Instant::now() < until);
        match session.next_event(Duration::from_secs(1)).map(|event| event.kind) {
            Some(HostEventKind::Delayed(said)) => break said,
            None => {}
            other => panic!("{other:?}"),
        }
    };
    assert!(
        said.contains("ContainerCreating; its node has been pulling \"registry/x:1\" for"),
        "{said}"
    );
    assert!(said.ends_with("the pod may take 120 s until it runs"), "{said}");
}

/// The cluster keeps a finished Job for five minutes, and the pods of a controller that was killed for seconds.
#[test]
fn a_run_that_goes_on_does_not_meet_the_jobs_that_it_left() {
    let server = stand_in(Fate::Runs);
    let files = Files::new(&server.kubeconfig());
    let mut names = Vec::new();
    for number in ["first", "second"] {
        // Nothing can be removed: the controller was killed.
        server.fail("DELETE", Fault::Status(403, "no", ""));
        let wanted = WantedPod {
            name: "a".into(),
            role: "client".into(),
            host: files.host(),
            ports: Vec::new(),
        };
        let hosts = pods_of(&opening("run", number), &[wanted], 600).unwrap();
        let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
        opened(&session).unwrap();
        names.push(hosts[0].host.describe().address);
    }
    assert_eq!(
        names,
        ["perf/linerate-run-first-client-0-0-abcde", "perf/linerate-run-second-client-0-0-abcde"]
    );
    assert_eq!(server.objects().len(), 2);
    let at = |utc_ns| opening_number(Moment { monotonic_ns: 0, utc_ns });
    assert_eq!([at(0), at(1_000_000), at(36_000_000)], ["0000000", "1000000", "0100000"]);
    assert_eq!(at(i64::MAX).len(), 7);
}

#[test]
fn pods_are_attached_to_over_tls() {
    let server = stand_in(Fate::Runs);
    let tls = Tls::before(server.address);
    let files = Files::new(&tls.kubeconfig(&server.kubeconfig()));
    let hosts = files.pods(&[("a", "client"), ("b", "server")]);
    let mut session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    opened(&session).unwrap();
    opened(&session).unwrap();
    // A line longer than a TLS record.
    let start = StartTask { stdin: "x".repeat(100_000), ..StartTask::default() };
    let task = session.start(0, start);
    loop {
        let event = session.next_event(PATIENCE).unwrap();
        let HostEventKind::Child(child) = event.kind else { continue };
        assert_eq!(child.task, task);
        assert!(matches!(child.kind, ChildEventKind::Refused(_)), "{child:?}");
        break;
    }
    assert_eq!(tls.connections_in_clear(), 0);
    drop(session);
    drop(hosts);
    assert_eq!(server.objects(), BTreeMap::new());
}

#[test]
fn a_server_that_another_authority_has_signed_is_not_asked() {
    let server = stand_in(Fate::Runs);
    let (tls, other) = (Tls::before(server.address), Tls::before(server.address));
    let text = tls.kubeconfig(&server.kubeconfig());
    let files = Files::new(&text.replace(&tls.authority(), &other.authority()));
    let hosts = files.pods(&[("a", "client")]);
    let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    let error = opened(&session).unwrap_err();
    assert_eq!(error.kind, HostErrorKind::Cluster(Trouble::Unreachable), "{error}");
    assert!(error.said.contains("certificate"), "{error}");
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[test]
fn what_is_left_of_a_run_can_be_found_and_removed() {
    let server = stand_in(Fate::Runs);
    let files = Files::new(&server.kubeconfig());
    let hosts = files.pods(&[("a", "server")]);
    let session = Session::open(&hosts, &OpenOptions::default()).unwrap();
    opened(&session).unwrap();
    let client = HostDescription { transport: "ssh", address: String::new() };
    reached(&hosts[0], &client).unwrap();
    let config = find(Some(&files.folder.path().join("config")), None).unwrap();
    let client = Client::new(config);
    let left = roles::left(&client, "perf", Some("0123abcd-run")).unwrap();
    let kinds: Vec<&str> = left.iter().map(|left| left.kind).collect();
    assert_eq!(kinds, ["Service", "Job"]);
    assert!(left.iter().all(|left| left.run == "0123abcd-run"));
    for one in &left {
        roles::remove(&client, "perf", one).unwrap();
    }
    assert_eq!(server.objects(), BTreeMap::new());
    assert!(server.requests().iter().any(|request| {
        request.contains(
            "labelSelector=app.kubernetes.io/managed-by=linerate,linerate/run=0123abcd-run",
        )
    }));
    assert!(client.version().unwrap().starts_with("v1."));
    let missing = roles::permissions(&client, "perf").unwrap();
    let missing: Vec<&str> =
        missing.iter().filter(|one| !one.is_allowed).map(|one| one.resource).collect();
    assert_eq!(missing, ["pods/log"]);
    roles::try_job(&client, "perf", &files.host()).unwrap();
    assert_eq!(server.objects(), BTreeMap::new());
}
